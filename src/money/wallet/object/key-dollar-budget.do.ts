import type { BudgetOwner } from "../../../shared/budgets.ts";
import { BUDGET_PERIODS } from "../../../shared/key-terms.ts";
import type { KeyTerms } from "../../../shared/key-terms.ts";
import type { KeyStatus } from "../../../shared/key-status.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { periodEndMs, periodOfDay } from "../../../shared/period.ts";
import { meterAmountsAt, dollarFieldLimit, fieldLimitPeriod } from "../rules/limits.ts";
import type { Meter } from "../rules/limits.ts";
import { addToBucket, bucketAt, sumInWindow } from "../../../shared/budget-meter.ts";
import type { BucketSums } from "../../../shared/budget-meter.ts";
import { storeFieldLimits } from "../tables/field-limits.do.ts";
import { selectKeySpendByDay, updateKeyBudget } from "../tables/key-rows.do.ts";
import type { KeySpendOfDay } from "../tables/key-rows.do.ts";
import {
  fieldMetersOfOwner,
  reloadFieldAmounts,
  reloadFieldLimits,
  replaceMeter,
} from "./budget-memory.do.ts";
import { nextPublishRevision } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";

const WINDOWS = [...BUDGET_PERIODS, "total"] as const;

type Terms = Pick<KeyTerms, "budgetMicro" | "budgetPeriod">;

const ownerOf = (keyId: string): BudgetOwner => ({ scope: "key", subject: keyId });

function amountInWindow({ budgetMicro, budgetPeriod }: Terms, window: string): Micros | null {
  return window === (budgetPeriod ?? "total") ? budgetMicro : null;
}

/**
 * Applies the key's `budget_dollars`. If `isCounted`, counts spend even without a budget, because a
 * later count by daily totals would omit holds that count only against quotas.
 */
export function syncDollarBudget(tx: Tx, keyId: string, terms: Terms, isCounted = false): void {
  const before = fieldMetersOfOwner(tx, ownerOf(keyId));
  if (before.length === 0) {
    if (isCounted || terms.budgetMicro !== null) startDollarBudget(tx, keyId, terms);
    return;
  }
  const isSame = ({ budget: { amount, window } }: Meter): boolean =>
    amount === (amountInWindow(terms, window) ?? Infinity);
  if (before.every(isSame)) return;
  updateKeyBudget(tx.sql, keyId, terms);
  reloadFieldAmounts(tx, ownerOf(keyId));
}

function startDollarBudget(tx: Tx, keyId: string, terms: Terms): void {
  const { memory, sql } = tx;
  const owner = ownerOf(keyId);
  const stored = selectKeySpendByDay(sql, keyId);
  const limits = WINDOWS.map((window) => {
    const tally = addDaysToTally(window, [[bucketAt(window, tx), 0]], stored);
    return dollarFieldLimit(owner, window, { amount: amountInWindow(terms, window), tally });
  });
  storeFieldLimits(sql, owner, { limits, changed: nextPublishRevision(tx) });
  reloadFieldLimits(tx, owner);
  const later = daysInMemory(tx, keyId);
  for (const meter of later.length === 0 ? [] : fieldMetersOfOwner(tx, owner)) {
    const tally = addDaysToTally(meter.budget.window, meter.tally, later);
    replaceMeter(memory.budgets, meter, { ...meter, tally });
  }
  memory.hasChanges = true;
}

function daysInMemory({ memory }: Tx, keyId: string): KeySpendOfDay[] {
  return [...memory.usage.values()].filter(
    ({ dimension, name }) => dimension === "key" && name === keyId,
  );
}

function addDaysToTally(
  window: string,
  tally: BucketSums,
  days: readonly KeySpendOfDay[],
): BucketSums {
  return days.reduce((sum, { day, costMicro: amount }) => {
    return addToBucket(window, sum, { at: { period: periodOfDay(day), nowMs: 0 }, amount });
  }, tally);
}

export function readDollarBudgetStatus(tx: Tx, keyId: string, terms: Terms): KeyStatus["budget"] {
  syncDollarBudget(tx, keyId, terms);
  const fields = fieldMetersOfOwner(tx, ownerOf(keyId));
  const limit = fields.find(({ budget }) => budget.amount !== Infinity);
  if (limit === undefined) return null;
  const { settled, held, free } = meterAmountsAt(limit, tx);
  const period = fieldLimitPeriod(limit);
  return {
    spentMicro: micros(settled),
    heldMicro: micros(held),
    leftMicro: micros(Math.max(0, free)),
    resetsAt: period === null ? null : periodEndMs(tx.period, period),
  };
}

export function readKeySpend(tx: Tx, keyId: string): NonNullable<KeyStatus["spend"]> {
  const fields = fieldMetersOfOwner(tx, ownerOf(keyId));
  const days =
    fields.length > 0 ? [] : [...selectKeySpendByDay(tx.sql, keyId), ...daysInMemory(tx, keyId)];
  const spent = (window: string): Micros => {
    const known = fields.find(({ budget }) => budget.window === window);
    return micros(sumInWindow(window, known?.tally ?? addDaysToTally(window, [], days), tx));
  };
  return { total: spent("total"), day: spent("day"), week: spent("week"), month: spent("month") };
}
