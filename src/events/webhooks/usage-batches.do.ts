import { HOUR_MS, MINUTE_MS } from "../../shared/clock.ts";
import { USAGE_SETTLED } from "../../shared/event.ts";
import { invalid } from "../../shared/failure.ts";
import type { Refusal, Result } from "../../shared/failure.ts";
import { mintId } from "../../shared/id.ts";
import { logWarning } from "../../shared/log.ts";
import type {
  UsageStreamPosition,
  UsageStreamRow,
  ReplayStart,
  UsageStreamPage,
  StreamQuery,
  StreamStart,
} from "../../shared/contracts/usage-stream.ts";
import { recordAttempt } from "./attempt-rows.do.ts";
import { REPEAT_UNSAFE_ERROR } from "./delivery-rules.ts";
import { PENDING_BATCH_NEXT_AT, DELIVERY_ID_PREFIX } from "./delivery-rows.do.ts";
import type { DueDelivery, Receiver, StreamState } from "./delivery-rows.do.ts";
import { selectWebhookStates, storeStreamState } from "./receiver-rows.do.ts";
import { createEventCall, buildUsageCalls } from "./send-calls.ts";
import type { ReceiverCall, SentAttempt } from "./send-calls.ts";
import { findUsageFormat, createUsageMessage } from "./usage-formats.ts";
import { findTestRow } from "./usage-probe.ts";

/** Maximum ledger rows in one message (about 40 KiB). */
const BATCH_ROWS = 100;
const IDLE_MAX_MS = 10 * MINUTE_MS;
const SKIPPED_PAGES_MAX = 20;

/** HTTP statuses that mean invalid rows rather than an invalid request. */
const REJECTION_STATUSES: ReadonlySet<number | null> = new Set([400, 404, 413, 422]);
const REJECTIONS_MAX = 3;
/** Maximum consecutive rejected rows to skip. The stream then waits for a change of the webhook. */
const REJECTED_ROWS_MAX = 20;

/**
 * A batch to send, which moves the stream from `from` to `next`. `sentMs` is the time of its last
 * row. `unsure` is the last row that an earlier call may have delivered.
 */
export type UsageBatch = {
  readonly due: DueDelivery;
  readonly calls: readonly [ReceiverCall, ...ReceiverCall[]];
  readonly rows: number;
  readonly singles: number;
  readonly sentMs: number;
  readonly from: StreamStart;
  readonly next: UsageStreamPosition;
  readonly unsure: StreamState["unsure"];
  /** Set for a row that only tests the receiver's settings. */
  readonly isProbe?: true;
};

type BatchSource = {
  readonly storage: DurableObjectStorage;
  readonly read: (query: StreamQuery) => Promise<Result<UsageStreamPage>>;
  readonly nowMs: number;
};

type StreamReceiver = Pick<Receiver, "webhook"> & { readonly stream: StreamState };

export function isStreamDue({ stream, pausedUntil }: Receiver, nowMs: number): boolean {
  return stream !== null && stream.nextAt <= nowMs && (pausedUntil ?? 0) <= nowMs;
}

/**
 * Returns the next batch, or null without new rows. Each attempt reads the ledger again. `before`
 * is the delivery of the previous batch, if it failed.
 */
export async function nextBatch(
  source: BatchSource,
  receiver: StreamReceiver,
  before: DueDelivery | null,
): Promise<UsageBatch | null> {
  const { storage, read, nowMs } = source;
  const { webhook, stream } = receiver;
  const { id, orgId } = webhook;
  const isMeterFormat = findUsageFormat(webhook.format) !== null;
  const probe = await readProbeBatch(source, receiver, before);
  if (probe !== null) return probe;
  let { from, singles = 0, seenMs = webhook.createdAt } = stream;
  let isStreamEnd = false;
  for (let pages = 0; pages < SKIPPED_PAGES_MAX; pages++) {
    const limit = singles > 0 ? 1 : BATCH_ROWS;
    const resumeQuery = isMeterFormat ? resumeAfterRebuild(receiver, seenMs, nowMs) : {};
    const page = await read({ from, limit, ...resumeQuery });
    if (!page.ok) {
      logWarning("usage_unreadable", { org_id: orgId, webhook_id: id });
      const nextAt = nowMs + MINUTE_MS;
      const position = { from, singles, seenMs, nextAt, idleMs: MINUTE_MS };
      postponeRead(storage, receiver, position, before);
      return null;
    }
    const { rows, next } = page.value;
    const last = rows.at(-1);
    const message = createUsageMessage(orgId, page.value);
    const [first, ...more] = batchCalls(webhook, rows, message.body);
    if (first !== undefined && last !== undefined) {
      const due = storeBatch(storage, id, { ...message, nowMs, before });
      const { from: at, unsure } = stream;
      const position = { from: at, next, sentMs: last.createdAt, unsure };
      return { due, calls: [first, ...more], rows: rows.length, singles, ...position };
    }
    isStreamEnd = next.seq === page.value.from.seq;
    if (isStreamEnd) break;
    from = next;
    singles = Math.max(0, singles - rows.length);
    seenMs = Math.max(seenMs, ...rows.map(({ createdAt }) => createdAt));
  }
  const idleMs = isStreamEnd ? Math.min(Math.max(MINUTE_MS, 2 * stream.idleMs), IDLE_MAX_MS) : 0;
  const nextAt = nowMs + idleMs;
  postponeRead(storage, receiver, { from, singles, seenMs, nextAt, idleMs }, before);
  return null;
}

