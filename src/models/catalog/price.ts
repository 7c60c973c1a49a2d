import { assert } from "../../shared/assert.ts";
import { isTokenCount } from "../../shared/cost.ts";
import type { Price, UnitPrices } from "../../shared/usage.ts";
import type { Route } from "./model.ts";

export function priceAt(route: Pick<Route, "price" | "longPrompt">, promptTokens: number): Price {
  const long = route.longPrompt;
  return long !== undefined && promptTokens > long.aboveTokens ? long.price : route.price;
}

export function withMarkup(price: Price, percent: number): Price {
  return {
    input: applyPercent(price.input, 100 + percent),
    cached: applyPercent(price.cached, 100 + percent),
    cacheWrite: applyPercent(price.cacheWrite, 100 + percent),
    output: applyPercent(price.output, 100 + percent),
    ...(price.units !== undefined && { units: applyPercentToUnits(price.units, 100 + percent) }),
  };
}

export function pricesWithMarkup(
  { price, longPrompt }: Pick<Route, "price" | "longPrompt">,
  percent: number,
): Pick<Route, "price" | "longPrompt"> {
  if (longPrompt === undefined) return { price: withMarkup(price, percent) };
  const long = { ...longPrompt, price: withMarkup(longPrompt.price, percent) };
  return { price: withMarkup(price, percent), longPrompt: long };
}

function applyPercentToUnits(units: UnitPrices, percent: number): UnitPrices {
  const entries = Object.entries(units);
  return Object.fromEntries(entries.map(([unit, price]) => [unit, applyPercent(price, percent)]));
}

/**
 * `inputPercent` applies to the prices of input and cache, `outputPercent` to the price of output.
 */
export function longPromptPrice(
  price: Price,
  {
    inputPercent,
    outputPercent,
  }: { readonly inputPercent: number; readonly outputPercent: number },
): Price {
  return {
    input: applyPercent(price.input, inputPercent),
    cached: applyPercent(price.cached, inputPercent),
    cacheWrite: applyPercent(price.cacheWrite, inputPercent),
    output: applyPercent(price.output, outputPercent),
    ...(price.units !== undefined && { units: price.units }),
  };
}

function applyPercent(perMillion: number, percent: number): number {
  assert(isTokenCount(perMillion) && isTokenCount(percent), "prices and percents are whole");
  const product = perMillion * percent;
  assert(Number.isSafeInteger(product), "a raised price stays a safe integer");
  return Math.ceil(product / 100);
}
