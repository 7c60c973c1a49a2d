import type { RateLimitState } from "../../../shared/key-status.ts";
import type { RequestTokenCounts } from "../../../shared/contracts/wallet.ts";
import { RATE_WINDOW_MS } from "../../../shared/rate-window.ts";

type CountedTokens = { readonly id: string; readonly at: number; tokens: number };

/**
 * `share` returns how many of the window's free tokens the request can reserve above its minimum.
 */
type WindowRequest = Pick<RequestTokenCounts, "least" | "most"> & {
  readonly share: (free: number) => number;
};

type TokenVerdict =
  | { readonly kind: "granted"; readonly tokens: number }
  | { readonly kind: "never" }
  | { readonly kind: "full"; readonly remaining: number; readonly retryAfterMs: number };

/**
 * A key's reserved and used tokens in the last 60 seconds. When a request ends, its actual tokens
 * replace its reservation.
 */
export class TokenWindow {
  readonly #counted = new Map<string, CountedTokens>();

  /**
   * Grants tokens between the request's minimum and maximum. Returns `full` with the wait if too
   * few tokens are free, or `never` if the minimum exceeds the limit.
   */
  decide(limit: number, ask: WindowRequest, nowMs: number): TokenVerdict {
    if (ask.least > limit) return { kind: "never" };
    const remaining = limit - this.#count(nowMs);
    if (ask.least <= remaining) {
      const tokens = Math.min(ask.most, ask.least + ask.share(remaining - ask.least));
      return { kind: "granted", tokens };
    }
    let free = remaining;
    let retryAfterMs = 0;
    for (const { at, tokens } of this.#counted.values()) {
      free += tokens;
      retryAfterMs = Math.min(RATE_WINDOW_MS, Math.max(1, at + RATE_WINDOW_MS - nowMs));
      if (free >= ask.least) break;
    }
    return { kind: "full", remaining: Math.max(0, remaining), retryAfterMs };
  }

  add(id: string, at: number, tokens: number): void {
    this.#counted.set(id, { id, at, tokens });
  }

  setActualTokens(id: string, tokens: number): void {
    const counted = this.#counted.get(id);
    if (counted !== undefined) counted.tokens = tokens;
  }

  /** Returns the remaining tokens, and the ms until the oldest request leaves the window. */
  rateState(limit: number, nowMs: number): RateLimitState {
    const remaining = Math.max(0, limit - this.#count(nowMs));
    const [oldest] = this.#counted.values();
    const resetMs = oldest === undefined ? 0 : Math.max(1, oldest.at + RATE_WINDOW_MS - nowMs);
    return { limit, remaining, resetMs: Math.min(RATE_WINDOW_MS, resetMs) };
  }

  #count(nowMs: number): number {
    let sum = 0;
    for (const { id, at, tokens } of this.#counted.values()) {
      if (at <= nowMs - RATE_WINDOW_MS) this.#counted.delete(id);
      else sum += tokens;
    }
    return sum;
  }
}