/**
 * Returns a batch that tests a later row, or null if no test is due. Every second attempt at a
 * rejected row is a test.
 */
async function readProbeBatch(
  { storage, read, nowMs }: BatchSource,
  { webhook, stream }: StreamReceiver,
  before: DueDelivery | null,
): Promise<UsageBatch | null> {
  const { rejections = 0, rejectedRows = 0, from, unsure } = stream;
  const attempts = rejections - REJECTIONS_MAX;
  const isProbeDue = attempts >= 0 && attempts % 2 === 0 && rejectedRows >= REJECTED_ROWS_MAX;
  if (!isProbeDue || !("seq" in from)) return null;
  const row = await findTestRow(read, { webhook, start: from, probeNumber: attempts / 2 });
  const [call] = row === null ? [] : buildUsageCalls(webhook, [row]);
  if (row === null || call === undefined) return null;
  const message = createUsageMessage(webhook.orgId, { from, rows: [row], next: from });
  const due = storeBatch(storage, webhook.id, { ...message, nowMs, before });
  const position = { from, next: from, sentMs: row.createdAt, unsure };
  return { due, calls: [call], rows: 1, singles: stream.singles ?? 0, ...position, isProbe: true };
}

/** Returns the time (Unix ms) of the first row to send after a rebuild of the wallet. */
function resumeAfterRebuild(
  { webhook, stream }: StreamReceiver,
  seenMs: number,
  nowMs: number,
): { readonly resumeMs: number } {
  const { repeatMs = Infinity } = findUsageFormat(webhook.format) ?? {};
  const { sentMs = 0 } = stream;
  return { resumeMs: Math.max(seenMs, nowMs - sentMs < repeatMs ? sentMs : sentMs + 1) };
}

function batchCalls(
  webhook: Receiver["webhook"],
  rows: UsageStreamPage["rows"],
  body: string,
): readonly ReceiverCall[] {
  return findUsageFormat(webhook.format) === null
    ? rows.map(() => createEventCall(webhook, body)).slice(0, 1)
    : buildUsageCalls(webhook, rows);
}

function postponeRead(
  storage: DurableObjectStorage,
  { webhook: { id }, stream }: StreamReceiver,
  position: Pick<StreamState, "from" | "singles" | "seenMs" | "nextAt" | "idleMs">,
  before: DueDelivery | null,
): void {
  storage.transactionSync(() => {
    if (before !== null) deleteDelivery(storage.sql, before);
    if (readStreamAt(storage.sql, id, stream.from) !== null) {
      storeStreamState(storage.sql, id, { ...stream, ...position });
    }
  });
}

function deleteDelivery(sql: SqlStorage, { number }: DueDelivery): void {
  sql.exec("DELETE FROM deliveries WHERE number = ? AND state = 'pending'", number);
}

function storeBatch(
  storage: DurableObjectStorage,
  webhookId: string,
  batch: {
    readonly id: string;
    readonly summary: string;
    readonly nowMs: number;
    readonly before: DueDelivery | null;
  },
): DueDelivery {
  const { id: eventId, summary, nowMs, before } = batch;
  const { sql } = storage;
  return storage.transactionSync(() => {
    if (before !== null && before.eventId !== eventId) deleteDelivery(sql, before);
    const { number, attempts } = sql
      .exec<{ number: number; attempts: number }>(
        `INSERT INTO deliveries (id, webhook_id, event_id, type, body, state, created_at, next_at)
        VALUES (?1, ?2, ?3, '${USAGE_SETTLED}', ?4, 'pending', ?5, ${PENDING_BATCH_NEXT_AT})
        ON CONFLICT (webhook_id, event_id) DO UPDATE SET state = 'pending', next_at = excluded.next_at
        RETURNING number, attempts`,
        mintId(DELIVERY_ID_PREFIX, nowMs),
        webhookId,
        eventId,
        summary,
        nowMs,
      )
      .one();
    return { number, eventId, type: USAGE_SETTLED, body: summary, attempts };
  });
}

