import { micros } from "../../shared/money.ts";
import type { Micros } from "../../shared/money.ts";
import type { Debts } from "./rules/debts.ts";
import { microsOrNull } from "./rules/quota.ts";
import type { AutoTopUp } from "../../shared/contracts/payments.ts";
import type { Settings } from "../../shared/contracts/settings.ts";
import type { Configuration } from "../../shared/contracts/wallet.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import { parseHead, headStatement } from "./snapshot.store.ts";
import type { SnapshotHead, HeadRow } from "./snapshot.store.ts";

/** The published state of a wallet, without the tables that are read in pages. */
export type WalletSnapshot = {
  readonly head: SnapshotHead;
  readonly settings: Settings | null;
  readonly debts: PublishedDebts | null;
  /** Settings of the operator, which are only in D1. */
  readonly configuration: Configuration | null;
};

export async function readSnapshot(db: D1Database, orgId: string): Promise<WalletSnapshot | null> {
  const [head, operators, settings, debts] = await runBatch<
    [HeadRow, StoredConfiguration, StoredSettings, StoredDebts]
  >(db, [
    headStatement(db, orgId),
    db
      .prepare(
        `SELECT rpm_limit, price_list, status,
           EXISTS (SELECT 1 FROM closed_organizations WHERE org_id = id) AS closed
         FROM organizations WHERE id = ?`,
      )
      .bind(orgId),
    db.prepare("SELECT * FROM settings WHERE org_id = ?").bind(orgId),
    db.prepare("SELECT * FROM debts WHERE org_id = ?").bind(orgId),
  ]);
  const found = head === undefined ? null : parseHead(head);
  if (found === null) return null;
  return {
    head: found,
    settings: settingsOf(settings?.results[0]),
    debts: debtsOf(debts?.results[0]),
    configuration: configurationOf(operators?.results[0]),
  };
}

function runBatch<Rows extends readonly unknown[]>(
  db: D1Database,
  statements: { readonly [At in keyof Rows]: D1PreparedStatement },
) {
  return db.batch([...statements]) as Promise<{ [At in keyof Rows]: D1Result<Rows[At]> }>;
}

type StoredSettings = {
  readonly default_user_monthly_quota_micro: number | null;
  readonly default_user_daily_quota_micro: number | null;
  readonly default_alert_threshold: number;
  readonly low_balance_threshold_micro: number | null;
  readonly keep_responses_hours: number | null;
  readonly auto_top_up: string | null;
  readonly tag_keys: string | null;
};
type StoredDebts = {
  readonly owed_micro: number;
  readonly taken_micro: number;
  readonly forgiven_micro: number;
  readonly forgiven_by: string;
};
type StoredConfiguration = {
  readonly rpm_limit: number | null;
  readonly price_list: string | null;
  readonly status: string;
  readonly closed: 0 | 1;
};

function settingsOf(row: StoredSettings | undefined): Settings | null {
  if (row === undefined) return null;
  return {
    monthlyQuota: microsOrNull(row.default_user_monthly_quota_micro),
    dailyQuota: microsOrNull(row.default_user_daily_quota_micro),
    alertThreshold: row.default_alert_threshold,
    lowBalance: microsOrNull(row.low_balance_threshold_micro),
    keepHours: row.keep_responses_hours ?? 0,
    autoTopUp: parseStoredJson<AutoTopUp | null>(row.auto_top_up ?? "null"),
    tagKeys: parseStoredJson<readonly string[]>(row.tag_keys ?? "[]"),
  };
}

type PublishedDebts = Debts & { readonly forgivenBy: Readonly<Record<string, Micros>> };

function debtsOf(row: StoredDebts | undefined): PublishedDebts | null {
  if (row === undefined) return null;
  return {
    owed: micros(row.owed_micro),
    taken: micros(row.taken_micro),
    forgiven: micros(row.forgiven_micro),
    forgivenBy: parseStoredJson<PublishedDebts["forgivenBy"]>(row.forgiven_by),
  };
}

function configurationOf(row: StoredConfiguration | undefined): Configuration | null {
  if (row === undefined) return null;
  const { rpm_limit: rpmLimit, price_list: priceList, status, closed } = row;
  return { rpmLimit, suspended: status === "suspended", closed: closed === 1, priceList };
}
