import { RateWindow, RATE_WINDOW_MS } from "../../src/shared/rate-window.ts";

/** Reports whether one more request is admitted at a time in ms. Times never decrease. */
export type RateLimiter = (nowMs: number) => boolean;

/** The gateway's own rule. */
export function exactLog(limit: number): RateLimiter {
  const window = new RateWindow();
  return (now) => {
    const decision = window.decide(limit, now);
    if (decision.admitted) window.append(decision.entry);
    return decision.admitted;
  };
}

/** Starts again at each full minute. */
export function fixedWindow(limit: number): RateLimiter {
  let [minute, count] = [-1, 0];
  return (now) => {
    const current = Math.floor(now / RATE_WINDOW_MS);
    if (current !== minute) [minute, count] = [current, 0];
    if (count >= limit) return false;
    count++;
    return true;
  };
}

/**
 * Two counters: this minute's, and the part of the previous minute's that the sliding minute still
 * covers.
 */
export function slidingCounter(limit: number): RateLimiter {
  let [minute, count, last] = [-1, 0, 0];
  return (now) => {
    const current = Math.floor(now / RATE_WINDOW_MS);
    if (current !== minute) {
      last = current === minute + 1 ? count : 0;
      [minute, count] = [current, 0];
    }
    const covered = 1 - (now % RATE_WINDOW_MS) / RATE_WINDOW_MS;
    if (last * covered + count + 1 > limit) return false;
    count++;
    return true;
  };
}

/** A bucket of `limit` requests that fills at `limit` per minute. */
export function tokenBucket(limit: number): RateLimiter {
  let [level, at] = [limit, 0];
  return (now) => {
    level = Math.min(limit, level + ((now - at) * limit) / RATE_WINDOW_MS);
    at = now;
    if (level < 1) return false;
    level--;
    return true;
  };
}

/** The gateway's rate limiter, and common alternatives. */
export const RATE_LIMITERS: Readonly<Record<string, (limit: number) => RateLimiter>> = {
  ours: exactLog,
  "fixed window": fixedWindow,
  "sliding counter": slidingCounter,
  "token bucket": tokenBucket,
};
const LIMITS = [60, 1000];
const MINUTES = 6;

/** Times of requests for a limit in order, in ms from 0. */
export const PATTERNS: Readonly<Record<string, (limit: number) => readonly number[]>> = {
  "constant flood": (limit) => evenly(0, MINUTES * RATE_WINDOW_MS, limit * 10),
  "idle, burst at a window's end, flood": (limit) => [
    ...Array.from({ length: limit }, () => 2 * RATE_WINDOW_MS - 1),
    ...evenly(2 * RATE_WINDOW_MS, MINUTES * RATE_WINDOW_MS, limit * 10),
  ],
  "bursts at edges": (limit) =>
    Array.from({ length: MINUTES }, (_, i) => [
      ...Array.from({ length: limit }, () => (i + 1) * RATE_WINDOW_MS - 1),
      ...Array.from({ length: limit }, () => (i + 1) * RATE_WINDOW_MS),
    ]).flat(),
  "Poisson overload": (limit) => poisson(MINUTES * RATE_WINDOW_MS, limit * 1.5),
};

/** Returns the maximum admissions in any 60 s for the requests of a pattern. */
export function worstMinute(register: RateLimiter, times: readonly number[]): number {
  const admitted = times.filter((at) => register(at));
  let [most, first] = [0, 0];
  for (const [last, at] of admitted.entries()) {
    while ((admitted[first] ?? at) <= at - RATE_WINDOW_MS) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/**
 * Returns the worst ratio of a rate limiter's admissions to its limit, over all patterns and limits
 * of 60 and 1000.
 */
export function worstRatio(make: (limit: number) => RateLimiter): number {
  const ratios = LIMITS.flatMap((limit) =>
    Object.values(PATTERNS).map((times) => worstMinute(make(limit), times(limit)) / limit),
  );
  return Math.max(...ratios);
}

/**
 * Returns the maximum admissions in any 60 s that are certain. Each happened between `from` and
 * `to`. All that count lie in less than 60 s from the first `from` to the last `to`.
 */
export function mostWithin(
  admissions: readonly { readonly from: number; readonly to: number }[],
): number {
  const ordered = admissions.toSorted((a, b) => a.from - b.from);
  let most = 0;
  for (const [first, { from: start }] of ordered.entries()) {
    const end = start + RATE_WINDOW_MS;
    let inside = 0;
    for (let i = first; (ordered[i]?.from ?? end) < end; i++) {
      if ((ordered[i]?.to ?? end) < end) inside++;
    }
    most = Math.max(most, inside);
  }
  return most;
}

function evenly(from: number, to: number, perMinute: number): number[] {
  const step = RATE_WINDOW_MS / perMinute;
  return Array.from({ length: Math.floor((to - from) / step) }, (_, i) => from + i * step);
}

/** The seed is fixed, so that every run tests the same. */
function poisson(until: number, perMinute: number): number[] {
  const times: number[] = [];
  let state = 20_261_121;
  for (let at = 0; at < until;) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    at += (-Math.log((state + 1) / 2 ** 32) * RATE_WINDOW_MS) / perMinute;
    times.push(at);
  }
  return times;
}
