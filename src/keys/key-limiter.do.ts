import { DurableObject } from "cloudflare:workers";
import { assert } from "../lib/assert.ts";
import type { Scope } from "../lib/caller.ts";
import { now } from "../lib/clock.ts";
import type { Failure } from "../lib/failure.ts";
import { logAlert, logWarning, reasonOf } from "../lib/log.ts";
import { storageFailure } from "../lib/storage-failure.ts";
import { within } from "../lib/within.ts";
import { findKeyByHash, touchKey } from "./keys.store.ts";
import type { Admission } from "./limiter-contract.ts";
import { CLOCK_LAG_MAX_MS, RateWindow } from "./rate-window.ts";
import type { StoredAdmission } from "./rate-window.ts";

/** `last_used_at` is written, and the record refreshed, at most this often. */
const TOUCH_INTERVAL_MS = 60_000;
const BOOK_TIMEOUT_MS = 5_000;

type LimiterRecord = {
  readonly key_id: string;
  readonly org_id: string;
  readonly member_id: string;
  readonly scope: Scope;
  readonly rpm_limit: number;
  /** When `last_used_at` was last written, Unix ms; 0 before the first time. */
  readonly touched_at: number;
};

/** What storage holds, as memory knows it. */
type Memory = {
  readonly window: RateWindow;
  readonly record: LimiterRecord | null;
  readonly revokedAt: number | null;
};

/**
 * One per key and region, named by the key's hash: who the key is, whether it lives, and the exact
 * log of its last minute. Every admission is stored before it is answered, so an eviction, a restart
 * or a stale second instance never admits more. An unknown key leaves nothing in storage.
 */
export class KeyLimiter extends DurableObject<Env> {
  /** Null: storage must be read, at the start and after anything went wrong. */
  #memory: Memory | null = null;
  /** The one question to the book that all callers of a first use share. */
  #learning: Promise<void> | null = null;

  /**
   * Admits one request or says why not: `invalid_api_key` (unknown or revoked), `rate_limited`,
   * `storage_unavailable`. Never throws, and never admits or condemns on what it does not know.
   */
  async admit(): Promise<Admission> {
    try {
      const { record, revokedAt } = this.#remember();
      if (record === null && revokedAt === null) await this.#learn();
      // No await from here on: what is read, decided and written belongs to one turn.
      return this.#decide();
    } catch (error) {
      this.#memory = null;
      logWarning("limiter_storage_failed", { reason: reasonOf(error) });
      return refusal(storageFailure(error));
    }
  }

  /**
   * Ends the key here for good, durable before it answers; works for a key that was never read. Again:
   * the first time stands. Answers with it (Unix ms). Throws when storage does: then nothing is certain.
   */
  revoke(revokedAt: number): number {
    this.#memory = null;
    this.#createTables();
    this.ctx.storage.sql.exec(
      "INSERT INTO tombstone (one, revoked_at) VALUES (1, ?) ON CONFLICT (one) DO NOTHING",
      revokedAt,
    );
    return this.#remember().revokedAt ?? revokedAt;
  }

