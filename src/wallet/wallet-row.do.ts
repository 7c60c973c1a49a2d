import type { Micros } from "../lib/money.ts";
import { microsOrNull } from "./quota.ts";

/** What the wallet says of itself, its organisation's settings included. */
export type WalletRow = {
  readonly orgId: string;
  readonly epoch: string;
  /** Number of the newest publish; a change made now is carried by the next one. */
  readonly revision: number;
  readonly acknowledged: number;
  /** The book is known to lack rows: publish everything. */
  readonly publishAll: boolean;
  /** Why the book is not this wallet's; holds are refused until it is repaired. */
  readonly conflict: string | null;
  readonly rpmLimit: number | null;
  readonly suspended: boolean;
  /** Low-balance alerts raised up to this ledger row are history. */
  readonly rearmedSeq: number;
  readonly sweptId: string;
  readonly settings: Settings;
};

export type Settings = {
  readonly monthlyQuota: Micros | null;
  readonly dailyQuota: Micros | null;
  readonly alertThreshold: number;
  readonly lowBalance: Micros | null;
};

export const DEFAULT_SETTINGS: Settings = {
  monthlyQuota: null,
  dailyQuota: null,
  alertThreshold: 0.8,
  lowBalance: null,
};

type Row = {
  org_id: string;
  epoch: string;
  revision: number;
  acknowledged: number;
  publish_all: number;
  conflict: string | null;
  rpm_limit: number | null;
  suspended: number;
  rearmed_seq: number;
  swept_id: string;
  monthly_quota: number | null;
  daily_quota: number | null;
  alert_threshold: number;
  low_balance: number | null;
};

export function readWalletRow(sql: SqlStorage): WalletRow {
  const row = sql.exec<Row>("SELECT * FROM wallet JOIN settings USING (id) WHERE id = 1").one();
  return {
    orgId: row.org_id,
    epoch: row.epoch,
    revision: row.revision,
    acknowledged: row.acknowledged,
    publishAll: row.publish_all === 1,
    conflict: row.conflict,
    rpmLimit: row.rpm_limit,
    suspended: row.suspended === 1,
    rearmedSeq: row.rearmed_seq,
    sweptId: row.swept_id,
    settings: {
      monthlyQuota: microsOrNull(row.monthly_quota),
      dailyQuota: microsOrNull(row.daily_quota),
      alertThreshold: row.alert_threshold,
      lowBalance: microsOrNull(row.low_balance),
    },
  };
}

/** Stores everything of the row that can change, except the settings. */
export function updateWalletRow(sql: SqlStorage, row: WalletRow): void {
  sql.exec(
    `UPDATE wallet SET epoch = ?, revision = ?, acknowledged = ?, publish_all = ?, conflict = ?,
      rpm_limit = ?, suspended = ?, rearmed_seq = ?, swept_id = ? WHERE id = 1`,
    row.epoch,
    row.revision,
    row.acknowledged,
    row.publishAll ? 1 : 0,
    row.conflict,
    row.rpmLimit,
    row.suspended ? 1 : 0,
    row.rearmedSeq,
    row.sweptId,
  );
}

export function updateSettings(sql: SqlStorage, settings: Settings, changed: number): void {
  sql.exec(
    `UPDATE settings SET monthly_quota = ?, daily_quota = ?, alert_threshold = ?, low_balance = ?,
      changed = ? WHERE id = 1`,
    settings.monthlyQuota,
    settings.dailyQuota,
    settings.alertThreshold,
    settings.lowBalance,
    changed,
  );
}
