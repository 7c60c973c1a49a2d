import { timestamp } from "../../shared/clock.ts";
import { USAGE_SETTLED } from "../../shared/event.ts";
import type { EventRecord } from "../../shared/event.ts";
import type { StreamStart } from "../../shared/contracts/usage-stream.ts";
import { mintId } from "../../shared/id.ts";
import type {
  DeliveryPage,
  DeliveryQuery,
  DeliveryRecord,
  ResendSelection,
} from "../../shared/contracts/deliveries.ts";
import { formatSlackMessage } from "../notifications/notification-text.ts";
import type { Webhook } from "./webhooks.store.ts";

const PENDING_DELIVERIES_MAX = 10_000;
const FINISHED_DELIVERIES_MAX = 1000;
export const DELIVERIES_DELETED_PER_CALL_MAX = 100;

export const DELIVERY_ID_PREFIX = "dlv_";

/**
 * The `next_at` of pending usage batches, in the year 2200, so that release 1.1.0 never sends them.
 */
export const PENDING_BATCH_NEXT_AT = 7_258_118_400_000;
const FIRST_DUE_SQL = `${firstDueSql("<= ?2", "next_at")}
  UNION ALL ${firstDueSql(`= ${PENDING_BATCH_NEXT_AT}`, "coalesce(last_at, created_at)")} ORDER BY at, number LIMIT 1`;

function firstDueSql(nextAt: string, at: string): string {
  return `SELECT * FROM (SELECT number, event_id AS eventId, type, body, attempts, ${at} AS at FROM deliveries
    WHERE webhook_id = ?1 AND state = 'pending' AND next_at ${nextAt} ORDER BY next_at, number LIMIT 1)`;
}

/** The delivery state of a webhook. Times are Unix ms. */
export type Receiver = {
  readonly webhook: Webhook;
  readonly failingSince: number | null;
  readonly pausedUntil: number | null;
  /** The reason for disabling the webhook, until D1 stores it. */
  readonly ending: string | null;
  /** The state of the usage stream. Null if the webhook doesn't get `usage.settled`. */
  readonly stream: StreamState | null;
};

/** The state of a webhook's usage stream. Times are Unix ms. */
export type StreamState = {
  readonly from: StreamStart;
  /**
   * Time of the next ledger read. The wait before it (`idleMs`) grows while there are no new rows.
   */
  readonly nextAt: number;
  readonly idleMs: number;
  /** Number of a rejected batch's rows still to send one by one. */
  readonly singles?: number;
  readonly sentMs?: number;
  readonly seenMs?: number;
  readonly rejections?: number;
  readonly rejectedRows?: number;
  /**
   * The last row that the receiver may have received in a failed call. `rowMs` is the row's time,
   * and `sinceMs` the time of the first attempt.
   */
  readonly unsure?:
    | { readonly seq: number; readonly rowMs: number; readonly sinceMs: number }
    | undefined;
};

export type DueDelivery = {
  readonly number: number;
  readonly eventId: string;
  readonly type: string;
  readonly body: string;
  readonly attempts: number;
};

function eventBody({ id, type, createdAt, actor, subject, data }: EventRecord): string {
  return JSON.stringify({ id, type, created_at: timestamp(createdAt), actor, subject, data });
}

export function webhookMessageBody(
  { format }: Pick<Webhook, "format">,
  event: EventRecord,
): string {
  return format === "slack" ? formatSlackMessage(event) : eventBody(event);
}

/** Queues events for the enabled webhooks that receive their types. */
export function queueEvents(
  storage: DurableObjectStorage,
  events: readonly EventRecord[],
  { receivers, nowMs }: { readonly receivers: readonly Receiver[]; readonly nowMs: number },
): void {
  storage.transactionSync(() => {
    for (const { webhook, ending } of receivers) {
      if (webhook.disabledReason !== null || ending !== null) continue;
      const wanted = events.filter(({ type }) => webhook.types?.includes(type) ?? true);
      for (const event of wanted) {
        queueEvent(storage.sql, webhook, { event, nowMs, isReplay: false });
      }
      if (wanted.length > 0) boundQueue(storage.sql, webhook.id);
    }
  });
}

/**
 * Queues events again and returns their number, or null while another replay is pending. All calls
 * of a replay have the same `replayId`.
 */
