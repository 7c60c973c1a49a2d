import { HOUR_MS } from "../../shared/clock.ts";
import type {
  DeliveryAttempt,
  DeliveryDetail,
  PastAttempt,
  WebhookHealth,
} from "../../shared/contracts/deliveries.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import {
  DELIVERIES_DELETED_PER_CALL_MAX,
  deleteOldFinishedDeliveries,
  failPendingDeliveries,
  DELIVERY_COLUMNS,
} from "./delivery-rows.do.ts";
import type { DueDelivery } from "./delivery-rows.do.ts";
import { webhookPauseMs } from "./delivery-rules.ts";

const STORED_ATTEMPTS_MAX = 10;
const DAY_HOURS = 24;

/** An attempt and the headers it sent, or null if it sent nothing. */
export type AttemptRecord = {
  readonly attempt: DeliveryAttempt;
  readonly headers: Readonly<Record<string, string>> | null;
};

/** Numbers of accepted and failed attempts. The keys count hours since 1970. */
type AttemptsByHour = Readonly<Record<string, readonly [accepted: number, missed: number]>>;

export function recordAttempt(
  storage: DurableObjectStorage,
  {
    webhookId,
    due,
    sending: { attempt, headers },
  }: { readonly webhookId: string; readonly due: DueDelivery; readonly sending: AttemptRecord },
  next: { readonly nowMs: number; readonly nextAt: number | null; readonly ending: string | null },
): void {
  const { sql } = storage;
  const { nowMs, nextAt, ending } = next;
  const isAccepted = attempt.error === null;
  const missed = nextAt === null ? "failed" : "pending";
  const state = isAccepted ? "delivered" : missed;
  storage.transactionSync(() => {
    const [receiver] = sql
      .exec<{ failures: number; finished: number; hours: string | null }>(
        "SELECT failures, finished, hours FROM receivers WHERE id = ?",
        webhookId,
      )
      .toArray();
    if (receiver === undefined) return;
    const failures = isAccepted ? 0 : receiver.failures + 1;
    const attempts = eraseOldNames(sql, due, { at: nowMs, ...attempt });
    sql.exec(
      `UPDATE deliveries SET state = ?, attempts = attempts + 1, next_at = ?, last_at = ?, status = ?,
        error = ?, answer = ?, duration_ms = ?, newest_attempts = ?,
        sent_headers = iif(?, NULL, coalesce(?, sent_headers))
      WHERE number = ? AND state = 'pending'`,
      state,
      isAccepted ? null : nextAt,
      nowMs,
      attempt.status,
      attempt.error,
      attempts.newest.answer,
      attempt.durationMs,
      JSON.stringify([attempts.newest, ...attempts.before].slice(0, STORED_ATTEMPTS_MAX)),
      attempts.isRenamed ? 1 : 0,
      headers === null ? null : JSON.stringify(headers),
      due.number,
    );
    sql.exec(
      `UPDATE receivers SET failing_since = iif(?2 = 0, NULL, coalesce(failing_since, ?3)), failures = ?2,
        paused_until = ?4, ending = ?5, finished = finished + ?6, hours = ?7,
        last_success_at = iif(?2 = 0, ?3, last_success_at), last_error = coalesce(?8, last_error) WHERE id = ?1`,
      webhookId,
      failures,
      nowMs,
      isAccepted ? null : nowMs + webhookPauseMs(failures, attempt.retryAfterMs),
      ending,
      state === "pending" ? 0 : 1,
      JSON.stringify(addToHours(receiver.hours, nowMs, isAccepted)),
      attempt.error,
    );
    if (ending !== null) failPendingDeliveries(sql, webhookId, "webhook_disabled");
    if (receiver.finished + 1 >= DELIVERIES_DELETED_PER_CALL_MAX) {
      deleteOldFinishedDeliveries(sql, webhookId);
    }
  });
}

type StoredAttempts = Pick<DeliveryDetail, "lastAt" | "answer"> & {
  readonly newestAttempts: string | null;
};

