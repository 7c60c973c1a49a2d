import type { Configuration } from "./wallet-contract.ts";

/** What the book said of an organisation before a publish; null when it had no row. */
export type BookHead = {
  readonly epoch: string;
  readonly seq: number;
  readonly creditsMicro: number;
};

/** Rows as the book's tables name their columns, without `org_id` and `seq`. */
export type BookRow = Readonly<Record<string, string | number | null>>;

/** One publish: absolute values under a revision that only grows. */
export type Publication = {
  readonly orgId: string;
  readonly epoch: string;
  readonly revision: number;
  /** The publish whose changes and all before are not repeated here; 0 when everything is. */
  readonly base: number;
  readonly creditsMicro: number;
  readonly updatedAt: number;
  readonly settings: BookRow;
  readonly endUsers: readonly BookRow[];
  readonly deletedEndUsers: readonly string[];
  readonly days: readonly BookRow[];
  readonly alerts: readonly BookRow[];
  /** Every end user is among `endUsers`: rows that are not are leftovers and go. */
  readonly everything: boolean;
};

const CHUNK_ROWS = 500;
const BATCH_STATEMENTS = 8;

const TABLES = {
  end_users: {
    key: ["id"],
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
  settings: {
    key: [],
    columns: [
      "default_user_monthly_quota_micro",
      "default_user_daily_quota_micro",
      "default_alert_threshold",
      "low_balance_threshold_micro",
    ],
  },
  daily_usage: {
    key: ["day"],
    columns: ["requests", "prompt_tokens", "completion_tokens", "cost_micro"],
  },
} as const;

const ALERT_COLUMNS = [
  "id",
  "kind",
  "external_id",
  "period",
  "threshold",
  "limit_micro",
  "value_micro",
  "created_at",
];

/** True of the whole batch or of none of it: the book is at this very publish of this very wallet. */
const CURRENT =
  "EXISTS (SELECT 1 FROM balances WHERE org_id = ?1 AND epoch = ?3 AND balances.seq = ?4)";

/** What the book knows of an organisation's wallet. */
export async function readBookHead(db: D1Database, orgId: string): Promise<BookHead | null> {
  return headOf(await headStatement(db, orgId).all<HeadRow>());
}

/**
 * Writes a publication and returns what the book said before it. The first batch moves the book
 * from an older publish of the same epoch; everything else is written only while the book is at
 * this publish, so a late, doubled or reordered batch does nothing. Throws when D1 fails; what was
 * written by then is as if the next publish had written it.
 */
export async function writePublication(
  db: D1Database,
  publication: Publication,
): Promise<BookHead | null> {
  const statements = rowStatements(db, publication);
  const first = statements.splice(0, BATCH_STATEMENTS);
  const [head] = await db.batch<HeadRow>([
    headStatement(db, publication.orgId),
    balanceStatement(db, publication),
    usedStatement(db, publication),
    ...first,
  ]);
  while (statements.length > 0) {
    // oxlint-disable-next-line no-await-in-loop -- in order: what is left over goes after all is there
    await db.batch(statements.splice(0, BATCH_STATEMENTS));
  }
  return head === undefined ? null : headOf(head);
}

/** Settings as the book's columns name them. */
export type BookSettings = {
  readonly default_user_monthly_quota_micro: number | null;
  readonly default_user_daily_quota_micro: number | null;
  readonly default_alert_threshold: number;
  readonly low_balance_threshold_micro: number | null;
};

/** Everything a wallet ever published of one organisation. */
export type BookCopy = {
  readonly head: BookHead;
  readonly settings: BookSettings | null;
  readonly endUsers: readonly BookRow[];
  readonly days: readonly BookRow[];
  readonly alerts: readonly BookRow[];
  /** What an operator set, which D1 alone keeps; null without the organisation. */
  readonly configuration: Configuration | null;
};

/** The book's copy of an organisation, read in one transaction; null when it has none. */
export async function readBookRows(db: D1Database, orgId: string): Promise<BookCopy | null> {
  const all = (table: string): D1PreparedStatement =>
    db.prepare(`SELECT * FROM ${table} WHERE org_id = ?`).bind(orgId);
  const [head, operators, settings, endUsers, days, alerts] = await db.batch<BookRow>([
    headStatement(db, orgId),
    db.prepare("SELECT rpm_limit, status FROM organizations WHERE id = ?").bind(orgId),
    ...["settings", "end_users", "daily_usage", "alerts"].map(all),
  ]);
  const found = head === undefined ? null : headOf(head as D1Result<HeadRow>);
  if (found === null) return null;
  return {
    head: found,
    settings: (settings?.results[0] as BookSettings | undefined) ?? null,
    endUsers: endUsers?.results ?? [],
    days: days?.results ?? [],
    alerts: alerts?.results ?? [],
    configuration: configurationOf(operators?.results[0]),
  };
}

function configurationOf(row: BookRow | undefined): Configuration | null {
  if (row === undefined) return null;
  return { rpmLimit: row["rpm_limit"] as number | null, suspended: row["status"] === "suspended" };
}

/** Forgets a wallet that was made and given up before anything was recorded. */
export async function forgetWallet(db: D1Database, orgId: string, epoch: string): Promise<void> {
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

type HeadRow = { epoch: string; seq: number; credits_micro: number };

function headStatement(db: D1Database, orgId: string): D1PreparedStatement {
  return db.prepare("SELECT epoch, seq, credits_micro FROM balances WHERE org_id = ?").bind(orgId);
}

function headOf(result: D1Result<HeadRow>): BookHead | null {
  const [row] = result.results;
  return row === undefined
    ? null
    : { epoch: row.epoch, seq: row.seq, creditsMicro: row.credits_micro };
}

/** Moves the book to this publish, unless it is past it, another wallet's, or behind the base. */
function balanceStatement(db: D1Database, publication: Publication): D1PreparedStatement {
  const { orgId, epoch, revision, base, creditsMicro, updatedAt } = publication;
  return db
    .prepare(
      `INSERT INTO balances (org_id, epoch, seq, credits_micro, updated_at)
      SELECT ?1, ?2, ?3, ?4, ?5 WHERE ?6 = 0
        OR EXISTS (SELECT 1 FROM balances WHERE org_id = ?1 AND balances.seq >= ?6)
      ON CONFLICT (org_id) DO UPDATE SET seq = excluded.seq,
        credits_micro = excluded.credits_micro, updated_at = excluded.updated_at
      WHERE epoch = excluded.epoch AND seq < excluded.seq`,
    )
    .bind(orgId, epoch, revision, creditsMicro, updatedAt, base);
}

function usedStatement(db: D1Database, publication: Publication): D1PreparedStatement {
  return db
    .prepare("UPDATE organizations SET used_at = ?2 WHERE id = ?1 AND used_at < ?2")
    .bind(publication.orgId, publication.updatedAt);
}

function rowStatements(db: D1Database, publication: Publication): D1PreparedStatement[] {
  const { orgId, epoch, revision, endUsers, deletedEndUsers, alerts } = publication;
  const bound = (sql: string, rows: unknown): D1PreparedStatement =>
    db.prepare(sql).bind(orgId, JSON.stringify(rows), epoch, revision);
  const statements = [
    bound(upsert("settings"), [publication.settings]),
    ...chunks(publication.days).map((rows) => bound(upsert("daily_usage"), rows)),
    ...chunks(alerts).map((rows) => bound(insertAlerts(), rows)),
    ...chunks(endUsers).map((rows) => bound(upsert("end_users"), rows)),
    ...chunks(deletedEndUsers).map((ids) =>
      bound(
        `DELETE FROM end_users WHERE org_id = ?1
          AND id IN (SELECT value FROM json_each(?2)) AND ${CURRENT}`,
        ids,
      ),
    ),
  ];
  if (publication.everything) {
    statements.push(
      bound(
        `DELETE FROM end_users WHERE org_id = ?1 AND seq < ?4 AND ?2 IS NOT NULL AND ${CURRENT}`,
        0,
      ),
    );
  }
  return statements;
}

function upsert(table: keyof typeof TABLES): string {
  const { key, columns } = TABLES[table];
  const names = [...key, ...columns];
  return `INSERT INTO ${table} (org_id, ${names.join(", ")}, seq)
    SELECT ?1, ${names.map((name) => `value ->> '${name}'`).join(", ")}, ?4
    FROM json_each(?2) WHERE ${CURRENT}
    ON CONFLICT (${["org_id", ...key].join(", ")}) DO UPDATE SET
      ${[...columns, "seq"].map((name) => `${name} = excluded.${name}`).join(", ")}
    WHERE ${table}.seq < excluded.seq`;
}

function insertAlerts(): string {
  return `INSERT INTO alerts (org_id, ${ALERT_COLUMNS.join(", ")})
    SELECT ?1, ${ALERT_COLUMNS.map((name) => `value ->> '${name}'`).join(", ")}
    FROM json_each(?2) WHERE ${CURRENT} ON CONFLICT (org_id, id) DO NOTHING`;
}

function chunks<T>(rows: readonly T[]): T[][] {
  const out: T[][] = [];
  for (let i = 0; i < rows.length; i += CHUNK_ROWS) out.push(rows.slice(i, i + CHUNK_ROWS));
  return out;
}

/** Why the book is not this wallet's: what the book said, and what the wallet was when it found out. */
type Conflict = {
  readonly head: BookHead;
  readonly epoch: string;
  /** The publish that met it: what the book has after that was never this wallet's. */
  readonly revision: number;
};

/** A conflict as the wallet's row keeps it. */
export function conflictText(conflict: Conflict): string {
  return JSON.stringify(conflict);
}

/**
 * Whether the book is this wallet's: of its epoch, and no further than the wallet has published. While
 * it has a conflict, what it counted since is no publish: else it would catch up by counting.
 */
export function ownsBook(
  row: { readonly epoch: string; readonly revision: number; readonly conflict: string | null },
  head: BookHead,
): boolean {
  const met = row.conflict === null ? row : (JSON.parse(row.conflict) as Conflict);
  return head.epoch === row.epoch && head.seq <= met.revision;
}
