import type { AlertRecord } from "../../../shared/contracts/reports.ts";
import type { Micros } from "../../../shared/money.ts";
import { micros } from "../../../shared/money.ts";
import type { Period } from "../../../shared/period.ts";
import type { EndUser } from "../../../shared/contracts/end-users.ts";

/**
 * An alert about an end user's spend or a low balance. `limitMicro` is the quota or balance
 * threshold.
 */
export type ThresholdAlert = Omit<AlertRecord, "id" | "createdAt"> & {
  readonly endUserId: string | null;
};

const REARM_DIVISOR = 10;

type SpendChange = { readonly before: number; readonly after: number };

/**
 * Returns an alert for each quota whose threshold the new spend reaches. When a quota changes, pass
 * 0 as `before`.
 */
export function findQuotaAlerts(
  user: EndUser,
  spends: { readonly day?: SpendChange | undefined; readonly month?: SpendChange | undefined },
  period: Period,
): ThresholdAlert[] {
  const crossings: ThresholdAlert[] = [];
  for (const which of ["day", "month"] as const) {
    const limit = which === "day" ? user.dailyQuotaMicro : user.monthlyQuotaMicro;
    const { before = 0, after = 0 } = spends[which] ?? {};
    if (limit === null || !isThresholdReached(after, limit, user.alertThreshold)) continue;
    if (isThresholdReached(before, limit, user.alertThreshold)) continue;
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
 * Reports whether a threshold is reached. Divides, because products are inexact: 0.55 * 100 is
 * 55.00000000000001.
 */
export function isThresholdReached(spent: number, limit: number, threshold: number): boolean {
  return spent > 0 && spent / limit >= threshold;
}

export function findBalanceAlert(balance: Micros, threshold: Micros | null): ThresholdAlert | null {
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

/** Reports whether the low-balance alert can repeat. */
export function canRearmAlert(balance: Micros, threshold: Micros | null): boolean {
  return threshold === null || balance - threshold >= threshold / REARM_DIVISOR;
}
