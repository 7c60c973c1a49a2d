import { numberVar } from "../../../shared/config/config.ts";
import { errorMessageOf } from "../../../shared/log.ts";
import { creationTimeOfHoldId, lowestHoldIdAt } from "../rules/hold-ids.ts";
import { deleteOldEvents } from "./event-log.do.ts";
import { deleteAdmissionsOfRevokedKeys } from "../tables/key-rows.do.ts";
import { deleteOldIdempotencyRows, nextIdempotencyExpiryMs } from "../tables/request-rows.do.ts";
import { purgeDeletedEndUsers } from "./end-users.do.ts";
import { deleteOldSessions } from "./sessions.do.ts";
import { storeCharges, selectUnfoldedCharges, foldChargesIntoTotals } from "./charges.do.ts";
import type { RequestBatch } from "./charges.do.ts";
import { changeWalletRow, retentionStartMs } from "./memory.do.ts";
import { takeCheckpoint } from "./checkpoint.do.ts";
import type { Tx } from "./memory.do.ts";
import { DAY_MS, HOUR_MS } from "../../../shared/clock.ts";

/**
 * Ms to keep refused and voided requests that cost nothing, so that late duplicates are rejected.
 */
const UNPAID_RETENTION_MS = 2 * DAY_MS;
const BATCH_ROWS = 2000;
const LOW_STORAGE_FRACTION = 0.7;
const FULL_STORAGE_FRACTION = 0.95;
const BATCHES_PER_CALL_MAX = 10;
/** Ms during which messages of a request can still arrive. */
const LATE_MESSAGE_MS = 15 * 60_000;

const PASS_INTERVAL_MS = 5 * 60_000;

/** Deletes old rows of all tables or sums them. Returns true if more remain. */
export function runRetention(tx: Tx): boolean {
  // Freeing storage comes first, because the later steps write.
  const room = isStorageLow(tx) && freeStorage(tx);
  const unpaid = deleteUnpaid(tx);
  const [endId, paid] = batchEnd(tx.sql, "", lowestHoldIdAt(retentionStartMs(tx)));
  rollUpRows(tx, { fromId: "", endId, only: "true" });
  const names = deleteOldIdempotencyRows(tx.sql, tx.nowMs, BATCH_ROWS);
  const minutes = deleteAdmissionsOfRevokedKeys(tx.sql, tx.nowMs - UNPAID_RETENTION_MS);
  const departed = purgeDeletedEndUsers(tx, BATCH_ROWS);
  const events = deleteOldEvents(tx.sql, tx.nowMs);
  const sessions = deleteOldSessions(tx, tx.nowMs - UNPAID_RETENTION_MS, BATCH_ROWS);
  const charges = foldChargesIntoTotals(tx);
  return charges || room || unpaid || paid || names || minutes || departed || events || sessions;
}

export function updateStorageState(tx: Tx): void {
  tx.memory.storageState.isFull = usedStorageFraction(tx) > FULL_STORAGE_FRACTION;
}

export function isStorageLow(tx: Tx): boolean {
  return (
    usedStorageFraction(tx) > LOW_STORAGE_FRACTION && tx.memory.storageState.passAt <= tx.nowMs
  );
}

function usedStorageFraction({ sql, env }: Tx): number {
  return sql.databaseSize / numberVar(env, "WALLET_BYTES_MAX");
}

export function isStorageFullError(error: unknown): boolean {
  return /SQLITE_FULL|database or disk is full/i.test(errorMessageOf(error));
}

/**
 * Deletes the oldest finished requests, and adds settled requests to the rollup row. Keeps requests
 * that can still be charged, and unpaid requests with an Idempotency-Key.
 */
function freeStorage(tx: Tx): boolean {
  const { memory, nowMs } = tx;
  const { storageState: room } = memory;
  const [endId, more] = batchEnd(tx.sql, room.fromId, lowestHoldIdAt(nowMs - LATE_MESSAGE_MS));
  rollUpRows(tx, { fromId: room.fromId, endId, only: IS_DELETABLE_SQL });
  memory.storageState = {
    ...room,
    fromId: more ? endId : "",
    passAt: more ? 0 : nowMs + PASS_INTERVAL_MS,
  };
  return more;
}

/** Frees storage after a statement failed. Returns false if nothing could be freed. */
export function freeStorageNow(tx: Tx): boolean {
  const before = tx.sql.databaseSize;
  for (let batches = 0; batches < BATCHES_PER_CALL_MAX; batches++) {
    if (!freeStorage(tx) || tx.sql.databaseSize < before) break;
  }
  return tx.sql.databaseSize < before;
}

/** Returns when old rows are due for deletion (Unix ms). */
export function nextRetentionAt(tx: Tx): number | null {
  const due = [
    oldestDueMs(tx, "", tx.nowMs - retentionStartMs(tx)),
    oldestDueMs(tx, tx.memory.row.sweptId, UNPAID_RETENTION_MS),
    nextIdempotencyExpiryMs(tx.sql),
    tx.memory.sessions.rows > 0 ? tx.nowMs : null,
  ].filter((at) => at !== null);
  return due.length === 0 ? null : Math.max(tx.nowMs + HOUR_MS, Math.min(...due));
}

function oldestDueMs(tx: Tx, fromId: string, ageMs: number): number | null {
  const [row] = tx.sql
    .exec<{ id: string }>("SELECT id FROM requests WHERE id >= ? ORDER BY id LIMIT 1", fromId)
    .toArray();
  const minted = row === undefined ? null : creationTimeOfHoldId(row.id);
  return minted === null ? null : minted + ageMs;
}

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

function deleteUnpaid(tx: Tx): boolean {
  const { sweptId } = tx.memory.row;
  const beforeId = lowestHoldIdAt(tx.nowMs - UNPAID_RETENTION_MS);
  if (beforeId <= sweptId) return false;
  const [endId, more] = batchEnd(tx.sql, sweptId, beforeId);
  tx.sql.exec(
    `DELETE FROM requests WHERE id >= ? AND id < ? AND seq IS NULL AND sold IS NULL
      AND state IN ('voided', 'refused')`,
    sweptId,
    endId,
  );
  if (more || tx.sql.exec("SELECT 1 FROM requests LIMIT 1").toArray().length > 0) {
    changeWalletRow(tx, { sweptId: endId });
  }
  return more;
}

/** SQL condition for requests that `freeStorage` can delete. */
const IS_DELETABLE_SQL = "(state = 'settled' OR (state IN ('voided', 'refused') AND named = 0))";

/**
 * Replaces old ledger rows with one `rollup` row, which has their sum and the newest row's number.
 */
function rollUpRows(tx: Tx, batch: RequestBatch): void {
  const { sql, memory } = tx;
  tx.storage.transactionSync(() => {
    const charges = selectUnfoldedCharges(tx, batch);
    if (!replaceWithRollup(sql, batch)) return;
    storeCharges(sql, charges);
    memory.ledgerMark = crypto.randomUUID();
    const { seq } = sql.exec<{ seq: number }>("SELECT max(seq) AS seq FROM checkpoints").one();
    if (memory.ledger.seq > seq) takeCheckpoint(tx);
  });
}

function replaceWithRollup(sql: SqlStorage, { fromId, endId, only }: RequestBatch): boolean {
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
