import { logAlert } from "../shared/log.ts";
import type { TableMigrations } from "../shared/tables.do.ts";
import {
  retryDelayMs,
  RETRY_DELAY_MAX_MS,
  DELIVERY_BATCH_MAX,
  DEAD_LETTER_AFTER_MS,
} from "./outbox-schedule.ts";
import type { DeliveryResult, OutboxMessage } from "./outbox-format.ts";
import type { OutboxState } from "../shared/contracts/outbox.ts";

const FIRST_SCHEMA = `CREATE TABLE self ( -- an alarm need not say whose it is
    one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL) STRICT;
  CREATE TABLE messages (
    id TEXT NOT NULL, kind TEXT NOT NULL, receiver TEXT NOT NULL, body TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'dead', 'parked')),
    attempts INTEGER NOT NULL, created_at INTEGER NOT NULL, due_at INTEGER NOT NULL,
    reason TEXT,
    PRIMARY KEY (id, kind)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE failing (
    receiver TEXT PRIMARY KEY NOT NULL, attempts INTEGER NOT NULL, due_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX messages_by_receiver ON messages (receiver, due_at) WHERE state = 'waiting';
  CREATE INDEX messages_parked ON messages (due_at) WHERE state = 'parked';`;

export const OUTBOX_TABLES: TableMigrations = {
  name: "outbox",
  steps: [{ sql: FIRST_SCHEMA, readableBy: 1 }],
};

const UNREACHABLE = "unreachable";

/**
 * The `attempts` of a retried `parked` message. It allows one more attempt and causes no second
 * alert.
 */
const REVIVED = -1;

/** Maximum failing receivers per delivery round, because each can use up the round's time. */
const PROBES_MAX = 6;

/** A receiver with waiting messages. `dueAt` is the time (Unix ms) of its next message or retry. */
type ReceiverQueue = {
  readonly receiver: string;
  readonly dueAt: number;
  readonly isFailing: boolean;
};

type RetryTiming = { readonly nowMs: number; readonly random: number };

/**
 * Stores each message until its delivery. `dead`: the receiver rejected it. `parked`: too old; only
 * a sweep retries it, or a response from its receiver's region.
 */
export class OutboxQueue {
  readonly #storage: DurableObjectStorage;
  readonly #name: string;
  #clockMs: number | null = null;
  /** Whether messages may be waiting for an unresponsive region. Null if unknown. */
  #mayHaveUnreachable: boolean | null = null;
  #hasFailing: boolean | null = null;

  constructor(storage: DurableObjectStorage, name: string) {
    this.#storage = storage;
    this.#name = name;
  }

  /** Stores all messages or none, due immediately. Doesn't change existing messages. */
  add(messages: readonly OutboxMessage[], nowMs: number): void {
    const write = (): void => {
      for (const message of messages) this.#insert(message, nowMs);
    };
    if (messages.length === 1) write();
    else this.#storage.transactionSync(write);
  }

