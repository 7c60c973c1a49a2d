import { assert } from "../../shared/assert.ts";
import { usedKeyRecordFromRow, recordKeyUsesStatement } from "../../shared/key-uses.store.ts";
import type { KeyUse, UsedKeyRecord, UsedKeyRow } from "../../shared/key-uses.store.ts";
import { parseStoredJson } from "../../shared/stored-json.ts";
import { PUBLISHED_SETTINGS_COLUMNS } from "./stored-settings.ts";

/** Identity, revision and balance of a snapshot in D1. */
export type SnapshotHead = {
  readonly epoch: string;
  /** The last published revision. */
  readonly seq: number;
  readonly creditsMicro: number;
};

export type WalletSnapshotRow = Readonly<Record<string, string | number | null>>;

/** Data to publish to D1. Amounts are totals, not changes. `revision` only increases. */
export type Publication = {
  readonly orgId: string;
  readonly epoch: string;
  readonly revision: number;
  /**
   * The minimum revision that D1 must have, because this publish has only later changes. 0 if the
   * publish has everything.
   */
  readonly base: number;
  readonly creditsMicro: number;
  readonly updatedAt: number;
  readonly pages: Iterable<SnapshotPage>;
  /** Lowest alert ID to keep in D1, or null for all. */
  readonly alertsFrom: string | null;
  /** Whether the pages include all end users and budgets. If so, D1 deletes the others. */
  readonly everything: boolean;
  readonly isUse: boolean;
  readonly uses: readonly (readonly KeyUse[])[];
};

export type PublishResult = {
  /** `moved` if D1 accepted the snapshot, otherwise the head of the snapshot in D1. */
  readonly head: SnapshotHead | null | "moved";
  readonly touched: readonly UsedKeyRecord[];
  readonly eventsWait: boolean;
};

/** A page of rows to publish. Strings in D1 and SQLite can't exceed 2 MB. */
export type SnapshotPage = {
  readonly table: keyof typeof TABLES | keyof typeof REMOVAL_TABLES;
  readonly rows: readonly WalletSnapshotRow[];
};

/** Maximum rows of a page, to keep its JSON below 800 KB. */
export const SNAPSHOT_PAGE_ROWS_MAX = 500;
const BATCH_STATEMENTS = 8;

/** The published tables. Rows of an appended table never change. */
const TABLES = {
  end_users: {
    key: "id",
    columns: [
      "external_id",
      "monthly_quota_micro",
      "daily_quota_micro",
      "alert_threshold",
      "month",
      "monthly_spend_micro",
      "day",
      "daily_spend_micro",
      "created_at",
    ],
  },
  settings: { key: null, columns: PUBLISHED_SETTINGS_COLUMNS },
  payments: {
    key: "id",
    columns: ["purchase_id", "credited_micro", "back_micro", "reading"],
  },
  debts: { key: null, columns: ["owed_micro", "taken_micro", "forgiven_micro", "forgiven_by"] },
  rules: { key: "name", columns: ["rule"] },
  daily_usage: {
    key: "day",
    columns: ["requests", "prompt_tokens", "completion_tokens", "cost_micro"],
  },
  key_spend: {
    key: "key_id",
    columns: [
      "day",
      "daily_spend_micro",
      "week",
      "weekly_spend_micro",
      "month",
      "monthly_spend_micro",
      "total_spend_micro",
    ],
  },
  budgets: {
    key: "name",
    columns: ["scope", "subject", "id", "place", "budget", "since", "tally"],
  },
  alerts: {
    key: "id",
    columns: [
      "kind",
      "external_id",
      "period",
      "threshold",
      "limit_micro",
      "value_micro",
      "created_at",
    ],
    isAppended: true,
  },
  credits: {
    key: "reference",
    columns: ["amount_micro", "balance_micro", "held_micro", "open_holds", "created_at"],
    isAppended: true,
  },
} as const;

const REMOVAL_TABLES = {
  deleted_end_users: ["end_users", "id"],
  removed_budgets: ["budgets", "name"],
  removed_rules: ["rules", "name"],
} as const;
const isRemoval = (table: string): table is keyof typeof REMOVAL_TABLES => table in REMOVAL_TABLES;

