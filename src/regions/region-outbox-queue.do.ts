import { logAlert } from "../lib/log.ts";
import { backoffMs, BACKOFF_MAX_MS, DELIVER_MAX, PARK_AFTER_MS } from "./outbox-schedule.ts";
import type { Delivery, Message } from "./outbox-message.ts";

/** How much a queue holds. `oldestMs`: age of the oldest message still waiting, null when none is. */
export type Depth = {
  readonly waiting: number;
  readonly dead: number;
  readonly parked: number;
  readonly oldestMs: number | null;
};

/** The reason kept with a message while nobody answers for any of them. */
const UNREACHABLE = "unreachable";

/** The `attempts` of a message that was parked before: it gets one, and its alert was logged. */
const REVIVED = -1;

/** When an answer came, and where in its range (0 to 1) the backoff of what failed lies. */
export type Moment = { readonly nowMs: number; readonly random: number };

/**
 * Messages in an object's own storage until each is answered: `waiting` ones have a time at which
 * they are due, `dead` ones were refused for good, `parked` ones grew too old and are tried again only
 * when the addressee is heard and by each sweep. Nothing is dropped.
 */
export class OutboxQueue {
  readonly #storage: DurableObjectStorage;
  readonly #name: string;

  /** `name` is for the log lines. Creates the table when the storage is new. */
  constructor(storage: DurableObjectStorage, name: string) {
    this.#storage = storage;
    this.#name = name;
    storage.sql.exec(`
      CREATE TABLE IF NOT EXISTS messages (
        id TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
        state TEXT NOT NULL CHECK (state IN ('waiting', 'dead', 'parked')),
        attempts INTEGER NOT NULL, created_at INTEGER NOT NULL, due_at INTEGER NOT NULL,
        reason TEXT,
        PRIMARY KEY (id, kind)
      ) STRICT, WITHOUT ROWID;
      CREATE INDEX IF NOT EXISTS messages_due ON messages (due_at) WHERE state = 'waiting';
      CREATE INDEX IF NOT EXISTS messages_parked ON messages (due_at) WHERE state = 'parked';
    `);
  }

  /** Stores all messages or none, due at once; one that is already here stays as it is. */
  add(messages: readonly Message[], nowMs: number): void {
    this.#storage.transactionSync(() => {
      for (const { id, kind, body } of messages) {
        this.#storage.sql.exec(
          `INSERT INTO messages (id, kind, body, state, attempts, created_at, due_at)
           VALUES (?, ?, ?, 'waiting', 0, ?, ?) ON CONFLICT (id, kind) DO NOTHING`,
          id,
          kind,
          body,
          nowMs,
          nowMs,
        );
      }
    });
  }

  /**
   * As `add`, for messages that must not wait for anything: one that is already here, whatever became
   * of it, is due at once.
   */
  addAtOnce(messages: readonly Message[], nowMs: number): void {
    this.#storage.transactionSync(() => {
      this.add(messages, nowMs);
      for (const { id, kind } of messages) {
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

  /**
   * The clock stepped back: what it made wait for longer than any backoff is due at once, not when the
   * clock has caught up.
   */
  followClock(nowMs: number): void {
    this.#storage.sql.exec(
      "UPDATE messages SET due_at = ?1 WHERE state = 'waiting' AND due_at > ?2",
      nowMs,
      nowMs + BACKOFF_MAX_MS,
    );
  }

  /** Up to 100 messages that are due, the longest due first. */
  due(nowMs: number): readonly Message[] {
    return this.#storage.sql
      .exec<Message>(
        `SELECT id, kind, body FROM messages WHERE state = 'waiting' AND due_at <= ?
         ORDER BY due_at LIMIT ${DELIVER_MAX}`,
        nowMs,
      )
      .toArray();
  }

  /** Up to 100 messages that wait, due or not, the longest due first. */
  waiting(): readonly Message[] {
    return this.due(Number.MAX_SAFE_INTEGER);
  }

  /** When the next message is due, or null when none waits. */
  nextDueAt(): number | null {
    return this.#storage.sql
      .exec<{ due_at: number | null }>(
        "SELECT min(due_at) AS due_at FROM messages WHERE state = 'waiting'",
      )
      .one().due_at;
  }

  /** Takes in the answer to one message. */
  resolve(message: Message, delivery: Delivery, moment: Moment): void {
    const { id, kind } = message;
    const { sql } = this.#storage;
    switch (delivery.kind) {
      case "delivered":
        sql.exec("DELETE FROM messages WHERE id = ? AND kind = ?", id, kind);
        return;
      case "refused":
        this.#end(message, "dead", delivery.reason);
        this.#alert(message, "dead", delivery.reason);
        return;
      case "failed":
        this.#postpone(message, delivery.reason, moment);
        return;
      case "unreachable":
        this.#postpone(message, UNREACHABLE, moment);
    }
  }

  /** The addressee answers again: what waits, or was parked, only because it did not is due at once. */
  heard(nowMs: number): void {
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

  /** One more attempt, at once, for up to 100 parked messages, those first that had none for longest. */
  revive(nowMs: number): void {
    this.#storage.sql.exec(
      `UPDATE messages SET state = 'waiting', due_at = ?, attempts = ${REVIVED} WHERE (id, kind) IN
         (SELECT id, kind FROM messages WHERE state = 'parked' ORDER BY due_at LIMIT ${DELIVER_MAX})`,
      nowMs,
    );
  }

  depth(nowMs: number): Depth {
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

  #postpone(message: Message, reason: string, { nowMs, random }: Moment): void {
    const { id, kind } = message;
    const [row] = this.#storage.sql.exec<{ attempts: number; created_at: number }>(
      "SELECT attempts, created_at FROM messages WHERE id = ? AND kind = ?",
      id,
      kind,
    );
    if (row === undefined) return;
    // Parked only after an attempt: what waited out a week of downtime is still tried once.
    if (nowMs - row.created_at > PARK_AFTER_MS) {
      this.#end(message, "parked", reason);
      if (row.attempts !== REVIVED) this.#alert(message, "parked", reason);
      return;
    }
    const attempts = Math.max(0, row.attempts) + 1;
    this.#storage.sql.exec(
      "UPDATE messages SET attempts = ?, due_at = ?, reason = ? WHERE id = ? AND kind = ?",
      attempts,
      nowMs + backoffMs(attempts, random),
      reason,
      id,
      kind,
    );
  }

  #end(message: Message, state: "dead" | "parked", reason: string): void {
    const { id, kind } = message;
    this.#storage.sql.exec(
      "UPDATE messages SET state = ?, reason = ? WHERE id = ? AND kind = ?",
      state,
      reason,
      id,
      kind,
    );
  }

  #alert({ id, kind }: Message, state: "dead" | "parked", reason: string): void {
    logAlert(`outbox_${state}`, { outbox: this.#name, id, kind, reason });
  }
}
