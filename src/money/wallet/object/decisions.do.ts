import { assert } from "../../../shared/assert.ts";
import { now } from "../../../shared/clock.ts";
import { refuse } from "../../../shared/failure.ts";
import type { Refusal, Result } from "../../../shared/failure.ts";
import { logAlert, errorMessageOf } from "../../../shared/log.ts";
import { CLOCK_LAG_MAX_MS } from "../../../shared/rate-window.ts";
import { migrateExistingTables } from "../../../shared/tables.do.ts";
import { rateWindowStartMs } from "../rules/hold-guards.ts";
import { lowestHoldIdSince } from "../rules/hold-ids.ts";
import { periodOf } from "../../../shared/period.ts";
import { clampIdempotencyKeyTimes } from "../tables/request-rows.do.ts";
import { updateWalletRow, readNewestCheckpoint } from "../tables/wallet-row.do.ts";
import { WALLET_TABLES } from "../tables/wallet-schema.do.ts";
import { isUnpublished, loadWalletMemory, QUIET_PUBLISH_INTERVAL_MS } from "./memory.do.ts";
import type { Tx, WalletMemory } from "./memory.do.ts";
import { moveFutureBucketsToNow } from "./budgets.do.ts";
import { isChargeFoldDue } from "./charges.do.ts";
import { takeCheckpoint } from "./checkpoint.do.ts";
import { endDuePauses } from "./pauses.do.ts";
import { collectDebtsAndTopUp, hasDebtsOrAutoTopUp } from "./payments.do.ts";
import { expireDueHolds } from "./postings.do.ts";
import { nextTopUpCheckAt } from "./top-up.do.ts";
import {
  isStorageFullError,
  freeStorageNow,
  nextRetentionAt,
  isStorageLow,
} from "./retention.do.ts";

/**
 * Runs a decision on the wallet's memory and tables, after ending expired holds and pauses. Its
 * writes commit together, because decisions don't `await`. An exception undoes only writes in
 * `transactionSync`. If storage is full, cleans up and retries.
 */
export class Decisions {
  /** `lost`: a read failed, so the next call reads the tables again. */
  #memory: WalletMemory | "unmade" | "lost" = "unmade";
  #schedule = new Schedule(null);
  readonly #storage: DurableObjectStorage;
  readonly #env: () => Env;

  readonly #onUndelivered: () => void;

  constructor(storage: DurableObjectStorage, env: () => Env, onUndelivered: () => void) {
    this.#storage = storage;
    this.#env = env;
    this.#onUndelivered = onUndelivered;
  }

  get schedule(): Schedule {
    return this.#schedule;
  }

  start(alarmAt: number | null): void {
    this.#schedule = new Schedule(alarmAt);
    this.#recover();
  }

  get isLost(): boolean {
    return this.#memory === "lost";
  }

  reset(): void {
    this.#memory = "unmade";
    this.#schedule = new Schedule(null);
  }

  decide<T, Args extends readonly unknown[]>(
    decision: (tx: Tx, ...args: Args) => Result<T>,
    ...args: Args
  ): Result<T> {
    return this.decideSilently((tx) => {
      const answer = decision(tx, ...args);
      this.scheduleFollowUp(this.open());
      return answer;
    });
  }

  scheduleFollowUp(tx: Tx): void {
    this.#schedule.arm(tx);
    if (tx.memory.hasUndelivered) this.#onUndelivered();
  }

  /** Like `decide`, without the alarm and webhooks. */
  decideSilently<T>(decision: (tx: Tx) => Result<T>): Result<T> {
    if (this.tryOpen() === null) return refuseStorageUnavailable();
    try {
      return this.#attempt(decision);
    } catch (error) {
      if (!isStorageFullError(error) || !this.#freeStorage()) throw error;
      return this.#attempt(decision);
    }
  }

  #attempt<T>(decision: (tx: Tx) => Result<T>): Result<T> {
    const tx = this.open();
    try {
      expireDueHolds(tx);
      endDuePauses(tx);
      const answer = decision(tx);
      if (hasDebtsOrAutoTopUp(tx)) collectDebtsAndTopUp(this.open());
      return answer;
    } catch (error) {
      this.#recover(); // after an exception, memory may differ from the tables
      throw error;
    }
  }

