import { idFloor } from "../lib/id.ts";
import { logAlert } from "../lib/log.ts";
import { takeCheckpoint } from "./checkpoint.do.ts";
import type { Desk } from "./desk.do.ts";
import { CLOCK_LAG_MAX_MS, HOLD_ID, ID_AGE_MAX_MS } from "./hold-id.ts";
import { pullNames } from "./idempotency-rows.do.ts";
import { rateFloor } from "./organization-rate.ts";
import { updateWalletRow } from "./wallet-row.do.ts";

/**
 * Brings the tables to a clock that lags the wallet's time by more than a jitter: `desk.nowMs` is that
 * clock, `desk.memory.clock` the time before. What still counts counts from now on: open holds keep
 * their time to live, the last minute's admissions were made now, as was the use of Idempotency-Keys.
 * What holds spend stays in the period it was admitted in. The memory is stale after it.
 */
export function followClock(desk: Desk): void {
  const { memory, nowMs, sql, storage } = desk;
  logAlert("clock_stepped_back", { org_id: memory.row.orgId, lag_ms: memory.clock - nowMs });
  // Newer than any row's time: a start does not take the time of rows before it for the wallet's.
  takeCheckpoint(desk);
  // No hold admitted later was minted before: ids are dated by the clock as it is.
  const floorId = idFloor(HOLD_ID, nowMs - ID_AGE_MAX_MS - CLOCK_LAG_MAX_MS);
  const { sweptId } = memory.row;
  storage.transactionSync(() => {
    sql.exec(
      `UPDATE requests SET admitted_at = ?1, expires_at = expires_at - (admitted_at - ?1),
        period_day = coalesce(period_day, date(admitted_at / 1000, 'unixepoch'))
      WHERE id >= ?2 AND admitted_at > ?1 AND (seq IS NULL OR admitted_at > ?3)`,
      nowMs,
      floorId,
      rateFloor(memory.clock),
    );
    pullNames(sql, nowMs);
    // Unpaid rows minted from now on would lie below what counts as swept.
    if (sweptId > floorId) updateWalletRow(sql, { ...memory.row, sweptId: floorId });
  });
}