/**
 * If a name in the event was replaced during the attempt, erases the response and signature, which
 * can contain the old name.
 */
function eraseOldNames(
  sql: SqlStorage,
  due: DueDelivery,
  { at, status, error, answer, durationMs }: PastAttempt,
) {
  const [row] = sql
    .exec<StoredAttempts & { body: string }>(
      "SELECT body, last_at AS lastAt, answer, newest_attempts AS newestAttempts FROM deliveries WHERE number = ?",
      due.number,
    )
    .toArray();
  const isRenamed = row !== undefined && row.body !== due.body;
  const newest = { at, status, error, answer: isRenamed ? null : answer, durationMs };
  return { isRenamed, newest, before: row === undefined ? [] : attemptsOf(row) };
}

/**
 * Returns past attempts. If the last response was erased (the body changed), omits the other
 * responses too.
 */
function attemptsOf(row: StoredAttempts): readonly PastAttempt[] {
  const { newestAttempts: stored } = row;
  const attempts = stored === null ? [] : parseStoredJson<PastAttempt[]>(stored);
  return isResponseErased(row)
    ? attempts.map((one) => Object.assign(one, { answer: null }))
    : attempts;
}

function isResponseErased({ lastAt, answer }: StoredAttempts): boolean {
  return lastAt !== null && answer === null;
}

function addToHours(stored: string | null, nowMs: number, isAccepted: boolean): AttemptsByHour {
  const hours = recentHours(stored, nowMs);
  const hour = Math.floor(nowMs / HOUR_MS);
  const [accepted, missed] = hours[hour] ?? [0, 0];
  return { ...hours, [hour]: isAccepted ? [accepted + 1, missed] : [accepted, missed + 1] };
}

function recentHours(stored: string | null, nowMs: number): AttemptsByHour {
  const oldest = Math.floor(nowMs / HOUR_MS) - DAY_HOURS + 1;
  const hours = stored === null ? {} : parseStoredJson<AttemptsByHour>(stored);
  return Object.fromEntries(Object.entries(hours).filter(([hour]) => Number(hour) >= oldest));
}

type StoredHeaders = { readonly sentHeaders: string | null };

export function selectDeliveryDetail(
  sql: SqlStorage,
  webhookId: string,
  id: string,
): DeliveryDetail | null {
  const [row] = sql
    .exec<Omit<DeliveryDetail, "newestAttempts" | "headers"> & StoredAttempts & StoredHeaders>(
      `SELECT ${DELIVERY_COLUMNS}, body, newest_attempts AS newestAttempts, sent_headers AS sentHeaders FROM deliveries WHERE id = ? AND webhook_id = ?`,
      id,
      webhookId,
    )
    .toArray();
  if (row === undefined) return null;
  const { sentHeaders: headers, ...delivery } = row;
  return {
    ...delivery,
    headers: headers === null || isResponseErased(row) ? null : parseStoredJson(headers),
    newestAttempts: attemptsOf(row),
  };
}

export function selectWebhookHealth(sql: SqlStorage, nowMs: number): Record<string, WebhookHealth> {
  const rows = sql
    .exec<Omit<WebhookHealth, "delivered24h" | "failed24h"> & { id: string; hours: string | null }>(
      `SELECT id, failing_since AS failingSince, last_success_at AS lastSuccessAt, last_error AS lastError, hours, (SELECT count(*) FROM deliveries
        WHERE webhook_id = receivers.id AND state = 'pending') AS waiting FROM receivers`,
    )
    .toArray();
  return Object.fromEntries(
    rows.map(({ id, hours: stored, ...health }) => {
      const hours = Object.values(recentHours(stored, nowMs));
      const delivered24h = hours.reduce((sum, [accepted]) => sum + accepted, 0);
      const failed24h = hours.reduce((sum, [, missed]) => sum + missed, 0);
      return [id, { ...health, delivered24h, failed24h }];
    }),
  );
}
