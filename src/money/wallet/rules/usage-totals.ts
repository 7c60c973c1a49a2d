import type { Micros } from "../../../shared/money.ts";
import { periodOf } from "../../../shared/period.ts";
import { addUsageAmounts, NO_USAGE_AMOUNTS } from "../../../shared/usage-sums.ts";
import type { TokenCounts, UsageAmounts } from "../../../shared/usage-sums.ts";

/** Maximum groups (about 3 MB of JSON). */
export const USAGE_GROUPS_MAX = 10_000;

export type LedgerRowUsage = TokenCounts & {
  /** Time of admission (Unix ms). The usage counts on its UTC day. */
  readonly admittedAt: number;
  readonly charged: Micros;
  readonly externalId: string | null;
  readonly keyId: string;
  readonly model: string;
  readonly tags: string | null;
};

type UsageDimension = "day" | "model" | "key" | "user" | "tags";

/** A stored usage sum of one group on one UTC day. */
export type UsageTotal = UsageAmounts & {
  readonly dimension: UsageDimension;
  readonly day: string;
  /**
   * The group's model, key, external ID or tags. Empty for `day` and for requests without an end
   * user.
   */
  readonly name: string;
};

/**
 * Totals by key. A key joins dimension, day and name with line breaks, which names can't contain.
 */
export type UsageTotalsByGroup = Map<string, UsageTotal>;

export function addUsage(totals: UsageTotalsByGroup, posted: LedgerRowUsage): void {
  const { day } = periodOf(posted.admittedAt);
  const names: readonly (readonly [UsageDimension, string])[] = [
    ["day", ""],
    ["model", posted.model],
    ["key", posted.keyId],
    ["user", posted.externalId ?? ""],
    ...(posted.tags === null ? [] : [["tags", posted.tags] as const]),
  ];
  const amounts = { ...posted, requests: 1, costMicro: posted.charged };
  for (const [dimension, name] of names) {
    const key = `${dimension}\n${day}\n${name}`;
    const sum = addUsageAmounts(totals.get(key) ?? NO_USAGE_AMOUNTS, amounts);
    totals.set(key, { dimension, day, name, ...sum });
  }
}
