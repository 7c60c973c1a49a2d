import { describe, expect, it } from "vitest";
import { createPriceList } from "../../src/models/catalog/price-lists.ts";
import type { Pricing } from "../../src/models/catalog/price-lists.ts";
import { toRoutePreferences } from "../../src/models/core/gateway-fields.ts";
import { computeCostBounds } from "../../src/models/requests/hold-bounds.ts";
import { applyPricing } from "../../src/models/requests/model-options.ts";
import type { ModelOption, PaidRequest } from "../../src/models/requests/paid-request.ts";
import { MODEL, ROUTE, runOf } from "./run-fixture.ts";

const { request: REQUEST } = runOf();
const { prompt, cap } = REQUEST;

const speedOf = () => ({ latencyMs: null, tokensPerSecond: null });

/** Returns a model with one route for each input price in dollars per million tokens. */
function optionOf(id: string, prices: readonly number[], maximum: number): ModelOption {
  const routes = prices.map((dollars, at) => {
    const input = dollars * 1_000_000;
    const price = { input, cached: input, cacheWrite: input, output: input };
    return { ...ROUTE, provider: `${id}${at}`, price };
  });
  const preferences = toRoutePreferences({ max_price: { prompt: maximum } }, null, null);
  if (preferences === null) throw new Error("a maximum price is a preference");
  const choice = { preferences, prompt, cap, providerIds: new Set<string>(), speedOf };
  const model = { ...MODEL, id, routes };
  const bounds = computeCostBounds(routes, prompt, cap);
  const terms = { prompt, cap, bounds, conversationHash: null, mayThink: false };
  return { sent: id, model, routes, choice, ...terms };
}

const pricingOf = (percent: number): Pricing => {
  const list = createPriceList("own", [{ item: "*", from: 0, says: { percent } }]);
  return { list: "own", at: 1, lists: [list] };
};

const providersOf = ({ routes }: Pick<ModelOption, "routes">) =>
  routes.map(({ provider }) => provider);

describe("repricing a request", () => {
  it("excludes routes whose new price exceeds max_price, and caps the remaining routes by max_price", () => {
    const request: PaidRequest = { ...REQUEST, ...optionOf("a", [1, 2], 2.5) };
    expect(applyPricing(request, pricingOf(50))).toBeNull();
    expect(providersOf(request)).toEqual(["a0"]);
    expect(request.routes[0]?.price.input).toBe(1_500_000);
    expect(request.bounds).toEqual(computeCostBounds(request.routes, prompt, cap));
    expect(request.pricing.list).toBe("own");
  });

  it("excludes models without a remaining route, and returns an error if no model remains", () => {
    const options = [optionOf("a", [2], 2.5), optionOf("b", [1, 2], 2.5), optionOf("c", [1], 2.5)];
    const [first] = options;
    const request: PaidRequest = { ...REQUEST, ...first, options };
    expect(applyPricing(request, pricingOf(50))).toBeNull();
    expect(request.options?.map(providersOf)).toEqual([["b0"], ["c0"]]);
    expect([request.model.id, providersOf(request)]).toEqual(["b", ["b0"]]);
    expect(applyPricing(request, pricingOf(200))).toMatchObject({
      failure: { kind: "invalid_request", param: "provider.max_price" },
    });
  });
});
