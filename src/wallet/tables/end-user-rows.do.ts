import { micros } from "../../lib/money.ts";
import { PAGE_ROWS } from "../book.store.ts";
import type { BookRow } from "../book.store.ts";
import { microsOrNull } from "../rules/quota.ts";
import type { EndUser } from "../rules/quota.ts";

type Row = {
  id: string;
  external_id: string;
  monthly_quota: number | null;
  daily_quota: number | null;
  alert_threshold: number;
  month: string;
  monthly_spend: number;
  day: string;
  daily_spend: number;
  created_at: number;
};

const COLUMNS = `id, external_id, monthly_quota, daily_quota, alert_threshold, month, monthly_spend,
  day, daily_spend, created_at`;

/** One end user, its spend as of the newest checkpoint; null when there is none. */
export function selectEndUser(
  sql: SqlStorage,
  column: "id" | "external_id",
  value: string,
): EndUser | null {
  const [row] = sql
    .exec<Row>(`SELECT ${COLUMNS} FROM end_users WHERE ${column} = ?`, value)
    .toArray();
  return row === undefined ? null : endUserOf(row);
}

/** A page in the order of creation: a new end user comes last and moves nobody. */
export function selectEndUserPage(sql: SqlStorage, limit: number, offset: number): EndUser[] {
  return sql
    .exec<Row>(`SELECT ${COLUMNS} FROM end_users ORDER BY number LIMIT ? OFFSET ?`, limit, offset)
    .toArray()
    .map(endUserOf);
}

const BOOK_COLUMNS = `id, external_id, monthly_quota AS monthly_quota_micro,
  daily_quota AS daily_quota_micro, alert_threshold, month, monthly_spend AS monthly_spend_micro,
  day, daily_spend AS daily_spend_micro, created_at`;

/** The end users with these ids, at most a page of them, as the book has them. */
export function selectEndUsers(sql: SqlStorage, ids: readonly string[]): BookRow[] {
  return sql
    .exec<BookRow>(
      `SELECT ${BOOK_COLUMNS} FROM end_users WHERE id IN (SELECT value FROM json_each(?))`,
      JSON.stringify(ids),
    )
    .toArray();
}

/** A page of all end users by id, as the book has them. */
export function selectEndUsersAfter(sql: SqlStorage, id: BookRow[string]): BookRow[] {
  return sql
    .exec<BookRow>(
      `SELECT ${BOOK_COLUMNS} FROM end_users WHERE id > ? ORDER BY id LIMIT ${PAGE_ROWS}`,
      id,
    )
    .toArray();
}

export function insertEndUser(sql: SqlStorage, user: EndUser, changed: number): void {
  sql.exec(
    `INSERT INTO end_users (${COLUMNS}, changed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    user.id,
    user.externalId,
    user.monthlyQuota,
    user.dailyQuota,
    user.alertThreshold,
    user.spend.month,
    user.spend.monthly,
    user.spend.day,
    user.spend.daily,
    user.createdAt,
    changed,
  );
}

/** Stores what an owner may change. */
export function updateEndUserLimits(sql: SqlStorage, user: EndUser, changed: number): void {
  sql.exec(
    `UPDATE end_users SET monthly_quota = ?, daily_quota = ?, alert_threshold = ?, changed = ?
    WHERE id = ?`,
    user.monthlyQuota,
    user.dailyQuota,
    user.alertThreshold,
    changed,
    user.id,
  );
}

/** Brings an end user's slots up to a checkpoint. */
export function updateEndUserSpend(sql: SqlStorage, user: EndUser, changed: number): void {
  sql.exec(
    `UPDATE end_users SET month = ?, monthly_spend = ?, day = ?, daily_spend = ?, changed = ?
    WHERE id = ?`,
    user.spend.month,
    user.spend.monthly,
    user.spend.day,
    user.spend.daily,
    changed,
    user.id,
  );
}

export function deleteEndUserRow(sql: SqlStorage, id: string, changed: number): void {
  sql.exec("DELETE FROM end_users WHERE id = ?", id);
  sql.exec("INSERT INTO deleted_end_users (id, changed) VALUES (?, ?)", id, changed);
}

function endUserOf(row: Row): EndUser {
  return {
    id: row.id,
    externalId: row.external_id,
    dailyQuota: microsOrNull(row.daily_quota),
    monthlyQuota: microsOrNull(row.monthly_quota),
    alertThreshold: row.alert_threshold,
    createdAt: row.created_at,
    spend: {
      day: row.day,
      daily: micros(row.daily_spend),
      month: row.month,
      monthly: micros(row.monthly_spend),
    },
  };
}
