import { numberVar } from "../../../shared/config/config.ts";
import { idFloor, mintedAt } from "../../../shared/id.ts";
import { reasonOf } from "../../../shared/log.ts";
import { HOLD_ID } from "../rules/hold-guards.ts";
import { forgetOldEvents } from "./event-rows.do.ts";
import { deleteDeadMinutes } from "../tables/key-rows.do.ts";
import { deleteOldNames, oldestNameDue } from "../tables/request-rows.do.ts";
import { forgetDeparted } from "./end-users.do.ts";
import { deleteOldSessions } from "./sessions.do.ts";
import { changeRow } from "./memory.do.ts";
import { takeCheckpoint } from "./checkpoint.do.ts";
import type { Tx } from "./memory.do.ts";
import { DAY_MS, HOUR_MS } from "../../../shared/clock.ts";

/** Outcomes that cost nothing are remembered this long, so that a late duplicate changes nothing. */
const UNPAID_MS = 2 * DAY_MS;
const BATCH_ROWS = 2000;
/** Above this part of what a wallet may store, rows of requests that are over go whatever their age. */
const PRESSED_PART = 0.7;
/** Above this part nothing new is held: what is held must find the room to settle. */
const FULL_PART = 0.95;
/** So many batches may go in the turn of a statement that found no room. */
const BATCHES_NOW = 10;
/** Before this age an id may still come again, in a hold that is granted or an outcome on its way. */
const YOUNG_MS = 15 * 60_000;

/** While rows are to go sooner, all that are over are looked at this often. */
const PASS_MS = 5 * 60_000;

/** Removes one bounded batch of each kind of row that is old enough; true when more may be. */
export function retain(desk: Tx): boolean {
  const room = isStorageLow(desk) && freeStorage(desk); // first: what follows writes as well
  const unpaid = sweepUnpaid(desk);
  const [endId, paid] = batchEnd(desk.sql, "", idFloor(HOLD_ID, desk.nowMs - paidAge(desk)));
  rollUp(desk, { fromId: "", endId, only: "true" });
  const names = deleteOldNames(desk.sql, desk.nowMs, BATCH_ROWS);
  const minutes = deleteDeadMinutes(desk.sql, desk.nowMs - UNPAID_MS);
  const departed = forgetDeparted(desk, BATCH_ROWS);
  const events = forgetOldEvents(desk.sql, desk.nowMs);
  const sessions = deleteOldSessions(desk, desk.nowMs - UNPAID_MS, BATCH_ROWS);
  return room || unpaid || paid || names || minutes || departed || events || sessions;
}

/** Looks at what is stored. */
export function measureStorage(desk: Tx): void {
  desk.memory.room.isFull = storedPart(desk) > FULL_PART;
}

/** Whether so much is stored that rows must go sooner. */
export function isStorageLow(desk: Tx): boolean {
  return storedPart(desk) > PRESSED_PART && desk.memory.room.passAt <= desk.nowMs;
}

function storedPart({ sql, env }: Tx): number {
  return sql.databaseSize / numberVar(env, "WALLET_BYTES_MAX");
}

/** Whether a statement failed because nothing more can be stored. */
export function isFullError(error: unknown): boolean {
  return /SQLITE_FULL|database or disk is full/i.test(reasonOf(error));
}

/**
 * Makes room: a batch of the oldest requests that are over goes, the paid ones into the rollup row. Deletes before
 * it writes, so that it works in a full database. What may still be charged late stays, and what an Idempotency-Key
 * needs to be free again. True when there are more to look at.
 */
export function freeStorage(desk: Tx): boolean {
  const { memory, nowMs } = desk;
  const { room } = memory;
  const [endId, more] = batchEnd(desk.sql, room.fromId, idFloor(HOLD_ID, nowMs - YOUNG_MS));
  rollUp(desk, { fromId: room.fromId, endId, only: IS_OVER });
  memory.room = { ...room, fromId: more ? endId : "", passAt: more ? 0 : nowMs + PASS_MS };
  return more;
}

/** Makes room for a statement that found none; false when nothing more can go. */
export function freeStorageNow(desk: Tx): boolean {
  const before = desk.sql.databaseSize;
  for (let batches = 0; batches < BATCHES_NOW; batches++) {
    if (!freeStorage(desk) || desk.sql.databaseSize < before) break;
  }
  return desk.sql.databaseSize < before;
}

/** When a row will next be old enough, Unix ms; null without any. At least an hour ahead. */
export function retentionDue(desk: Tx): number | null {
  const due = [
    firstMinted(desk, "", paidAge(desk)),
    firstMinted(desk, desk.memory.row.sweptId, UNPAID_MS),
    oldestNameDue(desk.sql),
    desk.memory.sessions.rows > 0 ? desk.nowMs : null, // looked at once an hour
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

/** Paid, or came to nothing without an Idempotency-Key that must be free again. */
const IS_OVER = "(state = 'settled' OR (state IN ('voided', 'refused') AND named = 0))";

/** Requests with ids from `fromId` to before `endId`, for which `only` holds. */
type Batch = { readonly fromId: string; readonly endId: string; readonly only: string };

/**
 * Replaces old ledger rows by one `rollup` row with their sum, in the place of the newest of them:
 * the ledger still sums to the balance, and who read the rows before does not meet them twice. Their
 * usage is in the daily totals, with a checkpoint that a start begins from. Credits stay.
 */
function rollUp(desk: Tx, batch: Batch): void {
  const { sql, memory } = desk;
  desk.storage.transactionSync(() => {
    if (!replaceOld(sql, batch)) return;
    memory.ledgerMark = crypto.randomUUID();
    const { seq } = sql.exec<{ seq: number }>("SELECT max(seq) AS seq FROM checkpoints").one();
    if (memory.books.seq > seq) takeCheckpoint(desk);
  });
}

/** False when there was none. */
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
