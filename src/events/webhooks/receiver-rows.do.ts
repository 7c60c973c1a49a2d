import { MINUTE_MS } from "../../shared/clock.ts";
import { failPendingDeliveries } from "./delivery-rows.do.ts";
import type { Receiver, StreamState } from "./delivery-rows.do.ts";
import type { Webhook } from "./webhooks.store.ts";
import { USAGE_SETTLED } from "../../shared/event.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import type { TableMigrations } from "../../shared/tables.do.ts";

type StoredReceiver = Omit<Receiver, "webhook" | "stream"> & {
  readonly webhook: string;
  readonly stream: string | null;
};

export function selectWebhookStates(sql: SqlStorage): Receiver[] {
  return sql
    .exec<StoredReceiver>(
      `SELECT webhook, failing_since AS failingSince, paused_until AS pausedUntil, ending, stream
       FROM receivers ORDER BY id`,
    )
    .toArray()
    .map(({ webhook, stream, ...row }) => ({
      webhook: parseStoredJson<Webhook>(webhook),
      stream: stream === null ? null : parseStoredJson<StreamState>(stream),
      failingSince: row.failingSince,
      pausedUntil: row.pausedUntil,
      ending: row.ending,
    }));
}

/**
 * Copies the webhooks from D1. Deletes a removed webhook's deliveries, fails a disabled webhook's
 * deliveries, and ends a changed webhook's pause.
 */
export function syncWebhookStates(
  storage: DurableObjectStorage,
  webhooks: readonly Webhook[],
): void {
  const { sql } = storage;
  const known = new Map(selectWebhookStates(sql).map((one) => [one.webhook.id, one]));
  storage.transactionSync(() => {
    for (const webhook of webhooks) {
      const before = known.get(webhook.id);
      known.delete(webhook.id);
      if (before?.webhook.changedAt === webhook.changedAt) {
        updateSecrets(sql, before.webhook, webhook);
        continue;
      }
      sql.exec(
        `INSERT INTO receivers (id, webhook) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET
          webhook = excluded.webhook, failing_since = NULL, failures = 0, paused_until = NULL, ending = NULL`,
        webhook.id,
        JSON.stringify(webhook),
      );
      const stream = streamAfterChange(before, webhook);
      storeStreamState(sql, webhook.id, stream);
      // Without a usage stream, its pending batch would block the queue.
      if (stream === null) {
        sql.exec(
          "DELETE FROM deliveries WHERE webhook_id = ? AND type = ? AND state = 'pending'",
          webhook.id,
          USAGE_SETTLED,
        );
      }
      if (before !== undefined && before.webhook.url !== webhook.url) clearHealth(sql, webhook.id);
      if (webhook.disabledReason !== null) {
        failPendingDeliveries(sql, webhook.id, "webhook_disabled");
      }
    }
    for (const id of known.keys()) {
      sql.exec("DELETE FROM receivers WHERE id = ?", id);
      sql.exec("DELETE FROM deliveries WHERE webhook_id = ?", id);
    }
  });
}

/**
 * Returns the usage stream's state after a change of the webhook. A new stream starts at the
 * change. Enabling a disabled webhook can send rows twice.
 */
function streamAfterChange(before: Receiver | undefined, webhook: Webhook): StreamState | null {
  if (webhook.types?.includes(USAGE_SETTLED) !== true) return null;
  const wasDisabled = (before?.webhook.disabledReason ?? null) !== null;
  const stream = { ...before?.stream, ...(wasDisabled && { unsure: undefined }) };
  return { from: { sinceMs: webhook.changedAt }, ...stream, nextAt: 0, idleMs: 0 };
}

export function storeStreamState(
  sql: SqlStorage,
  webhookId: string,
  stream: StreamState | null,
): void {
  const text = stream === null ? null : JSON.stringify(stream);
  sql.exec("UPDATE receivers SET stream = ? WHERE id = ?", text, webhookId);
}

function clearHealth(sql: SqlStorage, webhookId: string): void {
  sql.exec(
    "UPDATE receivers SET last_success_at = NULL, last_error = NULL, hours = NULL WHERE id = ?",
    webhookId,
  );
}

function updateSecrets(sql: SqlStorage, before: Webhook, webhook: Webhook): void {
  const text = JSON.stringify(webhook);
  if (JSON.stringify(before) === text) return;
  sql.exec("UPDATE receivers SET webhook = ? WHERE id = ?", text, webhook.id);
}

export function endWebhookPause(sql: SqlStorage, webhookId: string): void {
  sql.exec("UPDATE receivers SET paused_until = NULL WHERE id = ?", webhookId);
}

/** Counts a test message and returns 0. At the limit, returns the wait in ms instead. */
export function countTestMessage(
  sql: SqlStorage,
  webhookId: string,
  { limit, nowMs }: { readonly limit: number; readonly nowMs: number },
): number {
  const { tests } = sql
    .exec<{ tests: string }>("SELECT tests FROM receivers WHERE id = ?", webhookId)
    .one();
  const isInLastMinute = (at: number): boolean => at > nowMs - MINUTE_MS && at <= nowMs;
  const last = parseStoredJson<number[]>(tests).filter(isInLastMinute);
  const [oldest] = last;
  if (oldest !== undefined && last.length >= limit) return oldest + MINUTE_MS - nowMs;
  const counted = JSON.stringify([...last, nowMs]);
  sql.exec("UPDATE receivers SET tests = ? WHERE id = ?", counted, webhookId);
  return 0;
}

/**
 * `failures` counts failures since the last success. `finished` counts finished deliveries since
 * the last cleanup. `replayed` is 1 if a replay last queued the delivery.
 */
const FIRST_SCHEMA = `CREATE TABLE receivers (
    id TEXT PRIMARY KEY NOT NULL, webhook TEXT NOT NULL, failing_since INTEGER,
    failures INTEGER NOT NULL DEFAULT 0, paused_until INTEGER, ending TEXT,
    finished INTEGER NOT NULL DEFAULT 0, replay TEXT, tests TEXT NOT NULL DEFAULT '[]',
    last_success_at INTEGER, last_error TEXT, hours TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, webhook_id TEXT NOT NULL,
    event_id TEXT NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts INTEGER NOT NULL DEFAULT 0, created_at INTEGER NOT NULL,
    replayed INTEGER NOT NULL DEFAULT 0 CHECK (replayed IN (0, 1)),
    next_at INTEGER CHECK ((next_at IS NULL) = (state <> 'pending')), last_at INTEGER,
    status INTEGER, error TEXT, answer TEXT, duration_ms INTEGER,
    newest_attempts TEXT, sent_headers TEXT, UNIQUE (webhook_id, event_id)
  ) STRICT;
  CREATE INDEX deliveries_due ON deliveries (webhook_id, next_at, number) WHERE state = 'pending';
  CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, number);`;

export const DELIVERY_TABLES: TableMigrations = {
  name: "deliveries",
  steps: [
    { sql: FIRST_SCHEMA, readableBy: 1 },
    { sql: "ALTER TABLE receivers ADD COLUMN stream TEXT", readableBy: 1 },
  ],
};
