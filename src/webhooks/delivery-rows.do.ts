import { timestamp } from "../lib/clock.ts";
import type { EventRecord } from "../lib/event.ts";
import { mintId } from "../lib/id.ts";
import type { Tables } from "../lib/tables.do.ts";
import type { Attempt } from "./delivery-rules.ts";
import type { Webhook } from "./webhooks.store.ts";

/** Deliveries that wait for one webhook; of more the oldest are given up. */
export const PENDING_MAX = 10_000;
/** Finished ones that are kept of a webhook, the newest. */
const KEPT_MAX = 1000;

const DELIVERY_ID = "dlv_";

/** A receiver as its deliveries know it. */
export type Receiver = {
  readonly webhook: Webhook;
  /** Since when nothing was taken, Unix ms; null: the last attempt was. */
  readonly failingSince: number | null;
  /** Why it is to be switched off, until the book says so too. */
  readonly ending: string | null;
};

/** An event on its way to a webhook. Times are Unix ms. */
export type DeliveryRecord = {
  readonly id: string;
  readonly eventId: string;
  readonly type: string;
  readonly state: "pending" | "delivered" | "failed";
  readonly attempts: number;
  readonly createdAt: number;
  readonly nextAt: number | null;
  readonly lastAt: number | null;
  readonly status: number | null;
  readonly error: string | null;
  readonly answer: string | null;
  readonly durationMs: number | null;
};
export type DeliveryPage = {
  readonly deliveries: readonly DeliveryRecord[];
  readonly nextAfter: string | null;
};

/** What is sent next to a webhook. */
export type Due = {
  readonly number: number;
  readonly eventId: string;
  readonly body: string;
  readonly attempts: number;
};

const FIRST = `CREATE TABLE receivers (
    id TEXT PRIMARY KEY NOT NULL,
    webhook TEXT NOT NULL, -- JSON, as the book had it last
    failing_since INTEGER,
    ending TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    webhook_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL,
    next_at INTEGER CHECK ((next_at IS NULL) = (state <> 'pending')),
    last_at INTEGER,
    status INTEGER,
    error TEXT,
    answer TEXT,
    duration_ms INTEGER,
    UNIQUE (webhook_id, event_id)
  ) STRICT;
  CREATE INDEX deliveries_due ON deliveries (webhook_id, next_at, number) WHERE state = 'pending';
  CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, number);`;

export const DELIVERY_TABLES: Tables = {
  name: "deliveries",
  steps: [{ sql: FIRST, readableBy: 1 }],
};

export function selectReceivers(sql: SqlStorage): Receiver[] {
  return sql
    .exec<{ webhook: string; failing_since: number | null; ending: string | null }>(
      "SELECT webhook, failing_since, ending FROM receivers ORDER BY id",
    )
    .toArray()
    .map((row) => ({
      webhook: JSON.parse(row.webhook) as Webhook,
      failingSince: row.failing_since,
      ending: row.ending,
    }));
}

/**
 * The receivers are those of the book. What waits for one that is gone goes, what waits for one that is off is given
 * up, and one that was changed since is as good as new.
 */
export function keepReceivers(storage: DurableObjectStorage, webhooks: readonly Webhook[]): void {
  const { sql } = storage;
  const known = new Map(selectReceivers(sql).map((one) => [one.webhook.id, one]));
  storage.transactionSync(() => {
    for (const webhook of webhooks) {
      const before = known.get(webhook.id);
      known.delete(webhook.id);
      if (before?.webhook.changedAt === webhook.changedAt) continue;
      sql.exec(
        "INSERT OR REPLACE INTO receivers (id, webhook) VALUES (?, ?)",
        webhook.id,
        JSON.stringify(webhook),
      );
      if (webhook.disabledReason !== null) giveUp(sql, webhook.id, "webhook_disabled");
    }
    for (const id of known.keys()) {
      sql.exec("DELETE FROM receivers WHERE id = ?", id);
      sql.exec("DELETE FROM deliveries WHERE webhook_id = ?", id);
    }
  });
}

function giveUp(sql: SqlStorage, webhookId: string, error: string): void {
  sql.exec(
    `UPDATE deliveries SET state = 'failed', next_at = NULL, error = ?
    WHERE webhook_id = ? AND state = 'pending'`,
    error,
    webhookId,
  );
}

/** The JSON of an event, as webhooks send it. */
export function eventBody({ id, type, createdAt, actor, subject, data }: EventRecord): string {
  return JSON.stringify({ id, type, created_at: timestamp(createdAt), actor, subject, data });
}

/** Queues events for every receiver that is on and wants them; one that is there already stays as it is. */
export function queueEvents(
  storage: DurableObjectStorage,
  events: readonly EventRecord[],
  { receivers, nowMs }: { readonly receivers: readonly Receiver[]; readonly nowMs: number },
): void {
  storage.transactionSync(() => {
    for (const { webhook, ending } of receivers) {
      if (webhook.disabledReason !== null || ending !== null) continue;
      const wanted = events.filter(({ type }) => webhook.types?.includes(type) ?? true);
      for (const event of wanted) queue(storage.sql, webhook.id, { event, nowMs, again: false });
      if (wanted.length > 0) boundQueue(storage.sql, webhook.id);
    }
  });
}

/** Queues events for one receiver, also those that it had, which are as good as new; how many. */
export function requeueEvents(
  storage: DurableObjectStorage,
  { webhook }: Receiver,
  { events, nowMs }: { readonly events: readonly EventRecord[]; readonly nowMs: number },
): number {
  const wanted = events.filter(({ type }) => webhook.types?.includes(type) ?? true);
  storage.transactionSync(() => {
    for (const event of wanted) queue(storage.sql, webhook.id, { event, nowMs, again: true });
    boundQueue(storage.sql, webhook.id);
  });
  return wanted.length;
}

