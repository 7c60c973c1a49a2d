import { forgetOldest } from "../lib/forget-oldest.ts";

const WINDOW_MS = 60_000;
const FAILURES_MAX = 20;
const ADDRESSES_MAX = 1000;

/**
 * How often logins from an address have failed at this isolate. What was forged costs no I/O, so that counting it
 * here is enough: it bounds the work of guessing, which is hopeless anyway.
 */
export class LoginPace {
  readonly #failures = new Map<string, { readonly sinceMs: number; readonly count: number }>();

  /** How long an address must wait before it may try again; 0 for not at all. */
  waitMs(address: string, nowMs: number): number {
    const known = this.#failures.get(address);
    if (known === undefined || known.count < FAILURES_MAX) return 0;
    return Math.max(0, known.sinceMs + WINDOW_MS - nowMs);
  }

  /** Counts a failure; of too many addresses the oldest is forgotten. */
  failed(address: string, nowMs: number): void {
    const known = this.#failures.get(address);
    const isOver = known === undefined || nowMs - known.sinceMs >= WINDOW_MS;
    this.#failures.delete(address);
    forgetOldest(this.#failures, ADDRESSES_MAX);
    const next = isOver ? { sinceMs: nowMs, count: 1 } : { ...known, count: known.count + 1 };
    this.#failures.set(address, next);
  }
}

/** What the limit is, for the refusal. */
export const LOGIN_FAILURES_MAX = FAILURES_MAX;
