import { assert, integer, property } from "fast-check";
import { expect, it } from "vitest";
import { homeBudgetMs } from "../../src/regions/home-budget.ts";

it("the time budget ends a lookup of at most 2 s and the call after it within 2.5 s", () => {
  assert(
    property(integer({ min: 0, max: 2000 }), (spentMs) => {
      expect(spentMs + homeBudgetMs(spentMs)).toBeLessThan(2500);
    }),
  );
});

it.each([
  [0, 2000],
  [300, 2000],
  [1000, 1300],
  [2000, 300],
  [6000, 200],
])("the time budget of a call to the home region is, after %i ms, %i", (spentMs, leftMs) => {
  expect(homeBudgetMs(spentMs)).toBe(leftMs);
});
