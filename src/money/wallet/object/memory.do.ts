import { micros } from "../../../shared/money.ts";
import type { Period } from "../../../shared/period.ts";
import { CLOCK_LAG_MAX_MS } from "../../../shared/rate-window.ts";
import { rateWindowStartMs } from "../rules/hold-guards.ts";
import type { RecentRequestTimes } from "../rules/hold-guards.ts";
import { lowestHoldIdSince } from "../rules/hold-ids.ts";
import type { TokenWindow } from "../rules/token-window.ts";
import type { Debts } from "../rules/debts.ts";
import { createHoldTotals, addOpenHold } from "../rules/open-holds.ts";
import type { HoldTotals } from "../rules/open-holds.ts";
import {
  applyMeterChanges,
  computeMeterChanges,
  createBudgetMemory,
  adjustHeldOfOwners,
} from "./budget-memory.do.ts";
import type { BudgetMemory } from "./budget-memory.do.ts";
import { selectCountedUsage } from "./replayed-rows.do.ts";
import type { TopUpState } from "../rules/top-up.ts";
import { addUsage } from "../rules/usage-totals.ts";
import type { UsageTotalsByGroup } from "../rules/usage-totals.ts";
import { selectDeletedEndUserStats, selectEndUserCount } from "../tables/end-user-rows.do.ts";
import type { DeletedEndUserStats } from "../tables/end-user-rows.do.ts";
import { selectRules } from "../tables/policy-pause-rows.do.ts";
import type { PausesByName } from "../rules/pauses.ts";
import type { PoliciesByOwner } from "../rules/policies.ts";
import { selectDebts, selectTopUp } from "../tables/payment-rows.do.ts";
import { KeyUseChecks, selectTokenWindows, scheduleKeyUseChecks } from "../tables/key-rows.do.ts";
import { selectOpenHolds } from "../tables/request-rows.do.ts";
import type { NameRowNumbers } from "../tables/request-rows.do.ts";
import { selectTagKeys } from "../tables/tag-rows.do.ts";
import type { TagKeys } from "../tables/tag-rows.do.ts";
import { loadRecentSessionRequests, loadSessionMemory } from "../tables/session-rows.do.ts";
import type { SessionMemory } from "../tables/session-rows.do.ts";
import type { WarmRouteState } from "../tables/warm-rows.do.ts";
import {
  selectPublishedSettings,
  readNewestCheckpoint,
  readWalletRow,
  updateWalletRow,
} from "../tables/wallet-row.do.ts";
import type { WalletRow } from "../tables/wallet-row.do.ts";
import type { SettingsWithoutRestrictions } from "../../../shared/contracts/settings.ts";
import { DAY_MS, HOUR_MS } from "../../../shared/clock.ts";
import { numberVar } from "../../../shared/config/config.ts";

/** Ms between publishes of a wallet with few changes. */
export const QUIET_PUBLISH_INTERVAL_MS = 180_000;

/** The wallet's state in memory. After an exception, it is reloaded from the tables. */
export type WalletMemory = {
  row: WalletRow;
  readonly ledger: HoldTotals;
  clock: number;
  /** The latest time seen so far (Unix ms). Determines the period in which spend counts. */
  newest: number;
  /** Lower bound for the request IDs of ledger rows after the newest checkpoint. */
  floorId: string;
  readonly unpublishedUserIds: Set<string>;
  readonly budgets: BudgetMemory;
  readonly tokens: Map<string, TokenWindow>;
  readonly sessions: SessionMemory;
  readonly policies: PoliciesByOwner;
  pauses: PausesByName;
  maxConcurrent: number | null;
  readonly names: NameRowNumbers;
  endUsers: number;
  deletedEndUsers: DeletedEndUserStats;
  readonly usage: UsageTotalsByGroup;
  rateLog: RecentRequestTimes;
  /** Unpublished last-use times (Unix ms) by key hash. */
  readonly uses: Map<string, number>;
  readonly dueUses: KeyUseChecks;
  readonly notedAt: number;
  hasChanges: boolean;
  /** Number of unpublished holds and charges, which are less urgent. */
  routine: number;
  published: PublishedState;
  /** Random ID that changes when ledger rows are deleted or memory is reloaded. */
  ledgerMark: string;
  tagKeys: readonly TagKeys[];
  debts: Debts;
  topUp: TopUpState;
  /** Routes with a warm cache, or null until read. */
  warmRoutes: Map<string, WarmRouteState> | null;
  hasUndelivered: boolean;
  storageState: StorageState;
};

