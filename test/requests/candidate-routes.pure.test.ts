import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { getPriceForPrompt } from "../../src/models/catalog/price.ts";
import type { Route } from "../../src/models/catalog/model.ts";
import { toRoutePreferences } from "../../src/models/core/gateway-fields.ts";
import { listPreferredRoutes } from "../../src/models/requests/candidate-routes.ts";
import { RouteSpeeds } from "../../src/models/routing/route-times.ts";
import { computeCost } from "../../src/shared/cost.ts";
import { sumPromptTokens } from "../../src/shared/usage.ts";
import { effortFor } from "../effort.ts";

const perMillion = fc.integer({ min: 0, max: 5_000_000 });
const price = fc.record({
  input: perMillion,
  cached: perMillion,
  cacheWrite: perMillion,
  output: perMillion,
});
const route: fc.Arbitrary<Route> = fc
  .record({ provider: fc.constantFrom("a", "b", "c"), price, long: fc.option(price) })
  .map(({ long, ...usual }) => {
    const longPrompt = long === null ? {} : { longPrompt: { aboveTokens: 100, price: long } };
    return Object.assign(usual, { upstreamId: "m", dataRegion: "eu" }, longPrompt);
  });

function routeOf(provider: string, each: number): Route {
  const same = { input: each, cached: each, cacheWrite: each, output: each };
  return { provider, upstreamId: "m", dataRegion: "eu", price: same };
}

const MODEL = { id: "test/model" };
const PROMPT = { bound: 200, estimate: 150, likely: 120 };
const CAP = { whole: 50, least: 10, choices: 1, isAsked: true };
const IDS = new Set(["a", "b", "c"]);

function chosen(routes: readonly Route[], provider: object, times = new RouteSpeeds()) {
  const preferences = toRoutePreferences(provider, null, null);
  if (preferences === null) throw new Error("no preferences");
  const speedOf = (name: string) => times.speedOf(name, "org");
  const choice = { preferences, prompt: PROMPT, cap: CAP, providerIds: IDS, speedOf };
  return listPreferredRoutes(MODEL, routes, choice);
}

/** A route of provider b that also has a price for a unit. */
function pricedBy(unit: string): Route {
  const usual = routeOf("b", 1);
  return { ...usual, price: { ...usual.price, units: { [unit]: 1 } } };
}

function idsOf(routes: readonly Route[], provider: object): readonly string[] {
  const remaining = chosen(routes, provider);
  return remaining.ok ? remaining.value.map(({ provider: id }) => id) : [];
}

describe("listPreferredRoutes", () => {
  const usage = fc
    .record({
      input: fc.integer({ min: 0, max: 60 }),
      cacheRead: fc.integer({ min: 0, max: 60 }),
      cacheWrite: fc.integer({ min: 0, max: 60 }),
      output: fc.integer({ min: 0, max: 50 }),
    })
    .map((counts) => Object.assign(counts, { reasoning: 0 }));
  const dollars = fc.integer({ min: 0, max: 5000 }).map((thousandths) => thousandths / 1000);

  it("keeps the charge of every route within max_price, rounded up once", () => {
    const property = fc.property(
      fc.array(route, { minLength: 1, maxLength: 4 }),
      fc.record({ prompt: dollars, completion: dollars }),
      usage,
      (routes, max_price, used) => {
        const remaining = chosen(routes, { max_price });
        if (!remaining.ok) return;
        const tokens = sumPromptTokens(used);
        const limit = Math.ceil(tokens * max_price.prompt + used.output * max_price.completion);
        for (const one of remaining.value) {
          expect(computeCost(getPriceForPrompt(one, tokens), used)).toBeLessThanOrEqual(
            limit + 1e-6,
          );
        }
      },
    );
    fc.assert(property, { numRuns: effortFor(500, 20_000) });
  });

  it("excludes routes with a price per unit that max_price doesn't limit", () => {
    const max_price = { prompt: 1, completion: 1, request: 1 };
    for (const unit of ["image", "search_unit"]) {
      const routes = [pricedBy(unit), routeOf("a", 1)];
      expect(idsOf(routes, { max_price })).toEqual(["a"]);
      expect(idsOf(routes, { ignore: ["c"] })).toEqual(["b", "a"]);
    }
    expect(idsOf([pricedBy("request")], { max_price })).toEqual(["b"]);
  });

  it("sorts by price, latency or throughput, and puts unmeasured routes last", () => {
    const routes = [routeOf("a", 3), routeOf("b", 1), routeOf("c", 2)];
    const times = new RouteSpeeds();
    for (let n = 0; n < 3; n++) {
      times.record({ route: "c:m", orgId: "org" }, { latencyMs: 900, streamMs: 1000, output: 100 });
      times.record({ route: "b:m", orgId: "org" }, { latencyMs: 300, streamMs: 1000, output: 20 });
    }
    const orderBy = (sort: string): string => {
      const remaining = chosen(routes, { sort }, times);
      return remaining.ok ? remaining.value.map(({ provider }) => provider).join("") : "";
    };
    expect([orderBy("price"), orderBy("latency"), orderBy("throughput")]).toEqual([
      "bca",
      "bca",
      "cba",
    ]);
  });
});
