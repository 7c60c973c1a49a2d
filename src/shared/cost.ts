import { assert } from "./assert.ts";
import { micros, dollarsOf } from "./money.ts";
import type { Micros } from "./money.ts";
import { listChargeLines, UNITS, unitsPerPrice } from "./usage.ts";
import type { ChargeLine, Price, Usage, Unit } from "./usage.ts";

const UNITS_PER_PRICE = 1_000_000;

/**
 * Returns the exact sum of counts times prices, rounded up once. Throws if the cost isn't a safe
 * integer.
 */
export function computeCost(price: Price, usage: Usage): Micros {
  const terms = listChargeLines(price, usage);
  let sum = 0;
  for (const [, tokens, perMillion] of terms) {
    assert(
      isTokenCount(tokens) && isTokenCount(perMillion),
      "tokens and prices are whole and not negative",
    );
    sum += tokens * perMillion;
  }
  // A sum above 2^53 is never a safe integer, even when rounded.
  if (!Number.isSafeInteger(sum)) return exactCost(terms);
  const rest = sum % UNITS_PER_PRICE;
  return micros((sum - rest) / UNITS_PER_PRICE + (rest > 0 ? 1 : 0));
}

function exactCost(terms: readonly ChargeLine[]): Micros {
  const sum = terms.reduce(
    (total, [, tokens, perMillion]) => total + BigInt(tokens) * BigInt(perMillion),
    0n,
  );
  const perPrice = BigInt(UNITS_PER_PRICE);
  return micros(Number((sum + perPrice - 1n) / perPrice));
}

export function isTokenCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

export function priceInDollars({ input, cached, cacheWrite, output, units = {} }: Price) {
  const perUnit = UNITS.flatMap((unit) => {
    const price = units[unit];
    if (price === undefined) return [];
    return [[unit, dollarsOf(micros((price * unitsPerPrice(unit)) / 1_000_000))] as const];
  });
  return {
    input: dollarsOf(micros(input)),
    cached: dollarsOf(micros(cached)),
    cache_write: dollarsOf(micros(cacheWrite)),
    output: dollarsOf(micros(output)),
    ...(Object.fromEntries(perUnit) as Partial<Record<Unit, number>>),
  };
}
