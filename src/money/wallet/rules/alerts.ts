import type { Micros } from "../../../shared/money.ts";
import { micros } from "../../../shared/money.ts";
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

/** An end user's spend in a period, before and after a charge. */
type QuotaSpend = { readonly before: number; readonly after: number };

/**
 * Returns the quotas whose threshold a charge reached, or a change if `before` is 0. The caller
 * stores each alert once per limit.
 */
export function quotaCrossings(
  user: EndUser,
  spends: { readonly day?: QuotaSpend | undefined; readonly month?: QuotaSpend | undefined },
  period: Period,
): Crossing[] {
  const crossings: Crossing[] = [];
  for (const which of ["day", "month"] as const) {
    const limit = which === "day" ? user.dailyQuota : user.monthlyQuota;
    const { before = 0, after = 0 } = spends[which] ?? {};
    if (limit === null || !reaches(after, limit, user.alertThreshold)) continue;
    if (reaches(before, limit, user.alertThreshold)) continue;
    crossings.push({
      kind: which === "day" ? "user_daily" : "user_monthly",
      endUserId: user.id,
      externalId: user.externalId,
      period: period[which],
      threshold: user.alertThreshold,
      limitMicro: limit,
      valueMicro: micros(after),
    });
  }
  return crossings;
}

/**
 * Reports whether spend reached the threshold. Uses a division, because 0.55 * 100 is
 * 55.00000000000001.
 */
function reaches(spent: number, limit: Micros, threshold: number): boolean {
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

export function rearms(balance: Micros, threshold: Micros | null): boolean {
  return threshold === null || balance - threshold >= threshold / REARM_PART;
}