export function requeueEvents(
  storage: DurableObjectStorage,
  { webhook }: Receiver,
  replay: {
    readonly events: readonly EventRecord[];
    readonly replayId: string;
    readonly nowMs: number;
  },
): number | null {
  const { events, replayId, nowMs } = replay;
  const wanted = events.filter(({ type }) => webhook.types?.includes(type) ?? true);
  return storage.transactionSync(() => {
    if (isReplaying(storage.sql, webhook.id, replayId)) return null;
    storage.sql.exec("UPDATE receivers SET replay = ? WHERE id = ?", replayId, webhook.id);
    for (const event of wanted) queueEvent(storage.sql, webhook, { event, nowMs, isReplay: true });
    boundQueue(storage.sql, webhook.id);
    return wanted.length;
  });
}

function isReplaying(sql: SqlStorage, webhookId: string, replayId: string): boolean {
  const found = sql.exec(
    `SELECT 1 FROM deliveries WHERE webhook_id = ?1 AND state = 'pending' AND replayed = 1
      AND (SELECT replay FROM receivers WHERE id = ?1) IS NOT ?2 LIMIT 1`,
    webhookId,
    replayId,
  );
  return found.toArray().length > 0;
}

/** Queues deliveries again and returns their number. A single delivery goes first in the queue. */
export function resendDeliveries(
  storage: DurableObjectStorage,
  webhookId: string,
  { which, nowMs }: { readonly which: ResendSelection; readonly nowMs: number },
): number {
  const [where, value] =
    "deliveryId" in which ? ["id = ?3", which.deliveryId] : ["state = ?3", which.state];
  return storage.transactionSync(() => {
    const firstAt = selectFirstDueAt(storage.sql, webhookId) ?? nowMs;
    const nextAt = "deliveryId" in which ? Math.min(nowMs, firstAt - 1) : nowMs;
    const resentCount = storage.sql
      .exec(
        `UPDATE deliveries SET state = 'pending', attempts = 0,
          next_at = iif(type = '${USAGE_SETTLED}', ${PENDING_BATCH_NEXT_AT}, ?2), last_at = NULL, status = NULL,
          error = NULL, answer = NULL, duration_ms = NULL
        WHERE webhook_id = ?1 AND ${where} AND (state = 'pending' OR type <> '${USAGE_SETTLED}') RETURNING number`,
        webhookId,
        nextAt,
        value,
      )
      .toArray().length;
    boundQueue(storage.sql, webhookId);
    return resentCount;
  });
}

function queueEvent(
  sql: SqlStorage,
  webhook: Webhook,
  {
    event,
    nowMs,
    isReplay,
  }: { readonly event: EventRecord; readonly nowMs: number; readonly isReplay: boolean },
): void {
  sql.exec(
    `INSERT INTO deliveries (id, webhook_id, event_id, type, body, state, created_at, next_at, replayed)
    VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?6, ?7)
    ON CONFLICT (webhook_id, event_id) DO ${
      isReplay
        ? `UPDATE SET state = 'pending', attempts = 0, next_at = ?6, last_at = NULL, status = NULL, error = NULL,
          answer = NULL, duration_ms = NULL, replayed = 1 WHERE state <> 'pending'`
        : "NOTHING"
    }`,
    mintId(DELIVERY_ID_PREFIX, nowMs),
    webhook.id,
    event.id,
    event.type,
    webhookMessageBody(webhook, event),
    nowMs,
    isReplay ? 1 : 0,
  );
}

/** If the queue is too long, fails the oldest deliveries of its largest group of event types. */
function boundQueue(sql: SqlStorage, webhookId: string): void {
  const groups = sql
    .exec<{ noun: string; n: number }>(
      `SELECT ${EVENT_GROUP_SQL} AS noun, count(*) AS n FROM deliveries WHERE webhook_id = ? AND state = 'pending'
      GROUP BY noun ORDER BY n DESC`,
      webhookId,
    )
    .toArray();
  const excess = groups.reduce((sum, { n }) => sum + n, 0) - PENDING_DELIVERIES_MAX;
  const [most] = groups;
  if (excess <= 0 || most === undefined) return;
  sql.exec(
    `UPDATE deliveries SET state = 'failed', next_at = NULL, error = 'queue_full' WHERE number IN (
      SELECT number FROM deliveries WHERE webhook_id = ? AND state = 'pending' AND ${EVENT_GROUP_SQL} = ?
      ORDER BY number LIMIT ?)`,
    webhookId,
    most.noun,
    Math.min(excess, most.n),
  );
  deleteOldFinishedDeliveries(sql, webhookId);
  if (excess > most.n) boundQueue(sql, webhookId);
}

const EVENT_GROUP_SQL = "substr(type, 1, instr(type, '.') - 1)";

