import type { Region, Scope } from "../lib/caller.ts";
import { timestamp } from "../lib/clock.ts";
import { budgetSpent, isLimited } from "../lib/key-terms.ts";
import { periodOf } from "../lib/period.ts";
import type { BookedKey } from "./booked-key.ts";
import { termsView } from "./terms.ts";
import type { TermsRecord } from "./terms.ts";

export const RPM_LIMIT_DEFAULT = 60;
export const RPM_LIMIT_MAX = 1000;

/** The key record of the interface. */
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

/** A key as the interface shows it; a book holds only keys of its own region, so `home` is this region. */
export function keyRecord(key: BookedKey, home: Region, nowMs: number): KeyRecord {
  const { terms, spend } = key;
  const spent = budgetSpent({ ...terms, spend }, periodOf(nowMs));
  return {
    id: key.keyId,
    name: key.name,
    prefix: key.prefix,
    region: home,
    scope: key.scope,
    rpm_limit: key.rpmLimit,
    created_at: timestamp(key.createdAt),
    last_used_at: key.lastUsedAt === null ? null : timestamp(key.lastUsedAt),
    revoked: key.revokedAt !== null,
    ...(isLimited(terms) && termsView(terms, spent)),
  };
}
