import { idFloor } from "../lib/id.ts";
import { HOLD_ID, ID_AGE_MAX_MS } from "./hold-id.ts";
import { DEFAULT_SETTINGS } from "./wallet-row.do.ts";
import { migrate } from "./wallet-schema.do.ts";

/** Makes the tables of a new wallet. `epoch` tells it from any other the organisation ever had. */
export function makeWallet(
  storage: DurableObjectStorage,
  made: { readonly orgId: string; readonly epoch: string; readonly nowMs: number },
): void {
  const { sql } = storage;
  const floorId = idFloor(HOLD_ID, made.nowMs - ID_AGE_MAX_MS);
  storage.transactionSync(() => {
    migrate(storage);
    sql.exec(
      `INSERT INTO wallet (id, org_id, epoch, created_at, revision, acknowledged, publish_all,
        suspended, rearmed_seq, swept_id) VALUES (1, ?, ?, ?, 0, 0, 0, 0, 0, ?)`,
      made.orgId,
      made.epoch,
      made.nowMs,
      floorId,
    );
    const { alertThreshold } = DEFAULT_SETTINGS;
    sql.exec(
      "INSERT INTO settings (id, alert_threshold, changed) VALUES (1, ?, 1)",
      alertThreshold,
    );
    sql.exec(
      "INSERT INTO checkpoints (seq, balance, clock, newest, floor_id) VALUES (0, 0, ?, ?, ?)",
      made.nowMs,
      made.nowMs,
      floorId,
    );
  });
}

/** Whether anything happened in a wallet that giving it up would lose. */
export function wasUsed(sql: SqlStorage): boolean {
  const { n } = sql
    .exec<{ n: number }>(
      `SELECT EXISTS (SELECT 1 FROM requests) + EXISTS (SELECT 1 FROM entries)
        + EXISTS (SELECT 1 FROM end_users) + EXISTS (SELECT 1 FROM deleted_end_users)
        + (SELECT changed > 1 FROM settings) AS n`,
    )
    .one();
  return n > 0;
}