/** SQL condition: D1 still has the revision that this publish wrote. */
const IS_CURRENT_SQL =
  "EXISTS (SELECT 1 FROM balances WHERE org_id = ?1 AND epoch = ?3 AND balances.seq = ?4)";

export async function readWalletSnapshotHead(
  db: D1Database,
  orgId: string,
): Promise<SnapshotHead | null> {
  return createSnapshotHeadStatement(db, orgId).first<SnapshotHead>();
}

/**
 * Publishes a wallet's state to D1. The first batch sets the revision if D1 has an older one of the
 * same epoch. Later batches change nothing unless D1 still has that revision. Throws if D1 fails.
 */
export async function writePublication(
  db: D1Database,
  publication: Publication,
): Promise<PublishResult> {
  const { pages, everything, alertsFrom, uses } = publication;
  let batch = [
    balanceStatement(db, publication),
    ...uses.map((page) => recordKeyUsesStatement(db, page)),
    ...(publication.isUse ? [organizationUseStatement(db, publication)] : []),
  ];
  let first: D1Result<PublishRow>[] | null = null;
  const send = async (): Promise<void> => {
    const results = await db.batch<PublishRow>(batch);
    first ??= results;
    batch = [];
  };
  for (const page of pages) {
    if (batch.length >= BATCH_STATEMENTS) {
      await send();
    }
    batch.push(pageStatement(db, publication, page));
  }
  if (alertsFrom !== null) {
    const { orgId, epoch, revision } = publication;
    batch.push(
      db
        .prepare(`DELETE FROM alerts WHERE org_id = ?1 AND id < ?2 AND ${IS_CURRENT_SQL}`)
        .bind(orgId, alertsFrom, epoch, revision),
    );
  }
  if (everything) batch.push(...leftoverStatements(db, publication));
  if (batch.length > 0) await send();
  return readPublishResult(db, publication, first ?? []);
}

/**
 * A result row of a batch. The first statement reports whether events wait. The others report used
 * keys.
 */
type PublishRow = UsedKeyRow & { readonly events_wait?: number };

async function readPublishResult(
  db: D1Database,
  { orgId, epoch, base, revision, uses }: Publication,
  [balance, ...others]: readonly D1Result<PublishRow>[],
): Promise<PublishResult> {
  const rows = others.slice(0, uses.length).flatMap(({ results }) => results);
  const [moved] = balance?.results ?? [];
  const eventsWait = moved === undefined || moved.events_wait === 1;
  const reported = { touched: rows.map(usedKeyRecordFromRow), eventsWait };
  if (moved !== undefined) return { ...reported, head: "moved" };
  const head = await readWalletSnapshotHead(db, orgId);
  // If this assertion fails, another publish wrote to D1 in between.
  assert(
    head === null || head.epoch !== epoch || head.seq < base || head.seq >= revision,
    "D1 didn't change while the snapshot was written",
  );
  return { ...reported, head };
}

export type PagedSnapshotTable = Exclude<keyof typeof TABLES, "settings" | "debts">;
const isPaged = (name: string): name is PagedSnapshotTable =>
  name !== "settings" && name !== "debts";
export const PAGED_SNAPSHOT_TABLES: readonly PagedSnapshotTable[] =
  Object.keys(TABLES).filter(isPaged);

export async function* readSnapshotPages(
  db: D1Database,
  orgId: string,
  table: PagedSnapshotTable,
): AsyncGenerator<readonly WalletSnapshotRow[]> {
  const { key } = TABLES[table];
  const next = db.prepare(
    `SELECT * FROM ${table} WHERE org_id = ? AND ${key} > ? ORDER BY ${key} LIMIT ${SNAPSHOT_PAGE_ROWS_MAX}`,
  );
  for (let after = ""; ;) {
    const { results } = await next.bind(orgId, after).all<WalletSnapshotRow>();
    if (results.length > 0) yield results;
    if (results.length < SNAPSHOT_PAGE_ROWS_MAX) return;
    after = String(results.at(-1)?.[key]);
  }
}

/** Deletes D1 rows of a wallet whose organization wasn't created. */
export async function deleteUnusedWalletRows(
  db: D1Database,
  orgId: string,
  epoch: string,
): Promise<void> {
  await db.batch([
    db
      .prepare(
        `DELETE FROM settings WHERE org_id = ?1
          AND EXISTS (SELECT 1 FROM balances WHERE org_id = ?1 AND epoch = ?2)`,
      )
      .bind(orgId, epoch),
    db.prepare("DELETE FROM balances WHERE org_id = ? AND epoch = ?").bind(orgId, epoch),
  ]);
}

