import { microsOrNull } from "../rules/quota.ts";
import type { AutoTopUp } from "../../../shared/contracts/payments.ts";
import type { Settings } from "../../../shared/contracts/settings.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";

export type WalletRow = {
  readonly orgId: string;
  readonly epoch: string;
  /** Time of creation or rebuild (Unix ms). Earlier sessions are invalid. */
  readonly madeAt: number;
  readonly revision: number;
  readonly acknowledged: number;
  readonly creditsSeq: number;
  readonly publishAll: boolean;
  /** The reason why D1 and this wallet disagree. While it is set, the wallet rejects holds. */
  readonly conflict: string | null;
  readonly rpmLimit: number | null;
  readonly suspended: boolean;
  readonly closed: boolean;
  readonly priceList: string | null;
  /** Low-balance alerts up to this ledger row don't suppress new alerts. */
  readonly rearmedSeq: number;
  readonly sweptId: string;
  readonly settings: Settings;
};

type StoredWallet = {
  org_id: string;
  epoch: string;
  created_at: number;
  revision: number;
  acknowledged: number;
  credits_seq: number;
  publish_all: number;
  conflict: string | null;
  rpm_limit: number | null;
  suspended: number;
  closed: number | null;
  price_list: string | null;
  rearmed_seq: number;
  swept_id: string;
  monthly_quota: number | null;
  daily_quota: number | null;
  alert_threshold: number;
  low_balance: number | null;
  keep_hours: number | null;
  auto_top_up: string | null;
  tag_keys: string | null;
};

export function readWalletRow(sql: SqlStorage): WalletRow {
  const row = sql
    .exec<StoredWallet>("SELECT * FROM wallet JOIN settings USING (id) WHERE id = 1")
    .one();
  return {
    orgId: row.org_id,
    epoch: row.epoch,
    madeAt: row.created_at,
    revision: row.revision,
    acknowledged: row.acknowledged,
    creditsSeq: row.credits_seq,
    publishAll: row.publish_all === 1,
    conflict: row.conflict,
    rpmLimit: row.rpm_limit,
    suspended: row.suspended === 1,
    closed: row.closed === 1,
    priceList: row.price_list,
    rearmedSeq: row.rearmed_seq,
    sweptId: row.swept_id,
    settings: {
      monthlyQuota: microsOrNull(row.monthly_quota),
      dailyQuota: microsOrNull(row.daily_quota),
      alertThreshold: row.alert_threshold,
      lowBalance: microsOrNull(row.low_balance),
      keepHours: row.keep_hours ?? 0,
      autoTopUp: row.auto_top_up === null ? null : parseStoredJson<AutoTopUp>(row.auto_top_up),
      tagKeys: parseStoredJson<readonly string[]>(row.tag_keys ?? "[]"),
    },
  };
}

export function updateWalletRow(sql: SqlStorage, row: WalletRow): void {
  sql.exec(
    `UPDATE wallet SET epoch = ?, revision = ?, acknowledged = ?, credits_seq = ?, publish_all = ?,
      conflict = ?, rpm_limit = ?, suspended = ?, closed = ?, price_list = ?, rearmed_seq = ?, swept_id = ? WHERE id = 1`,
    row.epoch,
    row.revision,
    row.acknowledged,
    row.creditsSeq,
    row.publishAll ? 1 : 0,
    row.conflict,
    row.rpmLimit,
    row.suspended ? 1 : 0,
    row.closed ? 1 : 0,
    row.priceList,
    row.rearmedSeq,
    row.sweptId,
  );
}

export function updateSettings(sql: SqlStorage, settings: Settings, changed: number): void {
  sql.exec(
    `UPDATE settings SET monthly_quota = ?, daily_quota = ?, alert_threshold = ?, low_balance = ?,
      keep_hours = ?, auto_top_up = ?, tag_keys = ?, changed = ? WHERE id = 1`,
    settings.monthlyQuota,
    settings.dailyQuota,
    settings.alertThreshold,
    settings.lowBalance,
    settings.keepHours,
    settings.autoTopUp === null ? null : JSON.stringify(settings.autoTopUp),
    JSON.stringify(settings.tagKeys),
    changed,
  );
}
