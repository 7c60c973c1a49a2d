import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { Model } from "../../src/models/catalog/model.ts";
import {
  listUpcomingPriceChangeTimes,
  createPriceList,
  applyPriceLists,
} from "../../src/models/catalog/price-lists.ts";
import type { PriceOrMarkup, PriceRow } from "../../src/models/catalog/price-lists.ts";
import type { Price } from "../../src/shared/usage.ts";
import { effortFor } from "../effort.ts";

const IDS = ["a/one", "a/two", "b/one"] as const;
const ITEMS = [...IDS, "a/*", "b/*", "*"] as const;
const PERCENTS = { inputPercent: 200, outputPercent: 150 };

const price: fc.Arbitrary<Price> = fc.record({
  input: fc.integer({ min: 1, max: 1e9 }),
  cached: fc.integer({ min: 1, max: 1e9 }),
  cacheWrite: fc.integer({ min: 1, max: 1e9 }),
  output: fc.integer({ min: 1, max: 1e9 }),
});
const percent = fc.integer({ min: 0, max: 1000 });
const row = fc
  .record({
    item: fc.constantFrom(...ITEMS),
    from: fc.integer({ min: 0, max: 40 }),
    price,
    percent,
    isPrice: fc.boolean(),
  })
  .map(({ item, from, price: own, percent: more, isPrice }): PriceRow => {
    const says: PriceOrMarkup = isPrice && !item.endsWith("*") ? { price: own } : { percent: more };
    return { item, from, says };
  });
const rows = fc.uniqueArray(row, {
  selector: ({ item, from }) => `${item} ${from}`,
  maxLength: 25,
});

function modelOf(id: string, list: Price, isConfigured: boolean): Model {
  const long = { aboveTokens: 10, percents: PERCENTS };
  const at = (percents: number): Price => plus(list, percents);
  const dearer = {
    input: list.input * 2,
    cached: list.cached * 2,
    cacheWrite: list.cacheWrite * 2,
    output: up(list.output * 150, 100),
  };
  return {
    id,
    kind: "chat",
    ownedBy: "up",
    created: 0,
    context: 1000,
    maxOutput: 100,
    minOutput: 1,
    abilities: [],
    imageTokens: 0,
    estimateFactor: 1,
    ...(isConfigured && { isConfigured: true }),
    routes: [
      {
        provider: "up",
        upstreamId: "m",
        dataRegion: "global",
        price: at(20),
        longPrompt: { ...long, price: plus(dearer, 20) },
        origin: { from: 7, list: null },
        bought: { price: list, longPrompt: { ...long, price: dearer } },
      },
    ],
  };
}

/** Rounds up with fractions of whole numbers, unlike the code under test. */
function up(value: number, by: number): number {
  return Number((BigInt(value) + BigInt(by) - 1n) / BigInt(by));
}
function plus(one: Price, more: number): Price {
  const each = (value: number): number => up(value * (100 + more), 100);
  return {
    input: each(one.input),
    cached: each(one.cached),
    cacheWrite: each(one.cacheWrite),
    output: each(one.output),
  };
}

/**
 * Returns the effective row by the precedence in docs/prices.md. The first row that has begun
 * applies.
 */
function effectiveRow(
  id: string,
  lists: readonly (readonly PriceRow[])[],
  at: number,
  isConfigured: boolean,
) {
  const items = isConfigured ? [id] : [id, `${id.split("/")[0]}/*`, "*"];
  for (const [index, list] of lists.entries()) {
    for (const item of items) {
      const effective = list.filter((one) => one.item === item && one.from <= at);
      const newest = effective.toSorted((a, b) => b.from - a.from)[0];
      if (newest !== undefined) return { list: ["own", "default"][index] ?? "", ...newest };
    }
  }
  return null;
}

const priceCase = fc.record({
  own: rows,
  region: rows,
  id: fc.constantFrom(...IDS),
  list: price,
  at: fc.integer({ min: 0, max: 45 }),
  isConfigured: fc.boolean(),
});
type PriceCase = typeof priceCase extends fc.Arbitrary<infer T> ? T : never;

/** Returns the price of a route by the documented rules only. */
function expected({ own, region, id, list, at, isConfigured }: PriceCase) {
  const [before] = modelOf(id, list, isConfigured).routes;
  const says = effectiveRow(id, [own, region], at, isConfigured);
  if (says === null) return { price: before?.price, origin: before?.origin };
  const { price: set, percent: more = 0 } = says.says;
  if (set !== undefined) return { price: set, origin: { from: says.from, list: says.list } };
  const base = isConfigured ? (before?.price ?? list) : list;
  const origin = { from: Math.max(says.from, 7), list: says.list };
  return { price: plus(base, more), origin };
}

it("the price at any time matches a simple reference calculation from price lists, priorities and dates", () => {
  fc.assert(
    fc.property(priceCase, (input) => {
      const { own, region, id, list, at, isConfigured } = input;
      const model = modelOf(id, list, isConfigured);
      const lists = [createPriceList("own", own), createPriceList("default", region)];
      const [route] = applyPriceLists(model, { lists, at }).routes;
      expect({ price: route?.price, origin: route?.origin }).toEqual(expected(input));
      // Price lists don't change the provider's cost.
      expect(route?.bought).toEqual(model.routes[0]?.bought);
      expect(route?.longPrompt?.aboveTokens).toBe(10);
      expect(route?.longPrompt?.price.input).toBeGreaterThanOrEqual(route?.price.input ?? 0);
    }),
    { numRuns: effortFor(1000, 100_000) },
  );
});

it("a price changes only at announced times", () => {
  fc.assert(
    fc.property(priceCase, ({ own, region, id, list, at }) => {
      const model = modelOf(id, list, false);
      const lists = [createPriceList("own", own), createPriceList("default", region)];
      const changes = new Set(listUpcomingPriceChangeTimes(model, { lists, at }));
      const priceAt = (then: number): string =>
        JSON.stringify(applyPriceLists(model, { lists, at: then }).routes[0]?.price);
      for (let then = at + 1; then <= 45; then++) {
        expect(changes.has(then) || priceAt(then) === priceAt(then - 1)).toBe(true);
      }
    }),
    { numRuns: effortFor(200, 20_000) },
  );
  expect(listUpcomingPriceChangeTimes(modelOf("a/one", FREE, false), { lists: [], at: 0 })).toEqual(
    [],
  );
});
const FREE: Price = { input: 0, cached: 0, cacheWrite: 0, output: 0 };