export function createSnapshotHeadStatement(db: D1Database, orgId: string): D1PreparedStatement {
  return db
    .prepare("SELECT epoch, seq, credits_micro AS creditsMicro FROM balances WHERE org_id = ?")
    .bind(orgId);
}

/** Updates D1's balance, unless it is newer, older than `base`, or of another epoch. */
function balanceStatement(db: D1Database, publication: Publication): D1PreparedStatement {
  const { orgId, epoch, revision, base, creditsMicro, updatedAt } = publication;
  return db
    .prepare(
      `INSERT INTO balances (org_id, epoch, seq, credits_micro, updated_at)
      SELECT ?1, ?2, ?3, ?4, ?5 WHERE ?6 = 0
        OR EXISTS (SELECT 1 FROM balances WHERE org_id = ?1 AND balances.seq >= ?6)
      ON CONFLICT (org_id) DO UPDATE SET seq = excluded.seq,
        credits_micro = excluded.credits_micro, updated_at = excluded.updated_at
      WHERE epoch = excluded.epoch AND seq < excluded.seq
      RETURNING EXISTS (SELECT 1 FROM events WHERE events.org_id = ?1) AS events_wait`,
    )
    .bind(orgId, epoch, revision, creditsMicro, updatedAt, base);
}

function organizationUseStatement(db: D1Database, publication: Publication): D1PreparedStatement {
  return db
    .prepare("UPDATE organizations SET used_at = ?2 WHERE id = ?1 AND used_at < ?2")
    .bind(publication.orgId, publication.updatedAt);
}

function pageStatement(
  db: D1Database,
  { orgId, epoch, revision }: Publication,
  { table, rows }: SnapshotPage,
): D1PreparedStatement {
  return db.prepare(pageSql(table)).bind(orgId, JSON.stringify(rows), epoch, revision);
}

function pageSql(table: SnapshotPage["table"]): string {
  if (!isRemoval(table)) return insertSql(table);
  const [from, name] = REMOVAL_TABLES[table];
  return `DELETE FROM ${from} WHERE org_id = ?1
    AND ${name} IN (SELECT value ->> '${name}' FROM json_each(?2)) AND ${IS_CURRENT_SQL}`;
}

function leftoverStatements(
  db: D1Database,
  { orgId, epoch, revision }: Publication,
): D1PreparedStatement[] {
  return ["end_users", "budgets"].map((table) =>
    db
      .prepare(
        `DELETE FROM ${table} WHERE org_id = ?1 AND seq < ?4 AND ?2 IS NOT NULL AND ${IS_CURRENT_SQL}`,
      )
      .bind(orgId, 0, epoch, revision),
  );
}

function insertSql(table: keyof typeof TABLES): string {
  const { key, columns, ...how } = TABLES[table];
  const keys = key === null ? [] : [key];
  const names = [...keys, ...columns];
  const isAppended = "isAppended" in how;
  const changes = [...columns, "seq"].map((name) => `${name} = excluded.${name}`).join(", ");
  return `INSERT INTO ${table} (org_id, ${names.join(", ")}${isAppended ? "" : ", seq"})
    SELECT ?1, ${names.map((name) => `value ->> '${name}'`).join(", ")}${isAppended ? "" : ", ?4"}
    FROM json_each(?2) WHERE ${IS_CURRENT_SQL} ON CONFLICT (${["org_id", ...keys].join(", ")})
    DO ${isAppended ? "NOTHING" : `UPDATE SET ${changes} WHERE ${table}.seq < excluded.seq`}`;
}

/**
 * Reports whether D1's snapshot belongs to this wallet: same epoch, not newer. During a conflict,
 * compares with the revision before the conflict.
 */
export function isOwnSnapshot(
  row: { readonly epoch: string; readonly revision: number; readonly conflict: string | null },
  head: SnapshotHead,
): boolean {
  const compared =
    row.conflict === null ? row : parseStoredJson<{ revision: number }>(row.conflict);
  return head.epoch === row.epoch && head.seq <= compared.revision;
}
