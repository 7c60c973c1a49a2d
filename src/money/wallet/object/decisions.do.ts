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
import { takeCheckpoint } from "./checkpoint.do.ts";
import type { Tx, Memory } from "./memory.do.ts";
import { endTransaction, needsEndOfTransaction } from "./payments.do.ts";
import { expire } from "./postings.do.ts";
import { topUpDue } from "./top-up.do.ts";
import { isFullError, freeStorageNow, retentionDue, isStorageLow } from "./retention.do.ts";

/**
 * Where a wallet's decisions are made, each in one synchronous turn: keeps the memory and the alarm
 * in step with the tables.
 */
export class Decisions {
  /** `lost`: the tables could not be read after a throw; whoever comes next reads them again. */
  #memory: Memory | "unmade" | "lost" = "unmade";
  #schedule = new Schedule(null);
  readonly #storage: DurableObjectStorage;
  readonly #env: () => Env;

  readonly #onNews: () => void;

  /** `onNews`: called while the log has events that were not told. */
  constructor(storage: DurableObjectStorage, env: () => Env, onNews: () => void) {
    this.#storage = storage;
    this.#env = env;
    this.#onNews = onNews;
  }

  get schedule(): Schedule {
    return this.#schedule;
  }

  /** Begins with what the tables say, if there are any; `alarmAt` is the alarm that is set, Unix ms. */
  start(alarmAt: number | null): void {
    this.#schedule = new Schedule(alarmAt);
    this.#recover();
  }

  /** Whether a wallet is there and cannot be read. */
  get isLost(): boolean {
    return this.#memory === "lost";
  }

  /** The tables are gone: as if no wallet was ever made. */
  forget(): void {
    this.#memory = "unmade";
    this.#schedule = new Schedule(null);
  }

  /**
   * One decision in one turn, its alarm set with it. `storage_unavailable` while no wallet was made or
   * its tables cannot be read.
   */
  decide<T>(decision: (desk: Tx) => Result<T>): Result<T> {
    return this.turn((desk) => {
      const answer = decision(desk);
      this.noteNews(this.open());
      return answer;
    });
  }

  /** After a decision: sets the alarm, and has what it told sent on. */
  noteNews(desk: Tx): void {
    this.#schedule.arm(desk);
    if (desk.memory.isUntold) this.#onNews();
  }

