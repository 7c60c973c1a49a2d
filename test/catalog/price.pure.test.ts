import * as fc from "fast-check";
import { expect, it } from "vitest";
import { getPriceForPrompt, applyMarkup } from "../../src/models/catalog/price.ts";
import { NO_USAGE } from "../../src/shared/usage.ts";
import type { Price, Usage } from "../../src/shared/usage.ts";
import { computeCost } from "../../src/shared/cost.ts";

const FREE: Price = { input: 0, cached: 0, cacheWrite: 0, output: 0 };
const count = fc.nat(10_000_000);
const usages: fc.Arbitrary<Usage> = fc.record({
  input: count,
  cacheRead: count,
  cacheWrite: count,
  output: count,
  reasoning: fc.constant(0),
});
const perMillion = fc.nat(1_000_000_000);
const prices: fc.Arbitrary<Price> = fc.record({
  input: perMillion,
  cached: perMillion,
  cacheWrite: perMillion,
  output: perMillion,
});

/** The definition of a charge, in integers without a limit. */
function exact(price: Price, usage: Usage): number {
  const sum =
    BigInt(usage.input) * BigInt(price.input) +
    BigInt(usage.cacheRead) * BigInt(price.cached) +
    BigInt(usage.cacheWrite) * BigInt(price.cacheWrite) +
    BigInt(usage.output) * BigInt(price.output);
  return Number((sum + 999_999n) / 1_000_000n);
}

it("a charge is one micro-credit for one token at 0.15 $/M, and nothing for zero tokens", () => {
  const price = { ...FREE, input: 150_000 };
  expect(computeCost(price, { ...NO_USAGE, input: 1 })).toBe(1);
  expect(computeCost(price, NO_USAGE)).toBe(0);
  expect(computeCost({ ...FREE, input: 1_000_000 }, { ...NO_USAGE, input: 7 })).toBe(7);
});

it("a charge is the exact cost, rounded up once, even beyond 2^53", () => {
  fc.assert(fc.property(prices, usages, (p, u) => computeCost(p, u) === exact(p, u)));
  const huge = { ...NO_USAGE, input: 999_999_999, output: 999_999_999 };
  const dear = { ...FREE, input: 999_999_999, output: 999_999_999 };
  expect(computeCost(dear, huge)).toBe(exact(dear, huge));
});

it("a charge never decreases with more tokens, and includes reasoning only as output", () => {
  fc.assert(
    fc.property(prices, usages, fc.nat(1000), (price, usage, more) => {
      for (const field of ["input", "cacheRead", "cacheWrite", "output"] as const) {
        const larger = { ...usage, [field]: usage[field] + more };
        expect(computeCost(price, larger)).toBeGreaterThanOrEqual(computeCost(price, usage));
      }
      expect(computeCost(price, { ...usage, reasoning: more })).toBe(computeCost(price, usage));
    }),
  );
});

it("splitting a request in two raises the charge by at most one micro-credit", () => {
  fc.assert(
    fc.property(prices, usages, usages, (price, a, b) => {
      const both = {
        input: a.input + b.input,
        cacheRead: a.cacheRead + b.cacheRead,
        cacheWrite: a.cacheWrite + b.cacheWrite,
        output: a.output + b.output,
        reasoning: 0,
      };
      expect([0, 1]).toContain(
        computeCost(price, a) + computeCost(price, b) - computeCost(price, both),
      );
    }),
  );
});

it("calculating a charge throws for invalid token counts and for charges above the largest safe integer", () => {
  const dear = { ...FREE, input: Number.MAX_SAFE_INTEGER };
  expect(() => computeCost(dear, { ...NO_USAGE, input: 1e9 })).toThrow("safe integer");
  for (const input of [-1, 0.5, Number.NaN]) {
    expect(() => computeCost(FREE, { ...NO_USAGE, input })).toThrow("whole and not negative");
  }
});

it("a markup adds at least the exact percentage and at most one micro-credit more", () => {
  fc.assert(
    fc.property(prices, fc.nat(1000), (price, percent) => {
      const marked = applyMarkup(price, percent);
      for (const field of ["input", "cached", "cacheWrite", "output"] as const) {
        const over = marked[field] * 100 - price[field] * (100 + percent);
        expect(over >= 0 && over < 100).toBe(true);
      }
    }),
  );
});

it("the long-prompt price applies to prompts with at least one token above the limit", () => {
  const price = { ...FREE, input: 1 };
  const long = { ...FREE, input: 2 };
  const route = { provider: "p", upstreamId: "m", price };
  const tiered = { ...route, longPrompt: { aboveTokens: 272_000, price: long } };
  expect([getPriceForPrompt(tiered, 272_000), getPriceForPrompt(tiered, 272_001)]).toEqual([
    price,
    long,
  ]);
  expect(getPriceForPrompt(route, 1_000_000)).toBe(price);
});

it("a one-hour cache write costs twice the input price, and other cache writes have a separate price", () => {
  const price = { input: 1_000_000, cached: 0, cacheWrite: 1_250_000, output: 0 };
  const usage = { ...NO_USAGE, cacheWrite: 100, cacheWriteHour: 40 };
  expect(computeCost(price, usage)).toBe(60 * 1.25 + 40 * 2);
});
