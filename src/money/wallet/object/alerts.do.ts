import { insertRow } from "../../../shared/tables.do.ts";
import { DAY_MS, timestamp } from "../../../shared/clock.ts";
import { lowestIdAt, mintId } from "../../../shared/id.ts";
import { logWarning } from "../../../shared/log.ts";
import { micros } from "../../../shared/money.ts";
import { canRearmAlert } from "../rules/alerts.ts";
import type { ThresholdAlert } from "../rules/alerts.ts";
import { addEvent } from "./event-log.do.ts";
import type { WalletEvent } from "./event-log.do.ts";
import type { AlertRecord } from "../../../shared/contracts/reports.ts";
import { nextPublishRevision } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";

/** Maximum alerts per kind and end user in 24 hours. Each limit change can cause an alert. */
const DAILY_ALERTS_MAX = 32;
const ALERTS_MAX = 10_000;
const PUBLISHED_ALERTS_MAX = 1_000;
const ALERT_MS = 90 * DAY_MS;
const ALERT_ID_PREFIX = "alert_";
const DELETED_PER_BATCH_MAX = 5000;

/**
 * Stores each alert once per end user, period and limit, and adds its event. A low-balance alert can
 * repeat after the balance recovers.
 */
export function raiseAlerts(tx: Tx, crossings: readonly ThresholdAlert[], seq: number): void {
  for (const crossing of crossings) {
    if (wasAlerted(tx, crossing) || hasDailyAlertsMax(tx, crossing)) continue;
    const id = mintId(ALERT_ID_PREFIX, tx.nowMs);
    const shown = {
      id,
      kind: crossing.kind,
      end_user_id: crossing.endUserId,
      period: crossing.period,
      threshold: crossing.threshold,
      limit_micro: crossing.limitMicro,
      value_micro: crossing.valueMicro,
    };
    const { externalId: external_id } = crossing;
    const row = {
      ...shown,
      external_id,
      created_at: tx.nowMs,
      seq,
      changed: nextPublishRevision(tx),
    };
    insertRow(tx.sql, "INTO alerts", row);
    addEvent(tx, alertEvent(tx, id, crossing));
    // The log omits external_id, which can be a person's name.
    const { orgId: org_id } = tx.memory.row;
    logWarning("alert", { org_id, ...shown, created_at: timestamp(tx.nowMs) });
  }
}

function alertEvent({ memory }: Tx, alertId: string, crossing: ThresholdAlert): WalletEvent {
  const { kind, externalId, period, threshold, limitMicro, valueMicro } = crossing;
  if (kind === "low_balance") {
    const data = { alert_id: alertId, threshold_micro: limitMicro, balance_micro: valueMicro };
    return { type: "balance.low", subject: memory.row.orgId, data };
  }
  return {
    type: "end_user.alert",
    subject: externalId ?? "",
    data: {
      alert_id: alertId,
      period,
      threshold,
      quota_micro: limitMicro,
      spent_micro: valueMicro,
    },
  };
}

function wasAlerted(tx: Tx, crossing: ThresholdAlert): boolean {
  const after = crossing.kind === "low_balance" ? tx.memory.row.rearmedSeq : -1;
  const reported = tx.sql.exec(
    `SELECT 1 FROM alerts WHERE kind = ? AND limit_micro = ? AND end_user_id IS ?
      AND period IS ? AND seq > ? LIMIT 1`,
    crossing.kind,
    crossing.limitMicro,
    crossing.endUserId,
    crossing.period,
    after,
  );
  return reported.toArray().length > 0;
}

function hasDailyAlertsMax({ sql, nowMs }: Tx, { kind, endUserId }: ThresholdAlert): boolean {
  const { told: reported } = sql
    .exec<{ told: number }>(
      "SELECT count(*) AS told FROM alerts WHERE end_user_id IS ? AND kind = ? AND created_at > ?",
      endUserId,
      kind,
      nowMs - DAY_MS,
    )
    .one();
  return reported >= DAILY_ALERTS_MAX;
}

/**
 * Returns the ledger row at which the balance last recovered, or `seq` if it recovers now.
 * Low-balance alerts before that row don't suppress new alerts.
 */
export function findLowBalanceRearmSeq(tx: Tx, balance: number, seq: number): number {
  const { settings, rearmedSeq } = tx.memory.row;
  return canRearmAlert(micros(balance), settings.lowBalanceThresholdMicro) ? seq : rearmedSeq;
}

export function selectAlertPage(sql: SqlStorage, limit: number, offset: number): AlertRecord[] {
  return sql
    .exec<AlertRecord>(
      `SELECT id, kind, external_id AS externalId, period, threshold, limit_micro AS limitMicro,
        value_micro AS valueMicro, created_at AS createdAt
      FROM alerts ORDER BY id DESC LIMIT ? OFFSET ?`,
      limit,
      offset,
    )
    .toArray();
}

/** Deletes a batch of old alerts. Returns the lowest ID to keep in D1, or null to keep all. */
export function deleteOldAlerts(tx: Tx): string | null {
  const { sql, nowMs } = tx;
  const aged = lowestIdAt(ALERT_ID_PREFIX, nowMs - ALERT_MS);
  const { rowsWritten } = sql.exec(
    `DELETE FROM alerts WHERE id IN
      (SELECT id FROM alerts WHERE id < ?1 OR id <= ?2 ORDER BY id LIMIT ${DELETED_PER_BATCH_MAX})`,
    aged,
    findAlertIdAfterNewest(sql, ALERTS_MAX) ?? "",
  );
  const isLonger = hasUnpublished(tx);
  const published = isLonger ? findAlertIdAfterNewest(sql, PUBLISHED_ALERTS_MAX - 1) : null;
  if (published !== null || rowsWritten === 0) return published;
  const [oldest] = sql.exec<{ id: string }>("SELECT id FROM alerts ORDER BY id LIMIT 1").toArray();
  return oldest?.id ?? aged;
}

function findAlertIdAfterNewest(sql: SqlStorage, others: number): string | null {
  const found = sql
    .exec<{ id: string }>("SELECT id FROM alerts ORDER BY id DESC LIMIT 1 OFFSET ?", others)
    .toArray();
  return found[0]?.id ?? null;
}

function hasUnpublished({ sql, memory: { row } }: Tx): boolean {
  const since = row.publishAll ? -1 : row.acknowledged;
  return sql.exec("SELECT 1 FROM alerts WHERE changed > ? LIMIT 1", since).toArray().length > 0;
}
