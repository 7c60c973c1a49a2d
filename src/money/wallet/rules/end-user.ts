import { micros } from "../../../shared/money.ts";
import type { Micros } from "../../../shared/money.ts";

/** An end user. A null quota means no limit. A quota of 0 rejects all requests. */
export type EndUser = {
  readonly id: string;
  readonly externalId: string;
  readonly dailyQuotaMicro: Micros | null;
  readonly monthlyQuotaMicro: Micros | null;
  readonly alertThreshold: number;
  readonly createdAt: number;
};

export function toNullableMicros(value: number | null): Micros | null {
  return value === null ? null : micros(value);
}
