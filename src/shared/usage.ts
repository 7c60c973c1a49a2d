import * as z from "zod/mini";

/**
 * What a request used, in tokens, without overlap: the prompt is `input + cacheRead + cacheWrite`
 * (input = uncached rest), `output` includes `reasoning`. Bill from these numbers only.
 */
export type Usage = {
  readonly input: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** Of `cacheWrite`, what is kept for an hour, at twice the price of input; absent: none. */
  readonly cacheWriteHour?: number;
  readonly output: number;
  readonly reasoning: number;
} & UnitCounts;

/** What a price may be for beside tokens, a whole one each; seconds are counted up. A request is counted once. */
export const UNITS = ["image", "character", "second", "request"] as const;
export type Unit = (typeof UNITS)[number];
/** What is counted beside tokens; absent: none. */
export type UnitCounts = { readonly [U in CountedUnit]?: number };
type CountedUnit = Exclude<Unit, "request">;
const COUNTED: readonly CountedUnit[] = ["image", "character", "second"];

const count = z.int().check(z.minimum(0));
const counts = z.object({
  input: count,
  cacheRead: count,
  cacheWrite: count,
  cacheWriteHour: z._default(count, 0),
  output: count,
  reasoning: count,
  image: z.exactOptional(count),
  character: z.exactOptional(count),
  second: z.exactOptional(count),
});
const toUsage = z.transform(({ cacheWriteHour: hour, ...rest }: z.infer<typeof counts>): Usage => {
  return hour === 0 ? rest : { ...rest, cacheWriteHour: Math.min(hour, rest.cacheWrite) };
});
/** Usage as a peer sends it. */
export const usageSchema = z.pipe(counts, toUsage);
/** The same, where a person brings it back. */
export const strictUsageSchema = z.pipe(
  counts.check(
    z.refine((used) => used.reasoning <= used.output, "must have reasoning within output"),
    z.refine((used) => used.cacheWriteHour <= used.cacheWrite, "must add up"),
    z.refine((used) => Number.isSafeInteger(promptTokens(used)), "must add up"),
  ),
  toUsage,
);

/** Prices in micros per million tokens, and per million of each unit that has one. */
export type Price = {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly units?: UnitPrices;
};
export type UnitPrices = { readonly [U in Unit]?: number };
/** A price as a peer sends it. */
export const priceSchema: z.ZodMiniType<Price> = z.object({
  input: count,
  cached: count,
  cacheWrite: count,
  output: count,
  units: z.exactOptional(
    z.object({
      image: z.exactOptional(count),
      character: z.exactOptional(count),
      second: z.exactOptional(count),
      request: z.exactOptional(count),
    }),
  ),
});

export const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/** What several used together; null when one of them did not say. */
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
  const counted = COUNTED.map((unit) => [unit, (one[unit] ?? 0) + (other[unit] ?? 0)] as const);
  return Object.fromEntries(counted.filter(([, n]) => n > 0));
}

export function promptTokens(usage: Usage): number {
  return usage.input + usage.cacheRead + usage.cacheWrite;
}

/** A token that is written to a cache for an hour costs as many of input (platform.claude.com, prompt caching). */
export const HOUR_WRITE_INPUTS = 2;

/** One line of a bill: so many tokens or units at so many micros a million. */
export type ChargeLine = readonly [
  what: "input" | "cached" | "cache_write" | "cache_write_hour" | "output" | Unit,
  counted: number,
  perMillion: number,
];

/** What a request's cost is the sum of, rounded once, up. */
export function chargeLines(price: Price, usage: Usage): readonly ChargeLine[] {
  const hour = usage.cacheWriteHour ?? 0;
  const tokens: readonly ChargeLine[] = [
    ["input", usage.input, price.input],
    ["cached", usage.cacheRead, price.cached],
    ["cache_write", usage.cacheWrite - hour, price.cacheWrite],
    ["cache_write_hour", hour, hour === 0 ? 0 : price.input * HOUR_WRITE_INPUTS],
    ["output", usage.output, price.output],
  ];
  return price.units === undefined ? tokens : [...tokens, ...unitLines(price.units, usage)];
}

/** The lines of what is counted beside tokens, of those units that have a price. */
function unitLines(prices: UnitPrices, counted: UnitCounts): readonly ChargeLine[] {
  return UNITS.flatMap((unit): readonly ChargeLine[] => {
    const price = prices[unit];
    if (price === undefined) return [];
    return [[unit, unit === "request" ? 1 : (counted[unit] ?? 0), price]];
  });
}