function clearPause(sql: SqlStorage, webhookId: string): void {
  sql.exec("UPDATE receivers SET failures = 0, paused_until = NULL WHERE id = ?", webhookId);
}

/**
 * Stores the stream's position after the batch's first `taken` calls succeeded. If the receiver
 * would count a repeated row twice, also stores `sending`, the last row being sent. Returns the
 * rest of the batch.
 */
export function recordSentCalls(
  storage: DurableObjectStorage,
  { id, format }: Receiver["webhook"],
  step: {
    readonly batch: UsageBatch;
    readonly taken: number;
    readonly sending: UsageStreamRow | undefined;
    readonly nowMs: number;
  },
): UsageBatch {
  const { batch, taken, nowMs } = step;
  const row = batch.calls[taken - 1]?.last;
  const sending = findUsageFormat(format)?.repeatMs === undefined ? undefined : step.sending;
  if (row === undefined && sending === undefined) return batch;
  return storage.transactionSync(() => {
    const stream = readStreamAt(storage.sql, id, batch.from);
    if (stream === null) return batch;
    const before = { ...stream, unsure: batch.unsure };
    const moved = row === undefined ? before : moveStream(before, positionAfter(row, batch));
    storeStreamState(storage.sql, id, { ...moved, unsure: unsureAfter(moved, sending, nowMs) });
    const { from, unsure } = moved;
    return { ...batch, from, unsure };
  });
}

function positionAfter({ seq, balanceMicro, createdAt }: UsageStreamRow, { next }: UsageBatch) {
  return { from: { ...next, seq, balanceMicro }, sentMs: createdAt };
}

function moveStream(
  stream: StreamState,
  { from, sentMs }: { readonly from: UsageStreamPosition; readonly sentMs: number },
): StreamState {
  const { unsure } = stream;
  return {
    ...stream,
    from,
    sentMs: Math.max(sentMs, stream.sentMs ?? 0),
    rejections: 0,
    rejectedRows: 0,
    unsure:
      unsure !== undefined && from.seq < unsure.seq
        ? { ...unsure, sinceMs: Math.max(unsure.sinceMs, sentMs) } // later rows were sent after this time
        : undefined,
  };
}

/** Reports whether the receiver could count repeated rows twice. */
export function isRepeatUnsafe({ webhook, stream }: Receiver, nowMs: number): boolean {
  const { repeatMs = Infinity } = findUsageFormat(webhook.format) ?? {};
  return nowMs - (stream?.unsure?.sinceMs ?? nowMs) >= repeatMs;
}

/**
 * Records an attempt. After a success, moves to the next batch, unless a replay moved the position.
 * Sends a rejected batch row by row. Skips a rejected trace immediately, other rows after
 * `REJECTIONS_MAX` rejections.
 */
export function recordBatch(
  storage: DurableObjectStorage,
  attempt: Parameters<typeof recordAttempt>[1] & {
    readonly batch: UsageBatch;
    readonly sending: SentAttempt;
    readonly receiver: Receiver;
  },
  outcome: { readonly nowMs: number; readonly ending: string | null },
): void {
  const { webhookId, batch, sending } = attempt;
  const { nowMs } = outcome;
  const { error } = sending.attempt;
  const rejection = readRejection(attempt);
  const { isSkipped, isTrace } = rejection;
  storage.transactionSync(() => {
    recordAttempt(storage, attempt, {
      ...outcome,
      nextAt: isSkipped || error === REPEAT_UNSAFE_ERROR ? null : PENDING_BATCH_NEXT_AT,
    }); // the pause delays the next attempt
    if (isSkipped && !isTrace) clearPause(storage.sql, webhookId);
    const stream = readStreamAt(storage.sql, webhookId, batch.from);
    if (stream === null) return;
    const after = streamAfter(stream, { batch, sending, rejection, nowMs });
    storeStreamState(storage.sql, webhookId, after);
  });
}

