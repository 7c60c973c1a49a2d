import type { TableMigrations } from "../../shared/tables.do.ts";
import type {
  ResponseToStore,
  ResponseOwnerFilter,
} from "../../shared/contracts/stored-responses.ts";
import { joinBytes } from "../../shared/http/bounded-body.ts";
import { HOUR_MS } from "../../shared/clock.ts";

/** The tables of an organization's stored responses. Only the responses' texts are encrypted. */
export const STORED_RESPONSES_TABLES: TableMigrations = {
  name: "kept responses",
  steps: [
    {
      sql:
        "CREATE TABLE settings (" + // History of the retention setting. A shorter setting also applies to earlier requests.
        "number INTEGER PRIMARY KEY," +
        "hours INTEGER NOT NULL CHECK (hours >= 0)," +
        "since INTEGER NOT NULL" +
        ") STRICT;" +
        "CREATE TABLE data_keys (" + // Keys that encrypt the responses. The first of KEY_SECRETS encrypts these keys.
        "number INTEGER PRIMARY KEY," +
        "sealed TEXT NOT NULL" +
        ") STRICT;" +
        "CREATE TABLE answers (" +
        "id TEXT PRIMARY KEY NOT NULL," +
        "previous TEXT," +
        "member_id TEXT NOT NULL," +
        "key_id TEXT NOT NULL," +
        "session_id TEXT," +
        "created_at INTEGER NOT NULL," +
        "expires_at INTEGER NOT NULL," +
        "data_key INTEGER NOT NULL," +
        "bytes INTEGER NOT NULL," +
        "forgotten INTEGER NOT NULL DEFAULT 0 CHECK (forgotten IN (0, 1))" + // 1 for a deleted response, whose ID prevents a late write.
        ") STRICT, WITHOUT ROWID;" +
        "CREATE INDEX answers_by_end ON answers (expires_at);" +
        "CREATE TABLE parts (" + // Encrypted texts, split because a row can't exceed 2 MB.
        "id TEXT NOT NULL," +
        "kind TEXT NOT NULL CHECK (kind IN ('input', 'response'))," +
        "number INTEGER NOT NULL," +
        "sealed BLOB NOT NULL," +
        "PRIMARY KEY (id, kind, number)" +
        ") STRICT, WITHOUT ROWID;",
      readableBy: 1,
    },
  ],
};

export type StoredResponseRow = {
  readonly id: string;
  readonly previous: string | null;
  readonly expiresAt: number;
  readonly dataKey: number;
  readonly bytes: number;
};
export type StoredResponsePart = "input" | "response";

const PART_BYTES = 1_000_000;
const COLUMNS = "id, previous, expires_at AS expiresAt, data_key AS dataKey, bytes";

/** Returns a response, or null if it is expired, deleted, or not visible to the caller. */
export function selectResponse(
  sql: SqlStorage,
  id: string,
  { nowMs, seenBy }: { readonly nowMs: number; readonly seenBy: ResponseOwnerFilter },
): StoredResponseRow | null {
  const [row] = sql
    .exec<StoredResponseRow>(
      `SELECT ${COLUMNS} FROM answers WHERE id = ?1 AND expires_at > ?2 AND forgotten = 0
        AND member_id = coalesce(?3, member_id) AND key_id = coalesce(?4, key_id)
        AND (?5 IS NULL OR session_id = ?5)`,
      id,
      nowMs,
      seenBy.memberId,
      seenBy.keyId,
      seenBy.sessionId,
    )
    .toArray();
  return row ?? null;
}

export function hasResponse(sql: SqlStorage, id: string): boolean {
  return sql.exec("SELECT 1 FROM answers WHERE id = ?", id).toArray().length > 0;
}

