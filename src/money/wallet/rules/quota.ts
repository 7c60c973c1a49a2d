import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";
import type { Period } from "../../../shared/period.ts";

/** What an end user spent in the newest day and month it was charged in. */
type Spend = {
  readonly day: string;
  readonly daily: Micros;
  readonly month: string;
  readonly monthly: Micros;
};

/** A customer of the organization. A quota of null is no cap, 0 blocks. */
export type EndUser = {
  readonly id: string;
  readonly externalId: string;
  readonly dailyQuota: Micros | null;
  readonly monthlyQuota: Micros | null;
  readonly alertThreshold: number;
  readonly createdAt: number;
  readonly spend: Spend;
};

/** Micros in a day and in its month. */
export type PerPeriod = { readonly daily: Micros; readonly monthly: Micros };

export const NOTHING: PerPeriod = { daily: micros(0), monthly: micros(0) };

export function noSpend(period: Period): Spend {
  return { day: period.day, month: period.month, ...NOTHING };
}

/** What was spent in `period`; a slot whose period has passed reads 0, so nothing ever resets it. */
export function spentIn(spend: Spend, period: Period): PerPeriod {
  return {
    daily: spend.day === period.day ? spend.daily : micros(0),
    monthly: spend.month === period.month ? spend.monthly : micros(0),
  };
}

/** Adds a charge to the slots of its period of admission: a passed period's slot is not kept. */
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

/** What is left of an end user's day and month, below 0 when overdrawn, Infinity without a cap. */
type Left = { readonly daily: number; readonly monthly: number };

export const NO_CAP: Left = { daily: Infinity, monthly: Infinity };

/**
 * `quota - spent - held`. Of a period that the slots have left behind nothing is known any more, so
 * nothing of a cap is left: only a late settle asks for it, and what it misses is ours to absorb.
 */
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

/** An amount of a nullable column: a quota or a threshold. */
export function microsOrNull(value: number | null): Micros | null {
  return value === null ? null : micros(value);
}
