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
type UsageGroup = UsageAmounts & {
  readonly group: string | null;
  readonly day?: string;
};
/**
 * A page of groups. `after` is the previous page's last group ("" for null). With two dimensions,
 * the day and a comma precede it.
 */
export type UsagePage = { readonly limit: number; readonly after: string | null };
export type UsageReport = {
  readonly data: readonly UsageGroup[];
  readonly total: UsageAmounts;
  readonly nextAfter: string | null;
};

const ROW_DIMENSIONS = ["day", "hour", "model", "provider", "key", "user", "member"] as const;
export type MemberIdByKeyId = Readonly<Record<string, string>>;
/** A field by which reports group requests. */
export type RequestDimension = (typeof ROW_DIMENSIONS)[number] | TagGroup;
export type TagFilter = { readonly key: string; readonly value: string };
/**
 * A query for requests admitted from `fromMs` to before `beforeMs` (Unix ms) that match all
 * filters. A null filter matches all.
 */
export type RequestSumsQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly by: readonly RequestDimension[];
  readonly models: readonly string[] | null;
  readonly providers: readonly string[] | null;
  readonly keyIds: readonly string[] | null;
  readonly externalIds: readonly string[] | null;
  readonly tag?: TagFilter | null;
  readonly members: MemberIdByKeyId | null;
  readonly latency: boolean;
};
/** The usage of one group. `names` contains the group's value for each dimension in `by`. */
export type RequestGroup = UsageAmounts & {
  readonly names: readonly (string | null)[];
  readonly firstByteMs?: {
    readonly p50: number | null;
    readonly p99: number | null;
    readonly n: number;
  };
  readonly tokensPerSecond?: number | null;
};
/** A usage report. It excludes requests before `completeFrom` (Unix ms). */
export type RequestSumsReport = {
  readonly data: readonly RequestGroup[];
  readonly total: UsageAmounts;
  readonly completeFrom: number;
};

/**
 * A query for the costs of requests admitted from `fromMs` to before `beforeMs` (Unix ms). A null
 * model matches all.
 */
export type CostQuery = {
  readonly fromMs: number;
  readonly beforeMs: number;
  readonly by: "provider" | "model";
  readonly model: string | null;
  /** A price to compare with. `lessMicro` is the customers' saving at this price. */
  readonly price: Price | null;
};
/**
 * A group's charges and provider costs (`boughtMicro`). `unknown` counts requests without a known
 * cost.
 */
export type CostGroup = {
  readonly day: string;
  readonly group: string;
  requests: number;
  chargedMicro: number;
  boughtMicro: number;
  unknown: number;
};
export type ProviderCostReport = {
  readonly data: readonly CostGroup[];
  readonly lessMicro: Micros;
  readonly requests: number;
  readonly completeFrom: number;
};

export type AlertRecord = {
  readonly id: string;
  readonly kind: "user_daily" | "user_monthly" | "low_balance";
  readonly externalId: string | null;
  readonly period: string | null;
  readonly threshold: number | null;
  readonly limitMicro: Micros;
  readonly valueMicro: Micros;
  readonly createdAt: number;
};
export type AlertPage = { readonly alerts: readonly AlertRecord[]; readonly total: number };

/** A provider's calls for one organization: served requests, and failures by reason. */
export type ProviderCalls = {
  readonly provider: string;
  served: number;
  readonly failed: Record<string, number>;
};
export type ProviderCallsReport = {
  readonly data: readonly ProviderCalls[];
  readonly completeFrom: number;
};
