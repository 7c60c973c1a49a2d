import { assert } from "../../../shared/assert.ts";
import { now } from "../../../shared/clock.ts";
import { refuse } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { idFloor } from "../../../shared/id.ts";
import { logAlert, reasonOf } from "../../../shared/log.ts";
import { CLOCK_LAG_MAX_MS } from "../../../shared/rate-window.ts";
import { openTables } from "../../../shared/tables.do.ts";
import { HOLD_ID, ID_AGE_MAX_MS, rateFloor } from "../rules/hold-guards.ts";
import { periodOf } from "../../../shared/period.ts";
import { pullNames } from "../tables/request-rows.do.ts";
import { updateWalletRow } from "../tables/wallet-row.do.ts";
import { WALLET_TABLES } from "../tables/wallet-schema.do.ts";
import { readCheckpoint } from "../tables/checkpoint-rows.do.ts";
import { isUnpublished, loadMemory, QUIET_MS } from "./memory.do.ts";
import { pullBuckets } from "./budgets.do.ts";
import { foldIsDue } from "./charges.do.ts";
import { takeCheckpoint } from "./checkpoint.do.ts";
import type { Tx, Memory } from "./memory.do.ts";
import { endTransaction, needsEndOfTransaction } from "./payments.do.ts";
import { expire } from "./postings.do.ts";
import { topUpDue } from "./top-up.do.ts";
import { isFullError, freeStorageNow, retentionDue, isStorageLow } from "./retention.do.ts";

/**
 * Runs a wallet's decisions, each in one synchronous transaction, and keeps memory and alarm consistent with
 * the tables.
 */
export class Decisions {
  /** `lost`: the tables couldn't be read after an error. The next call reads them again. */
  #memory: Memory | "unmade" | "lost" = "unmade";
  #schedule = new Schedule(null);
  readonly #storage: DurableObjectStorage;
  readonly #env: () => Env;

  readonly #onNews: () => void;

  constructor(storage: DurableObjectStorage, env: () => Env, onNews: () => void) {
    this.#storage = storage;
    this.#env = env;
    this.#onNews = onNews;
  }

  get schedule(): Schedule {
    return this.#schedule;
  }

  /** Loads the tables, if any. `alarmAt` is the alarm that is set (Unix ms). */
  start(alarmAt: number | null): void {
    this.#schedule = new Schedule(alarmAt);
    this.#recover();
  }

  /** Reports whether a wallet exists but can't be read. */
  get isLost(): boolean {
    return this.#memory === "lost";
  }

  /** Resets to the state without a wallet, after the tables were deleted. */
  forget(): void {
    this.#memory = "unmade";
    this.#schedule = new Schedule(null);
  }

  /**
   * Runs a decision and sets the alarm. Returns `storage_unavailable` if there is no wallet or its tables
   * can't be read.
   */
  decide<T>(decision: (desk: Tx) => Result<T>): Result<T> {
    return this.turn((desk) => {
      const answer = decision(desk);
      this.noteNews(this.open());
      return answer;
    });
  }

  /** Sets the alarm after a decision and delivers its events. */
  noteNews(desk: Tx): void {
    this.#schedule.arm(desk);
    if (desk.memory.isUntold) this.#onNews();
  }

  turn<T>(decision: (desk: Tx) => Result<T>): Result<T> {
    if (this.tryOpen() === null) return unavailable();
    try {
      return this.#attempt(decision);
    } catch (error) {
      if (!isFullError(error) || !this.#makeRoom()) throw error;
      return this.#attempt(decision);
    }
  }

  #attempt<T>(decision: (desk: Tx) => Result<T>): Result<T> {
    const desk = this.open();
    try {
      expire(desk);
      const answer = decision(desk);
      if (needsEndOfTransaction(desk)) endTransaction(this.open());
      return answer;
    } catch (error) {
      this.#recover(); // memory may be ahead of the tables after a throw
      throw error;
    }
  }