function streamAfter(
  stream: StreamState,
  attempt: {
    readonly batch: UsageBatch;
    readonly sending: SentAttempt;
    readonly rejection: ReturnType<typeof readRejection>;
    readonly nowMs: number;
  },
): StreamState {
  const { batch, sending, nowMs } = attempt;
  const { isRejected, isSkipped, rejections, rejectedRows } = attempt.rejection;
  const isAccepted = sending.attempt.error === null;
  if (isAccepted && batch.isProbe === true) {
    const unsure = unsureAfter(batch, batch.calls[0].last, nowMs);
    return { ...stream, unsure, rejectedRows: 0, nextAt: nowMs };
  }
  if (isAccepted || isSkipped) {
    const singles = Math.max(0, batch.singles - 1);
    const moved = moveStream(stream, { from: batch.next, sentMs: batch.sentMs });
    const skipped = { rejectedRows, sentMs: stream.sentMs ?? 0, seenMs: batch.sentMs };
    return { ...moved, ...(isSkipped && skipped), singles, nextAt: nowMs, idleMs: 0 };
  }
  const unsure = unsureAfter(batch, sending.unsure, nowMs);
  return isRejected && batch.rows > 1
    ? { ...stream, unsure, nextAt: nowMs, singles: batch.rows }
    : { ...stream, unsure, rejections };
}

function readRejection({ webhookId, batch, sending, receiver }: Parameters<typeof recordBatch>[1]) {
  const { error, status } = sending.attempt;
  const { webhook } = receiver;
  const { rejections: before = 0, rejectedRows: others = 0 } = receiver.stream ?? {};
  const isRejected = error !== null && REJECTION_STATUSES.has(status);
  const rejections = isRejected && batch.rows === 1 ? before + 1 : 0;
  const rejectedRows = others + 1;
  const isTrace = findUsageFormat(webhook.format)?.isTrace === true && status !== 404;
  const isWithinLimits = rejections >= REJECTIONS_MAX && rejectedRows <= REJECTED_ROWS_MAX;
  const isSkipped = isTrace ? rejections > 0 : isWithinLimits;
  if (isSkipped) {
    const ids = { org_id: webhook.orgId, webhook_id: webhookId, seq: batch.next.seq };
    logWarning("usage_row_rejected", { ...ids, status });
  }
  return { isRejected, isSkipped, isTrace, rejections, rejectedRows };
}

/** Returns the last row that the receiver may already have when a replay starts. */
export function findPossiblySentRow(
  { from, sentMs = -1, unsure }: StreamState,
  first: ReplayStart | undefined,
): StreamState["unsure"] {
  if (first === undefined || first.atMs > sentMs || !("seq" in from)) return unsure;
  const { seq, sinceMs } = unsure ?? { seq: 0, sinceMs: Infinity };
  const rowMs = Math.max(sentMs, unsure?.rowMs ?? 0);
  return { seq: Math.max(from.seq, seq), rowMs, sinceMs: Math.min(first.atMs, sinceMs) };
}

function unsureAfter(
  { unsure }: Pick<StreamState, "unsure">,
  row: UsageStreamRow | undefined,
  nowMs: number,
): StreamState["unsure"] {
  if (row === undefined || row.seq <= (unsure?.seq ?? 0)) return unsure;
  return { seq: row.seq, rowMs: row.createdAt, sinceMs: unsure?.sinceMs ?? nowMs };
}

/** Rejects a replay if the receiver would count its rows twice. */
export function refuseReplay(
  { format }: Receiver["webhook"],
  { sentMs = -1, unsure }: StreamState,
  { first, nowMs }: { readonly first: ReplayStart | undefined; readonly nowMs: number },
): Refusal | null {
  const { repeatMs = Infinity } = findUsageFormat(format) ?? {};
  const knownMs = Math.max(sentMs, unsure?.rowMs ?? -1);
  if (first === undefined || first.atMs > knownMs || first.atMs >= nowMs - repeatMs) return null;
  const hours = repeatMs / HOUR_MS;
  const message = `The receiver would count requests from more than ${hours} hours ago twice. Start at a later row.`;
  return invalid(message, first.param);
}

function readStreamAt(sql: SqlStorage, webhookId: string, from: StreamStart): StreamState | null {
  const stream = selectWebhookStates(sql).find(({ webhook }) => webhook.id === webhookId)?.stream;
  return JSON.stringify(stream?.from) === JSON.stringify(from) ? (stream ?? null) : null;
}
