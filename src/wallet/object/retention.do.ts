import { numberVar } from "../../config.ts";
import { idFloor, mintedAt } from "../../lib/id.ts";
import { HOLD_ID } from "../rules/hold-guards.ts";
import { deleteDeadMinutes } from "../tables/key-rows.do.ts";
import { deleteOldNames, oldestNameDue } from "../tables/request-rows.do.ts";
import { changeRow, takeCheckpoint } from "./memory.do.ts";
import type { Desk } from "./memory.do.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Outcomes that cost nothing are remembered this long, so that a late duplicate changes nothing. */
const UNPAID_MS = 2 * DAY_MS;
const BATCH_ROWS = 2000;
/** Past this size rows go sooner than RETENTION_DAYS, though never before the unpaid ones. */
const BYTES_MAX = 8_000_000_000;

/** Removes one bounded batch of each kind of row that is old enough; true when more may be. */
export function retain(desk: Desk): boolean {
  const unpaid = sweepUnpaid(desk);
  const paid = rollUp(desk);
  const names = deleteOldNames(desk.sql, desk.nowMs, BATCH_ROWS);
  const minutes = deleteDeadMinutes(desk.sql, desk.nowMs - UNPAID_MS);
  return unpaid || paid || names || minutes;
}

/** When a row will next be old enough, Unix ms; null without any. At least an hour ahead. */
export function retentionDue(desk: Desk): number | null {
  const due = [
    firstMinted(desk, "", paidAge(desk)),
    firstMinted(desk, desk.memory.row.sweptId, UNPAID_MS),
    oldestNameDue(desk.sql),
  ].filter((at) => at !== null);
  return due.length === 0 ? null : Math.max(desk.nowMs + HOUR_MS, Math.min(...due));
}

function firstMinted(desk: Desk, fromId: string, ageMs: number): number | null {
  const [row] = desk.sql
    .exec<{ id: string }>("SELECT id FROM requests WHERE id >= ? ORDER BY id LIMIT 1", fromId)
    .toArray();
  const minted = row === undefined ? null : mintedAt(row.id, HOLD_ID);
  return minted === null ? null : minted + ageMs;
}

function paidAge(desk: Desk): number {
  return numberVar(desk.env, "RETENTION_DAYS") * DAY_MS;
}

/** The end of the next batch of ids in [fromId, beforeId), and whether the range goes on after it. */
function batchEnd(sql: SqlStorage, fromId: string, beforeId: string): [string, boolean] {
  const [row] = sql
    .exec<{ id: string }>(
      "SELECT id FROM requests WHERE id >= ? AND id < ? ORDER BY id LIMIT 1 OFFSET ?",
      fromId,
      beforeId,
      BATCH_ROWS,
    )
    .toArray();
  return row === undefined ? [beforeId, false] : [row.id, true];
}

function sweepUnpaid(desk: Desk): boolean {
  const { sweptId } = desk.memory.row;
  const beforeId = idFloor(HOLD_ID, desk.nowMs - UNPAID_MS);
  if (beforeId <= sweptId) return false;
  const [endId, more] = batchEnd(desk.sql, sweptId, beforeId);
  desk.sql.exec(
    `DELETE FROM requests WHERE id >= ? AND id < ? AND seq IS NULL AND state IN ('voided', 'refused')`,
    sweptId,
    endId,
  );
  if (more || desk.sql.exec("SELECT 1 FROM requests LIMIT 1").toArray().length > 0) {
    changeRow(desk, { sweptId: endId });
  }
  return more;
}

/**
 * Replaces old ledger rows by one `rollup` row with their sum, in the place of the newest of them:
 * the ledger still sums to the balance, and who read the rows before does not meet them twice. Their
 * usage is in the daily totals since their checkpoint. Credits stay.
 */
function rollUp(desk: Desk): boolean {
  const { sql, memory } = desk;
  const full = sql.databaseSize > BYTES_MAX;
  const beforeMs = desk.nowMs - (full ? UNPAID_MS : paidAge(desk));
  const [endId, more] = batchEnd(sql, "", idFloor(HOLD_ID, beforeMs));
  if (sql.exec("SELECT 1 FROM requests WHERE id < ? LIMIT 1", endId).toArray().length === 0) {
    return false;
  }
  if (memory.usage.size > 0) takeCheckpoint(desk);
  const [lastSeq] = sql.exec<{ seq: number }>("SELECT max(seq) AS seq FROM checkpoints").toArray();
  desk.storage.transactionSync(() => replaceOld(sql, endId, lastSeq?.seq ?? 0));
  return more;
}

function replaceOld(sql: SqlStorage, endId: string, lastSeq: number): void {
  const rows = sql
    .exec<{ seq: number; amount: number; balance: number; at: number }>(
      `SELECT seq, iif(state = 'settled' AND late = 0, -charged, 0) AS amount, balance,
        coalesce(settled_at, admitted_at) AS at
      FROM requests WHERE id < ?1 AND seq <= ?2
      UNION ALL SELECT seq, amount, balance, created_at FROM entries
      WHERE seq <= ?2 AND (kind = 'rollup' OR (kind IN ('usage', 'shortfall') AND request_id < ?1))
      ORDER BY seq`,
      endId,
      lastSeq,
    )
    .toArray();
  const newest = rows.at(-1);
  sql.exec("DELETE FROM requests WHERE id < ? AND (seq IS NULL OR seq <= ?)", endId, lastSeq);
  sql.exec(
    `DELETE FROM entries WHERE seq <= ?2
      AND (kind = 'rollup' OR (kind IN ('usage', 'shortfall') AND request_id < ?1))`,
    endId,
    lastSeq,
  );
  if (newest === undefined) return;
  sql.exec(
    `INSERT INTO entries (seq, kind, amount, balance, created_at) VALUES (?, 'rollup', ?, ?, ?)`,
    newest.seq,
    rows.reduce((sum, row) => sum + row.amount, 0),
    newest.balance,
    newest.at,
  );
  sql.exec(
    "DELETE FROM checkpoints WHERE seq < ? AND seq < (SELECT max(seq) FROM checkpoints)",
    newest.seq,
  );
}
