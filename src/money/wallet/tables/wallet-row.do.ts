import type { SettingsWithoutRestrictions } from "../../../shared/contracts/settings.ts";
import { settingsColumnsSql, settingsFromRow, settingsToRow } from "../stored-settings.ts";
import type { StoredSettings } from "../stored-settings.ts";

/** The wallet's identity, publish progress and configuration. */
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
  /** Unpaid requests up to this ID have been deleted. */
  readonly sweptId: string;
  readonly settings: SettingsWithoutRestrictions;
};

type Flags = Record<"publishAll" | "suspended" | "closed", number | null>;

export function readWalletRow(sql: SqlStorage): WalletRow {
  const { publishAll, suspended, closed, ...row } = sql
    .exec<Omit<WalletRow, keyof Flags | "settings"> & Flags>(
      `SELECT org_id AS orgId, epoch, created_at AS madeAt, revision, acknowledged,
        credits_seq AS creditsSeq, publish_all AS publishAll, conflict, rpm_limit AS rpmLimit,
        suspended, closed, price_list AS priceList, rearmed_seq AS rearmedSeq, swept_id AS sweptId
      FROM wallet`,
    )
    .one();
  return {
    ...row,
    publishAll: publishAll === 1,
    suspended: suspended === 1,
    closed: closed === 1,
    settings: settingsFromRow(
      sql.exec<StoredSettings>(`SELECT ${settingsColumnsSql("wallet")} FROM settings`).one(),
    ),
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

export function updateSettings(
  sql: SqlStorage,
  settings: SettingsWithoutRestrictions,
  changed: number,
): void {
  const row = { ...settingsToRow(settings, "wallet"), changed };
  const assignments = Object.keys(row).map((column) => `${column} = ?`);
  sql.exec(`UPDATE settings SET ${assignments.join(", ")} WHERE id = 1`, ...Object.values(row));
}

type Checkpoint = { seq: number; balance: number; clock: number; newest: number; floor_id: string };

export function readNewestCheckpoint(sql: SqlStorage): Checkpoint {
  return sql
    .exec<Checkpoint>(
      "SELECT seq, balance, clock, newest, floor_id FROM checkpoints ORDER BY seq DESC LIMIT 1",
    )
    .one();
}

/** Returns the settings, or null if their last change isn't in D1 yet. */
export function selectPublishedSettings(
  sql: SqlStorage,
  { acknowledged, settings }: WalletRow,
): SettingsWithoutRestrictions | null {
  const { changed } = sql.exec<{ changed: number }>("SELECT changed FROM settings").one();
  return changed <= acknowledged ? settings : null;
}