type PublishedState = {
  readonly settings: SettingsWithoutRestrictions | null;
  readonly usedAt: number;
};

type StorageState = {
  isFull: boolean;
  readonly fromId: string;
  /** Earliest time to look for deletable requests again (Unix ms). */
  readonly passAt: number;
};

export function loadWalletMemory(sql: SqlStorage): WalletMemory {
  const row = readWalletRow(sql);
  const checkpoint = readNewestCheckpoint(sql);
  const memory: WalletMemory = {
    row,
    ledger: { ...createHoldTotals(), seq: checkpoint.seq, balance: micros(checkpoint.balance) },
    clock: checkpoint.clock,
    newest: checkpoint.newest,
    floorId: checkpoint.floor_id,
    unpublishedUserIds: new Set(selectChangedEndUserIds(sql, row.acknowledged)),
    budgets: createBudgetMemory(sql),
    tokens: new Map(),
    sessions: loadSessionMemory(sql),
    ...selectRules(sql),
    names: new Map(),
    endUsers: selectEndUserCount(sql),
    deletedEndUsers: selectDeletedEndUserStats(sql),
    usage: new Map(),
    rateLog: [],
    uses: new Map(),
    dueUses: new KeyUseChecks(),
    // If the last publish is unconfirmed, D1 may lack uses of keys.
    notedAt: row.revision > row.acknowledged ? checkpoint.clock - HOUR_MS : checkpoint.clock,
    hasChanges: false,
    routine: 0,
    // The first publish of each hour records the organization's last use.
    published: {
      settings: selectPublishedSettings(sql, row),
      usedAt: checkpoint.clock - (checkpoint.clock % HOUR_MS),
    },
    ledgerMark: crypto.randomUUID(),
    tagKeys: selectTagKeys(sql),
    debts: selectDebts(sql),
    topUp: selectTopUp(sql),
    warmRoutes: null,
    hasUndelivered: false,
    storageState: { isFull: false, fromId: "", passAt: 0 },
  };
  applyLaterRows({ sql, memory }, checkpoint.seq);
  memory.clock = Math.max(memory.clock, newestAdmission(sql, checkpoint.floor_id));
  memory.newest = Math.max(memory.newest, memory.clock);
  for (const hold of selectOpenHolds(sql, checkpoint.floor_id)) {
    addOpenHold(memory.ledger, hold);
    adjustHeldOfOwners({ sql, memory }, hold, 1);
  }
  memory.hasUndelivered = hasUndeliveredEvents(sql);
  memory.routine = memory.ledger.seq - checkpoint.seq;
  memory.hasChanges = memory.hasUndelivered || hasUnpublishedRows(sql, memory);
  memory.rateLog.push(...selectRecentHoldTimes(sql, row.rpmLimit, memory.clock));
  const { notedAt } = memory;
  scheduleKeyUseChecks(sql, memory.dueUses, {
    notedAt,
    dueAt: checkpoint.clock + QUIET_PUBLISH_INTERVAL_MS,
  });
  const windows = selectTokenWindows(sql, memory.clock);
  for (const [keyId, window] of windows) memory.tokens.set(keyId, window);
  loadRecentSessionRequests(sql, memory.sessions, memory.clock);
  return memory;
}

function selectChangedEndUserIds(sql: SqlStorage, acknowledged: number): string[] {
  const rows = sql.exec<{ id: string }>(
    "SELECT id FROM end_users WHERE changed > ? AND departed IS NULL",
    acknowledged,
  );
  return [...rows].map(({ id }) => id);
}

/** Reports whether D1 lacks a change of the wallet. */
export function isUnpublished({ hasChanges: changed, routine, uses }: WalletMemory): boolean {
  return changed || routine > 0 || uses.size > 0;
}

