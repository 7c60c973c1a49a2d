import { assert } from "../../shared/assert.ts";
import { keySecretsFromJson, keySecretsToJson } from "../../shared/key.ts";
import type { Key } from "../../shared/key.ts";
import { keyTermsFromJson, keyTermsToJson } from "../../shared/key-terms.ts";
import { RateWindow } from "../../shared/rate-window.ts";
import type { StoredAdmission } from "../../shared/rate-window.ts";
import { migrateExistingTables } from "../../shared/tables.do.ts";
import type { TableMigrations } from "../../shared/tables.do.ts";

const FIRST_SCHEMA = `CREATE TABLE admissions (slot INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
  CREATE TABLE record (
    one INTEGER PRIMARY KEY CHECK (one = 1), key_id TEXT NOT NULL, org_id TEXT NOT NULL,
    member_id TEXT NOT NULL, scope TEXT NOT NULL, rpm_limit INTEGER NOT NULL,
    touched_at INTEGER NOT NULL, terms TEXT, secrets TEXT
  ) STRICT;
  CREATE TABLE tombstone (
    one INTEGER PRIMARY KEY CHECK (one = 1), revoked_at INTEGER NOT NULL) STRICT;
  CREATE TABLE retired (
    hash TEXT PRIMARY KEY NOT NULL, retires_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE owed_use (
    one INTEGER PRIMARY KEY CHECK (one = 1), hash TEXT NOT NULL, used_at INTEGER NOT NULL) STRICT;
  CREATE TABLE owed_to_book (
    one INTEGER PRIMARY KEY CHECK (one = 1), hash TEXT NOT NULL) STRICT;
  CREATE TABLE forwarded_writes (
    id TEXT PRIMARY KEY NOT NULL, at INTEGER NOT NULL) STRICT, WITHOUT ROWID;`;

/** A key object's tables. A lookup of an unknown key doesn't create them. */
export const KEY_OBJECT_TABLES: TableMigrations = {
  name: "register",
  steps: [{ sql: FIRST_SCHEMA, readableBy: 1 }],
};

export type KeyObjectRecord = Key & {
  /** Last recorded use (Unix ms), or 0. */
  readonly touchedAt: number;
};

export type KeyObjectMemory = {
  readonly window: RateWindow;
  readonly key: KeyObjectRecord | null;
  readonly revokedAt: number | null;
  readonly pendingUse: PendingUse | null;
  readonly retired: ReadonlyMap<string, number>;
};

export function readKeyObjectMemory(storage: DurableObjectStorage): KeyObjectMemory {
  const { sql } = storage;
  if (!migrateExistingTables(storage, KEY_OBJECT_TABLES)) {
    return {
      window: new RateWindow(),
      key: null,
      revokedAt: null,
      pendingUse: null,
      retired: new Map(),
    };
  }
  const [tombstone] = sql.exec<{ revoked_at: number }>("SELECT revoked_at FROM tombstone");
  const admissions = sql.exec<StoredAdmission>("SELECT slot, at FROM admissions").toArray();
  return {
    window: new RateWindow(admissions),
    key: selectKey(sql),
    revokedAt: tombstone?.revoked_at ?? null,
    pendingUse: readPendingUse(sql),
    retired: selectRetired(sql),
  };
}

const RETIRED_MAX = 10;

export function storeRetiredSecret(sql: SqlStorage, secret: string, retiresAt: number): void {
  sql.exec(
    `INSERT INTO retired (hash, retires_at) VALUES (?, ?)
     ON CONFLICT (hash) DO UPDATE SET retires_at = min(retires_at, excluded.retires_at)`,
    secret,
    retiresAt,
  );
  sql.exec(
    `DELETE FROM retired WHERE hash NOT IN
       (SELECT hash FROM retired ORDER BY retires_at DESC LIMIT ${RETIRED_MAX})`,
  );
}

function selectRetired(sql: SqlStorage): ReadonlyMap<string, number> {
  const rows = sql.exec<{ hash: string; retires_at: number }>("SELECT * FROM retired");
  return new Map(rows.toArray().map(({ hash, retires_at: at }) => [hash, at]));
}

/**
 * Stores an admission as exactly one row. The platform delays the response until the row is
 * durable.
 */
export function storeAdmission(sql: SqlStorage, entry: StoredAdmission): void {
  const { rowsWritten } = sql.exec(
    `INSERT INTO admissions (slot, at) VALUES (?, ?)
     ON CONFLICT (slot) DO UPDATE SET at = excluded.at`,
    entry.slot,
    entry.at,
  );
  assert(rowsWritten === 1, `an admission must write one row, wrote ${rowsWritten}`);
}

