import type { Region, Scope } from "../lib/caller.ts";
import { timestamp } from "../lib/clock.ts";
import { isLimited, termsOfRow } from "../lib/key-terms.ts";
import type { KeyTerms, KeyTermsRow } from "../lib/key-terms.ts";
import { micros } from "../lib/money.ts";
import type { SecretsRow } from "./key-book.ts";
import { termsView } from "./terms.ts";
import type { TermsRecord } from "./terms.ts";

const DAY_MS = 86_400_000;
export const RPM_LIMIT_DEFAULT = 60;
export const RPM_LIMIT_MAX = 1000;

/** A row of `keys` in the book. Times are Unix ms. */
export type KeyRow = {
  readonly id: string;
  readonly hash: string;
  readonly org_id: string;
  readonly member_id: string;
  readonly name: string;
  readonly prefix: string;
  readonly scope: Scope;
  readonly rpm_limit: number;
  readonly created_at: number;
  readonly last_used_at: number | null;
  readonly revoked_at: number | null;
} & Partial<KeyTermsRow & SecretsRow & KeySpendRow & { readonly changed_at: number | null }>;

/** What the book has of the spend of a key with a budget, as its wallet published it. */
export type KeySpendRow = {
  readonly [K in Period]: string | null;
} & { readonly [K in `${"daily" | "weekly" | "monthly" | "total"}_spend_micro`]: number | null };
type Period = "day" | "week" | "month";

/** The terms of a key as its row has them; none where the book has no row for them. */
export function termsOf(row: Partial<KeyTermsRow>): KeyTerms {
  return termsOfRow({
    budget_micro: row.budget_micro ?? null,
    budget_period: row.budget_period ?? null,
    tpm_limit: row.tpm_limit ?? null,
    allowed_models: row.allowed_models ?? null,
    end_user: row.end_user ?? null,
    expires_at: row.expires_at ?? null,
  });
}

/** The key record of the interface, 2.5. */
export type KeyRecord = {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly region: Region;
  readonly scope: Scope;
  readonly rpm_limit: number;
  readonly created_at: string;
  readonly last_used_at: string | null;
  readonly revoked: boolean;
} & Partial<TermsRecord>;

/** What a record shows beside what may be chosen; `key` and `member_id` where they are shown. */
export const KEY_READ_ONLY: readonly string[] = [
  "id",
  "prefix",
  "region",
  "created_at",
  "last_used_at",
  "revoked",
  "spent_dollars",
  "key",
  "member_id",
];

/** A row as the interface shows it; a book holds only keys of its own region, so `home` is this region. */
export function keyRecord(row: KeyRow, home: Region, nowMs: number): KeyRecord {
  const terms = termsOf(row);
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    region: home,
    scope: row.scope,
    rpm_limit: row.rpm_limit,
    created_at: timestamp(row.created_at),
    last_used_at: row.last_used_at === null ? null : timestamp(row.last_used_at),
    revoked: row.revoked_at !== null,
    ...(isLimited(terms) && termsView(terms, micros(spentOf(row, nowMs)))),
  };
}

/** What the key has spent of its budget by now, as far as the book knows. */
function spentOf(row: KeyRow, nowMs: number): number {
  const day = timestamp(nowMs).slice(0, "YYYY-MM-DD".length);
  const sinceMonday = (new Date(nowMs).getUTCDay() + 6) % 7;
  const week = timestamp(nowMs - sinceMonday * DAY_MS).slice(0, day.length);
  const month = day.slice(0, "YYYY-MM".length);
  const period = row.budget_period ?? null;
  if (period === "day") return row.day === day ? (row.daily_spend_micro ?? 0) : 0;
  if (period === "week") return row.week === week ? (row.weekly_spend_micro ?? 0) : 0;
  if (period === "month") return row.month === month ? (row.monthly_spend_micro ?? 0) : 0;
  return row.total_spend_micro ?? 0;
}
