import type { BudgetScope, BudgetUnit } from "../../../shared/budgets.ts";
import { rollingMinutes } from "../../../shared/budgets.ts";
import { MINUTE_MS } from "../../../shared/clock.ts";
import type { Failure } from "../../../shared/failure.ts";
import type { BudgetPeriod } from "../../../shared/key-terms.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import type { Period } from "../../../shared/period.ts";
import { findQuotaAlerts, isThresholdReached } from "../rules/alerts.ts";
import type { ThresholdAlert } from "../rules/alerts.ts";
import { bucketAt } from "../../../shared/budget-meter.ts";
import type { BudgetTime } from "../../../shared/budget-meter.ts";
import { isDollarFieldLimit, isQuotaLimit, fieldLimitPeriod } from "../rules/limits.ts";
import type { MeterChange, Meter } from "../rules/limits.ts";
import { addEvent } from "./event-log.do.ts";
import { selectEndUser } from "../tables/end-user-rows.do.ts";
import type { Tx } from "./memory.do.ts";
import { endUserEventField, eventSubject, pauseBudgetOwner } from "./pauses.do.ts";

/** Returns limits that a charge used up, or whose alert threshold it reached. */
export function findCrossedLimits(counts: readonly MeterChange[]): MeterChange[] {
  const crossed = counts.filter((count) =>
    isDollarFieldLimit(count.meter)
      ? hasUsedUp(count)
      : crosses(count, 1) || crosses(count, alertThresholdOf(count)),
  );
  const quotas = crossed.filter(({ meter }) => isQuotaLimit(meter));
  return [...quotas.toReversed(), ...crossed.filter(({ meter }) => !isQuotaLimit(meter))];
}

/** Returns the end user's quota alerts that a charge causes. */
export function collectQuotaAlerts(
  tx: Tx,
  counts: readonly MeterChange[],
  period: Period,
): ThresholdAlert[] {
  const quotas = counts.filter(
    ({ meter }) => isQuotaLimit(meter) && meter.budget.amount !== Infinity,
  );
  const user =
    quotas[0] === undefined ? null : selectEndUser(tx.sql, "id", quotas[0].meter.subject);
  if (user === null) return [];
  const [day, month] = ["day", "month"].map((window) =>
    quotas.find(({ meter }) => meter.budget.window === window),
  );
  return findQuotaAlerts(user, { day, month }, period);
}

const hasUsedUp = ({ meter, before, after }: MeterChange): boolean =>
  before < meter.budget.amount && after >= meter.budget.amount;

const alertThresholdOf = ({ meter }: MeterChange): number => meter.budget.alertAt ?? Infinity;

function crosses({ meter, before, after }: MeterChange, threshold: number): boolean {
  const { amount } = meter.budget;
  return (
    isThresholdReached(after, amount, threshold) && !isThresholdReached(before, amount, threshold)
  );
}

export function emitCrossedLimits(tx: Tx, crossings: readonly MeterChange[], at: BudgetTime): void {
  for (const count of crossings) {
    const { meter, after } = count;
    if (isDollarFieldLimit(meter)) {
      emitSpendLimitReached(tx, reachedSpendLimit(tx, count, at));
      continue;
    }
    if (crosses(count, alertThresholdOf(count))) emitAlert(tx, { meter, after, at });
    if (!crosses(count, 1)) continue;
    emitBudgetReached(tx, { meter, left: 0, at });
    pauseBudgetOwner(tx, meter);
  }
}

/** A rejection pauses the owner of a budget that has at most this share left. */
const PAUSE_LEFT_MAX = 0.1;

/**
 * Emits an event for a rejection, and pauses the owner if little of the budget is left. Ignores
 * rejections that only open holds caused.
 */
