import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Route } from "../../src/models/catalog/model.ts";
import { getPriceForPrompt } from "../../src/models/catalog/price.ts";
import { findCapableRoutes } from "../../src/models/requests/bound-request.ts";
import type { ChatBody } from "../../src/models/core/core-request.ts";
import {
  computeAffordableCap,
  computeCostBounds,
  computeOutputCap,
} from "../../src/models/requests/hold-bounds.ts";
import { micros } from "../../src/shared/money.ts";
import { NO_USAGE } from "../../src/shared/usage.ts";
import { MODEL } from "./run-fixture.ts";
import { computeCost } from "../../src/shared/cost.ts";

const perMillion = fc.integer({ min: 0, max: 80_000_000 });
const tokens = {
  input: perMillion,
  cached: perMillion,
  cacheWrite: perMillion,
  output: perMillion,
};
const price = fc.oneof(
  fc.record(tokens),
  fc.record({
    ...tokens,
    units: fc.record({ request: fc.nat(50_000_000_000_000), image: perMillion }),
  }),
);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const route: fc.Arbitrary<Route> = fc
  .record({
    price,
    longPrompt: maybe(fc.record({ aboveTokens: fc.nat(200_000), price })),
    context: maybe(fc.integer({ min: 1, max: 400_000 })),
    maxOutput: maybe(fc.integer({ min: 1, max: 128_000 })),
    choices: maybe(fc.integer({ min: 1, max: 8 })),
    outputFactor: maybe(fc.oneof(fc.constant(2), fc.double({ min: 1, max: 4, noNaN: true }))),
    reasoningTokens: maybe(fc.nat(60_000)),
    lacks: maybe(fc.constant(["tools" as const])),
  })
  .map(({ price: own, longPrompt, ...limits }) => {
    const defined = Object.entries(limits).filter(([, value]) => value !== undefined);
    const known = {
      provider: "up",
      upstreamId: "m",
      dataRegion: "global" as const,
      price: own,
      limits: Object.fromEntries(defined),
    };
    return longPrompt === undefined ? known : Object.assign(known, { longPrompt });
  });
const sizes = fc
  .tuple(fc.nat(200_000), fc.nat(200_000), fc.nat(200_000))
  .map((all) => all.toSorted((a, b) => a - b))
  .map(([likely = 0, estimate = 0, bound = 0]) => ({ likely, estimate, bound }));
const request = fc.record({
  routes: fc.array(route, { minLength: 1, maxLength: 5 }),
  prompt: sizes,
  outputLimits: fc.record({
    cap: fc.option(fc.integer({ min: 1, max: 200_000 })),
    choices: fc.integer({ min: 1, max: 8 }),
    defaultCap: fc.constantFrom(100, 4096, Infinity),
    thinks: fc.boolean(),
  }),
  calls: fc.boolean(),
  /** The position of the grant between the minimum and the maximum. */
  at: fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true })),
});

/**
 * Returns the maximum cost at this cap with this number of prompt tokens. Reasoning can be outside
 * of the cap.
 */
function worst(
  at: Route,
  { bound, input }: { bound: number; input: number },
  { cap, choices }: { cap: number; choices: number },
) {
  const { outputFactor = 1, reasoningTokens = 0 } = at.limits ?? {};
  const output = Math.max(
    Math.ceil(cap * choices * outputFactor),
    (cap + reasoningTokens) * choices,
  );
  return computeCost(getPriceForPrompt(at, bound), { ...NO_USAGE, input, output });
}

it("a hold covers the output cap that is sent to each possible route", () => {
  fc.assert(
    fc.property(request, ({ routes, prompt, outputLimits, calls, at }) => {
      const size = { context: 400_000, maxOutput: 128_000, thinkingFloor: 1024 };
      const model = { ...MODEL, ...size, routes };
      const cap = computeOutputCap(model, prompt, outputLimits);
      const chat: ChatBody = { model: "m", messages: [{ role: "user", content: "Hi" }] };
      if (calls) chat.tools = [{ type: "function", function: { name: "f" } }];
      const able = findCapableRoutes(model, { chat, prompt, cap });
      fc.pre(able.ok);
      const { least, most } = computeCostBounds(able.value, prompt, cap);
      const granted = micros(least + Math.floor((most - least) * at));
      for (const one of able.value) {
        const sent = computeAffordableCap(one, prompt, cap, granted) ?? 0;
        const room = cap.isAsked ? Infinity : (one.limits?.context ?? Infinity) - prompt.estimate;
        const allowed = Math.min(cap.whole, one.limits?.maxOutput ?? cap.whole);
        const whole = Math.min(allowed, Math.max(cap.least, room));
        expect(sent).toBeGreaterThanOrEqual(granted === most ? whole : cap.least);
        expect(sent).toBeLessThanOrEqual(whole);
        const { bound, estimate } = prompt;
        const input = granted === most ? bound : estimate;
        const { choices } = cap;
        expect(worst(one, { bound, input }, { cap: sent, choices })).toBeLessThanOrEqual(granted);
      }
    }),
    { numRuns: 1000 },
  );
});

it("the default output cap is the model's maximum, unless the context window leaves less", () => {
  const model = { ...MODEL, context: 400_000, maxOutput: 128_000 };
  const prompt = { likely: 8000, estimate: 10_000, bound: 40_000 };
  const cap = computeOutputCap(model, prompt, { cap: null, choices: 1, defaultCap: Infinity });
  expect(cap).toMatchObject({ whole: 128_000, isAsked: false });
  const [known] = model.routes;
  const capOf = (limits: Route["limits"], isAsked: boolean) =>
    computeAffordableCap(
      { ...known, ...(limits && { limits }) } as Route,
      prompt,
      { ...cap, isAsked },
      micros(1e9),
    );
  expect(capOf(undefined, false)).toBe(128_000);
  expect(capOf({ context: 32_768 }, false)).toBe(22_768);
  expect(capOf({ context: 32_768 }, true)).toBe(128_000);
});
