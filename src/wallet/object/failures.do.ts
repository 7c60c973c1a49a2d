import { numberVar } from "../../config.ts";
import type { FailedBatch, FailureQuery, FailureReport } from "../../lib/failed-request.ts";
import { refuse, success } from "../../lib/failure.ts";
import type { Result } from "../../lib/failure.ts";
import { insertFailed, selectCounts } from "../tables/failed-rows.do.ts";
import type { Desk } from "./memory.do.ts";
import { DAY_MS } from "../../lib/clock.ts";

/** See `WalletCalls.noteFailed`. */
export function noteFailed(desk: Desk, batch: FailedBatch): Result<null> {
  if (desk.memory.room.isFull) return refuse({ kind: "storage_unavailable" });
  const fromMs = desk.nowMs - numberVar(desk.env, "RETENTION_DAYS") * DAY_MS;
  desk.storage.transactionSync(() => insertFailed(desk.sql, batch, fromMs));
  return success(null);
}

/** See `WalletCalls.failures`. */
export function readFailures({ sql }: Desk, asked: FailureQuery): Result<FailureReport> {
  const counts = selectCounts(sql, asked.fromMs, asked.beforeMs);
  const { keyIds } = asked;
  return success({ counts: counts.filter(({ keyId }) => keyIds?.includes(keyId) ?? true) });
}