function applyLaterRows(tx: Pick<Tx, "sql" | "memory">, seq: number): void {
  const { sql, memory } = tx;
  const later = sql
    .exec<{ seq: number; charged: number; at: number }>(
      `SELECT seq, CASE WHEN state = 'settled' AND late = 0 THEN charged ELSE 0 END AS charged,
        max(admitted_at, coalesce(settled_at, 0)) AS at
      FROM requests WHERE id >= ?1 AND seq > ?2
      UNION ALL SELECT seq, -amount, created_at FROM entries WHERE seq > ?2`,
      memory.floorId,
      seq,
    )
    .toArray();
  const { ledger } = memory;
  // Subtracts all charges in one step. Otherwise, the balance could be negative in between.
  ledger.balance = micros(ledger.balance - later.reduce((sum, one) => sum + one.charged, 0));
  for (const one of later) {
    ledger.seq = Math.max(ledger.seq, one.seq);
    memory.clock = Math.max(memory.clock, one.at);
  }
  for (const { posted, ...request } of selectCountedUsage(sql, memory, seq)) {
    applyMeterChanges(memory, computeMeterChanges(tx, request));
    if (posted !== null) addUsage(memory.usage, posted);
  }
}

function newestAdmission(sql: SqlStorage, floorId: string): number {
  const { at } = sql
    .exec<{ at: number | null }>(
      "SELECT max(admitted_at) AS at FROM requests WHERE id >= ? AND seq IS NULL",
      floorId,
    )
    .one();
  return at ?? 0;
}

export function selectRecentHoldTimes(
  sql: SqlStorage,
  limit: number | null,
  nowMs: number,
): RecentRequestTimes {
  if (limit === null) return [];
  const floor = rateWindowStartMs(nowMs);
  return sql
    .exec<{ at: number }>(
      `SELECT admitted_at AS at FROM requests
      WHERE id >= ? AND admitted_at > ? AND admitted_at <= ? AND granted IS NOT NULL
      ORDER BY admitted_at`,
      lowestHoldIdSince(floor - CLOCK_LAG_MAX_MS),
      floor,
      nowMs,
    )
    .toArray()
    .map((row) => row.at);
}

function hasUndeliveredEvents(sql: SqlStorage): boolean {
  const found = sql.exec(
    `SELECT 1 FROM events WHERE seq > (SELECT told_seq FROM event_log)
    UNION ALL SELECT 1 FROM events WHERE renamed = 1 LIMIT 1`,
  );
  return found.toArray().length > 0;
}

function hasUnpublishedRows(sql: SqlStorage, memory: WalletMemory): boolean {
  if (memory.unpublishedUserIds.size > 0 || memory.row.publishAll) return true;
  if (memory.row.revision > memory.row.acknowledged) return true;
  const { n } = sql
    .exec<{ n: number }>(
      `SELECT (SELECT count(*) FROM settings WHERE changed > ?1)
        + (SELECT count(*) FROM alerts WHERE changed > ?1)
        + (SELECT count(*) FROM deleted_end_users)
        + (SELECT count(*) FROM payments WHERE changed > ?1)
        + (SELECT count(*) FROM debts WHERE changed > ?1)
        + EXISTS (SELECT 1 FROM budgets WHERE changed > ?1 AND scope <> 'session')
        + (SELECT count(*) FROM rules WHERE changed > ?1)
        + EXISTS (SELECT 1 FROM entries WHERE seq > ?2 AND kind = 'credit') AS n`,
      memory.row.acknowledged,
      memory.row.creditsSeq,
    )
    .one();
  return n > 0;
}

/** The context of one decision, which reads the clock once. */
export type Tx = {
  readonly storage: DurableObjectStorage;
  readonly sql: SqlStorage;
  readonly memory: WalletMemory;
  readonly env: Env;
  /** The wallet's time (Unix ms), which small clock differences don't move back. */
  readonly nowMs: number;
  /** The current day, week and month. They never move back. */
  readonly period: Period;
  readonly clockMs: number;
};

export function recordKeyUse({ uses }: WalletMemory, hash: string, usedAt: number): void {
  uses.set(hash, Math.max(usedAt, uses.get(hash) ?? 0));
}

export function nextPublishRevision(tx: Tx): number {
  return tx.memory.row.revision + 1;
}

/** Updates the wallet's row in the table, then in memory. Never call it within a transaction. */
export function changeWalletRow(tx: Tx, change: Partial<WalletRow>): void {
  const row = { ...tx.memory.row, ...change };
  updateWalletRow(tx.sql, row);
  tx.memory.row = row;
}

/** Returns the time (Unix ms) before which retention deletes requests. */
export function retentionStartMs({ env, nowMs }: Tx): number {
  return nowMs - numberVar(env, "RETENTION_DAYS") * DAY_MS;
}

/** Throws if a newer instance of the wallet has replaced this one. */
export function assertCurrentInstance(tx: Tx): void {
  tx.sql.exec("SELECT id FROM wallet WHERE id = 1").one();
}
