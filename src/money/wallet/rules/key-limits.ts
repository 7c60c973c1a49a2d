import { budgetSpent } from "../../../shared/key-terms.ts";
import type { BudgetPeriod, KeySpend, KeyTerms, RateState } from "../../../shared/key-terms.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import type { Period } from "../../../shared/period.ts";
import type { TokenAsk } from "../../../shared/contracts/wallet.ts";
import { WINDOW_MS } from "../../../shared/rate-window.ts";

/** A key's budget, null once it has none any more, and what it has spent. */
export type Budget = Pick<KeyTerms, "budgetMicro" | "budgetPeriod"> & {
  /** The key's id, or a session's. */
  readonly keyId: string;
  readonly isSession?: boolean;
  readonly spend: KeySpend;
};

export function noKeySpend({ day, week, month }: Period): KeySpend {
  const spent = micros(0);
  return {
    day: { since: day, spent },
    week: { since: week, spent },
    month: { since: month, spent },
    total: spent,
  };
}

/** A session's budget, for good, of which it has spent `spent`. */
export function sessionBudget(
  { id, budgetMicro }: { readonly id: string; readonly budgetMicro: Micros | null },
  spent: Micros,
  period: Period,
): Budget {
  const spend = { ...noKeySpend(period), total: spent };
  return { keyId: id, isSession: true, budgetMicro, budgetPeriod: null, spend };
}

/** Adds a charge to the slots of its period of admission: that of a passed one is not kept. */
export function addKeySpend(spend: KeySpend, period: Period, charged: Micros): KeySpend {
  const added = (name: BudgetPeriod): KeySpend[BudgetPeriod] => {
    const slot = spend[name];
    if (period[name] < slot.since) return slot;
    const before = period[name] === slot.since ? slot.spent : 0;
    return { since: period[name], spent: micros(before + charged) };
  };
  return {
    day: added("day"),
    week: added("week"),
    month: added("month"),
    total: micros(spend.total + charged),
  };
}

/**
 * `budget - spent - held`, below 0 when overdrawn. Of a period that has passed nothing is left, as of a
 * quota: only a late settle asks for it.
 */
export function budgetLeft(budget: Budget, period: Period, held: Micros): number {
  const { budgetMicro, budgetPeriod, spend } = budget;
  if (budgetMicro === null) return Infinity;
  if (budgetPeriod !== null && period[budgetPeriod] < spend[budgetPeriod].since) return 0;
  return budgetMicro - budgetSpent(budget, period) - held;
}

/** A request's tokens, dated at its hold: what was reserved, then what it came to. */
type Counted = { readonly id: string; readonly at: number; tokens: number };

/** The same to a window; `share`: the most that it may have of what is left after its least. */
type WindowAsk = Pick<TokenAsk, "least" | "most"> & { readonly share: (free: number) => number };

type TokenVerdict =
  | { readonly kind: "granted"; readonly tokens: number }
  | { readonly kind: "never" }
  | { readonly kind: "full"; readonly remaining: number; readonly retryAfterMs: number };

/**
 * A key's tokens of the last minute, request by request: what is reserved by estimate and what was charged are never
 * granted above its limit in any 60 s. A charge takes the place of what was reserved; above it, it counts at
 * once and delays what comes later.
 */
export class TokenWindow {
  /** By request, oldest first. */
  readonly #counted = new Map<string, Counted>();

  /**
   * Between the least and the most tokens, as many as are left for it. `never`: no window has room for the least. Waits
   * are 1 ms to 60 s.
   */
  decide(limit: number, ask: WindowAsk, nowMs: number): TokenVerdict {
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
      retryAfterMs = Math.min(WINDOW_MS, Math.max(1, at + WINDOW_MS - nowMs));
      if (free >= ask.least) break;
    }
    return { kind: "full", remaining: Math.max(0, remaining), retryAfterMs };
  }

  /** Takes in a request that was granted, or read from its row. */
  add(id: string, at: number, tokens: number): void {
    this.#counted.set(id, { id, at, tokens });
  }

  /** What a request came to in the end; one that is not of the last minute is left alone. */
  correct(id: string, tokens: number): void {
    const counted = this.#counted.get(id);
    if (counted !== undefined) counted.tokens = tokens;
  }

  /** What is left, and when the oldest of what counts will not any more. */
  state(limit: number, nowMs: number): RateState {
    const remaining = Math.max(0, limit - this.#count(nowMs));
    const [oldest] = this.#counted.values();
    const resetMs = oldest === undefined ? 0 : Math.max(1, oldest.at + WINDOW_MS - nowMs);
    return { limit, remaining, resetMs: Math.min(WINDOW_MS, resetMs) };
  }

  /** The tokens that count at `nowMs`; those before it are forgotten. */
  #count(nowMs: number): number {
    let sum = 0;
    for (const { id, at, tokens } of this.#counted.values()) {
      if (at <= nowMs - WINDOW_MS) this.#counted.delete(id);
      else sum += tokens;
    }
    return sum;
  }
}