  #decide(): Admission {
    const { window, record, revokedAt } = this.#remember();
    if (revokedAt !== null || record === null) return refusal({ kind: "invalid_api_key" });
    const clockMs = now(this.env);
    if (window.lagMs(clockMs) > CLOCK_LAG_MAX_MS) this.#clampTo(clockMs, window, record);
    const limit = record.rpm_limit;
    const decision = window.decide(limit, clockMs);
    if (!decision.admitted) {
      const { retryAfterMs } = decision;
      const { org_id: orgId } = record;
      return refusal({ kind: "rate_limited", scope: "key", limit, retryAfterMs, orgId });
    }
    this.#store(decision.entry);
    window.append(decision.entry);
    this.#touchWhenDue(decision.entry.at);
    return {
      ok: true,
      keyId: record.key_id,
      orgId: record.org_id,
      memberId: record.member_id,
      scope: record.scope,
      limit,
      remaining: decision.remaining,
      resetMs: decision.resetMs,
    };
  }

  /** Exactly one row written: the output gate holds the answer until it is durable. */
  #store(entry: StoredAdmission): void {
    const { rowsWritten } = this.ctx.storage.sql.exec(
      `INSERT INTO admissions (slot, at) VALUES (?, ?)
       ON CONFLICT (slot) DO UPDATE SET at = excluded.at`,
      entry.slot,
      entry.at,
    );
    assert(rowsWritten === 1, `an admission must write one row, wrote ${rowsWritten}`);
  }

  /** The clock jumped back: what lies in its future counts as admitted now. */
  #clampTo(clockMs: number, window: RateWindow, record: LimiterRecord): void {
    logAlert("clock_stepped_back", { key_id: record.key_id, lag_ms: window.lagMs(clockMs) });
    this.ctx.storage.transactionSync(() => {
      const { sql } = this.ctx.storage;
      sql.exec("UPDATE admissions SET at = ?1 WHERE at > ?1", clockMs);
      sql.exec("UPDATE record SET touched_at = min(touched_at, ?)", clockMs);
    });
    window.clamp(clockMs);
    this.#amend({ touched_at: Math.min(record.touched_at, clockMs) });
  }

  /** Asks the book once for all who wait, and keeps what it says unless the key was revoked meanwhile. */
  #learn(): Promise<void> {
    this.#learning ??= this.#readBook().finally(() => {
      this.#learning = null;
    });
    return this.#learning;
  }

  async #readBook(): Promise<void> {
    const row = await within(findKeyByHash(this.env.DB, this.#hash()), BOOK_TIMEOUT_MS);
    // A read that began before the revocation must not revive the key: the tombstone is asked now.
    if (row === null || this.#remember().revokedAt !== null) return;
    if (row.revoked_at !== null) {
      this.revoke(row.revoked_at);
      return;
    }
    this.#createTables();
    this.#memory = null;
    this.ctx.storage.sql.exec(
      `INSERT OR REPLACE INTO record (one, key_id, org_id, member_id, scope, rpm_limit, touched_at)
       VALUES (1, ?, ?, ?, ?, ?, 0)`,
      row.id,
      row.org_id,
      row.member_id,
      row.scope,
      row.rpm_limit,
    );
  }

  /** Once a minute of use: notes the use in the book after the answer, and takes over what it says. */
  #touchWhenDue(usedAt: number): void {
    const { record } = this.#remember();
    if (record === null || usedAt - record.touched_at < TOUCH_INTERVAL_MS) return;
    // Noted before the attempt, so that neither a slow book nor an eviction makes it two in a minute.
    this.ctx.storage.sql.exec("UPDATE record SET touched_at = ?", usedAt);
    this.#amend({ touched_at: usedAt });
    this.ctx.waitUntil(this.#touch(usedAt));
  }

  async #touch(usedAt: number): Promise<void> {
    try {
      const answer = await touchKey(this.env.DB, this.#hash(), usedAt);
      if (answer === null) this.#forget();
      else if (answer.revoked_at !== null) this.revoke(answer.revoked_at);
      else this.#setLimit(answer.rpm_limit);
    } catch (error) {
      // The book may be down: admissions go on with the record that is known.
      this.#memory = null;
      logWarning("key_use_not_noted", { reason: reasonOf(error) });
    }
  }

  /** The book does not know the key (any more): the next request asks it again. */
  #forget(): void {
    this.#memory = null;
    this.ctx.storage.sql.exec("DELETE FROM record");
  }

  #setLimit(rpmLimit: number): void {
    if (this.#remember().record?.rpm_limit === rpmLimit) return;
    this.ctx.storage.sql.exec("UPDATE record SET rpm_limit = ?", rpmLimit);
    this.#amend({ rpm_limit: rpmLimit });
  }

  /** Memory follows what was just written to the record. */
  #amend(change: Partial<LimiterRecord>): void {
    const memory = this.#remember();
    if (memory.record === null) return;
    this.#memory = { ...memory, record: { ...memory.record, ...change } };
  }

  #remember(): Memory {
    this.#memory ??= this.#readStorage();
    return this.#memory;
  }

  #readStorage(): Memory {
    const { sql } = this.ctx.storage;
    const { tables } = sql
      .exec<{ tables: number }>(
        "SELECT count(*) AS tables FROM sqlite_master WHERE name = 'tombstone'",
      )
      .one();
    if (tables === 0) return { window: new RateWindow(), record: null, revokedAt: null };
    const [tombstone] = sql.exec<{ revoked_at: number }>("SELECT revoked_at FROM tombstone");
    const [record] = sql.exec<LimiterRecord>(
      "SELECT key_id, org_id, member_id, scope, rpm_limit, touched_at FROM record",
    );
    const admissions = sql.exec<StoredAdmission>("SELECT slot, at FROM admissions").toArray();
    return {
      window: new RateWindow(admissions),
      record: record ?? null,
      revokedAt: tombstone?.revoked_at ?? null,
    };
  }

  /** On the first write only: an object that was merely asked about an unknown key stays empty. */
  #createTables(): void {
    this.ctx.storage.sql.exec(`
      CREATE TABLE IF NOT EXISTS admissions (slot INTEGER PRIMARY KEY, at INTEGER NOT NULL) STRICT;
      CREATE TABLE IF NOT EXISTS record (
        one INTEGER PRIMARY KEY CHECK (one = 1), key_id TEXT NOT NULL, org_id TEXT NOT NULL,
        member_id TEXT NOT NULL, scope TEXT NOT NULL, rpm_limit INTEGER NOT NULL,
        touched_at INTEGER NOT NULL
      ) STRICT;
      CREATE TABLE IF NOT EXISTS tombstone (
        one INTEGER PRIMARY KEY CHECK (one = 1), revoked_at INTEGER NOT NULL
      ) STRICT;
    `);
  }

  #hash(): string {
    const { name } = this.ctx.id;
    assert(name !== undefined, "a limiter is named by its key's hash");
    return name;
  }
}

function refusal(failure: Failure): Admission {
  return { ok: false, failure };
}
