import { SNAPSHOT_PAGE_ROWS_MAX } from "../snapshot.store.ts";
import type { SnapshotPage, WalletSnapshotRow } from "../snapshot.store.ts";

const CREDIT_COLUMNS = `reference, amount AS amount_micro, balance AS balance_micro, held AS held_micro,
  open_holds, created_at`;
const CREDITS_SQL = `SELECT seq, ${CREDIT_COLUMNS} FROM entries
  WHERE seq > ?1 AND seq <= ?2 AND kind = 'credit' ORDER BY seq`;
const ADOPTED_CREDITS_SQL = `SELECT ${CREDIT_COLUMNS} FROM adopted_credits
  WHERE reference > ?1 ORDER BY reference`;
const END_USER_COLUMNS = `id, external_id, monthly_quota AS monthly_quota_micro,
  daily_quota AS daily_quota_micro, alert_threshold, month, monthly_spend AS monthly_spend_micro,
  day, daily_spend AS daily_spend_micro, created_at`;
const END_USERS_SQL = `SELECT ${END_USER_COLUMNS} FROM end_users
  WHERE id > ?1 AND departed IS NULL ORDER BY id`;
const CHANGED_END_USERS_SQL = `SELECT ${END_USER_COLUMNS} FROM end_users
  WHERE id IN (SELECT value FROM json_each(?1)) AND departed IS NULL`;
const BUDGET_NAME_SQL = "scope || char(10) || subject || char(10) || id";

/**
 * Queries for each table's changed rows, in publish order. `?1` is the key (first column) of the
 * previous page's last row. `?2` is the newest published revision.
 */
const CHANGED_ROWS = [
  [
    "payments",
    `SELECT id, purchase_id, credited AS credited_micro, back AS back_micro, reading FROM payments
    WHERE id > ?1 AND changed > ?2 ORDER BY id`,
  ],
  [
    "debts",
    `SELECT owed AS owed_micro, taken AS taken_micro, forgiven AS forgiven_micro,
      (SELECT json_group_object(reference, amount) FROM forgiven) AS forgiven_by
    FROM debts WHERE ?1 = '' AND changed > ?2`,
  ],
  [
    "rules",
    `SELECT name, rule FROM rules WHERE name > ?1 AND changed > ?2 AND rule IS NOT NULL
    ORDER BY name`,
  ],
  [
    "daily_usage",
    `SELECT day, requests, prompt_tokens, completion_tokens, cost AS cost_micro FROM totals
    WHERE dimension = 'day' AND day > ?1 AND changed > ?2 ORDER BY day`,
  ],
  [
    "key_spend",
    `SELECT key_id, day, daily AS daily_spend_micro, week, weekly AS weekly_spend_micro, month,
      monthly AS monthly_spend_micro, total AS total_spend_micro FROM key_budgets
    WHERE key_id > ?1 AND changed > ?2 ORDER BY key_id`,
  ],
  // A rebuild ends all sessions, so their budgets aren't published.
  [
    "budgets",
    `SELECT ${BUDGET_NAME_SQL} AS name, scope, subject, id, place, budget, since, tally FROM budgets
    WHERE scope <> 'session' AND budget IS NOT NULL AND changed > ?2 AND ${BUDGET_NAME_SQL} > ?1
    ORDER BY name`,
  ],
] as const;
const ALERTS_SQL = `SELECT changed, id, kind, external_id, period, threshold, limit_micro, value_micro,
  created_at FROM alerts WHERE (changed, id) > (?1, ?2) ORDER BY changed, id`;

/**
 * Queries for the names and IDs of removed rows. The wallet keeps them until D1 has deleted its
 * copies.
 */
const REMOVED_ROWS = [
  ["removed_rules", "SELECT name FROM rules WHERE rule IS NULL AND name > ?1 ORDER BY name"],
  [
    "removed_budgets",
    `SELECT ${BUDGET_NAME_SQL} AS name FROM budgets
    WHERE scope <> 'session' AND budget IS NULL AND ${BUDGET_NAME_SQL} > ?1 ORDER BY name`,
  ],
  ["deleted_end_users", "SELECT id FROM deleted_end_users WHERE id > ?1 ORDER BY id"],
] as const;

type PublishedRange = {
  readonly endUserIds: readonly string[];
  readonly isComplete: boolean;
  readonly acknowledged: number;
  readonly creditsSeq: number;
  readonly newestSeq: number;
};

/**
 * Yields the rows to publish. Credits come first, so that one transaction can store the balance and
 * up to 2,500 credits.
 */
export function* pagesToPublish(
  sql: SqlStorage,
  { endUserIds, isComplete, acknowledged, creditsSeq, newestSeq }: PublishedRange,
): Generator<SnapshotPage> {
  const since = isComplete ? -1 : acknowledged;
  const firstCredit = isComplete ? 0 : creditsSeq;
  yield* pagesOf(sql, ["credits", CREDITS_SQL], [firstCredit], newestSeq);
  if (isComplete) yield* pagesOf(sql, ["credits", ADOPTED_CREDITS_SQL], [""]);
  for (const query of CHANGED_ROWS) yield* pagesOf(sql, query, [""], since);
  yield* pagesOf(sql, ["alerts", ALERTS_SQL], [since, "~"]);
  if (isComplete) yield* pagesOf(sql, ["end_users", END_USERS_SQL], [""]);
  const changedUserIds = isComplete ? [] : endUserIds;
  for (let from = 0; from < changedUserIds.length; from += SNAPSHOT_PAGE_ROWS_MAX) {
    const ids = JSON.stringify(changedUserIds.slice(from, from + SNAPSHOT_PAGE_ROWS_MAX));
    const rows = sql.exec<WalletSnapshotRow>(CHANGED_END_USERS_SQL, ids).toArray();
    yield { table: "end_users", rows };
  }
  for (const query of REMOVED_ROWS) yield* pagesOf(sql, query, [""]);
}

/**
 * Yields the rows after the key `first`, page by page. A key is a row's first column or columns.
 */
function* pagesOf(
  sql: SqlStorage,
  [table, query]: readonly [SnapshotPage["table"], string],
  first: readonly WalletSnapshotRow[string][],
  ...rest: readonly number[]
): Generator<SnapshotPage> {
  let after = first;
  for (;;) {
    const rows = sql
      .exec<WalletSnapshotRow>(`${query} LIMIT ${SNAPSHOT_PAGE_ROWS_MAX}`, ...after, ...rest)
      .toArray();
    const last = rows.at(-1);
    if (last === undefined) return;
    yield { table, rows };
    if (rows.length < SNAPSHOT_PAGE_ROWS_MAX) return;
    after = Object.values(last).slice(0, first.length);
  }
}

export function deletePublishedRemovals(sql: SqlStorage, acknowledged: number): void {
  sql.exec("DELETE FROM deleted_end_users WHERE changed <= ?", acknowledged);
  sql.exec("DELETE FROM budgets WHERE budget IS NULL AND changed <= ?", acknowledged);
  sql.exec("DELETE FROM rules WHERE rule IS NULL AND changed <= ?", acknowledged);
}