  /** A decision that leaves the alarm to its caller. */
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
      this.#recover(); // a throw may have left the memory ahead of the tables
      throw error;
    }
  }

  /** Nothing more fits: whether rows could go. The alarm comes for more of them. */
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

  /** The desk as it is now; null while no wallet was made, or when its tables cannot be read. */
  tryOpen(): Tx | null {
    try {
      return this.openIfMade();
    } catch (error) {
      logAlert("wallet_unreadable", { reason: reasonOf(error) });
      return null;
    }
  }

  /** The desk as it is now; null while no wallet was made. Throws when its tables cannot be read. */
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

  /** The clock jumped back: the wallet's time follows it, in the tables first. */
  #stepBack(before: Memory, clockMs: number): Tx {
    this.#memory = "lost"; // until all of it is known again
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
   * Derives the memory from the tables, and sets the alarm for what is due by them. Throws when they cannot
   * be read, also when they are too new for this program.
   */
  load(): void {
    this.#memory = "lost"; // until all of it is known
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

/** What a wallet that was never made, or cannot be read, answers to everything. */
export function unavailable(): Refusal {
  return refuse({ kind: "storage_unavailable" });
}

const DELAY_MIN_MS = 5_000;
const DELAY_MAX_MS = 60_000;
/** Between two publishes of a wallet where only requests came, QUIET_MS where those were few. */
const BUSY_MS = 90_000;
/** So many holds and charges since the last publish are few. */
const QUIET_MAX = 128;
/** An alarm this long overdue was lost, not merely about to run. */
const STALE_MS = 60_000;
/** A turn reads its clock and later the platform's: what is due at one moment may seem so far apart. */
const READINGS_MS = 5;

/** When the wallet wakes up next; all of it can be lost and is then worked out again. */
class Schedule {
  #publishAt: number | null = null;
  #isPublishing = false;
  #publishedAt = -Infinity;
  #delayMs = DELAY_MIN_MS;
  #retainAt: number | null = null;
  /** The alarm that is known to be set, on the platform's own clock. */
  #alarmAt: number | null;

  constructor(alarmAt: number | null) {
    this.#alarmAt = alarmAt;
  }

  /** Works out retention's due time again; the other two follow the memory. */
  refresh(desk: Tx): void {
    this.#retainAt = retentionDue(desk);
  }

  /** After a start: when the last publish before it was. */
  publishedBefore(atMs: number): void {
    this.#publishedAt = Math.max(this.#publishedAt, atMs);
  }

  /** There is more to remove: the alarm comes at once. */
  retainSoon(desk: Tx): void {
    this.#retainAt = desk.nowMs;
  }

  /** Whether rows may be old enough; asked at every alarm, so it also learns of the first row. */
  retainIsDue(desk: Tx): boolean {
    if (isStorageLow(desk) || desk.memory.departed.until <= desk.nowMs) return true;
    this.#retainAt ??= retentionDue(desk);
    return this.#retainAt !== null && this.#retainAt <= desk.nowMs;
  }

  publishIsDue(nowMs: number): boolean {
    return this.#publishAt !== null && this.#publishAt <= nowMs;
  }

  get isPublishing(): boolean {
    return this.#isPublishing;
  }

  /** One publish at a time: until this one has ended, none is due. */
  publishing(): void {
    this.#isPublishing = true;
    this.#publishAt = null;
  }

  /** After a publish, done or failed: the next waits longer while the wallet stays busy. */
  published(nowMs: number): void {
    this.#isPublishing = false;
    this.#publishAt = null;
    this.#publishedAt = nowMs;
    this.#delayMs = Math.min(DELAY_MAX_MS, this.#delayMs * 2);
  }

  /** The clock stepped back: what was due in its future is worked out again. */
  steppedBack(desk: Tx): void {
    this.#publishAt = null;
    this.#publishedAt = -Infinity;
    this.refresh(desk);
  }

  alarmRan(): void {
    this.#alarmAt = null;
  }

  /** When what the book lacks by now is to be there: soon, unless it is little and of the daily round. */
  #publishDue({ memory, nowMs }: Tx): number {
    if (!memory.changed) {
      const pause = memory.routine <= QUIET_MAX ? QUIET_MS : BUSY_MS;
      return Math.max(nowMs + DELAY_MIN_MS, this.#publishedAt + pause);
    }
    if (nowMs - this.#publishedAt > DELAY_MAX_MS) this.#delayMs = DELAY_MIN_MS;
    return nowMs + this.#delayMs;
  }

  /** Sets the alarm when something is due before it; in the turn that decided, so committed with it. */
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
 * Brings the tables to a clock that lags the wallet's time by more than a jitter: `desk.nowMs` is that
 * clock, `desk.memory.clock` the time before. What still counts counts from now on: open holds keep
 * their time to live, the last minute's admissions were made now, as was the use of Idempotency-Keys.
 * What holds spend stays in the period it was admitted in. The memory is stale after it.
 */
function followClock(desk: Tx): void {
  const { memory, nowMs, sql, storage } = desk;
  logAlert("clock_stepped_back", { org_id: memory.row.orgId, lag_ms: memory.clock - nowMs });
  // Newer than any row's time: a start does not take the time of rows before it for the wallet's.
  takeCheckpoint(desk);
  // No hold admitted later was minted before: ids are dated by the clock as it is.
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
    // Unpaid rows minted from now on would lie below what counts as swept.
    if (sweptId > floorId) updateWalletRow(sql, { ...memory.row, sweptId: floorId });
  });
}
