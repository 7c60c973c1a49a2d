import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import type { Period } from "../../../shared/period.ts";

type Spend = {
  readonly day: string;
  readonly daily: Micros;
  readonly month: string;
  readonly monthly: Micros;
};

/** An end user. A quota of null has no limit, and a quota of 0 rejects all requests. */
export type EndUser = {
  readonly id: string;
  readonly externalId: string;
  readonly dailyQuota: Micros | null;
  readonly monthlyQuota: Micros | null;
  readonly alertThreshold: number;
  readonly createdAt: number;
  readonly spend: Spend;
};

export type PerPeriod = { readonly daily: Micros; readonly monthly: Micros };

export const NOTHING: PerPeriod = { daily: micros(0), monthly: micros(0) };

export function noSpend(period: Period): Spend {
  return { day: period.day, month: period.month, ...NOTHING };
}

/**
 * Returns the spend of a period. The spend of other periods counts as 0, so it needn't be reset.
 */
export function spentIn(spend: Spend, period: Period): PerPeriod {
  return {
    daily: spend.day === period.day ? spend.daily : micros(0),
    monthly: spend.month === period.month ? spend.monthly : micros(0),
  };
}

/** Adds a charge to the spend. Ignores periods that have ended. */
export function addSpend(spend: Spend, period: Period, charged: Micros): Spend {
  const spent = spentIn(spend, period);
  return {
    ...(period.day < spend.day
      ? { day: spend.day, daily: spend.daily }
      : { day: period.day, daily: micros(spent.daily + charged) }),
    ...(period.month < spend.month
      ? { month: spend.month, monthly: spend.monthly }
      : { month: period.month, monthly: micros(spent.monthly + charged) }),
  };
}

type Left = { readonly daily: number; readonly monthly: number };

export const NO_CAP: Left = { daily: Infinity, monthly: Infinity };

/** Returns the remaining quotas. They are 0 if the period of a late charge has ended. */
export function quotaLeft(user: EndUser, period: Period, held: PerPeriod): Left {
  const spent = spentIn(user.spend, period);
  return {
    daily: rest(user.dailyQuota, period.day < user.spend.day, spent.daily + held.daily),
    monthly: rest(user.monthlyQuota, period.month < user.spend.month, spent.monthly + held.monthly),
  };
}

function rest(quota: Micros | null, passed: boolean, used: number): number {
  if (quota === null) return Infinity;
  return passed ? 0 : quota - used;
}

export function microsOrNull(value: number | null): Micros | null {
  return value === null ? null : micros(value);
}
