import type { Micros } from "../money.ts";
import type { Price } from "../usage.ts";

/** The fields by which an export groups charges. `tags` is JSON, or "" if there are none. */
export type ChargeDimensions = {
  readonly keyId: string;
  readonly model: string;
  readonly provider: string;
  readonly region: string;
  readonly price: Price;
  readonly tags: string;
};
/** Sums of requests with the same `ChargeDimensions`. `lines` has quantities by unit. */
export type ChargeGroup = ChargeDimensions & {
  readonly requests: number;
  readonly costMicro: Micros;
  readonly chargedMicro: Micros;
  readonly lines: Readonly<Record<string, number>>;
};
export type LedgerCredit = {
  readonly seq: number;
  readonly amountMicro: Micros;
  readonly reference: string;
};
/** A query for one page of a UTC day's charges. The first page includes the day's credits. */
export type ChargesQuery = {
  readonly day: string;
  readonly after: string | null;
  readonly limit: number;
};
export type ChargesPage = {
  readonly groups: readonly ChargeGroup[];
  readonly credits: readonly LedgerCredit[];
  readonly nextAfter: string | null;
  /** The last day with final charges, or null. */
  readonly completeThrough: string | null;
};
