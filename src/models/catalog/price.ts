import { assert } from "../../shared/assert.ts";
import { isTokenCount } from "../../shared/cost.ts";
import type { Price, UnitPrices } from "../../shared/usage.ts";
import type { Route } from "./model.ts";
import type { CatalogEntry, DatedPrice, ModelRouteEntry } from "./entry.ts";
import { DAY_MS } from "../../shared/clock.ts";

export function getPriceForPrompt(
  route: Pick<Route, "price" | "longPrompt">,
  promptTokens: number,
): Price {
  const long = route.longPrompt;
  return long !== undefined && promptTokens > long.aboveTokens ? long.price : route.price;
}

export function applyMarkup(price: Price, percent: number): Price {
  const total = 100 + percent;
  const { units } = price;
  return {
    ...scaleTokenPrices(price, { inputPercent: total, outputPercent: total }),
    ...(units !== undefined && { units: applyPercentToUnits(units, total) }),
  };
}

export function applyMarkupToPrices(
  { price, longPrompt }: Pick<Route, "price" | "longPrompt">,
  percent: number,
): Pick<Route, "price" | "longPrompt"> {
  if (longPrompt === undefined) return { price: applyMarkup(price, percent) };
  const long = { ...longPrompt, price: applyMarkup(longPrompt.price, percent) };
  return { price: applyMarkup(price, percent), longPrompt: long };
}

function applyPercentToUnits(units: UnitPrices, percent: number): UnitPrices {
  const entries = Object.entries(units);
  return Object.fromEntries(entries.map(([unit, price]) => [unit, applyPercent(price, percent)]));
}

/** Returns a price with changed token prices. `inputPercent` also applies to cache prices. */
export function scaleTokenPrices(
  price: Price,
  {
    inputPercent,
    outputPercent,
  }: { readonly inputPercent: number; readonly outputPercent: number },
): Price {
  return {
    ...price,
    input: applyPercent(price.input, inputPercent),
    cached: applyPercent(price.cached, inputPercent),
    cacheWrite: applyPercent(price.cacheWrite, inputPercent),
    output: applyPercent(price.output, outputPercent),
  };
}

function applyPercent(perMillion: number, percent: number): number {
  assert(isTokenCount(perMillion) && isTokenCount(percent), "prices and percents are whole");
  const product = perMillion * percent;
  assert(Number.isSafeInteger(product), "a raised price stays a safe integer");
  return Math.ceil(product / 100);
}

export function formatUtcDay(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10);
}

export function getPriceOnDay(
  { prices }: Pick<ModelRouteEntry, "prices">,
  day: string,
): DatedPrice {
  return prices.findLast(({ from }) => from <= day) ?? prices[0];
}

export function hasRouteEnded({ until }: Pick<ModelRouteEntry, "until">, day: string): boolean {
  return until !== undefined && day > until;
}

/** A time span in Unix ms. `until` is the first ms after it. */
export type TimeSpan = { readonly from: number; readonly until: number };

/** Returns the longest span around `nowMs` in which no price changes and no route ends. */
export function findUnchangedSpan(entries: readonly CatalogEntry[], nowMs: number): TimeSpan {
  let [start, end] = [-Infinity, Infinity];
  for (const { prices, until } of entries.flatMap(({ routes }) => routes)) {
    const changes = prices.slice(1).map(({ from }) => Date.parse(from));
    if (until !== undefined) changes.push(Date.parse(until) + DAY_MS);
    for (const change of changes) {
      if (change <= nowMs) start = Math.max(start, change);
      else end = Math.min(end, change);
    }
  }
  return { from: start, until: end };
}
