import type { Micros } from "../../../shared/money.ts";
import { spentIn } from "./quota.ts";
import type { Period } from "../../../shared/period.ts";
import type { EndUser } from "./quota.ts";

/** An alert: `valueMicro` has reached the quota or the threshold `limitMicro`. */
export type Crossing = {
  readonly kind: "user_daily" | "user_monthly" | "low_balance";
  readonly endUserId: string | null;
  readonly externalId: string | null;
  readonly period: string | null;
  readonly threshold: number | null;
  readonly limitMicro: Micros;
  readonly valueMicro: Micros;
};

const REARM_PART = 10;

/**
 * Returns the quotas whose threshold a charge reached. `before` is null after a quota was changed.
 * The caller stores each alert once per limit.
 */
export function quotaCrossings(before: EndUser | null, after: EndUser, period: Period): Crossing[] {
  const spent = spentIn(after.spend, period);
  const earlier = before === null ? null : spentIn(before.spend, period);
  const crossings: Crossing[] = [];
  const look = (kind: "user_daily" | "user_monthly", limit: Micros | null, value: Micros): void => {
    if (limit === null || !reaches(value, limit, after.alertThreshold)) return;
    const daily = kind === "user_daily";
    const was = daily ? earlier?.daily : earlier?.monthly;
    if (was !== undefined && reaches(was, limit, after.alertThreshold)) return;
    crossings.push({
      kind,
      endUserId: after.id,
      externalId: after.externalId,
      period: daily ? period.day : period.month,
      threshold: after.alertThreshold,
      limitMicro: limit,
      valueMicro: value,
    });
  };
  look("user_daily", after.dailyQuota, spent.daily);
  look("user_monthly", after.monthlyQuota, spent.monthly);
  return crossings;
}

/**
 * Reports whether spend reached the threshold. Uses a division, because 0.55 * 100 is
 * 55.00000000000001.
 */
function reaches(spent: Micros, limit: Micros, threshold: number): boolean {
  return spent > 0 && spent / limit >= threshold;
}

export function balanceCrossing(balance: Micros, threshold: Micros | null): Crossing | null {
  if (threshold === null || balance >= threshold) return null;
  return {
    kind: "low_balance",
    endUserId: null,
    externalId: null,
    period: null,
    threshold: null,
    limitMicro: threshold,
    valueMicro: balance,
  };
}

/** Reports whether the balance is far enough above the threshold for the alert to fire again. */
export function rearms(balance: Micros, threshold: Micros | null): boolean {
  return threshold === null || balance - threshold >= threshold / REARM_PART;
}
