import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Model } from "../../src/models/catalog/model.ts";
import {
  computeAffordableCap,
  computeCostBounds,
  computeOutputCap,
} from "../../src/models/requests/hold-bounds.ts";
import { micros } from "../../src/shared/money.ts";
import { NO_USAGE } from "../../src/shared/usage.ts";
import type { Price } from "../../src/shared/usage.ts";
import { computeCost } from "../../src/shared/cost.ts";

const perMillion = fc.integer({ min: 0, max: 80_000_000 });
const price: fc.Arbitrary<Price> = fc.record({
  input: perMillion,
  cached: perMillion,
  cacheWrite: perMillion,
  output: perMillion,
});
const prompt = fc
  .tuple(fc.nat(200_000), fc.nat(200_000), fc.nat(200_000))
  .map((sizes) => sizes.toSorted((a, b) => a - b))
  .map(([likely = 0, estimate = 0, bound = 0]) => ({ likely, estimate, bound }));
const model: fc.Arbitrary<Model> = fc
  .record({
    prices: fc.array(price, { minLength: 1, maxLength: 3 }),
    context: fc.integer({ min: 1, max: 1_000_000 }),
    maxOutput: fc.integer({ min: 1, max: 128_000 }),
    minOutput: fc.integer({ min: 1, max: 100 }),
  })
  .map(({ prices, context, maxOutput, minOutput }) => ({
    id: "m",
    kind: "chat",
    ownedBy: "x",
    created: 0,
    abilities: [],
    imageTokens: 0,
    estimateFactor: 1.15,
    context,
    maxOutput,
    minOutput,
    routes: prices.map((each, i) => ({
      provider: `p${i}`,
      upstreamId: "m",
      dataRegion: "global" as const,
      price: each,
    })),
  }));
const outputLimits = fc.record({
  cap: fc.option(fc.integer({ min: 1, max: 200_000 })),
  choices: fc.integer({ min: 1, max: 8 }),
  defaultCap: fc.constant(4096),
});

it("a maximum hold covers the whole output cap on every route, at the upper bound of prompt tokens", () => {
  fc.assert(
    fc.property(model, prompt, outputLimits, (m, size, limits) => {
      const cap = computeOutputCap(m, size, limits);
      const { most } = computeCostBounds(m.routes, size, cap);
      for (const route of m.routes) {
        expect(computeAffordableCap(route, size, cap, most)).toBe(cap.whole);
        const worst = { ...NO_USAGE, input: size.bound, output: cap.whole * cap.choices };
        expect(computeCost(route.price, worst)).toBeLessThanOrEqual(most);
      }
    }),
  );
});

it("a hold below the maximum allows an output cap between the minimum and the maximum on every route", () => {
  fc.assert(
    fc.property(
      model,
      prompt,
      outputLimits,
      fc.double({ min: 0, max: 1, noNaN: true }),
      (m, size, limits, at) => {
        const cap = computeOutputCap(m, size, limits);
        const { least, most } = computeCostBounds(m.routes, size, cap);
        const granted = micros(least + Math.floor((most - least) * at));
        const caps = m.routes.map((route) => computeAffordableCap(route, size, cap, granted));
        for (const [i, route] of m.routes.entries()) {
          const bought = caps[i] ?? null;
          expect(bought).not.toBeNull();
          expect(bought).toBeGreaterThanOrEqual(cap.least);
          expect(bought).toBeLessThanOrEqual(cap.whole);
          const output = (bought ?? 0) * cap.choices;
          const likelyCost = computeCost(route.price, {
            ...NO_USAGE,
            input: size.estimate,
            output,
          });
          expect(likelyCost).toBeLessThanOrEqual(granted);
        }
      },
    ),
  );
});

it("an output cap is above 0 and at most the model's maximum", () => {
  fc.assert(
    fc.property(model, prompt, outputLimits, (m, size, limits) => {
      const cap = computeOutputCap(m, size, limits);
      expect(cap.whole).toBeGreaterThanOrEqual(1);
      expect(cap.whole).toBeLessThanOrEqual(m.maxOutput);
      expect(cap.least).toBeLessThanOrEqual(cap.whole);
    }),
  );
});
