import { MINUTE_MS } from "../../shared/clock.ts";
import { USAGE_SETTLED } from "../../shared/event.ts";
import type { Result } from "../../shared/failure.ts";
import { mintId } from "../../shared/id.ts";
import { logWarning } from "../../shared/log.ts";
import type { StreamPage, StreamQuery, StreamStart } from "../../shared/contracts/usage-stream.ts";
import { recordAttempt } from "./attempt-rows.do.ts";
import { DELIVERY_ID } from "./delivery-rows.do.ts";
import type { DueDelivery, Receiver, StreamState } from "./delivery-rows.do.ts";
import { selectReceivers, writeStream } from "./receiver-rows.do.ts";
import { usageMessage } from "./usage-message.ts";

/** Ledger rows per message (about 40 KiB). */
const BATCH_ROWS = 100;
const IDLE_MAX_MS = 10 * MINUTE_MS;
/** Pages without streamed rows that one read can skip. */
const SKIPPED_MAX = 20;

/** A batch to send, with the positions before and after it. */
export type Batch = {
  readonly due: DueDelivery;
  readonly body: string;
  readonly from: StreamStart;
  readonly next: StreamStart;
};

type Source = {
  readonly storage: DurableObjectStorage;
  readonly read: (query: StreamQuery) => Promise<Result<StreamPage>>;
  readonly nowMs: number;
};

export function isStreamDue({ stream, pausedUntil }: Receiver, nowMs: number): boolean {
  return stream !== null && stream.nextAt <= nowMs && (pausedUntil ?? 0) <= nowMs;
}

/**
 * Returns the next batch, or null without new rows. Each attempt reads the ledger again, so this
 * object stores no rows. `before` is the delivery of a failed batch.
 */
export async function nextBatch(
  { storage, read, nowMs }: Source,
  { webhook, stream }: Receiver & { readonly stream: StreamState },
  before: DueDelivery | null,
): Promise<Batch | null> {
  const { id, orgId } = webhook;
  let { from } = stream;
  for (let pages = 0; pages < SKIPPED_MAX; pages++) {
    // oxlint-disable-next-line no-await-in-loop -- one page at a time
    const page = await read({ from, limit: BATCH_ROWS });
    if (!page.ok) {
      logWarning("usage_unreadable", { org_id: orgId, webhook_id: id });
      wait(storage, { id, stream, from }, { nowMs, idleMs: MINUTE_MS, before });
      return null;
    }
    const { rows, next } = page.value;
    if (rows.length > 0) {
      const message = usageMessage(orgId, page.value);
      const due = storage.transactionSync(() =>
        putBatch(storage.sql, id, { ...message, nowMs, before }),
      );
      return { due, body: message.body, from: stream.from, next };
    }
    if (next.seq === page.value.from.seq) break;
    from = next;
  }
  const idleMs = Math.min(Math.max(MINUTE_MS, 2 * stream.idleMs), IDLE_MAX_MS);
  wait(storage, { id, stream, from }, { nowMs, idleMs, before });
  return null;
}

function wait(
  storage: DurableObjectStorage,
  { id, stream, from }: { readonly id: string; readonly stream: StreamState; from: StreamStart },
  to: { readonly nowMs: number; readonly idleMs: number; readonly before: DueDelivery | null },
): void {
  storage.transactionSync(() => {
    const { nowMs, idleMs, before } = to;
    if (before !== null) deleteDelivery(storage.sql, before);
    if (isUnmoved(storage.sql, id, stream.from)) {
      writeStream(storage.sql, id, { from, nextAt: nowMs + idleMs, idleMs });
    }
  });
}

function deleteDelivery(sql: SqlStorage, { number }: DueDelivery): void {
  sql.exec("DELETE FROM deliveries WHERE number = ? AND state = 'pending'", number);
}

function putBatch(
  sql: SqlStorage,
  webhookId: string,
  batch: {
    readonly id: string;
    readonly summary: string;
    readonly nowMs: number;
    readonly before: DueDelivery | null;
  },
): DueDelivery {
  const { id: eventId, summary, nowMs, before } = batch;
  if (before !== null && before.eventId !== eventId) deleteDelivery(sql, before);
  const { number, attempts } = sql
    .exec<{ number: number; attempts: number }>(
      `INSERT INTO deliveries (id, webhook_id, event_id, type, body, state, created_at, next_at)
      VALUES (?1, ?2, ?3, '${USAGE_SETTLED}', ?4, 'pending', ?5, ?5)
      ON CONFLICT (webhook_id, event_id) DO UPDATE SET state = 'pending',
        next_at = coalesce(next_at, excluded.next_at) RETURNING number, attempts`,
      mintId(DELIVERY_ID, nowMs),
      webhookId,
      eventId,
      summary,
      nowMs,
    )
    .one();
  return { number, eventId, type: USAGE_SETTLED, body: summary, attempts };
}

/**
 * Records an attempt. After a success, moves to the next batch, unless a replay moved the position.
 */
export function recordBatch(
  storage: DurableObjectStorage,
  attempt: Parameters<typeof recordAttempt>[1] & { readonly batch: Batch },
  then: { readonly nowMs: number; readonly ending: string | null },
): void {
  const { webhookId, batch, sending } = attempt;
  const { nowMs } = then;
  storage.transactionSync(() => {
    recordAttempt(storage, attempt, { ...then, nextAt: nowMs }); // the pause delays the next attempt
    if (sending.attempt.error !== null || !isUnmoved(storage.sql, webhookId, batch.from)) return;
    writeStream(storage.sql, webhookId, { from: batch.next, nextAt: nowMs, idleMs: 0 });
  });
}

function isUnmoved(sql: SqlStorage, webhookId: string, from: StreamStart): boolean {
  const found = selectReceivers(sql).find(({ webhook }) => webhook.id === webhookId);
  return JSON.stringify(found?.stream?.from) === JSON.stringify(from);
}
