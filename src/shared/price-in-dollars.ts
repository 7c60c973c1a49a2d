import { dollarsOf, micros } from "./money.ts";
import { UNITS, unitsPerPrice } from "./usage.ts";
import type { Price, Unit } from "./usage.ts";

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
