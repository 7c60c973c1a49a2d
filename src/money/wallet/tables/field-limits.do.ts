import type { BudgetOwner } from "../../../shared/budgets.ts";
import { DAY_MS, timestamp } from "../../../shared/clock.ts";
import { BUDGET_PERIODS } from "../../../shared/key-terms.ts";
import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import { dollarFieldLimit } from "../rules/limits.ts";
import type { CountedLimit } from "../rules/limits.ts";
import type { BucketSums } from "../../../shared/budget-meter.ts";
import type { EndUser } from "../../../shared/contracts/end-users.ts";
import { selectEndUser, selectEndUserSpend, updateEndUserSpend } from "./end-user-rows.do.ts";
import type { EndUserSpend } from "./end-user-rows.do.ts";
import { putKeySpend, selectKeySpend } from "./key-rows.do.ts";
import { selectSession, updateSessionSpend } from "./session-rows.do.ts";

/** Returns the limits from an owner's quota fields or `budget_dollars`. */
export function selectFieldLimits(sql: SqlStorage, owner: BudgetOwner): CountedLimit[] {
  if (owner.scope === "session") return sessionLimits(sql, owner);
  if (owner.scope === "end_user") return endUserLimits(sql, owner);
  return owner.scope === "key" ? keyLimits(sql, owner) : [];
}

/** Stores the spend that counts toward quotas or `budget_dollars`. */
export function storeFieldLimits(
  sql: SqlStorage,
  { scope, subject }: BudgetOwner,
  { limits, changed }: { readonly limits: readonly CountedLimit[]; readonly changed: number },
): void {
  const spent = (window: string): Micros => micros(tallySum(tallyOf(limits, window)));
  if (scope === "session") updateSessionSpend(sql, subject, spent("total"));
  const since = (window: string): string => tallyDay(tallyOf(limits, window));
  if (scope === "end_user") {
    const spend = {
      month: since("month").slice(0, 7),
      monthly_spend: spent("month"),
      day: since("day"),
      daily_spend: spent("day"),
    };
    updateEndUserSpend(sql, subject, { spend, changed });
  }
  if (scope !== "key") return;
  const limited = limits.find(({ budget }) => budget.amount !== Infinity);
  putKeySpend(sql, {
    key_id: subject,
    budget: limited === undefined ? null : micros(limited.budget.amount),
    period: BUDGET_PERIODS.find((period) => period === limited?.budget.window) ?? null,
    day: since("day"),
    daily: spent("day"),
    week: since("week"),
    weekly: spent("week"),
    month: since("month").slice(0, 7),
    monthly: spent("month"),
    total: spent("total"),
    changed,
  });
}

function sessionLimits(sql: SqlStorage, owner: BudgetOwner): CountedLimit[] {
  const row = selectSession(sql, owner.subject);
  // A lost or unused session has a budget of 0, so its charges can't exceed their holds.
  const amount = row === null || row.session === null ? micros(0) : row.session.budgetMicro;
  return [dollarFieldLimit(owner, "total", { amount, tally: [[0, row?.spent ?? 0]] })];
}

/** Returns the key's spend per period. At most one period has a limit. */
function keyLimits(sql: SqlStorage, owner: BudgetOwner): CountedLimit[] {
  const row = selectKeySpend(sql, owner.subject);
  if (row === null) return [];
  const limited = row.period ?? "total";
  const limit = (window: string, tally: BucketSums): CountedLimit =>
    dollarFieldLimit(owner, window, {
      amount: window === limited ? row.budget : null,
      tally,
    });
  return [
    limit("day", [[bucketOfDay(row.day), row.daily]]),
    limit("week", [[bucketOfDay(row.week), row.weekly]]),
    limit("month", [[bucketOfDay(row.month), row.monthly]]),
    limit("total", [[0, row.total]]),
  ];
}

/** Returns an end user's quotas in the order of their checks. */
export function quotaLimitsOf(user: EndUser, spend: EndUserSpend): CountedLimit[] {
  const owner = { scope: "end_user", subject: user.id } as const;
  const limit = (window: string, amount: Micros | null, tally: BucketSums): CountedLimit =>
    dollarFieldLimit(owner, window, { amount, tally });
  return [
    limit("month", user.monthlyQuotaMicro, [[bucketOfDay(spend.month), spend.monthly_spend]]),
    limit("day", user.dailyQuotaMicro, [[bucketOfDay(spend.day), spend.daily_spend]]),
  ];
}

function endUserLimits(sql: SqlStorage, { subject }: BudgetOwner): CountedLimit[] {
  const user = selectEndUser(sql, "id", subject);
  const spend = selectEndUserSpend(sql, subject);
  // Once a deleted end user's row is purged, its charges count only for the organization.
  return user === null || spend === null ? [] : quotaLimitsOf(user, spend);
}

/** Returns the number of days from 1970 to a date or month (YYYY-MM). */
const bucketOfDay = (day: string): number => Math.floor(Date.parse(day) / DAY_MS);

const tallyOf = (limits: readonly CountedLimit[], window: string): BucketSums =>
  limits.find(({ budget }) => budget.window === window)?.tally ?? [];
const tallySum = (tally: BucketSums): number => tally.reduce((sum, [, amount]) => sum + amount, 0);
const tallyDay = (tally: BucketSums): string =>
  timestamp((tally[0]?.[0] ?? 0) * DAY_MS).slice(0, 10);
