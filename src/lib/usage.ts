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
};

const count = z.int().check(z.minimum(0));
const counts = z.object({
  input: count,
  cacheRead: count,
  cacheWrite: count,
  cacheWriteHour: z._default(count, 0),
  output: count,
  reasoning: count,
});
const toUsage = z.transform(({ cacheWriteHour: hour, ...rest }: z.infer<typeof counts>): Usage => {
  return hour === 0 ? rest : { ...rest, cacheWriteHour: Math.min(hour, rest.cacheWrite) };
});
/** Usage as a peer sends it. */
export const usageSchema = z.pipe(counts, toUsage);
/** The same, where a person brings it back. */
export const soundUsage = z.pipe(
  counts.check(
    z.refine((used) => used.reasoning <= used.output, "must have reasoning within output"),
    z.refine((used) => used.cacheWriteHour <= used.cacheWrite, "must add up"),
    z.refine((used) => Number.isSafeInteger(promptTokens(used)), "must add up"),
  ),
  toUsage,
);

/** Prices in micros per million tokens. */
export type Price = {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly output: number;
};

export const NO_USAGE: Usage = { input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };

/** What several used together; null when one of them did not say. */
export function summedUsage(usages: readonly (Usage | null)[]): Usage | null {
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
    };
  }
  return sum;
}

export function promptTokens(usage: Usage): number {
  return usage.input + usage.cacheRead + usage.cacheWrite;
}

/** A token that is written to a cache for an hour costs as many of input (platform.claude.com, prompt caching). */
export const HOUR_WRITE_INPUTS = 2;

/** One line of a bill: so many tokens at so many micros a million. */
export type ChargeLine = readonly [
  what: "input" | "cached" | "cache_write" | "cache_write_hour" | "output",
  tokens: number,
  perMillion: number,
];

/** What a request's cost is the sum of, rounded once, up. */
export function chargeLines(price: Price, usage: Usage): readonly ChargeLine[] {
  const hour = usage.cacheWriteHour ?? 0;
  return [
    ["input", usage.input, price.input],
    ["cached", usage.cacheRead, price.cached],
    ["cache_write", usage.cacheWrite - hour, price.cacheWrite],
    ["cache_write_hour", hour, hour === 0 ? 0 : price.input * HOUR_WRITE_INPUTS],
    ["output", usage.output, price.output],
  ];
}
