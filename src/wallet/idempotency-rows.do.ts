import type { Idempotency } from "../lib/idempotency.ts";
import { IDEMPOTENCY_MS } from "../lib/idempotency.ts";
import type { NameHolder } from "./idempotency.ts";
import type { RequestState } from "./ledger.ts";
import { periodOf } from "./periods.ts";

type Row = { request_id: string; body: string; admitted_at: number; state: RequestState | null };

/** Who holds a name: a request of today or yesterday, the newest; null when none does. */
export function selectNameHolder(sql: SqlStorage, name: string, nowMs: number): NameHolder | null {
  const [row] = sql
    .exec<Row>(
      `SELECT request_id, body, idempotency_keys.admitted_at AS admitted_at, state
      FROM idempotency_keys LEFT JOIN requests ON requests.id = request_id
      WHERE day IN (?, ?) AND name = ? ORDER BY day DESC LIMIT 1`,
      dayOf(nowMs),
      dayOf(nowMs - IDEMPOTENCY_MS),
      name,
    )
    .toArray();
  if (row === undefined) return null;
  return { id: row.request_id, body: row.body, admittedAt: row.admitted_at, state: row.state };
}

/** Gives a name to a request that was just granted, whoever held it before. */
export function insertName(
  sql: SqlStorage,
  { name, body }: Idempotency,
  granted: { readonly id: string; readonly admittedAt: number },
): void {
  sql.exec(
    "INSERT OR REPLACE INTO idempotency_keys (day, name, body, request_id, admitted_at) VALUES (?, ?, ?, ?, ?)",
    dayOf(granted.admittedAt),
    name,
    body,
    granted.id,
    granted.admittedAt,
  );
}

/** Removes a batch of names of the days before yesterday; true when more may be. */
export function deleteOldNames(sql: SqlStorage, nowMs: number, rowsMax: number): boolean {
  const { rowsWritten } = sql.exec(
    `DELETE FROM idempotency_keys WHERE (day, name) IN
      (SELECT day, name FROM idempotency_keys WHERE day < ? ORDER BY day, name LIMIT ?)`,
    dayOf(nowMs - IDEMPOTENCY_MS),
    rowsMax,
  );
  return rowsWritten >= rowsMax;
}

/** When the oldest name will be one of the day before yesterday, Unix ms; null without any. */
export function oldestNameDue(sql: SqlStorage): number | null {
  const [row] = sql
    .exec<{ day: string }>("SELECT day FROM idempotency_keys ORDER BY day LIMIT 1")
    .toArray();
  return row === undefined ? null : Date.parse(row.day) + 2 * IDEMPOTENCY_MS;
}

/** The clock stepped back to `nowMs`: names given after it were given now; the newest of each counts. */
export function pullNames(sql: SqlStorage, nowMs: number): void {
  const today = dayOf(nowMs);
  sql.exec(
    `INSERT OR REPLACE INTO idempotency_keys (day, name, body, request_id, admitted_at)
    SELECT ?1, name, body, request_id, ?2 FROM idempotency_keys WHERE day >= ?1 AND admitted_at > ?2
    ORDER BY day`,
    today,
    nowMs,
  );
  sql.exec("DELETE FROM idempotency_keys WHERE day > ?", today);
}

function dayOf(ms: number): string {
  return periodOf(ms).day;
}
