import { assert, integer, property } from "fast-check";
import { expect, it } from "vitest";
import { homeCallBudgetMs } from "../../src/regions/peer-call.ts";

it("a lookup of at most 2 s and the subsequent call to the home region end within 2.5 s", () => {
  assert(
    property(integer({ min: 0, max: 2000 }), (spentMs) => {
      expect(spentMs + homeCallBudgetMs(spentMs)).toBeLessThan(2500);
    }),
  );
});

it.each([
  [0, 2000],
  [300, 2000],
  [1000, 1300],
  [2000, 300],
  [6000, 200],
])(
  "a call to the home region that starts after %i ms has a time limit of %i ms",
  (spentMs, leftMs) => {
    expect(homeCallBudgetMs(spentMs)).toBe(leftMs);
  },
);
