import { rollingMinutes } from "./budgets.ts";
import { DAY_MS } from "./clock.ts";
import { periodEndMs } from "./period.ts";
import type { Period } from "./period.ts";

/**
 * A budget's counted amounts by bucket. A rolling window of N minutes has buckets of N seconds; any
 * other window has one bucket.
 */
export type BucketSums = readonly (readonly [bucket: number, sum: number])[];

/** A time in Unix ms, and its UTC day, week and month. */
export type BudgetTime = { readonly period: Period; readonly nowMs: number };

/** A rolling window's buckets: 60 complete ones and the current one. */
const ROLLING_BUCKETS = 61;

/** Returns the number of the time bucket that counts a charge. */
export function bucketAt(window: string, { period, nowMs }: BudgetTime): number {
  const minutes = rollingMinutes(window);
  if (minutes !== null) return Math.floor(nowMs / (minutes * 1000));
  if (window === "total") return 0;
  return Math.floor(startOf(window, period) / DAY_MS);
}

function startOf(window: string, period: Period): number {
  if (window === "month") return Date.parse(`${period.month}-01`);
  return Date.parse(window === "week" ? period.week : period.day);
}

/**
 * Returns the amount counted in the window. Includes a rolling window's future buckets, which exist
 * after the clock moved back.
 */
export function sumInWindow(window: string, tally: BucketSums, at: BudgetTime): number {
  const bucket = bucketAt(window, at);
  const isRolling = rollingMinutes(window) !== null;
  return tally.reduce((sum, [one, amount]) => {
    return (isRolling ? one > bucket - ROLLING_BUCKETS : one === bucket) ? sum + amount : sum;
  }, 0);
}

/**
 * Returns the tally with `amount` added and expired buckets removed. Ignores an amount for a
 * calendar period that has ended.
 */
export function addToBucket(
  window: string,
  tally: BucketSums,
  { at, amount }: CountedAmount,
): BucketSums {
  const bucket = bucketAt(window, at);
  const newest = tally.reduce((newestBucket, [one]) => Math.max(newestBucket, one), bucket);
  const isRolling = rollingMinutes(window) !== null;
  if (!isRolling && newest > bucket) return tally;
  const sums = new Map([[bucket, amount]]);
  for (const [one, sum] of tally) {
    const isKept = isRolling ? one > newest - ROLLING_BUCKETS : one === bucket;
    if (isKept) sums.set(one, (sums.get(one) ?? 0) + sum);
  }
  return [...sums].toSorted(([one], [other]) => one - other);
}
type CountedAmount = { readonly at: BudgetTime; readonly amount: number };

/** Merges a rolling window's future buckets into the current one, after the clock moved back. */
export function clampFutureBuckets(window: string, tally: BucketSums, at: BudgetTime): BucketSums {
  if (rollingMinutes(window) === null) return tally;
  const bucket = bucketAt(window, at);
  const currentSum = tally.filter(([one]) => one >= bucket).reduce((sum, [, one]) => sum + one, 0);
  const earlierBuckets = tally.filter(([one]) => one < bucket);
  return currentSum === 0 ? earlierBuckets : [...earlierBuckets, [bucket, currentSum]];
}

/**
 * Reports whether the tally counts a later calendar period than the current one, after the clock
 * moved back.
 */
export function hasLaterPeriod(window: string, tally: BucketSums, at: BudgetTime): boolean {
  const bucket = bucketAt(window, at);
  return rollingMinutes(window) === null && tally.some(([one]) => one > bucket);
}

/** Returns when (Unix ms) the window can take `missing` more, or null if never. */
export function findTimeWithCapacity(
  window: string,
  tally: BucketSums,
  { at, missing }: { readonly at: BudgetTime; readonly missing: number },
): number | null {
  if (window === "total") return null;
  if (window === "day" || window === "week" || window === "month") {
    return periodEndMs(at.period, window);
  }
  const widthMs = (rollingMinutes(window) ?? 1) * 1000;
  const newestExpired = bucketAt(window, at) - ROLLING_BUCKETS;
  let freedAmount = 0;
  for (const [bucket, sum] of tally) {
    if (bucket <= newestExpired) continue;
    freedAmount += sum;
    if (freedAmount >= missing) return (bucket + ROLLING_BUCKETS) * widthMs;
  }
  return null;
}
