import { budgetSpent } from "../../lib/key-terms.ts";
import type { BudgetPeriod, KeySpend, KeyTerms } from "../../lib/key-terms.ts";
import { micros } from "../../lib/money.ts";
import type { Micros } from "../../lib/money.ts";
import type { Period } from "../../lib/period.ts";

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
