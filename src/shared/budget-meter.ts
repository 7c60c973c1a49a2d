import { minutesOf } from "./budgets.ts";
import { DAY_MS } from "./clock.ts";
import { endOf } from "./period.ts";
import type { Period } from "./period.ts";

/**
 * A budget's counted amounts by bucket. A calendar window or `total` has one bucket; a rolling
 * window of N minutes has buckets of N seconds.
 */
export type Tally = readonly (readonly [bucket: number, sum: number])[];

export type Moment = { readonly period: Period; readonly nowMs: number };

/** Buckets of a rolling window: 60 complete ones and the current one. */
const ROLLING_BUCKETS = 61;

export function bucketOf(window: string, { period, nowMs }: Moment): number {
  const minutes = minutesOf(window);
  if (minutes !== null) return Math.floor(nowMs / (minutes * 1000));
  if (window === "total") return 0;
  return Math.floor(startOf(window, period) / DAY_MS);
}

function startOf(window: string, period: Period): number {
  if (window === "month") return Date.parse(`${period.month}-01`);
  return Date.parse(window === "week" ? period.week : period.day);
}

/**
 * Returns the amount counted in the window. After the clock moved back, a rolling window includes
 * buckets in the future.
 */
export function sumInWindow(window: string, tally: Tally, at: Moment): number {
  const bucket = bucketOf(window, at);
  const isRolling = minutesOf(window) !== null;
  return tally.reduce((sum, [one, amount]) => {
    return (isRolling ? one > bucket - ROLLING_BUCKETS : one === bucket) ? sum + amount : sum;
  }, 0);
}

/**
 * Returns the tally with `amount` added and expired buckets removed. Ignores an amount for a
 * calendar period that has ended.
 */
export function addTo(window: string, tally: Tally, { at, amount }: CountedAmount): Tally {
  const bucket = bucketOf(window, at);
  const newest = tally.reduce((newestBucket, [one]) => Math.max(newestBucket, one), bucket);
  const isRolling = minutesOf(window) !== null;
  if (!isRolling && newest > bucket) return tally;
  const sums = new Map([[bucket, amount]]);
  for (const [one, sum] of tally) {
    const isKept = isRolling ? one > newest - ROLLING_BUCKETS : one === bucket;
    if (isKept) sums.set(one, (sums.get(one) ?? 0) + sum);
  }
  return [...sums].toSorted(([one], [other]) => one - other);
}
type CountedAmount = { readonly at: Moment; readonly amount: number };

/**
 * Merges the future buckets of a rolling window into the current bucket, after the clock moved
 * back.
 */
export function clampFutureBuckets(window: string, tally: Tally, at: Moment): Tally {
  if (minutesOf(window) === null) return tally;
  const bucket = bucketOf(window, at);
  const currentSum = tally.filter(([one]) => one >= bucket).reduce((sum, [, one]) => sum + one, 0);
  const earlierBuckets = tally.filter(([one]) => one < bucket);
  return currentSum === 0 ? earlierBuckets : [...earlierBuckets, [bucket, currentSum]];
}

export function hasPassed(window: string, tally: Tally, at: Moment): boolean {
  const bucket = bucketOf(window, at);
  return minutesOf(window) === null && tally.some(([one]) => one > bucket);
}

/**
 * Returns the time (Unix ms) at which the window has room for `missing`, or null if it never has.
 */
export function capacityAt(
  window: string,
  tally: Tally,
  { at, missing }: { readonly at: Moment; readonly missing: number },
): number | null {
  if (window === "total") return null;
  if (window === "day" || window === "week" || window === "month") return endOf(at.period, window);
  const widthMs = (minutesOf(window) ?? 1) * 1000;
  let freedAmount = 0;
  for (const [bucket, sum] of tally) {
    freedAmount += sum;
    if (freedAmount >= missing) return (bucket + ROLLING_BUCKETS) * widthMs;
  }
  return null;
}