function queue(
  sql: SqlStorage,
  webhookId: string,
  {
    event,
    nowMs,
    again,
  }: { readonly event: EventRecord; readonly nowMs: number; readonly again: boolean },
): void {
  sql.exec(
    `INSERT INTO deliveries (id, webhook_id, event_id, type, body, state, created_at, next_at)
    VALUES (?1, ?2, ?3, ?4, ?5, 'pending', ?6, ?6)
    ON CONFLICT (webhook_id, event_id) DO ${
      again
        ? `UPDATE SET state = 'pending', attempts = 0, next_at = ?6, last_at = NULL, status = NULL, error = NULL,
          answer = NULL, duration_ms = NULL WHERE state <> 'pending'`
        : "NOTHING"
    }`,
    mintId(DELIVERY_ID, nowMs),
    webhookId,
    event.id,
    event.type,
    eventBody(event),
    nowMs,
  );
}

function boundQueue(sql: SqlStorage, webhookId: string): void {
  sql.exec(
    `UPDATE deliveries SET state = 'failed', next_at = NULL, error = 'queue_full'
    WHERE webhook_id = ?1 AND state = 'pending' AND number <= (SELECT number FROM deliveries
      WHERE webhook_id = ?1 AND state = 'pending' ORDER BY number DESC LIMIT 1 OFFSET ${PENDING_MAX})`,
    webhookId,
  );
}

/** What is due for a webhook, the longest due first; null: nothing. */
export function selectDue(sql: SqlStorage, webhookId: string, nowMs: number): Due | null {
  const [row] = sql
    .exec<{ number: number; event_id: string; body: string; attempts: number }>(
      `SELECT number, event_id, body, attempts FROM deliveries
      WHERE webhook_id = ? AND state = 'pending' AND next_at <= ? ORDER BY next_at, number LIMIT 1`,
      webhookId,
      nowMs,
    )
    .toArray();
  if (row === undefined) return null;
  return { number: row.number, eventId: row.event_id, body: row.body, attempts: row.attempts };
}

/** When the next delivery of a webhook is due, Unix ms; null: none waits. */
export function nextDue(sql: SqlStorage, webhookId: string): number | null {
  return sql
    .exec<{ at: number | null }>(
      "SELECT min(next_at) AS at FROM deliveries WHERE webhook_id = ? AND state = 'pending'",
      webhookId,
    )
    .one().at;
}

/** Writes down what came of an attempt, and for the receiver whether it takes anything. */
export function recordAttempt(
  storage: DurableObjectStorage,
  {
    webhookId,
    due,
    attempt,
  }: { readonly webhookId: string; readonly due: Due; readonly attempt: Attempt },
  then: { readonly nowMs: number; readonly nextAt: number | null; readonly ending: string | null },
): void {
  const { sql } = storage;
  const { nowMs, nextAt, ending } = then;
  const isTaken = attempt.error === null;
  const missed = nextAt === null ? "failed" : "pending";
  const state = isTaken ? "delivered" : missed;
  storage.transactionSync(() => {
    sql.exec(
      `UPDATE deliveries SET state = ?, attempts = attempts + 1, next_at = ?, last_at = ?, status = ?,
        error = ?, answer = ?, duration_ms = ? WHERE number = ? AND state = 'pending'`,
      state,
      isTaken ? null : nextAt,
      nowMs,
      attempt.status,
      attempt.error,
      attempt.answer,
      attempt.durationMs,
      due.number,
    );
    sql.exec(
      `UPDATE receivers SET failing_since = iif(?2, NULL, coalesce(failing_since, ?3)), ending = ?4
      WHERE id = ?1`,
      webhookId,
      isTaken ? 1 : 0,
      nowMs,
      ending,
    );
    if (ending !== null) giveUp(sql, webhookId, "webhook_disabled");
    if (due.number % 100 === 0) forgetFinished(sql, webhookId);
  });
}

function forgetFinished(sql: SqlStorage, webhookId: string): void {
  sql.exec(
    `DELETE FROM deliveries WHERE webhook_id = ?1 AND state <> 'pending' AND number <= (
      SELECT number FROM deliveries WHERE webhook_id = ?1 AND state <> 'pending'
      ORDER BY number DESC LIMIT 1 OFFSET ${KEPT_MAX})`,
    webhookId,
  );
}

type Row = {
  id: string;
  event_id: string;
  type: string;
  state: DeliveryRecord["state"];
  attempts: number;
  created_at: number;
  next_at: number | null;
  last_at: number | null;
  status: number | null;
  error: string | null;
  answer: string | null;
  duration_ms: number | null;
};

/** Newest first, after the delivery with the id `after`; null when there is no such delivery. */
export function selectDeliveries(
  sql: SqlStorage,
  webhookId: string,
  { limit, after }: { readonly limit: number; readonly after: string | null },
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
    .exec<Row>(
      `SELECT id, event_id, type, state, attempts, created_at, next_at, last_at, status, error, answer,
        duration_ms FROM deliveries WHERE webhook_id = ? AND number < ? ORDER BY number DESC LIMIT ?`,
      webhookId,
      before,
      limit + 1,
    )
    .toArray();
  const deliveries = rows.slice(0, limit).map((row) => ({
    id: row.id,
    eventId: row.event_id,
    type: row.type,
    state: row.state,
    attempts: row.attempts,
    createdAt: row.created_at,
    nextAt: row.next_at,
    lastAt: row.last_at,
    status: row.status,
    error: row.error,
    answer: row.answer,
    durationMs: row.duration_ms,
  }));
  return { deliveries, nextAfter: rows.length > limit ? (deliveries.at(-1)?.id ?? null) : null };
}
