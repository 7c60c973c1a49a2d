import { SYSTEM } from "../../lib/event.ts";
import type { Failure } from "../../lib/failure.ts";
import type { BudgetPeriod } from "../../lib/key-terms.ts";
import type { Micros } from "../../lib/money.ts";
import { budgetSpent } from "../../lib/key-terms.ts";
import type { Budget } from "../rules/key-limits.ts";
import { RULES } from "../rules/ledger.ts";
import { spentIn } from "../rules/quota.ts";
import type { Period } from "../../lib/period.ts";
import type { EndUser } from "../rules/quota.ts";
import { addEvent } from "../tables/event-rows.do.ts";
import type { Desk } from "./memory.do.ts";

/** An end user's quota or a key's budget that is used up, or too small for what was asked. */
export type Reached = {
  readonly type: "end_user.quota_reached" | "key.budget_reached";
  /** The end user's external id, or the key's id. */
  readonly subject: string;
  /** Null: a budget that is for good. */
  readonly period: BudgetPeriod | null;
  /** The day, Monday or month it is of; null as well. */
  readonly since: string | null;
  readonly limit: Micros;
  readonly left: number;
};

/** Which limits a charge reaches that had something left before it. */
export function reachedByCharge(
  before: { readonly endUser: EndUser | null; readonly budget: Budget | null },
  charged: { readonly endUser: EndUser | null; readonly amount: Micros; readonly period: Period },
): Reached[] {
  const { period } = charged;
  return [
    ...(before.endUser === null || charged.endUser === null
      ? []
      : quotasReached(before.endUser, charged.endUser, period)),
    ...(before.budget === null ? [] : budgetReached(before.budget, charged.amount, period)),
  ];
}

function quotasReached(before: EndUser, after: EndUser, period: Period): Reached[] {
  const [was, is] = [spentIn(before.spend, period), spentIn(after.spend, period)];
  const type = "end_user.quota_reached";
  const subject = after.externalId;
  const reached: Reached[] = [];
  const { dailyQuota, monthlyQuota } = after;
  if (dailyQuota !== null && was.daily < dailyQuota && is.daily >= dailyQuota) {
    const left = dailyQuota - is.daily;
    reached.push({ type, subject, period: "day", since: period.day, limit: dailyQuota, left });
  }
  if (monthlyQuota !== null && was.monthly < monthlyQuota && is.monthly >= monthlyQuota) {
    const left = monthlyQuota - is.monthly;
    reached.push({
      type,
      subject,
      period: "month",
      since: period.month,
      limit: monthlyQuota,
      left,
    });
  }
  return reached;
}

function budgetReached(budget: Budget, amount: Micros, period: Period): Reached[] {
  const { budgetMicro: limit, budgetPeriod, keyId, spend } = budget;
  if (limit === null || budgetSpent(budget, period) >= limit) return [];
  const after = { ...budget, spend: RULES.addKeySpend(spend, period, amount) };
  const left = limit - budgetSpent(after, period);
  if (left > 0) return [];
  const since = budgetPeriod === null ? null : period[budgetPeriod];
  return [{ type: "key.budget_reached", subject: keyId, period: budgetPeriod, since, limit, left }];
}

/** The limit that a refusal is because of; null where it is none, or only open holds are in the way. */
export function reachedByRefusal(
  { period: now }: Desk,
  failure: Failure,
  request: { readonly keyId: string; readonly externalId: string | null },
): Reached | null {
  if (failure.kind === "quota_exceeded" && !failure.onlyHolds && request.externalId !== null) {
    const { period, quotaMicro: limit, leftMicro: left } = failure;
    const type = "end_user.quota_reached";
    return { type, subject: request.externalId, period, since: now[period], limit, left };
  }
  if (failure.kind === "key_budget_exceeded" && !failure.onlyHolds && failure.session !== true) {
    const { period, budgetMicro: limit, leftMicro: left } = failure;
    const since = period === null ? null : now[period];
    return { type: "key.budget_reached", subject: request.keyId, period, since, limit, left };
  }
  return null;
}

/** Told once for each limit and period, in the deciding transaction. */
export function tellReached(desk: Desk, reached: Reached): void {
  const { type, subject, period, since, limit, left } = reached;
  const amounts = type === "key.budget_reached" ? "budget_micro" : "quota_micro";
  const data = { period, since, [amounts]: limit, left_micro: Math.max(0, left) };
  addEvent(desk, { type, actor: SYSTEM, subject, data }, [subject, period, since, limit]);
}
