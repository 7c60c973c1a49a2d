import type { Budget } from "../../shared/budgets.ts";
import { timestamp } from "../../shared/clock.ts";
import { keyTermsFromRow, hasAnyKeyTerms } from "../../shared/key-terms.ts";
import type { BudgetPeriod, KeyTerms, KeyTermsRow } from "../../shared/key-terms.ts";
import { keySecretsFromJson } from "../../shared/key.ts";
import type { Key, KeyScope } from "../../shared/key.ts";
import { dollarsOf, micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
import { periodOf } from "../../shared/period.ts";
import type { Period } from "../../shared/period.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import { sumInWindow } from "../../shared/budget-meter.ts";
import type { BucketSums } from "../../shared/budget-meter.ts";
import { keyTermsWithSpendView } from "./terms.ts";
import type { Region } from "../../shared/regions.ts";

type PeriodSpend = { readonly since: string; readonly spent: Micros };

/** A key's spend in total, and in the latest day, week and month with a charge. */
type KeySpend = Readonly<Record<BudgetPeriod, PeriodSpend>> & { readonly total: Micros };

/** A key's row in its home region's D1. Times are Unix ms. */
export type StoredKey = Key & {
  readonly keyHash: string;
  readonly name: string;
  readonly prefix: string;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  readonly revokedAt: number | null;
  readonly changedAt: number | null;
  readonly spend: KeySpend;
  /** The use of the key's budgets, by budget ID. Present only in lists. */
  readonly tallies?: Readonly<Record<string, BucketSums>>;
};

export type KeyRow = KeyTermsRow & {
  readonly id: string;
  readonly hash: string;
  readonly org_id: string;
  readonly member_id: string;
  readonly name: string;
  readonly prefix: string;
  readonly scope: KeyScope;
  readonly rpm_limit: number;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
  readonly changed_at: number | null;
  readonly secrets: string | null;
  readonly tallies?: string | null;
} & { readonly [K in "day" | "week" | "month"]: string | null } & {
  readonly [K in `${"daily" | "weekly" | "monthly" | "total"}_spend_micro`]: number | null;
};

export function keyFromRow(row: KeyRow): StoredKey {
  return {
    keyId: row.id,
    keyHash: row.hash,
    orgId: row.org_id,
    memberId: row.member_id,
    name: row.name,
    prefix: row.prefix,
    scope: row.scope,
    rpmLimit: row.rpm_limit,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
    revokedAt: row.revoked_at,
    changedAt: row.changed_at,
    terms: keyTermsFromRow(row),
    secrets: keySecretsFromJson(row.secrets),
    spend: {
      day: periodSpend(row.day, row.daily_spend_micro),
      week: periodSpend(row.week, row.weekly_spend_micro),
      month: periodSpend(row.month, row.monthly_spend_micro),
      total: micros(row.total_spend_micro ?? 0),
    },
    ...(row.tallies !== undefined && { tallies: parseStoredJson(row.tallies ?? "{}") }),
  };
}

function periodSpend(since: string | null, spent: number | null): KeySpend["day"] {
  return { since: since ?? "", spent: micros(spent ?? 0) };
}

export const ZERO_KEY_SPEND: KeySpend = {
  day: periodSpend(null, null),
  week: periodSpend(null, null),
  month: periodSpend(null, null),
  total: micros(0),
};

export const RPM_LIMIT_DEFAULT = 60;
export const RPM_LIMIT_MAX = 1000;

/** Fields of a key that requests can't change. */
export const KEY_READ_ONLY_FIELDS: readonly string[] = [
  "id",
  "prefix",
  "region",
  "created_at",
  "last_used_at",
  "revoked",
  "spent_dollars",
  "budgets_used",
  "key",
  "member_id",
];

/** Returns a key in the API's format. `home` is this region. */
export function apiKeyView(key: StoredKey, home: Region, nowMs: number) {
  const { terms, spend } = key;
  const spent = spendInPeriod({ ...terms, spend }, periodOf(nowMs));
  return {
    id: key.keyId,
    member_id: key.memberId,
    name: key.name,
    prefix: key.prefix,
    region: home,
    scope: key.scope,
    rpm_limit: key.rpmLimit,
    created_at: timestamp(key.createdAt),
    last_used_at: key.lastUsedAt === null ? null : timestamp(key.lastUsedAt),
    revoked: key.revokedAt !== null,
    ...(hasAnyKeyTerms(terms) && keyTermsWithSpendView(terms, spent)),
    ...(terms.budgets !== null &&
      key.tallies !== undefined &&
      budgetsUsedView(terms.budgets, key.tallies, nowMs)),
  };
}

function budgetsUsedView(
  budgets: readonly Budget[],
  tallies: NonNullable<StoredKey["tallies"]>,
  nowMs: number,
): { readonly budgets_used: Readonly<Record<string, number>> } {
  const at = { period: periodOf(nowMs), nowMs };
  const used = budgets.map(({ id, unit, window }) => {
    const sum = sumInWindow(window, tallies[id] ?? [], at);
    return [id, unit === "dollars" ? dollarsOf(micros(sum)) : sum] as const;
  });
  return { budgets_used: Object.fromEntries(used) };
}

/** Returns a key's spend in the current budget period, or the total if its budget has no period. */
function spendInPeriod(
  { budgetPeriod, spend }: Pick<KeyTerms, "budgetPeriod"> & { readonly spend: KeySpend },
  period: Period,
): Micros {
  if (budgetPeriod === null) return spend.total;
  const slot = spend[budgetPeriod];
  return slot.since === period[budgetPeriod] ? slot.spent : micros(0);
}
