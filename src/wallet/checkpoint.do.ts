import { idFloor } from "../lib/id.ts";
import type { Desk } from "./desk.do.ts";
import { updateEndUserSpend } from "./end-user-rows.do.ts";
import { HOLD_ID, ID_AGE_MAX_MS } from "./hold-id.ts";
import type { UsageTotal } from "./usage-totals.ts";
import type { WalletRow } from "./wallet-row.do.ts";
import { updateWalletRow } from "./wallet-row.do.ts";

/** Ledger rows between two checkpoints that are kept as marks. */
const MARK_ROWS = 1000;

/**
 * Writes down what the rows since the last checkpoint came to, so that a start reads only later
 * ones, and takes the next publish's number. One transaction, then the memory.
 */
export function takeCheckpoint(desk: Desk): void {
  const { memory, sql } = desk;
  const row: WalletRow = { ...memory.row, revision: memory.row.revision + 1 };
  const floorId = floorOf(desk);
  desk.storage.transactionSync(() => {
    updateWalletRow(sql, row);
    for (const user of memory.unsaved.values()) updateEndUserSpend(sql, user, row.revision);
    for (const total of memory.usage.values()) addTotal(sql, total, row.revision);
    thin(sql);
    sql.exec(
      `INSERT OR REPLACE INTO checkpoints (seq, balance, clock, newest, floor_id)
      VALUES (?, ?, ?, ?, ?)`,
      memory.books.seq,
      memory.books.balance,
      desk.nowMs,
      memory.newest,
      floorId,
    );
  });
  memory.row = row;
  memory.floorId = floorId;
  for (const id of memory.unsaved.keys()) memory.unpublished.add(id);
  memory.unsaved.clear();
  memory.usage.clear();
}

/** No ledger row to come has a smaller id: it is an open hold's, or that of a hold still to be made. */
function floorOf(desk: Desk): string {
  let floorId = idFloor(HOLD_ID, desk.clockMs - ID_AGE_MAX_MS);
  for (const id of desk.memory.books.holds.keys()) if (id < floorId) floorId = id;
  return floorId;
}

function addTotal(sql: SqlStorage, total: UsageTotal, changed: number): void {
  sql.exec(
    `INSERT INTO totals (dimension, day, name, requests, prompt_tokens, completion_tokens, cost,
      changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (dimension, day, name) DO UPDATE SET requests = requests + excluded.requests,
      prompt_tokens = prompt_tokens + excluded.prompt_tokens,
      completion_tokens = completion_tokens + excluded.completion_tokens,
      cost = cost + excluded.cost, changed = excluded.changed`,
    total.dimension,
    total.day,
    total.name,
    total.requests,
    total.promptTokens,
    total.completionTokens,
    total.cost,
    changed,
  );
}

/** Old checkpoints stay as marks for reading the ledger, but not closer than MARK_ROWS. */
function thin(sql: SqlStorage): void {
  const [newest, before] = sql
    .exec<{ seq: number }>("SELECT seq FROM checkpoints ORDER BY seq DESC LIMIT 2")
    .toArray();
  if (newest === undefined || before === undefined) return;
  if (newest.seq - before.seq < MARK_ROWS) {
    sql.exec("DELETE FROM checkpoints WHERE seq = ?", newest.seq);
  }
}