  /** Deletes rows when storage is full. Returns false if nothing can go. The alarm deletes more. */
  #makeRoom(): boolean {
    const desk = this.tryOpen();
    if (desk === null) return false;
    logAlert("wallet_full", { org_id: desk.memory.row.orgId, bytes: desk.sql.databaseSize });
    try {
      this.#schedule.retainSoon(desk);
      return freeStorageNow(desk);
    } catch (error) {
      this.#recover();
      logAlert("wallet_full", { org_id: desk.memory.row.orgId, reason: reasonOf(error) });
      return false;
    }
  }

  /** Returns the transaction context, or null if there is no wallet or its tables can't be read. */
  tryOpen(): Tx | null {
    try {
      return this.openIfMade();
    } catch (error) {
      logAlert("wallet_unreadable", { reason: reasonOf(error) });
      return null;
    }
  }

  /** Returns the transaction context, or null without a wallet. Throws if the tables can't be read. */
  openIfMade(): Tx | null {
    if (this.#memory === "lost") this.load();
    return this.#memory === "unmade" ? null : this.open();
  }

  open(): Tx {
    const memory = this.#memory;
    assert(memory !== "unmade" && memory !== "lost", "the wallet is made and was read");
    const clockMs = now(this.#env());
    if (memory.clock - clockMs > CLOCK_LAG_MAX_MS) return this.#stepBack(memory, clockMs);
    memory.clock = Math.max(memory.clock, clockMs);
    memory.newest = Math.max(memory.newest, memory.clock);
    return this.#deskAt(memory, clockMs);
  }

  /** Moves the wallet's time back after the clock jumped back, in the tables first. */
  #stepBack(before: Memory, clockMs: number): Tx {
    this.#memory = "lost"; // until everything is read again
    followClock({ ...this.#deskAt(before, clockMs), nowMs: clockMs });
    const memory = loadMemory(this.#storage.sql);
    this.#memory = memory;
    memory.newest = Math.max(memory.newest, before.newest);
    const desk = this.#deskAt(memory, clockMs);
    this.#schedule.steppedBack(desk);
    return desk;
  }

  #deskAt(memory: Memory, clockMs: number): Tx {
    const storage = this.#storage;
    const period = periodOf(memory.newest);
    return {
      storage,
      sql: storage.sql,
      memory,
      env: this.#env(),
      nowMs: memory.clock,
      period,
      clockMs,
    };
  }

  /**
   * Loads memory from the tables and schedules due work. Throws if the tables can't be read or are too new.
   */
  load(): void {
    this.#memory = "lost"; // until everything is read
    if (!openTables(this.#storage, WALLET_TABLES)) return this.forget();
    this.#memory = loadMemory(this.#storage.sql);
    const desk = this.open();
    this.#schedule.refresh(desk);
    this.#schedule.publishedBefore(readCheckpoint(desk.sql).clock);
    this.#schedule.arm(desk);
  }

  #recover(): void {
    try {
      this.load();
    } catch (error) {
      this.#memory = "lost";
      logAlert("wallet_unreadable", { reason: reasonOf(error) });
    }
  }
}

/** Returns the failure of a wallet that doesn't exist or can't be read. */
export function unavailable(): Refusal {
  return refuse({ kind: "storage_unavailable" });
}

const DELAY_MIN_MS = 5_000;
const DELAY_MAX_MS = 60_000;
/** Ms between two publishes after requests; QUIET_MS if there were few. */
const BUSY_MS = 90_000;
/** Maximum holds and charges since the last publish that count as few. */
const QUIET_MAX = 128;
/** Ms after which an overdue alarm counts as lost. */
const STALE_MS = 60_000;
/** Maximum ms between two clock reads of one transaction. */
const READINGS_MS = 5;

class Schedule {
  #publishAt: number | null = null;
  #isPublishing = false;
  #publishedAt = -Infinity;
  #delayMs = DELAY_MIN_MS;
  #retainAt: number | null = null;
  /** The alarm that is set, on the platform's clock. */
  #alarmAt: number | null;

  constructor(alarmAt: number | null) {
    this.#alarmAt = alarmAt;
  }

  /** Recomputes when retention is due. The other times follow from memory. */
  refresh(desk: Tx): void {
    this.#retainAt = retentionDue(desk);
  }

  /** Sets the time of the last publish before a start. */
  publishedBefore(atMs: number): void {
    this.#publishedAt = Math.max(this.#publishedAt, atMs);
  }

  /** Schedules the alarm immediately because more rows must be deleted. */
  retainSoon(desk: Tx): void {
    this.#retainAt = desk.nowMs;
  }

  /** Reports whether rows may be old enough to delete. Checked at every alarm. */
  retainIsDue(desk: Tx): boolean {
    if (isStorageLow(desk) || desk.memory.departed.until <= desk.nowMs) return true;
    if (foldIsDue(desk)) return true;
    this.#retainAt ??= retentionDue(desk);
    return this.#retainAt !== null && this.#retainAt <= desk.nowMs;
  }

  publishIsDue(nowMs: number): boolean {
    return this.#publishAt !== null && this.#publishAt <= nowMs;
  }

  get isPublishing(): boolean {
    return this.#isPublishing;
  }

  /** Marks a publish as running. No other is due until it ends. */
  publishing(): void {
    this.#isPublishing = true;
    this.#publishAt = null;
  }

  /** Marks a publish as done or failed. The next one waits longer while the wallet is busy. */
  published(nowMs: number): void {
    this.#isPublishing = false;
    this.#publishAt = null;
    this.#publishedAt = nowMs;
    this.#delayMs = Math.min(DELAY_MAX_MS, this.#delayMs * 2);
  }

  steppedBack(desk: Tx): void {
    this.#publishAt = null;
    this.#publishedAt = -Infinity;
    this.refresh(desk);
  }

  alarmRan(): void {
    this.#alarmAt = null;
  }

  /** Returns when unpublished changes are due: soon, unless they are few and routine. */
  #publishDue({ memory, nowMs }: Tx): number {
    if (!memory.changed) {
      const pause = memory.routine <= QUIET_MAX ? QUIET_MS : BUSY_MS;
      return Math.max(nowMs + DELAY_MIN_MS, this.#publishedAt + pause);
    }
    if (nowMs - this.#publishedAt > DELAY_MAX_MS) this.#delayMs = DELAY_MIN_MS;
    return nowMs + this.#delayMs;
  }

  /** Sets an earlier alarm if needed, committed with the decision. */
  arm(desk: Tx): void {
    const { storage, nowMs } = desk;
    const { memory } = desk;
    if (isUnpublished(memory) && memory.row.conflict === null && !this.#isPublishing) {
      this.#publishAt = Math.min(this.#publishAt ?? Infinity, this.#publishDue(desk));
    }
    const due = Math.min(
      this.#publishAt ?? Infinity,
      memory.books.nextExpiry,
      this.#retainAt ?? Infinity,
      memory.departed.until,
      memory.dueUses.next,
      topUpDue(memory),
    );
    if (due === Infinity) return;
    const platformMs = now({});
    const at = platformMs + Math.max(0, due - nowMs);
    const isKept =
      this.#alarmAt !== null &&
      this.#alarmAt <= at + READINGS_MS &&
      this.#alarmAt > platformMs - STALE_MS;
    if (isKept) return;
    this.#alarmAt = at;
    void storage.setAlarm(at);
  }
}

/**
 * Adjusts the tables when the clock lags the wallet's time by more than jitter. `desk.nowMs` is that clock,
 * `desk.memory.clock` the earlier time. Open holds keep their remaining time, and the last minute's
 * admissions and Idempotency-Key uses count as made now. Holds keep their period. Memory is stale afterwards.
 */
function followClock(desk: Tx): void {
  const { memory, nowMs, sql, storage } = desk;
  logAlert("clock_stepped_back", { org_id: memory.row.orgId, lag_ms: memory.clock - nowMs });
  // A checkpoint newer than every row, so a start doesn't take an old row's time for the wallet's.
  pullBuckets(desk);
  takeCheckpoint(desk);
  // No later hold has an older ID, because IDs carry the real clock.
  const floorId = idFloor(HOLD_ID, nowMs - ID_AGE_MAX_MS - CLOCK_LAG_MAX_MS);
  const { sweptId } = memory.row;
  storage.transactionSync(() => {
    sql.exec(
      `UPDATE requests SET admitted_at = ?1, expires_at = expires_at - (admitted_at - ?1),
        period_day = coalesce(period_day, date(admitted_at / 1000, 'unixepoch'))
      WHERE id >= ?2 AND admitted_at > ?1 AND (seq IS NULL OR admitted_at > ?3)`,
      nowMs,
      floorId,
      rateFloor(memory.clock),
    );
    pullNames(sql, nowMs);
    // Unpaid rows with new IDs would otherwise lie below the swept mark.
    if (sweptId > floorId) updateWalletRow(sql, { ...memory.row, sweptId: floorId });
  });
}
