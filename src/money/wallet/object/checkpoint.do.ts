import { insertRow } from "../../../shared/tables.do.ts";
import { TOKEN_COLUMNS, listTokenCounts } from "../../../shared/usage-sums.ts";
import { lowestHoldIdSince } from "../rules/hold-ids.ts";
import type { UsageTotal } from "../rules/usage-totals.ts";
import { updateWalletRow } from "../tables/wallet-row.do.ts";
import type { WalletRow } from "../tables/wallet-row.do.ts";
import { markMetersSaved, storeMeters } from "./budget-memory.do.ts";
import type { Tx } from "./memory.do.ts";
import { iterateTotalsToStore } from "./tag-usage.do.ts";

/** Stores the ledger's totals, so that the wallet's next start reads only later rows. */
export function takeCheckpoint(tx: Tx): void {
  const { memory, sql } = tx;
  const row: WalletRow = { ...memory.row, revision: memory.row.revision + 1 };
  const floorId = findLowestFutureId(tx);
  tx.storage.transactionSync(() => {
    updateWalletRow(sql, row);
    for (const total of iterateTotalsToStore(sql, memory.usage)) addTotal(sql, total, row.revision);
    storeMeters(tx, row.revision, floorId);
    thinCheckpoints(sql);
    const { seq, balance } = memory.ledger;
    const { newest } = memory;
    const checkpoint = { seq, balance, clock: tx.nowMs, newest, floor_id: floorId };
    insertRow(sql, "OR REPLACE INTO checkpoints", checkpoint);
  });
  memory.row = row;
  memory.floorId = floorId;
  for (const { scope, subject } of memory.budgets.unsaved.values()) {
    if (scope === "end_user") memory.unpublishedUserIds.add(subject);
  }
  memory.usage.clear();
  markMetersSaved(memory);
}

/** Returns an ID below the IDs of all future charges. */
export function findLowestFutureId(tx: Tx): string {
  let floorId = lowestHoldIdSince(tx.clockMs);
  for (const id of tx.memory.ledger.holds.keys()) if (id < floorId) floorId = id;
  return floorId;
}

const SUM_COLUMNS = ["requests", ...TOKEN_COLUMNS, "cost"];
const ADD_TOTAL_SQL = `INSERT INTO totals (dimension, day, name, ${SUM_COLUMNS.join(", ")}, changed)
  VALUES (?, ?, ?, ${SUM_COLUMNS.map(() => "?").join(", ")}, ?)
  ON CONFLICT (dimension, day, name) DO UPDATE SET
    ${SUM_COLUMNS.map((sum) => `${sum} = ${sum} + excluded.${sum}`).join(", ")}, changed = excluded.changed`;

function addTotal(sql: SqlStorage, total: UsageTotal, changed: number): void {
  const { dimension, day, name, requests, costMicro } = total;
  sql.exec(
    ADD_TOTAL_SQL,
    dimension,
    day,
    name,
    requests,
    ...listTokenCounts(total),
    costMicro,
    changed,
  );
}

const CHECKPOINT_ROWS_MIN = 1000;

/** Deletes checkpoints that are less than CHECKPOINT_ROWS_MIN rows apart. */
function thinCheckpoints(sql: SqlStorage): void {
  const [newest, before] = sql
    .exec<{ seq: number }>("SELECT seq FROM checkpoints ORDER BY seq DESC LIMIT 2")
    .toArray();
  if (newest === undefined || before === undefined) return;
  if (newest.seq - before.seq < CHECKPOINT_ROWS_MIN) {
    sql.exec("DELETE FROM checkpoints WHERE seq = ?", newest.seq);
  }
}
