import type { Micros } from "../money.ts";
import type { Price } from "../usage.ts";

/** The shared facts of charges. `tags` are the declared ones as JSON, or "". */
export type ChargeFacts = {
  readonly keyId: string;
  readonly model: string;
  readonly provider: string;
  readonly region: string;
  readonly price: Price;
  readonly tags: string;
};
/** The charges of one day with the same facts. `lines` has the quantity of each bill line. */
export type ChargeGroup = ChargeFacts & {
  readonly requests: number;
  readonly costMicro: Micros;
  readonly chargedMicro: Micros;
  readonly lines: Readonly<Record<string, number>>;
};
/** A ledger row that isn't a charge. */
export type LedgerCredit = {
  readonly seq: number;
  readonly amountMicro: Micros;
  readonly reference: string;
};
/** A page of the charges of one UTC day by ledger time. The first page has the day's credits. */
export type ChargesQuery = {
  readonly day: string;
  readonly after: string | null;
  readonly limit: number;
};
export type ChargesPage = {
  readonly groups: readonly ChargeGroup[];
  readonly credits: readonly LedgerCredit[];
  readonly nextAfter: string | null;
  /** The newest day that no later charge can change; null for none. */
  readonly completeThrough: string | null;
};
