import type { Price } from "../usage.ts";
import type { Micros } from "../money.ts";
import type { UsageAmounts } from "../usage-sums.ts";

export type UsageGroupBy = "day" | "model" | "key" | "user" | "day,model" | "day,key" | "day,user";
/** `group`: the day, model, key id or external id; null for requests without an end user. */
type UsageGroup = UsageAmounts & {
  readonly group: string | null;
  /** Of usage by day and something more. */
  readonly day?: string;
};
/**
 * At most `limit` groups, of those that sort after `after`: a group's name, "" that of null, behind its day and a
 * comma where there are two; null from the first on.
 */
export type UsagePage = { readonly limit: number; readonly after: string | null };
/** `total` is of all groups. `nextAfter` asks for those that follow; null: there are none. */
export type UsageReport = {
  readonly data: readonly UsageGroup[];
  readonly total: UsageAmounts;
  readonly nextAfter: string | null;
};

/** What rows of usage are by: a day or hour (UTC) of admission, what a request has, or whose its key is. */
const ROW_DIMENSIONS = ["day", "hour", "model", "provider", "key", "user", "member"] as const;
/** Ids of members by the ids of their keys. */
export type KeyMembers = Readonly<Record<string, string>>;
export type RowDimension = (typeof ROW_DIMENSIONS)[number];
/** Requests that were admitted from `fromMs` to before `beforeMs` (Unix ms), of any of those that each list names. */
export type RowsQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  /** One or two. */
  readonly by: readonly RowDimension[];
  readonly models: readonly string[] | null;
  readonly providers: readonly string[] | null;
  readonly keyIds: readonly string[] | null;
  readonly externalIds: readonly string[] | null;
  /** Whose each key is, for who asks by members; null: nobody does. */
  readonly members: KeyMembers | null;
  /** Whether times are asked for too. */
  readonly latency: boolean;
};
/** `names`: as `by` has them; null for requests without an end user. Times in ms, of those that have one. */
export type RowsGroup = UsageAmounts & {
  readonly names: readonly (string | null)[];
  readonly firstByteMs?: {
    readonly p50: number | null;
    readonly p99: number | null;
    readonly n: number;
  };
  readonly tokensPerSecond?: number | null;
};
/** `completeFrom`: what was admitted before it is not in the answer, Unix ms. */
export type RowsReport = {
  readonly data: readonly RowsGroup[];
  readonly total: UsageAmounts;
  readonly completeFrom: number;
};

/** Settled requests that were admitted from `fromMs` to before `beforeMs` (Unix ms), of a model alone or of any (null). */
export type CostQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly by: "provider" | "model";
  readonly model: string | null;
  /** Another price: what each would have been charged less by it is summed up; null: none. */
  readonly price: Price | null;
};
/** What requests of a UTC day were charged, and what they cost to buy by the providers' lists. */
export type CostGroup = {
  readonly day: string;
  readonly group: string;
  requests: number;
  chargedMicro: number;
  boughtMicro: number;
  /** Of them those whose provider's price is not known. */
  unknown: number;
};
/** `lessMicro`: see `CostQuery.price`. `completeFrom`: what was admitted before it is not in the answer, Unix ms. */
export type CostReport = {
  readonly data: readonly CostGroup[];
  readonly lessMicro: Micros;
  readonly requests: number;
  readonly completeFrom: number;
};

export type AlertRecord = {
  readonly id: string;
  readonly kind: "user_daily" | "user_monthly" | "low_balance";
  readonly externalId: string | null;
  /** The day or month; null for the balance. */
  readonly period: string | null;
  readonly threshold: number | null;
  readonly limitMicro: Micros;
  readonly valueMicro: Micros;
  readonly createdAt: number;
};
export type AlertPage = { readonly alerts: readonly AlertRecord[]; readonly total: number };
