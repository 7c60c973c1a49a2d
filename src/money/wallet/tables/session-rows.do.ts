import type { SessionQuery } from "../../../shared/contracts/wallet.ts";
import { insertRow } from "../../../shared/tables.do.ts";
import type { Micros } from "../../../shared/money.ts";
import { CLOCK_LAG_MAX_MS } from "../../../shared/rate-window.ts";
import type { Session } from "../../../shared/session.ts";
import { rateWindowStartMs } from "../rules/hold-guards.ts";
import { lowestHoldIdSince } from "../rules/hold-ids.ts";
import type { RecentRequestTimes } from "../rules/hold-guards.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";

/** Counts of sessions, and the times of their recent requests. */
export type SessionMemory = {
  rows: number;
  live: number;
  hasOldBudgets: boolean;
  readonly rates: Map<string, RecentRequestTimes>;
};

export type SessionRow = {
  readonly id: string;
  /** Null if the session ended before its first use. */
  readonly keyId: string | null;
  readonly session: Session | null;
  readonly spent: Micros;
  readonly expiresAt: number;
  readonly endedAt: number | null;
};

type StoredSession = Omit<SessionRow, "session"> & { readonly terms: string | null };
const COLUMNS = "id, key_id AS keyId, terms, spent, expires_at AS expiresAt, ended_at AS endedAt";

export function loadSessionMemory(sql: SqlStorage): SessionMemory {
  return { ...countSessions(sql), hasOldBudgets: false, rates: new Map() };
}

function countSessions(sql: SqlStorage): Pick<SessionMemory, "rows" | "live"> {
  return sql
    .exec<{ rows: number; live: number }>(
      "SELECT count(*) AS rows, count(*) FILTER (WHERE key_id IS NOT NULL AND ended_at IS NULL) AS live FROM sessions",
    )
    .one();
}

export function loadRecentSessionRequests(
  sql: SqlStorage,
  memory: SessionMemory,
  clock: number,
): void {
  const floor = rateWindowStartMs(clock);
  const rows = sql.exec<{ session: string; at: number }>(
    `SELECT session, min(admitted_at, ?3) AS at FROM requests WHERE id >= ?1 AND admitted_at > ?2
      AND session IS NOT NULL AND granted IS NOT NULL ORDER BY at`,
    lowestHoldIdSince(floor - CLOCK_LAG_MAX_MS),
    floor,
    clock,
  );
  for (const { session, at } of rows) recordSessionRequest(memory, session, at);
}

/**
 * Records a session's request. Above `RATES_MAX` sessions, removes sessions without a request in
 * the last minute.
 */
export function recordSessionRequest({ rates }: SessionMemory, id: string, at: number): void {
  const log = rates.get(id) ?? [];
  log.push(at);
  rates.set(id, log);
  if (rates.size <= RATES_MAX) return;
  for (const [other, times] of rates) {
    if ((times.at(-1) ?? 0) <= rateWindowStartMs(at)) rates.delete(other);
  }
}

const RATES_MAX = 1000;

export function selectSession(sql: SqlStorage, id: string): SessionRow | null {
  const [row] = sql.exec<StoredSession>(`SELECT ${COLUMNS} FROM sessions WHERE id = ?`, id);
  return row === undefined ? null : sessionFromRow(row);
}

export function insertSession(sql: SqlStorage, session: Session, keyId: string): void {
  const { id, expiresAt: expires_at } = session;
  insertRow(sql, "INTO sessions", {
    id,
    key_id: keyId,
    terms: JSON.stringify(session),
    expires_at,
  });
}

export function markSessionEnded(sql: SqlStorage, id: string, endedAt: number): boolean {
  const { rowsWritten } = sql.exec(
    "UPDATE sessions SET ended_at = ? WHERE id = ? AND ended_at IS NULL",
    endedAt,
    id,
  );
  return rowsWritten > 0;
}

/**
 * Records that a session ended before its first use. The row stays until the session's latest
 * possible expiry.
 */
export function insertEndedUnusedSession(
  sql: SqlStorage,
  ended: Readonly<Record<"id" | "ended_by", string> & Record<"expires_at" | "ended_at", number>>,
): void {
  insertRow(sql, "INTO sessions", ended);
}

export function countEndedUnusedSessions(sql: SqlStorage, by: string): number {
  return sql
    .exec<{ n: number }>(
      "SELECT count(*) AS n FROM sessions WHERE key_id IS NULL AND ended_by = ?",
      by,
    )
    .one().n;
}

type SessionOwner = SessionQuery["owner"];

export function isSessionOwner(sql: SqlStorage, keyId: string, owner: SessionOwner): boolean {
  if (owner.keyId !== null) return owner.keyId === keyId;
  if (owner.memberId === null) return true;
  const [row] = sql.exec<{ member_id: string }>(
    "SELECT member_id FROM keys WHERE key_id = ?",
    keyId,
  );
  return row?.member_id === owner.memberId;
}

/** Returns the active sessions of active keys, oldest first. Unused sessions have no row. */
export function selectActiveSessions(
  sql: SqlStorage,
  { memberId, keyId }: SessionOwner,
  {
    nowMs,
    limit,
    after,
  }: { readonly nowMs: number; readonly limit: number; readonly after: string },
): readonly SessionRow[] {
  return sql
    .exec<StoredSession>(
      `SELECT ${COLUMNS} FROM sessions WHERE id > ?1 AND terms IS NOT NULL AND ended_at IS NULL
        AND expires_at > ?2 AND (?3 IS NULL OR key_id = ?3) AND key_id IN (SELECT key_id FROM keys
          WHERE revoked_at IS NULL AND (?4 IS NULL OR member_id = ?4))
      ORDER BY id LIMIT ?5`,
      after,
      nowMs,
      keyId,
      memberId,
      limit,
    )
    .toArray()
    .map(sessionFromRow);
}

export function updateSessionSpend(sql: SqlStorage, id: string, spent: Micros): void {
  sql.exec("UPDATE sessions SET spent = ? WHERE id = ?", spent, id);
}

/**
 * Deletes used sessions that expired before `usedMs` and unused sessions that expired before
 * `unusedMs`. Returns their number.
 */
export function deleteExpiredSessions(
  sql: SqlStorage,
  memory: SessionMemory,
  over: { readonly usedMs: number; readonly unusedMs: number; readonly rowsMax: number },
): number {
  const { rowsWritten } = sql.exec(
    `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions
      WHERE expires_at < iif(key_id IS NULL, ?1, ?2) LIMIT ?3)`,
    over.unusedMs,
    over.usedMs,
    over.rowsMax,
  );
  if (rowsWritten === 0) return 0;
  const before = memory.rows;
  Object.assign(memory, countSessions(sql));
  return before - memory.rows;
}

function sessionFromRow({ terms, ...row }: StoredSession): SessionRow {
  return { ...row, session: terms === null ? null : parseStoredJson<Session>(terms) };
}
