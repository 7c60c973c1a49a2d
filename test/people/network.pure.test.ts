import { expect, it } from "vitest";
import { getNetworkOfAddress } from "../../src/shared/network.ts";

it.each([
  ["198.51.100.7", "198.51.100.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:0db8:0001:0002"],
  ["2001:db8:1:2::9", "2001:0db8:0001:0002"],
  ["2001:db8::1:2", "2001:0db8:0000:0000"],
  ["", ""],
])("the network of the address '%s' is '%s'", (address, network) => {
  expect(getNetworkOfAddress(address)).toBe(network);
});