  #freeStorage(): boolean {
    const tx = this.tryOpen();
    if (tx === null) return false;
    logAlert("wallet_full", { org_id: tx.memory.row.orgId, bytes: tx.sql.databaseSize });
    try {
      this.#schedule.scheduleRetentionNow(tx);
      return freeStorageNow(tx);
    } catch (error) {
      this.#recover();
      logAlert("wallet_full", { org_id: tx.memory.row.orgId, reason: errorMessageOf(error) });
      return false;
    }
  }

  tryOpen(): Tx | null {
    try {
      return this.openIfCreated();
    } catch (error) {
      logAlert("wallet_unreadable", { reason: errorMessageOf(error) });
      return null;
    }
  }

  /**
   * Returns the wallet, or null if the organization has none yet. Throws if the wallet can't be
   * read.
   */
  openIfCreated(): Tx | null {
    if (this.#memory === "lost") this.load();
    return this.#memory === "unmade" ? null : this.open();
  }

  open(): Tx {
    const memory = this.#memory;
    assert(memory !== "unmade" && memory !== "lost", "the wallet is made and was read");
    const clockMs = now(this.#env());
    if (memory.clock - clockMs > CLOCK_LAG_MAX_MS) return this.#followClockBack(memory, clockMs);
    memory.clock = Math.max(memory.clock, clockMs);
    memory.newest = Math.max(memory.newest, memory.clock);
    return this.#transactionAt(memory, clockMs);
  }

  #followClockBack(before: WalletMemory, clockMs: number): Tx {
    this.#memory = "lost"; // memory is invalid until all tables are read again
    adaptToClock({ ...this.#transactionAt(before, clockMs), nowMs: clockMs });
    const memory = loadWalletMemory(this.#storage.sql);
    this.#memory = memory;
    memory.newest = Math.max(memory.newest, before.newest);
    const tx = this.#transactionAt(memory, clockMs);
    this.#schedule.resetAfterClockChange(tx);
    return tx;
  }

  #transactionAt(memory: WalletMemory, clockMs: number): Tx {
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

  load(): void {
    this.#memory = "lost";
    if (!migrateExistingTables(this.#storage, WALLET_TABLES)) return this.reset();
    this.#memory = loadWalletMemory(this.#storage.sql);
    const tx = this.open();
    this.#schedule.refreshRetention(tx);
    this.#schedule.notePublishTime(readNewestCheckpoint(tx.sql).clock);
    this.#schedule.arm(tx);
  }

  #recover(): void {
    try {
      this.load();
    } catch (error) {
      this.#memory = "lost";
      logAlert("wallet_unreadable", { reason: errorMessageOf(error) });
    }
  }
}

export function refuseStorageUnavailable(): Refusal {
  return refuse({ kind: "storage_unavailable" });
}

const DELAY_MIN_MS = 5_000;
const DELAY_MAX_MS = 60_000;
const BUSY_PUBLISH_MS = 90_000;
const QUIET_CHANGES_MAX = 128;
const STALE_MS = 60_000;
const ALARM_TOLERANCE_MS = 5;

class Schedule {
  #publishAt: number | null = null;
  #isPublishing = false;
  #publishedAt = -Infinity;
  #delayMs = DELAY_MIN_MS;
  #retainAt: number | null = null;
  /** The alarm's time by the platform's clock, not the wallet's. */
  #alarmAt: number | null;

  constructor(alarmAt: number | null) {
    this.#alarmAt = alarmAt;
  }

  refreshRetention(tx: Tx): void {
    this.#retainAt = nextRetentionAt(tx);
  }

  notePublishTime(atMs: number): void {
    this.#publishedAt = Math.max(this.#publishedAt, atMs);
  }

  scheduleRetentionNow(tx: Tx): void {
    this.#retainAt = tx.nowMs;
  }

  endRetention(tx: Tx, hasMore: boolean): void {
    if (hasMore) this.scheduleRetentionNow(tx);
    else this.refreshRetention(tx);
  }

  isRetentionDue(tx: Tx): boolean {
    if (isStorageLow(tx) || tx.memory.deletedEndUsers.until <= tx.nowMs) return true;
    if (isChargeFoldDue(tx)) return true;
    this.#retainAt ??= nextRetentionAt(tx);
    return this.#retainAt !== null && this.#retainAt <= tx.nowMs;
  }

  isPublishDue(nowMs: number): boolean {
    return this.#publishAt !== null && this.#publishAt <= nowMs;
  }

  get isPublishing(): boolean {
    return this.#isPublishing;
  }

  startPublish(): void {
    this.#isPublishing = true;
    this.#publishAt = null;
  }

  endPublish(nowMs: number): void {
    this.#isPublishing = false;
    this.#publishAt = null;
    this.#publishedAt = nowMs;
    this.#delayMs = Math.min(DELAY_MAX_MS, this.#delayMs * 2);
  }

  resetAfterClockChange(tx: Tx): void {
    this.#publishAt = null;
    this.#publishedAt = -Infinity;
    this.refreshRetention(tx);
  }

  clearAlarm(): void {
    this.#alarmAt = null;
  }

  /**
   * Returns the next publish time (Unix ms). If only holds and charges changed, it can be later.
   */
  #publishDue({ memory, nowMs }: Tx): number {
    if (!memory.hasChanges) {
      const pause =
        memory.routine <= QUIET_CHANGES_MAX ? QUIET_PUBLISH_INTERVAL_MS : BUSY_PUBLISH_MS;
      return Math.max(nowMs + DELAY_MIN_MS, this.#publishedAt + pause);
    }
    if (nowMs - this.#publishedAt > DELAY_MAX_MS) this.#delayMs = DELAY_MIN_MS;
    return nowMs + this.#delayMs;
  }

  arm(tx: Tx): void {
    const { storage, nowMs } = tx;
    const { memory } = tx;
    if (isUnpublished(memory) && memory.row.conflict === null && !this.#isPublishing) {
      this.#publishAt = Math.min(this.#publishAt ?? Infinity, this.#publishDue(tx));
    }
    const due = Math.min(
      this.#publishAt ?? Infinity,
      memory.ledger.nextExpiry,
      memory.pauses.until,
      this.#retainAt ?? Infinity,
      memory.deletedEndUsers.until,
      memory.dueUses.next,
      nextTopUpCheckAt(memory),
    );
    if (due === Infinity) return;
    const platformMs = now({});
    const at = platformMs + Math.max(0, due - nowMs);
    const isKept =
      this.#alarmAt !== null &&
      this.#alarmAt <= at + ALARM_TOLERANCE_MS &&
      this.#alarmAt > platformMs - STALE_MS;
    if (isKept) return;
    this.#alarmAt = at;
    void storage.setAlarm(at);
  }
}

/**
 * Updates the tables after the clock moved back. Open holds keep their remaining time and period.
 * Admissions from the last minute get the current time. The caller must then reload the wallet's
 * memory.
 */
function adaptToClock(tx: Tx): void {
  const { memory, nowMs, sql, storage } = tx;
  logAlert("clock_stepped_back", { org_id: memory.row.orgId, lag_ms: memory.clock - nowMs });
  // Without this checkpoint, a later start would use an older checkpoint's time.
  moveFutureBucketsToNow(tx);
  takeCheckpoint(tx);
  // IDs contain the platform's time, so newer holds have greater IDs.
  const floorId = lowestHoldIdSince(nowMs - CLOCK_LAG_MAX_MS);
  const { sweptId } = memory.row;
  storage.transactionSync(() => {
    sql.exec(
      `UPDATE requests SET admitted_at = ?1, expires_at = expires_at - (admitted_at - ?1),
        period_day = coalesce(period_day, date(admitted_at / 1000, 'unixepoch'))
      WHERE id >= ?2 AND admitted_at > ?1 AND (seq IS NULL OR admitted_at > ?3)`,
      nowMs,
      floorId,
      rateWindowStartMs(memory.clock),
    );
    clampIdempotencyKeyTimes(sql, nowMs);
    // With a later `sweptId`, the deletion of unpaid requests would skip new IDs.
    if (sweptId > floorId) updateWalletRow(sql, { ...memory.row, sweptId: floorId });
  });
}
