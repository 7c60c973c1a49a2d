import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findUnchangedSpan } from "../../src/models/catalog/price.ts";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { getDeployment } from "../../src/models/requests/deployment.ts";
import { catalogOf, configWith, liveModelsIn } from "./config-fixture.ts";

const at = (moment: string): number => Date.parse(moment);
const sold = (moment: string, vars: Readonly<Record<string, string>> = {}) =>
  catalogOf({ REGION: "us", ...vars }, liveModelsIn("us"), at(moment)).models;
const pricesOf = (id: string, moment: string) =>
  sold(moment)
    .get(id)
    ?.routes.map(({ price: { input, output } }) => [input, output]);

/** Returns the model list of the US as text. */
const listed = (ms: number): string =>
  JSON.stringify([...catalogOf({ REGION: "us" }, liveModelsIn("us"), ms).models]);

describe("the catalog at a given time", () => {
  it("ends a promotional price after the promotion's last day, and then applies the higher price", () => {
    const model = "openai/gpt-5.6-sol";
    expect(pricesOf(model, "2026-11-21T23:59:59.999Z")).toEqual([[4_400_000, 22_000_000]]);
    expect(pricesOf(model, "2026-11-22T00:00:00Z")).toEqual([[5_500_000, 33_000_000]]);
  });

  it("applies an announced price to every route from the announced day on", () => {
    for (const model of ["google/gemini-3.7-flash", "google/gemini-3.8-flash"]) {
      const before = pricesOf(model, "2026-12-31T23:59:59.999Z") ?? [];
      const doubled = before.map((prices) => prices.map((price) => (price ?? 0) * 2));
      expect(before.length).toBeGreaterThan(0);
      expect(pricesOf(model, "2027-01-01T00:00:00Z")).toEqual(doubled);
    }
  });

  it.each([
    ["openai/gpt-5-nano", "2026-12-10"],
    ["openai/gpt-4o", "2027-01-13"],
    ["openai/gpt-5.4-nano", "2027-03-31"],
  ])("sells %s until the end of %s, and later if SELL_ENDED contains the model", (model, day) => {
    const last = `${day}T23:59:59.999Z`;
    const over = new Date(at(last) + 1).toISOString();
    expect(sold(last).has(model)).toBe(true);
    expect(sold(over).has(model)).toBe(false);
    expect(sold(over, { SELL_ENDED: JSON.stringify([model]) }).has(model)).toBe(true);
    expect(sold(over, { SELL_ENDED: '["openai/another"]' }).has(model)).toBe(false);
  });

  it("resolves an alias to a model that is sold at the given time", () => {
    const { aliases, models } = catalogOf({}, liveModelsIn("eu"), at("2040-01-01"));
    for (const id of aliases.values()) expect(models.has(id)).toBe(true);
    expect(aliases.get("cheap")).not.toBe("openai/gpt-5-nano");
  });

  it("changes exactly at the dates announced for prices and models", () => {
    // the times before the last change
    const moment = fc.integer({ min: at("2026-11-01"), max: at("2027-03-31") });
    fc.assert(
      fc.property(moment, fc.double({ min: 0, max: 1, noNaN: true }), (ms, part) => {
        const { from, until } = findUnchangedSpan(CATALOG, ms);
        expect(from <= ms && ms < until).toBe(true);
        const start = Math.max(from, at("2026-01-01"));
        const other = Math.min(until - 1, Math.floor(start + part * (until - start)));
        expect(listed(other)).toBe(listed(ms));
        expect(listed(until)).not.toBe(listed(ms));
      }),
      { numRuns: 40 },
    );
  });

  it("gets rebuilt when an announced date is reached, not earlier", () => {
    const { catalogAt } = getDeployment(configWith({ SANDBOX: "off" }));
    const before = catalogAt(at("2026-12-11"));
    expect(catalogAt(at("2026-12-31T23:59:59.999Z"))).toBe(before);
    const after = catalogAt(at("2027-01-01"));
    expect(after).not.toBe(before);
    expect(catalogAt(at("2026-12-31"))).not.toBe(after); // the clocks of isolates differ
  });
});
