import type { Price } from "../usage.ts";
import type { Micros } from "../money.ts";
import type { UsageAmounts } from "../usage-sums.ts";

type TagGroup = `tag:${string}`;
export type UsageGroupBy =
  | "day"
  | "model"
  | "key"
  | "user"
  | "day,model"
  | "day,key"
  | "day,user"
  | TagGroup
  | `day,${TagGroup}`;
/** `group` is the day, model, key ID or external ID; null for requests without an end user. */
type UsageGroup = UsageAmounts & {
  readonly group: string | null;
  /** The day, if usage is by day and another dimension. */
  readonly day?: string;
};
/**
 * At most `limit` groups that sort after `after`: a group's name ("" for null), preceded by its day and a
 * comma if there are two. Null starts at the first.
 */
export type UsagePage = { readonly limit: number; readonly after: string | null };
/** `total` covers all groups. `nextAfter` continues; null at the end. */
export type UsageReport = {
  readonly data: readonly UsageGroup[];
  readonly total: UsageAmounts;
  readonly nextAfter: string | null;
};

const ROW_DIMENSIONS = ["day", "hour", "model", "provider", "key", "user", "member"] as const;
/** Member IDs by key ID. */
export type KeyMembers = Readonly<Record<string, string>>;
export type RowDimension = (typeof ROW_DIMENSIONS)[number] | TagGroup;
/** A tag key and its value. */
export type TagFilter = { readonly key: string; readonly value: string };
/** Requests admitted from `fromMs` to before `beforeMs` (Unix ms) that match every list. */
export type RowsQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly by: readonly RowDimension[];
  readonly models: readonly string[] | null;
  readonly providers: readonly string[] | null;
  readonly keyIds: readonly string[] | null;
  readonly externalIds: readonly string[] | null;
  /** A tag that the requests have; absent or null for any. */
  readonly tag?: TagFilter | null;
  /** The members of keys, if the query needs them. */
  readonly members: KeyMembers | null;
  readonly latency: boolean;
};
/** `names` follows `by`; null for requests without an end user. Times are ms. */
export type RowsGroup = UsageAmounts & {
  readonly names: readonly (string | null)[];
  readonly firstByteMs?: {
    readonly p50: number | null;
    readonly p99: number | null;
    readonly n: number;
  };
  readonly tokensPerSecond?: number | null;
};
/** `completeFrom`: requests admitted earlier (Unix ms) aren't included. */
export type RowsReport = {
  readonly data: readonly RowsGroup[];
  readonly total: UsageAmounts;
  readonly completeFrom: number;
};

/** Settled requests admitted from `fromMs` to before `beforeMs` (Unix ms), of one model or all (null). */
export type CostQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly by: "provider" | "model";
  readonly model: string | null;
  /** A price to compare: the report sums how much less it would have charged. Null for none. */
  readonly price: Price | null;
};
/** The charges and provider costs of a UTC day. */
export type CostGroup = {
  readonly day: string;
  readonly group: string;
  requests: number;
  chargedMicro: number;
  boughtMicro: number;
  unknown: number;
};
/** `lessMicro`: see `CostQuery.price`. `completeFrom`: earlier requests (Unix ms) aren't included. */
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
