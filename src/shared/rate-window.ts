import { assert } from "./assert.ts";

export const RATE_WINDOW_MS = 60_000;
/** Maximum rate limit of a key, and size of its admission log. */
export const ADMISSIONS_MAX = 1000;
/**
 * Maximum time (ms) by which the clock can be behind the last admission. A longer time means that
 * the clock was set back.
 */
export const CLOCK_LAG_MAX_MS = 60_000;

/** A stored admission: its slot in the ring buffer, and its time (Unix ms). */
export type StoredAdmission = { readonly slot: number; readonly at: number };

type WindowDecision =
  | {
      readonly admitted: true;
      readonly entry: StoredAdmission;
      readonly remaining: number;
      readonly resetMs: number;
    }
  | { readonly admitted: false; readonly retryAfterMs: number };

/**
 * An exact log of the last 1000 admissions. Never admits more than `limit` requests in any 60 s.
 */
export class RateWindow {
  /** A ring of admission times, oldest first from the next slot on. */
  readonly #times: number[];
  #next: number;

  constructor(stored: readonly StoredAdmission[] = []) {
    this.#times = stored.toSorted((a, b) => a.slot - b.slot).map((admission) => admission.at);
    // In a full ring, the next slot has the oldest time.
    const step = this.#times.findIndex((at, slot) => at < (this.#times[slot - 1] ?? at));
    this.#next = this.#times.length < ADMISSIONS_MAX ? this.#times.length : Math.max(0, step);
  }

  get lastAt(): number {
    return this.#nthLast(1) ?? 0;
  }

  lagMs(clockMs: number): number {
    return Math.max(0, (this.#nthLast(1) ?? clockMs) - clockMs);
  }

  /**
   * Decides whether to admit a request at `clockMs`. If the clock is behind, uses the last
   * admission's time. Waits are 1 to 60,000 ms.
   */
  decide(limit: number, clockMs: number): WindowDecision {
    const at = Math.max(clockMs, this.#nthLast(1) ?? clockMs);
    const blockingTime = this.#nthLast(limit);
    if (blockingTime !== undefined && at - blockingTime < RATE_WINDOW_MS) {
      return { admitted: false, retryAfterMs: waitMs(blockingTime, clockMs) };
    }
    const counted = this.#countSince(at - RATE_WINDOW_MS) + 1;
    assert(counted <= limit, "more requests counted than the limit admits");
    const oldest = counted === 1 ? at : (this.#nthLast(counted - 1) ?? at);
    return {
      admitted: true,
      entry: { slot: this.#next, at },
      remaining: limit - counted,
      resetMs: waitMs(oldest, clockMs),
    };
  }

  append(entry: StoredAdmission): void {
    assert(entry.slot === this.#next, "an admission must go into the next slot");
    this.#times[entry.slot] = entry.at;
    this.#next = (this.#next + 1) % ADMISSIONS_MAX;
  }

  clamp(clockMs: number): void {
    for (const [slot, at] of this.#times.entries()) this.#times[slot] = Math.min(at, clockMs);
  }

  #nthLast(n: number): number | undefined {
    if (n > this.#times.length) return undefined;
    return this.#times[(this.#next - n + ADMISSIONS_MAX) % ADMISSIONS_MAX];
  }

  #countSince(sinceMs: number): number {
    let [low, high] = [0, this.#times.length];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.#nthLast(middle) ?? sinceMs) > sinceMs) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

function waitMs(admittedAt: number, clockMs: number): number {
  return Math.min(RATE_WINDOW_MS, Math.max(1, admittedAt + RATE_WINDOW_MS - clockMs));
}