  #insert({ id, kind, body, receiver }: OutboxMessage, nowMs: number): void {
    this.#storage.sql.exec(
      `INSERT INTO messages (id, kind, body, receiver, state, attempts, created_at, due_at)
       VALUES (?, ?, ?, ?, 'waiting', 0, ?, ?) ON CONFLICT (id, kind) DO NOTHING`,
      id,
      kind,
      body,
      receiver,
      nowMs,
      nowMs,
    );
  }

  addDueNow(messages: readonly OutboxMessage[], nowMs: number): void {
    this.#storage.transactionSync(() => {
      this.add(messages, nowMs);
      for (const { id, kind, receiver } of messages) {
        this.#storage.sql.exec("DELETE FROM failing WHERE receiver = ?", receiver);
        this.#storage.sql.exec(
          `UPDATE messages SET state = 'waiting', due_at = ?1, attempts = 0,
             created_at = CASE state WHEN 'waiting' THEN created_at ELSE ?1 END
           WHERE id = ?2 AND kind = ?3`,
          nowMs,
          id,
          kind,
        );
      }
    });
  }

  /** If the clock moved back, limits all waits to the maximum. */
  followClock(nowMs: number): void {
    const hasMovedBack = this.#clockMs === null || nowMs < this.#clockMs;
    this.#clockMs = nowMs;
    if (!hasMovedBack) return;
    const latestMs = nowMs + RETRY_DELAY_MAX_MS;
    const { sql } = this.#storage;
    sql.exec(
      "UPDATE messages SET due_at = ?1 WHERE state = 'waiting' AND due_at > ?2",
      nowMs,
      latestMs,
    );
    sql.exec("UPDATE failing SET due_at = ?1 WHERE due_at > ?2", nowMs, latestMs);
  }

  /**
   * Returns up to 100 due messages. They include at most six failing receivers, with one message
   * each.
   */
  due(nowMs: number): readonly OutboxMessage[] {
    const queues = this.#receiverQueues().filter(({ dueAt }) => dueAt <= nowMs);
    const healthy = queues.filter(({ isFailing }) => !isFailing).slice(0, DELIVERY_BATCH_MAX);
    const failing = queues.filter(({ isFailing }) => isFailing).slice(0, PROBES_MAX);
    const messages: OutboxMessage[] = [];
    for (const [i, { receiver }] of healthy.entries()) {
      const share = Math.ceil((DELIVERY_BATCH_MAX - messages.length) / (healthy.length - i));
      messages.push(...this.#selectWaiting(receiver, nowMs, share));
    }
    const probes = failing.slice(0, Math.max(1, DELIVERY_BATCH_MAX - messages.length));
    return [
      ...messages.slice(0, DELIVERY_BATCH_MAX - probes.length),
      ...probes.flatMap(({ receiver }) => this.#selectWaiting(receiver, nowMs, 1)),
    ];
  }

  waiting(receiver: string | null): readonly OutboxMessage[] {
    if (receiver !== null) {
      return this.#selectWaiting(receiver, Number.MAX_SAFE_INTEGER, DELIVERY_BATCH_MAX);
    }
    return this.due(Number.MAX_SAFE_INTEGER);
  }

  nextDueAt(receiver: string | null = null): number | null {
    const isOfReceiver = (queue: ReceiverQueue): boolean =>
      receiver === null || queue.receiver === receiver;
    return this.#receiverQueues().find(isOfReceiver)?.dueAt ?? null;
  }

  #receiverQueues(): readonly ReceiverQueue[] {
    return this.#storage.sql
      .exec<{ receiver: string; due_at: number; failing_until: number | null }>(
        // The query finds each receiver with one index lookup.
        `WITH RECURSIVE line (receiver) AS (
           SELECT min(receiver) FROM messages WHERE state = 'waiting'
           UNION ALL
           SELECT (SELECT min(receiver) FROM messages
                   WHERE state = 'waiting' AND receiver > line.receiver)
           FROM line WHERE line.receiver IS NOT NULL)
         SELECT line.receiver, failing.due_at AS failing_until,
           (SELECT min(due_at) FROM messages
            WHERE state = 'waiting' AND receiver = line.receiver) AS due_at
         FROM line LEFT JOIN failing ON failing.receiver = line.receiver
         WHERE line.receiver IS NOT NULL`,
      )
      .toArray()
      .map(({ receiver, due_at: dueAt, failing_until: untilMs }) => {
        return { receiver, dueAt: Math.max(dueAt, untilMs ?? 0), isFailing: untilMs !== null };
      })
      .toSorted((one, other) => one.dueAt - other.dueAt);
  }

  #selectWaiting(receiver: string, nowMs: number, limit: number): readonly OutboxMessage[] {
    return this.#storage.sql
      .exec<OutboxMessage>(
        `SELECT id, kind, receiver, body FROM messages
         WHERE state = 'waiting' AND receiver = ? AND due_at <= ? ORDER BY due_at LIMIT ?`,
        receiver,
        nowMs,
        limit,
      )
      .toArray();
  }

  resolve(message: OutboxMessage, delivery: DeliveryResult, timing: RetryTiming): void {
    const { id, kind, receiver } = message;
    const { sql } = this.#storage;
    switch (delivery.kind) {
      case "delivered":
        sql.exec("DELETE FROM messages WHERE id = ? AND kind = ?", id, kind);
        this.#clearFailure(receiver);
        return;
      case "refused":
        this.#clearFailure(receiver);
        this.#setState(message, "dead", delivery.reason);
        this.#alert(message, "dead", delivery.reason);
        return;
      case "failed":
        this.#recordFailure(receiver, timing);
        this.#postpone(message, delivery.reason, timing);
        return;
      case "unreachable":
        this.#mayHaveUnreachable = true;
        this.#postpone(message, UNREACHABLE, timing);
        return;
      case "untried":
    }
  }

  #clearFailure(receiver: string): void {
    const { sql } = this.#storage;
    this.#hasFailing ??= sql.exec("SELECT 1 FROM failing LIMIT 1").toArray().length > 0;
    if (this.#hasFailing) sql.exec("DELETE FROM failing WHERE receiver = ?", receiver);
  }

  #recordFailure(receiver: string, { nowMs, random }: RetryTiming): void {
    const { sql } = this.#storage;
    const [row] = sql.exec<{ attempts: number }>(
      "SELECT attempts FROM failing WHERE receiver = ?",
      receiver,
    );
    const attempts = (row?.attempts ?? 0) + 1;
    this.#hasFailing = true;
    sql.exec(
      "INSERT OR REPLACE INTO failing (receiver, attempts, due_at) VALUES (?, ?, ?)",
      receiver,
      attempts,
      nowMs + retryDelayMs(attempts, random),
    );
  }

  retryUnreachable(nowMs: number): void {
    if (this.#mayHaveUnreachable === false) return;
    this.#mayHaveUnreachable = false;
    this.#storage.sql.exec(
      `UPDATE messages SET state = 'waiting', due_at = ?, attempts = ${REVIVED}
       WHERE state = 'parked' AND reason = ?`,
      nowMs,
      UNREACHABLE,
    );
    this.#storage.sql.exec(
      "UPDATE messages SET due_at = ?1 WHERE state = 'waiting' AND due_at > ?1 AND reason = ?2",
      nowMs,
      UNREACHABLE,
    );
  }

  /** Retries up to 100 parked messages, the longest waiting first. */
  retryParked(nowMs: number): void {
    this.#storage.sql.exec(
      `UPDATE messages SET state = 'waiting', due_at = ?, attempts = ${REVIVED} WHERE (id, kind) IN
         (SELECT id, kind FROM messages WHERE state = 'parked' ORDER BY due_at LIMIT ${DELIVERY_BATCH_MAX})`,
      nowMs,
    );
    this.#storage.sql.exec("UPDATE failing SET due_at = min(due_at, ?)", nowMs);
  }

  depth(nowMs: number): OutboxState {
    const counts = this.#storage.sql
      .exec<{ waiting: number; dead: number; parked: number; oldest: number | null }>(
        `SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting,
                count(*) FILTER (WHERE state = 'dead') AS dead,
                count(*) FILTER (WHERE state = 'parked') AS parked,
                min(created_at) FILTER (WHERE state = 'waiting') AS oldest
         FROM messages`,
      )
      .one();
    const { waiting, dead, parked, oldest } = counts;
    return {
      waiting,
      dead,
      parked,
      oldestMs: oldest === null ? null : Math.max(0, nowMs - oldest),
    };
  }

  #postpone(message: OutboxMessage, reason: string, { nowMs, random }: RetryTiming): void {
    const { id, kind } = message;
    const [row] = this.#storage.sql.exec<{ attempts: number; created_at: number }>(
      "SELECT attempts, created_at FROM messages WHERE id = ? AND kind = ?",
      id,
      kind,
    );
    if (row === undefined) return;
    // A message is parked only after an attempt, even if downtime made it too old.
    if (nowMs - row.created_at > DEAD_LETTER_AFTER_MS) {
      this.#setState(message, "parked", reason);
      if (row.attempts !== REVIVED) this.#alert(message, "parked", reason);
      return;
    }
    const attempts = Math.max(0, row.attempts) + 1;
    this.#storage.sql.exec(
      "UPDATE messages SET attempts = ?, due_at = ?, reason = ? WHERE id = ? AND kind = ?",
      attempts,
      nowMs + retryDelayMs(attempts, random),
      reason,
      id,
      kind,
    );
  }

  #setState(message: OutboxMessage, state: "dead" | "parked", reason: string): void {
    const { id, kind } = message;
    this.#storage.sql.exec(
      "UPDATE messages SET state = ?, reason = ? WHERE id = ? AND kind = ?",
      state,
      reason,
      id,
      kind,
    );
  }

  #alert({ id, kind }: OutboxMessage, state: "dead" | "parked", reason: string): void {
    logAlert(`outbox_${state}`, { outbox: this.#name, id, kind, reason });
  }
}
