import { insertRow } from "../../../shared/tables.do.ts";
import type {
  FailureBatch,
  FailedRequest,
  HourlyFailureCount,
} from "../../../shared/failed-request.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";

export const FAILED_REQUESTS_TABLES_SQL =
  "CREATE TABLE failed_requests (" + // only the newest failed requests
  "id TEXT PRIMARY KEY NOT NULL," +
  "at INTEGER NOT NULL," +
  "key_id TEXT NOT NULL," +
  "external_id TEXT," +
  "model TEXT," + // model ID, or the name that the client sent
  "code TEXT NOT NULL," +
  "detail TEXT NOT NULL CHECK (json_valid(detail))" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE failure_counts (" + // hourly counts of all failed requests
  "hour INTEGER NOT NULL," +
  "key_id TEXT NOT NULL," +
  "code TEXT NOT NULL," +
  "status INTEGER NOT NULL," +
  "requests INTEGER NOT NULL," +
  "last_at INTEGER NOT NULL," +
  "last_id TEXT NOT NULL," +
  "PRIMARY KEY (hour, key_id, code, status)" +
  ") STRICT, WITHOUT ROWID;";

const REQUESTS_PER_KEY_MAX = 100;
const REQUESTS_MAX = 1000;
const COUNTS_MAX = 20_000;

export function insertFailedRequests(sql: SqlStorage, batch: FailureBatch, fromMs: number): void {
  for (const one of batch.requests) {
    insertRow(sql, "OR REPLACE INTO failed_requests", {
      id: one.id,
      at: one.at,
      key_id: one.keyId,
      external_id: one.externalId,
      model: one.model ?? one.askedModel,
      code: one.error.code,
      detail: JSON.stringify(one),
    });
  }
  for (const one of batch.counts) addFailureCount(sql, one);
  sql.exec(
    `DELETE FROM failed_requests WHERE at < ?1 OR id IN (
      SELECT id FROM (SELECT id, row_number() OVER (ORDER BY id DESC) AS place,
        row_number() OVER (PARTITION BY key_id ORDER BY id DESC) AS place_of_key FROM failed_requests)
      WHERE place > ?2 OR place_of_key > ?3)`,
    fromMs,
    REQUESTS_MAX,
    REQUESTS_PER_KEY_MAX,
  );
  sql.exec(
    `DELETE FROM failure_counts WHERE hour < ?1 OR hour < (
      SELECT hour FROM failure_counts ORDER BY hour DESC LIMIT 1 OFFSET ?2)`,
    fromMs,
    COUNTS_MAX,
  );
}

/** Replaces an end user's external ID with the end user's ID. */
export function replaceExternalIdInFailures(
  sql: SqlStorage,
  { id, externalId }: { readonly id: string; readonly externalId: string },
): void {
  sql.exec(
    `UPDATE failed_requests SET external_id = ?1, detail = json_set(detail, '$.externalId', ?1)
    WHERE external_id = ?2`,
    id,
    externalId,
  );
}

function addFailureCount(sql: SqlStorage, one: HourlyFailureCount): void {
  sql.exec(
    `INSERT INTO failure_counts (hour, key_id, code, status, requests, last_at, last_id)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (hour, key_id, code, status) DO UPDATE SET requests = requests + excluded.requests,
      last_at = max(last_at, excluded.last_at), last_id = max(last_id, excluded.last_id)`,
    one.hour,
    one.keyId,
    one.code,
    one.status,
    one.count,
    one.lastAt,
    one.lastId,
  );
}

export function selectFailedRequest(sql: SqlStorage, id: string): FailedRequest | null {
  const [row] = sql
    .exec<{ detail: string }>("SELECT detail FROM failed_requests WHERE id = ?", id)
    .toArray();
  return row === undefined ? null : parseStoredJson<FailedRequest>(row.detail);
}

/**
 * Returns the time (Unix ms) since which all failed requests are stored, or 0 if none was deleted.
 */
export function selectFailuresStoredSince(sql: SqlStorage): number {
  const { at } = sql
    .exec<{ at: number | null }>(
      `SELECT max(oldest) AS at FROM (
        SELECT min(at) AS oldest FROM failed_requests GROUP BY key_id HAVING count(*) >= ?1
        UNION ALL SELECT min(at) FROM failed_requests HAVING count(*) >= ?2)`,
      REQUESTS_PER_KEY_MAX,
      REQUESTS_MAX,
    )
    .one();
  return at ?? 0;
}

export function selectStoredFailedRequests(
  sql: SqlStorage,
  fromMs: number,
  beforeMs: number,
): FailedRequest[] {
  return sql
    .exec<{ detail: string }>(
      "SELECT detail FROM failed_requests WHERE at >= ? AND at < ?",
      fromMs,
      beforeMs,
    )
    .toArray()
    .map(({ detail }) => parseStoredJson<FailedRequest>(detail));
}

export function selectFailedRequestCounts(
  sql: SqlStorage,
  fromMs: number,
  beforeMs: number,
): HourlyFailureCount[] {
  return sql
    .exec<HourlyFailureCount>(
      `SELECT hour, key_id AS keyId, code, status, requests AS count, last_at AS lastAt,
        last_id AS lastId
      FROM failure_counts WHERE hour >= ? AND hour < ? ORDER BY hour, key_id, code`,
      fromMs,
      beforeMs,
    )
    .toArray();
}
