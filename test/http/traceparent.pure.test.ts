import { expect, it } from "vitest";
import { parseTraceparent } from "../../src/shared/traceparent.ts";

const [trace, parent] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];

it.each([
  [`00-${trace}-${parent}-01`, `${trace}-${parent}`],
  [`01-${trace}-${parent}-01-later`, `${trace}-${parent}`],
  [`00-${trace}-${parent}-01-later`, undefined],
  [`ff-${trace}-${parent}-01`, undefined],
  [`00-${"0".repeat(32)}-${parent}-01`, undefined],
  [`00-${trace}-${"0".repeat(16)}-01`, undefined],
  [`00-${trace.toUpperCase()}-${parent}-01`, undefined],
  ["", undefined],
  [undefined, undefined],
])("the traceparent parser reads %s as %s", (header, expected) => {
  expect(parseTraceparent(header)).toBe(expected);
});
