import { micros } from "../../src/shared/money.ts";
import { periodOf } from "../../src/shared/period.ts";
import {
  meterAmountsAt,
  dollarFieldLimit,
  createMeterWithoutHolds,
} from "../../src/money/wallet/rules/limits.ts";
import type { Meter } from "../../src/money/wallet/rules/limits.ts";
import { bucketAt } from "../../src/shared/budget-meter.ts";
import type { BudgetTime } from "../../src/shared/budget-meter.ts";
import type { Quotas } from "./wallet-commands.ts";

/** An end user with a month's and a day's spend. */
export type PlainUser = {
  readonly id: string;
  readonly externalId: string;
  meters: readonly Meter[];
};

export function newPlainUser(externalId: string, quotas: Quotas, nowMs: number): PlainUser {
  const owner = { scope: "end_user", subject: `id of ${externalId}` } as const;
  const at = { period: periodOf(nowMs), nowMs };
  const meter = (window: string, quota: number | null): Meter => {
    const amount = quota === null ? null : micros(quota);
    return createMeterWithoutHolds(
      dollarFieldLimit(owner, window, { amount, tally: [[bucketAt(window, at), 0]] }),
    );
  };
  const meters = [meter("month", quotas.monthly), meter("day", quotas.daily)];
  return { id: owner.subject, externalId, meters };
}

export function readSpend({ meters }: PlainUser, at: BudgetTime) {
  const [monthly = 0, daily = 0] = meters.map((meter) => meterAmountsAt(meter, at).settled);
  return { daily, monthly };
}