const ERASED_RESPONSES_SQL = `(SELECT json_group_array(json_set(value, '$.answer', NULL)) FROM json_each(newest_attempts))`;

/**
 * Replaces the text of events after a name changed. Deletes their responses and signatures, which
 * can reveal the old name.
 */
export function renameEvents(
  storage: DurableObjectStorage,
  events: readonly EventRecord[],
  receivers: readonly Receiver[],
): void {
  storage.transactionSync(() => {
    for (const event of events) {
      for (const { webhook } of receivers) {
        storage.sql.exec(
          `UPDATE deliveries SET body = ?, answer = NULL, sent_headers = NULL, newest_attempts = ${ERASED_RESPONSES_SQL}
          WHERE webhook_id = ? AND event_id = ?`,
          webhookMessageBody(webhook, event),
          webhook.id,
          event.id,
        );
      }
    }
  });
}

/**
 * Returns the delivery that has been due longest, or null if none is due or the webhook is paused.
 */
export function selectDueDelivery(
  sql: SqlStorage,
  { webhook, pausedUntil }: Receiver,
  nowMs: number,
): DueDelivery | null {
  if (pausedUntil !== null && pausedUntil > nowMs) return null;
  const [due] = sql.exec<DueDelivery & { at: number }>(FIRST_DUE_SQL, webhook.id, nowMs).toArray();
  return due ?? null;
}

export function nextDeliveryTime(sql: SqlStorage, receiver: Receiver): number | null {
  const { webhook, pausedUntil, stream } = receiver;
  const at = selectFirstDueAt(sql, webhook.id);
  const next = Math.min(at ?? Infinity, stream?.nextAt ?? Infinity);
  return next === Infinity ? null : Math.max(next, pausedUntil ?? 0);
}

function selectFirstDueAt(sql: SqlStorage, webhookId: string): number | null {
  return sql
    .exec<{ at: number | null }>(
      `SELECT min(next_at) AS at FROM deliveries
      WHERE webhook_id = ? AND state = 'pending' AND next_at < ${PENDING_BATCH_NEXT_AT}`,
      webhookId,
    )
    .one().at;
}

export function failPendingDeliveries(sql: SqlStorage, webhookId: string, error: string): void {
  sql.exec(
    `UPDATE deliveries SET state = 'failed', next_at = NULL, error = ?
    WHERE webhook_id = ? AND state = 'pending'`,
    error,
    webhookId,
  );
  deleteOldFinishedDeliveries(sql, webhookId);
}

export function deleteOldFinishedDeliveries(sql: SqlStorage, webhookId: string): void {
  sql.exec(
    `DELETE FROM deliveries WHERE webhook_id = ?1 AND state <> 'pending' AND number <= (
      SELECT number FROM deliveries WHERE webhook_id = ?1 AND state <> 'pending'
      ORDER BY number DESC LIMIT 1 OFFSET ${FINISHED_DELIVERIES_MAX})`,
    webhookId,
  );
  sql.exec("UPDATE receivers SET finished = 0 WHERE id = ?", webhookId);
}

export function selectDeliveries(
  sql: SqlStorage,
  webhookId: string,
  { limit, after, state = null, type = null }: DeliveryQuery,
): DeliveryPage | null {
  let before = Number.MAX_SAFE_INTEGER;
  if (after !== null) {
    const [last] = sql
      .exec<{ number: number }>(
        "SELECT number FROM deliveries WHERE id = ? AND webhook_id = ?",
        after,
        webhookId,
      )
      .toArray();
    if (last === undefined) return null;
    before = last.number;
  }
  const rows = sql
    .exec<DeliveryRecord>(
      `SELECT ${DELIVERY_COLUMNS} FROM deliveries WHERE webhook_id = ?1 AND number < ?2 AND (?4 IS NULL OR state = ?4)
        AND (?5 IS NULL OR type = ?5) ORDER BY number DESC LIMIT ?3`,
      webhookId,
      before,
      limit + 1,
      state,
      type,
    )
    .toArray();
  const deliveries = rows.slice(0, limit);
  return { deliveries, nextAfter: rows.length > limit ? (deliveries.at(-1)?.id ?? null) : null };
}

/**
 * The columns of a delivery. A pending usage batch's `nextAt` is its last attempt, or its creation.
 */
export const DELIVERY_COLUMNS = `id, event_id AS eventId, type, state, attempts, created_at AS createdAt,
  iif(next_at = ${PENDING_BATCH_NEXT_AT}, coalesce(last_at, created_at), next_at) AS nextAt, last_at AS lastAt, status,
  error, answer, duration_ms AS durationMs`;