export function emitBudgetRejection(tx: Tx, failure: Failure, meters: readonly Meter[]): void {
  if (failure.kind !== "budget_exceeded" || failure.onlyHolds) return;
  const meter = meters.find(
    ({ budget, scope }) => scope === failure.scope && budget.id === failure.budgetId,
  );
  // Unused sessions cause no events, because clients can invent any number of sessions.
  if (meter === undefined || (meter.scope === "session" && meter.sinceMs === 0)) return;
  emitBudgetReached(tx, { meter, left: failure.left, at: tx });
  if (failure.left <= failure.limit * PAUSE_LEFT_MAX) pauseBudgetOwner(tx, meter);
}

export type ReachedSpendLimit = {
  readonly type: "end_user.quota_reached" | "key.budget_reached" | "session.budget_reached";
  readonly subject: string;
  readonly period: BudgetPeriod | null;
  readonly since: string | null;
  readonly limit: Micros;
  readonly left: number;
};

export function emitSpendLimitReached(tx: Tx, reached: ReachedSpendLimit): void {
  const { type, subject, period, since, limit, left } = reached;
  const amounts = type === "end_user.quota_reached" ? "quota_micro" : "budget_micro";
  const data = { period, since, [amounts]: limit, left_micro: Math.max(0, left) };
  addEvent(tx, { type, subject, data }, [subject, period, since, limit]);
}

function reachedSpendLimit(
  tx: Tx,
  { meter, after }: MeterChange,
  at: BudgetTime,
): ReachedSpendLimit {
  const { budget, scope } = meter;
  const user = scope === "end_user" ? selectEndUser(tx.sql, "id", meter.subject) : null;
  const subject = user?.externalId ?? meter.subject;
  const limit = micros(budget.amount);
  const period = fieldLimitPeriod(meter);
  const since = period === null ? null : at.period[period];
  return { type: reachedEventType(scope), subject, period, since, limit, left: limit - after };
}

const REACHED_EVENTS = {
  end_user: "end_user.quota_reached",
  key: "key.budget_reached",
  session: "session.budget_reached",
} as const;
const reachedEventType = (scope: BudgetScope): ReachedSpendLimit["type"] =>
  scope === "end_user" || scope === "session" ? REACHED_EVENTS[scope] : REACHED_EVENTS.key;

type ReachedBudget = { readonly meter: Meter; readonly left: number; readonly at: BudgetTime };

function emitBudgetReached(tx: Tx, { meter, left, at }: ReachedBudget): void {
  const { scope, budget } = meter;
  const { id, window } = budget;
  const amounts = amountFields(budget.unit, { limit: budget.amount, left });
  const data = { scope, ...endUserEventField(tx, meter), budget_id: id, window, ...amounts };
  const subject = eventSubject(tx, meter);
  const once = [scope, subject, id, budget.amount, windowNumber(window, at)];
  addEvent(tx, { type: "budget.reached", subject, data }, once);
}

type BudgetAlert = { readonly meter: Meter; readonly after: number; readonly at: BudgetTime };

function emitAlert(tx: Tx, { meter, after, at }: BudgetAlert): void {
  const { scope, budget } = meter;
  const { alertAt, id, window } = budget;
  const amounts = amountFields(budget.unit, { limit: budget.amount, spent: after });
  const fields = { ...endUserEventField(tx, meter), budget_id: id, window, threshold: alertAt };
  const data = { scope, ...fields, ...amounts };
  const subject = eventSubject(tx, meter);
  const once = [scope, subject, id, budget.amount, alertAt, windowNumber(window, at)];
  addEvent(tx, { type: "budget.alert", subject, data }, once);
}

/**
 * Returns the number of windows since 1970. Event IDs contain this number, so each window has at
 * most one event.
 */
function windowNumber(window: string, at: BudgetTime): number {
  const minutes = rollingMinutes(window);
  return minutes === null ? bucketAt(window, at) : Math.floor(at.nowMs / (minutes * MINUTE_MS));
}

function amountFields(unit: BudgetUnit, amounts: Readonly<Record<string, number>>) {
  const suffix = unit === "dollars" ? "micro" : unit;
  return Object.fromEntries(
    Object.entries(amounts).map(([name, amount]) => [`${name}_${suffix}`, amount]),
  );
}
