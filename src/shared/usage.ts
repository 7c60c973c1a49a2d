import * as z from "zod/mini";
import { assert } from "./assert.ts";
import { isUnit, UNIT_TABLE } from "./units.ts";
import type { PricedUnit } from "./units.ts";

/**
 * A request's billed tokens and units. The prompt is `input + cacheRead + cacheWrite`. `output`
 * includes `reasoning`.
 */
export type Usage = {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `cacheWrite` that the provider caches for an hour, at twice the input price. */
  readonly cacheWriteHour?: number;
  readonly output: number;
  readonly reasoning: number;
} & UnitCounts;

/** The billable units. Seconds are rounded up. */
export const UNITS = Object.keys(UNIT_TABLE).filter(isUnit);
export type { PricedUnit as Unit };

export type UnitCounts = { readonly [U in CountedUnit]?: number };
/** Any unit except `request`. */
export type CountedUnit = Exclude<PricedUnit, "request">;
/** All units except requests, which need no count. */
export const COUNTED_UNITS = UNITS.filter((unit): unit is CountedUnit => unit !== "request");

export function unitsPerPrice(unit: PricedUnit): number {
  return UNIT_TABLE[unit].per;
}

/** Returns an object with the same value for each unit. */
export function fillUnitRecord<U extends PricedUnit, T>(
  units: readonly U[],
  value: T,
): { readonly [K in U]: T } {
  const fields = Object.fromEntries(units.map((unit) => [unit, value]));
  assert(hasAllUnits(units, fields), "each unit has its value");
  return fields;
}

function hasAllUnits<U extends PricedUnit, T>(
  units: readonly U[],
  fields: Readonly<Record<string, T>>,
): fields is { readonly [K in U]: T } {
  return units.every((unit) => Object.hasOwn(fields, unit));
}

const nonNegativeInt = z.int().check(z.minimum(0));
const usageCountsSchema = z.object({
  input: nonNegativeInt,
  cacheRead: nonNegativeInt,
  cacheWrite: nonNegativeInt,
  cacheWriteHour: z._default(nonNegativeInt, 0),
  output: nonNegativeInt,
  reasoning: nonNegativeInt,
  ...fillUnitRecord(COUNTED_UNITS, z.exactOptional(nonNegativeInt)),
});
const toUsage = z.transform(
  ({ cacheWriteHour: hour, ...rest }: z.infer<typeof usageCountsSchema>): Usage => {
    return hour === 0 ? rest : { ...rest, cacheWriteHour: Math.min(hour, rest.cacheWrite) };
  },
);
export const usageSchema = z.pipe(usageCountsSchema, toUsage);
export const consistentUsageSchema = z.pipe(
  usageCountsSchema.check(
    z.refine((used) => used.reasoning <= used.output, "must have reasoning within output"),
    z.refine((used) => used.cacheWriteHour <= used.cacheWrite, "must add up"),
    z.refine((used) => Number.isSafeInteger(sumPromptTokens(used)), "must add up"),
  ),
  toUsage,
);

/** Prices in micro-credits, per million tokens or per million units. */
export type Price = {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly units?: UnitPrices;
};
export type UnitPrices = { readonly [U in PricedUnit]?: number };
export const priceSchema: z.ZodMiniType<Price> = z.object({
  input: nonNegativeInt,
  cached: nonNegativeInt,
  cacheWrite: nonNegativeInt,
  output: nonNegativeInt,
  units: z.exactOptional(z.object(fillUnitRecord(UNITS, z.exactOptional(nonNegativeInt)))),
});

type WrittenPrice = { readonly [U in PricedUnit]?: number | undefined } & {
  readonly input?: number | undefined;
  readonly cached?: number | undefined;
  readonly cache_write?: number | undefined;
  readonly output?: number | undefined;
};

/** Converts a configuration's price. A missing cache price equals the input price. */
export function parsePriceFields(priceFields: WrittenPrice): Price {
  const { input = 0, cached = input, cache_write: cacheWrite = input, output = 0 } = priceFields;
  const units = UNITS.flatMap((unit) => {
    const price = priceFields[unit];
    return price === undefined ? [] : [[unit, (price * 1_000_000) / unitsPerPrice(unit)] as const];
  });
  const tokens = { input, cached, cacheWrite, output };
  return units.length === 0 ? tokens : { ...tokens, units: Object.fromEntries(units) };
}

export const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/** Returns the total, or null if any usage is unknown. */
export function sumUsage(usages: readonly (Usage | null)[]): Usage | null {
  let sum: Usage = NO_USAGE;
  for (const usage of usages) {
    if (usage === null) return null;
    const hour = (sum.cacheWriteHour ?? 0) + (usage.cacheWriteHour ?? 0);
    sum = {
      input: sum.input + usage.input,
      cacheRead: sum.cacheRead + usage.cacheRead,
      cacheWrite: sum.cacheWrite + usage.cacheWrite,
      ...(hour > 0 && { cacheWriteHour: hour }),
      output: sum.output + usage.output,
      reasoning: sum.reasoning + usage.reasoning,
      ...summedUnits(sum, usage),
    };
  }
  return sum;
}

function summedUnits(one: UnitCounts, other: UnitCounts): UnitCounts {
  const counted = COUNTED_UNITS.map(
    (unit) => [unit, (one[unit] ?? 0) + (other[unit] ?? 0)] as const,
  );
  return Object.fromEntries(counted.filter(([, n]) => n > 0));
}

export function sumPromptTokens(usage: Usage): number {
  return usage.input + usage.cacheRead + usage.cacheWrite;
}

/**
 * Factor of the input price for tokens cached for an hour (platform.claude.com, prompt caching).
 */
export const HOUR_CACHE_PRICE_FACTOR = 2;

/** A count in a charge, and its price in micro-credits per million. */
export type ChargeLine = readonly [
  what: "input" | "cached" | "cache_write" | "cache_write_hour" | "output" | PricedUnit,
  counted: number,
  perMillion: number,
];

export function listChargeLines(price: Price, usage: Usage): readonly ChargeLine[] {
  const hour = usage.cacheWriteHour ?? 0;
  const tokens: readonly ChargeLine[] = [
    ["input", usage.input, price.input],
    ["cached", usage.cacheRead, price.cached],
    ["cache_write", usage.cacheWrite - hour, price.cacheWrite],
    ["cache_write_hour", hour, hour === 0 ? 0 : price.input * HOUR_CACHE_PRICE_FACTOR],
    ["output", usage.output, price.output],
  ];
  return price.units === undefined ? tokens : [...tokens, ...unitLines(price.units, usage)];
}

function unitLines(prices: UnitPrices, counted: UnitCounts): readonly ChargeLine[] {
  return UNITS.flatMap((unit): readonly ChargeLine[] => {
    const price = prices[unit];
    if (price === undefined) return [];
    return [[unit, unit === "request" ? 1 : (counted[unit] ?? 0), price]];
  });
}
