import { expect, it } from "vitest";
import { within } from "../src/lib/within.ts";

it("gives the value or the error of the work, and throws when the work is late", async () => {
  expect(await within(Promise.resolve(5), 1000)).toBe(5);
  await expect(within(Promise.reject(new Error("broken")), 1000)).rejects.toThrow("broken");
  await expect(within(new Promise(() => undefined), 1)).rejects.toThrow("no answer within 1 ms");
});
