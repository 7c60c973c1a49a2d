import { numberVar } from "../../../shared/config/config.ts";
import { idFloor, mintedAt } from "../../../shared/id.ts";
import { reasonOf } from "../../../shared/log.ts";
import { HOLD_ID } from "../rules/hold-guards.ts";
import { forgetOldEvents } from "./event-rows.do.ts";
import { deleteDeadMinutes } from "../tables/key-rows.do.ts";
import { deleteOldNames, oldestNameDue } from "../tables/request-rows.do.ts";
import { forgetDeparted } from "./end-users.do.ts";
import { deleteOldSessions } from "./sessions.do.ts";
import { addCharges, chargesToKeep, foldCharges } from "./charges.do.ts";
import { changeRow } from "./memory.do.ts";
import { takeCheckpoint } from "./checkpoint.do.ts";
import type { Tx } from "./memory.do.ts";
import { DAY_MS, HOUR_MS } from "../../../shared/clock.ts";

/** Ms to keep free outcomes, so that late duplicates change nothing. */
const UNPAID_MS = 2 * DAY_MS;
const BATCH_ROWS = 2000;
const PRESSED_PART = 0.7;
const FULL_PART = 0.95;
const BATCHES_NOW = 10;
/** Ms during which an ID can still arrive. */
const YOUNG_MS = 15 * 60_000;

/** Ms between two passes while storage is low. */
const PASS_MS = 5 * 60_000;

/** Deletes one batch of each kind. Returns true if more may remain. */
export function retain(desk: Tx): boolean {
  const room = isStorageLow(desk) && freeStorage(desk); // first, because later steps write
  const unpaid = sweepUnpaid(desk);
  const [endId, paid] = batchEnd(desk.sql, "", idFloor(HOLD_ID, desk.nowMs - paidAge(desk)));
  rollUp(desk, { fromId: "", endId, only: "true" });
  const names = deleteOldNames(desk.sql, desk.nowMs, BATCH_ROWS);
  const minutes = deleteDeadMinutes(desk.sql, desk.nowMs - UNPAID_MS);
  const departed = forgetDeparted(desk, BATCH_ROWS);
  const events = forgetOldEvents(desk.sql, desk.nowMs);
  const sessions = deleteOldSessions(desk, desk.nowMs - UNPAID_MS, BATCH_ROWS);
  const charges = foldCharges(desk);
  return charges || room || unpaid || paid || names || minutes || departed || events || sessions;
}

export function measureStorage(desk: Tx): void {
  desk.memory.room.isFull = storedPart(desk) > FULL_PART;
}

export function isStorageLow(desk: Tx): boolean {
  return storedPart(desk) > PRESSED_PART && desk.memory.room.passAt <= desk.nowMs;
}

function storedPart({ sql, env }: Tx): number {
  return sql.databaseSize / numberVar(env, "WALLET_BYTES_MAX");
}

export function isFullError(error: unknown): boolean {
  return /SQLITE_FULL|database or disk is full/i.test(reasonOf(error));
}

/**
 * Deletes the oldest finished requests and adds paid ones to the rollup row. Deletes before it
 * writes, because storage may be full. Keeps requests that can still be charged or have an
 * Idempotency-Key. Returns true if more remain.
 */
export function freeStorage(desk: Tx): boolean {
  const { memory, nowMs } = desk;
  const { room } = memory;
  const [endId, more] = batchEnd(desk.sql, room.fromId, idFloor(HOLD_ID, nowMs - YOUNG_MS));
  rollUp(desk, { fromId: room.fromId, endId, only: IS_OVER });
  memory.room = { ...room, fromId: more ? endId : "", passAt: more ? 0 : nowMs + PASS_MS };
  return more;
}

/** Frees storage for a failed statement. Returns false if nothing was deleted. */
export function freeStorageNow(desk: Tx): boolean {
  const before = desk.sql.databaseSize;
  for (let batches = 0; batches < BATCHES_NOW; batches++) {
    if (!freeStorage(desk) || desk.sql.databaseSize < before) break;
  }
  return desk.sql.databaseSize < before;
}

/** Returns the next deletion in Unix ms, at least an hour ahead, or null. */
export function retentionDue(desk: Tx): number | null {
  const due = [
    firstMinted(desk, "", paidAge(desk)),
    firstMinted(desk, desk.memory.row.sweptId, UNPAID_MS),
    oldestNameDue(desk.sql),
    desk.memory.sessions.rows > 0 ? desk.nowMs : null, // checked once an hour
  ].filter((at) => at !== null);
  return due.length === 0 ? null : Math.max(desk.nowMs + HOUR_MS, Math.min(...due));
}

function firstMinted(desk: Tx, fromId: string, ageMs: number): number | null {
  const [row] = desk.sql
    .exec<{ id: string }>("SELECT id FROM requests WHERE id >= ? ORDER BY id LIMIT 1", fromId)
    .toArray();
  const minted = row === undefined ? null : mintedAt(row.id, HOLD_ID);
  return minted === null ? null : minted + ageMs;
}

function paidAge(desk: Tx): number {
  return numberVar(desk.env, "RETENTION_DAYS") * DAY_MS;
}

/** Returns the end of the next batch in [fromId, beforeId), and whether more follow. */
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

function sweepUnpaid(desk: Tx): boolean {
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

/** SQL condition: paid, or ended without an Idempotency-Key. */
const IS_OVER = "(state = 'settled' OR (state IN ('voided', 'refused') AND named = 0))";

type Batch = { readonly fromId: string; readonly endId: string; readonly only: string };

/**
 * Replaces old ledger rows with one `rollup` row that has their sum and the newest number. The
 * ledger still sums to the balance, and no reader gets a row twice. Daily totals and credits stay.
 */
function rollUp(desk: Tx, batch: Batch): void {
  const { sql, memory } = desk;
  desk.storage.transactionSync(() => {
    const charges = chargesToKeep(desk, batch);
    if (!replaceOld(sql, batch)) return;
    addCharges(sql, charges);
    memory.ledgerMark = crypto.randomUUID();
    const { seq } = sql.exec<{ seq: number }>("SELECT max(seq) AS seq FROM checkpoints").one();
    if (memory.books.seq > seq) takeCheckpoint(desk);
  });
}

function replaceOld(sql: SqlStorage, { fromId, endId, only }: Batch): boolean {
  const rows = sql
    .exec<{ seq: number; amount: number; balance: number; at: number }>(
      `SELECT seq, iif(state = 'settled' AND late = 0, -charged, 0) AS amount, balance,
        coalesce(settled_at, admitted_at) AS at
      FROM requests WHERE id >= ?1 AND id < ?2 AND seq IS NOT NULL AND ${only}
      UNION ALL SELECT seq, amount, balance, created_at FROM entries
      WHERE kind = 'rollup' OR (kind IN ('usage', 'shortfall') AND request_id < ?2)
      ORDER BY seq`,
      fromId,
      endId,
    )
    .toArray();
  const newest = rows.at(-1);
  const { rowsWritten } = sql.exec(
    `DELETE FROM requests WHERE id >= ? AND id < ? AND ${only}`,
    fromId,
    endId,
  );
  if (rowsWritten === 0) return false;
  if (newest === undefined) return true;
  sql.exec(
    `DELETE FROM entries
    WHERE kind = 'rollup' OR (kind IN ('usage', 'shortfall') AND request_id < ?)`,
    endId,
  );
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
  return true;
}
