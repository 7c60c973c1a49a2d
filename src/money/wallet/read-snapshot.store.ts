import type { Micros } from "../../shared/money.ts";
import type { Debts } from "./rules/debts.ts";
import type { SettingsWithoutRestrictions } from "../../shared/contracts/settings.ts";
import type { OperatorSettings } from "../../shared/contracts/wallet.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import { createSnapshotHeadStatement } from "./snapshot.store.ts";
import type { SnapshotHead } from "./snapshot.store.ts";
import { settingsColumnsSql, settingsFromRow } from "./stored-settings.ts";
import type { StoredSettings } from "./stored-settings.ts";

/** The published state of a wallet, without the tables read in pages. */
export type WalletSnapshot = {
  readonly head: SnapshotHead;
  readonly settings: SettingsWithoutRestrictions | null;
  readonly debts: PublishedDebts | null;
  /** The operator's settings, which are only in D1. */
  readonly configuration: OperatorSettings | null;
};

type PublishedDebts = Debts & { readonly forgivenBy: Readonly<Record<string, Micros>> };
type StoredDebts = Debts & { readonly forgivenBy: string };
type StoredConfiguration = Pick<OperatorSettings, "rpmLimit" | "priceList"> & {
  readonly status: string;
  readonly closed: 0 | 1;
};

export async function readSnapshot(db: D1Database, orgId: string): Promise<WalletSnapshot | null> {
  const [heads, configurations, settings, debts] = await runBatch<
    [SnapshotHead, StoredConfiguration, StoredSettings, StoredDebts]
  >(db, [
    createSnapshotHeadStatement(db, orgId),
    db
      .prepare(
        `SELECT rpm_limit AS rpmLimit, price_list AS priceList, status,
           EXISTS (SELECT 1 FROM closed_organizations WHERE org_id = id) AS closed
         FROM organizations WHERE id = ?`,
      )
      .bind(orgId),
    db.prepare(`SELECT ${settingsColumnsSql("d1")} FROM settings WHERE org_id = ?`).bind(orgId),
    db
      .prepare(
        `SELECT owed_micro AS owed, taken_micro AS taken, forgiven_micro AS forgiven,
           forgiven_by AS forgivenBy FROM debts WHERE org_id = ?`,
      )
      .bind(orgId),
  ]);
  const [head] = heads.results;
  if (head === undefined) return null;
  return {
    head,
    settings: settings.results.map(settingsFromRow)[0] ?? null,
    debts: debts.results.map(debtsFromRow)[0] ?? null,
    configuration: configurations.results.map(configurationFromRow)[0] ?? null,
  };
}

function runBatch<Rows extends readonly unknown[]>(
  db: D1Database,
  statements: { readonly [At in keyof Rows]: D1PreparedStatement },
) {
  return db.batch([...statements]) as Promise<{ [At in keyof Rows]: D1Result<Rows[At]> }>;
}

function debtsFromRow({ forgivenBy, ...debts }: StoredDebts): PublishedDebts {
  return { ...debts, forgivenBy: parseStoredJson<PublishedDebts["forgivenBy"]>(forgivenBy) };
}

function configurationFromRow({ status, closed, ...row }: StoredConfiguration): OperatorSettings {
  return { ...row, suspended: status === "suspended", closed: closed === 1 };
}
