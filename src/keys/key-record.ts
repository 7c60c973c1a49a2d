import type { Region, Scope } from "../lib/caller.ts";
import { timestamp } from "../lib/clock.ts";

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
};

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
};

/** What a record shows beside what may be chosen; `key` and `member_id` where they are shown. */
export const KEY_READ_ONLY: readonly string[] = [
  "id",
  "prefix",
  "region",
  "created_at",
  "last_used_at",
  "revoked",
  "key",
  "member_id",
];

/** A row as the interface shows it; a book holds only keys of its own region, so `home` is this region. */
export function keyRecord(row: KeyRow, home: Region): KeyRecord {
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
  };
}