/** Lowers stored times that are in the future because the clock moved back. */
export function clampStoredAdmissions(sql: SqlStorage, clockMs: number): void {
  sql.exec("UPDATE admissions SET at = ?1 WHERE at > ?1", clockMs);
}

type StoredKeyRecord = Omit<KeyObjectRecord, "terms" | "secrets"> & {
  readonly terms: string | null;
  readonly secrets: string | null;
};

function selectKey(sql: SqlStorage): KeyObjectRecord | null {
  const [row] = sql.exec<StoredKeyRecord>(
    `SELECT key_id AS keyId, org_id AS orgId, member_id AS memberId, scope, rpm_limit AS rpmLimit, terms, secrets,
       touched_at AS touchedAt FROM record`,
  );
  if (row === undefined) return null;
  return { ...row, terms: keyTermsFromJson(row.terms), secrets: keySecretsFromJson(row.secrets) };
}

export function storeKeyRecord(sql: SqlStorage, key: KeyObjectRecord): void {
  sql.exec(
    `INSERT OR REPLACE INTO record
       (one, key_id, org_id, member_id, scope, rpm_limit, touched_at, terms, secrets)
     VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)`,
    key.keyId,
    key.orgId,
    key.memberId,
    key.scope,
    key.rpmLimit,
    key.touchedAt,
    keyTermsToJson(key.terms),
    keySecretsToJson(key.secrets),
  );
}

export function updateKeyRecord(
  sql: SqlStorage,
  keyBefore: KeyObjectRecord,
  keyAfter: KeyObjectRecord,
): boolean {
  const [before, after] = [changeableColumns(keyBefore), changeableColumns(keyAfter)];
  const changed = CHANGEABLE_COLUMNS.filter((column) => before[column] !== after[column]);
  if (changed.length === 0) return false;
  const set = changed.map((column) => `${column} = ?`).join(", ");
  sql.exec(`UPDATE record SET ${set}`, ...changed.map((column) => after[column]));
  return true;
}

const CHANGEABLE_COLUMNS = ["rpm_limit", "terms", "secrets", "touched_at"] as const;

function changeableColumns(key: KeyObjectRecord) {
  return {
    rpm_limit: key.rpmLimit,
    terms: keyTermsToJson(key.terms),
    secrets: keySecretsToJson(key.secrets),
    touched_at: key.touchedAt,
  };
}

/**
 * A use of the key that D1 hasn't recorded yet. It contains the key's hash, because an alarm may
 * run without the object's name.
 */
type PendingUse = { readonly hash: string; readonly used_at: number };

function readPendingUse(sql: SqlStorage): PendingUse | null {
  return sql.exec<PendingUse>("SELECT hash, used_at FROM owed_use").toArray()[0] ?? null;
}

/** Stores a use of the key until D1 records it. */
export function markKeyUsePending(sql: SqlStorage, { hash, used_at: usedAt }: PendingUse): void {
  sql.exec("INSERT OR REPLACE INTO owed_use (one, hash, used_at) VALUES (1, ?, ?)", hash, usedAt);
}

/** Deletes the stored last use, which D1 now has. */
export function markKeyUseSaved(sql: SqlStorage): void {
  sql.exec("DELETE FROM owed_use");
}

/** Stores a revocation until D1 records it. */
export function markRevocationPending(sql: SqlStorage, hash: string): void {
  sql.exec("INSERT OR IGNORE INTO owed_to_book (one, hash) VALUES (1, ?)", hash);
}

export function selectUnsavedRevocation(sql: SqlStorage): string | null {
  return sql.exec<{ hash: string }>("SELECT hash FROM owed_to_book").toArray()[0]?.hash ?? null;
}

export function markRevocationSaved(sql: SqlStorage): void {
  sql.exec("DELETE FROM owed_to_book");
}

/** Maximum ms after which the network can still deliver a duplicate of a request. */
const DUPLICATE_DELAY_MAX_MS = 60_000;

/** Stores a write's ID, and reports whether it was already stored. */
export function isRepeatedWrite(sql: SqlStorage, writeId: string, nowMs: number): boolean {
  sql.exec("DELETE FROM forwarded_writes WHERE at < ?", nowMs - DUPLICATE_DELAY_MAX_MS);
  const { rowsWritten } = sql.exec(
    "INSERT INTO forwarded_writes (id, at) VALUES (?, ?) ON CONFLICT (id) DO NOTHING",
    writeId,
    nowMs,
  );
  return rowsWritten === 0;
}