export function insertResponse(
  sql: SqlStorage,
  answer: ResponseToStore,
  stored: {
    readonly expiresAt: number;
    readonly dataKey: number;
    readonly sealed: Readonly<Record<StoredResponsePart, Uint8Array>>;
  },
): void {
  const { id, previous, by, createdAt } = answer;
  const { sealed } = stored;
  sql.exec(
    `INSERT INTO answers (id, previous, member_id, key_id, session_id, created_at, expires_at,
      data_key, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    id,
    previous,
    by.memberId,
    by.keyId,
    by.sessionId,
    createdAt,
    stored.expiresAt,
    stored.dataKey,
    sealed.input.length + sealed.response.length,
  );
  for (const kind of ["input", "response"] as const) {
    const whole = sealed[kind];
    for (let from = 0, number = 0; from < whole.length; from += PART_BYTES, number++) {
      const part = whole.slice(from, from + PART_BYTES);
      sql.exec("INSERT INTO parts VALUES (?, ?, ?, ?)", id, kind, number, part.buffer);
    }
  }
}

export function selectEncryptedPart(
  sql: SqlStorage,
  id: string,
  kind: StoredResponsePart,
): Uint8Array {
  const parts = sql
    .exec<{ sealed: ArrayBuffer }>(
      "SELECT sealed FROM parts WHERE id = ? AND kind = ? ORDER BY number",
      id,
      kind,
    )
    .toArray()
    .map(({ sealed }) => new Uint8Array(sealed));
  return joinBytes(
    parts,
    parts.reduce((sum, part) => sum + part.length, 0),
  );
}

/** Number and bytes of stored responses. */
export type StoredResponseTotals = { answers: number; bytes: number };

export function selectStoredResponseTotals(sql: SqlStorage): StoredResponseTotals {
  return sql
    .exec<StoredResponseTotals>(
      "SELECT count(*) AS answers, coalesce(sum(bytes), 0) AS bytes FROM answers",
    )
    .one();
}

export function deleteResponse(sql: SqlStorage, id: string): void {
  sql.exec("DELETE FROM parts WHERE id = ?", id);
  sql.exec("DELETE FROM answers WHERE id = ?", id);
}

/** Deletes a response's content, but keeps its ID until `untilMs`. Requires a transaction. */
export function deleteResponseContent(sql: SqlStorage, id: string, untilMs: number): void {
  sql.exec("DELETE FROM parts WHERE id = ?", id);
  sql.exec(
    "UPDATE answers SET forgotten = 1, bytes = 0, expires_at = min(expires_at, ?2) WHERE id = ?1",
    id,
    untilMs,
  );
}

export function selectExpiredResponses(
  sql: SqlStorage,
  nowMs: number,
  limit: number,
): readonly StoredResponseRow[] {
  const query = `SELECT ${COLUMNS} FROM answers WHERE expires_at <= ? ORDER BY expires_at LIMIT ?`;
  return sql.exec<StoredResponseRow>(query, nowMs, limit).toArray();
}

export function selectOldestResponses(
  sql: SqlStorage,
  limit: number,
): readonly StoredResponseRow[] {
  return sql
    .exec<StoredResponseRow>(`SELECT ${COLUMNS} FROM answers ORDER BY id LIMIT ?`, limit)
    .toArray();
}

export function selectNextResponseExpiry(sql: SqlStorage): number | null {
  return sql.exec<{ at: number | null }>("SELECT min(expires_at) AS at FROM answers").one().at;
}

export function isResponseStorageDisabled(sql: SqlStorage): boolean {
  const query = "SELECT hours FROM settings ORDER BY number DESC LIMIT 1";
  return sql.exec<{ hours: number }>(query).toArray()[0]?.hours === 0;
}

/** Returns the shortest lifetime in hours among the retention settings since `sinceMs`, or null. */
export function selectShortestLifetime(sql: SqlStorage, sinceMs: number): number | null {
  return sql
    .exec<{ hours: number | null }>(
      "SELECT min(hours) AS hours FROM settings WHERE since >= ?",
      sinceMs,
    )
    .one().hours;
}

/**
 * Stores a retention setting and shortens the lifetime of stored responses. Keeps settings since
 * `lateMs` for responses that arrive late. Requires a transaction.
 */
export function storeRetentionSetting(
  sql: SqlStorage,
  hours: number,
  { nowMs, lateMs }: { readonly nowMs: number; readonly lateMs: number },
): void {
  sql.exec("DELETE FROM settings WHERE since < ?", lateMs);
  sql.exec("INSERT INTO settings (hours, since) VALUES (?, ?)", hours, nowMs);
  sql.exec(
    "UPDATE answers SET expires_at = created_at + ?1 WHERE expires_at > created_at + ?1",
    hours * HOUR_MS,
  );
}

export function selectDataKeys(
  sql: SqlStorage,
): readonly { readonly number: number; readonly sealed: string }[] {
  return sql
    .exec<{ number: number; sealed: string }>(
      "SELECT number, sealed FROM data_keys ORDER BY number",
    )
    .toArray();
}

export function storeDataKey(sql: SqlStorage, number: number, sealed: string): void {
  sql.exec("INSERT OR REPLACE INTO data_keys VALUES (?, ?)", number, sealed);
}

export function deleteUnusedKeys(sql: SqlStorage): void {
  sql.exec("DELETE FROM data_keys WHERE number NOT IN (SELECT data_key FROM answers)");
}
