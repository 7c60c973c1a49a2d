import { insertRow } from "../../../shared/tables.do.ts";
import { periodEndMs, periodOfDay } from "../../../shared/period.ts";
import type { EndUser } from "../../../shared/contracts/end-users.ts";

/**
 * An end user's spend (micro-credits) up to the checkpoint, in the last day and month with spend.
 */
export type EndUserSpend = {
  readonly month: string;
  readonly monthly_spend: number;
  readonly day: string;
  readonly daily_spend: number;
};

const COLUMNS = `id, external_id AS externalId, monthly_quota AS monthlyQuotaMicro,
  daily_quota AS dailyQuotaMicro, alert_threshold AS alertThreshold, created_at AS createdAt`;

export function selectEndUserSpend(sql: SqlStorage, id: string): EndUserSpend | null {
  const [row] = sql.exec<EndUserSpend>(
    "SELECT month, monthly_spend, day, daily_spend FROM end_users WHERE id = ?",
    id,
  );
  return row ?? null;
}

/** Returns an end user. Deleted end users are found only by ID. */
export function selectEndUser(
  sql: SqlStorage,
  column: "id" | "external_id",
  value: string,
): EndUser | null {
  const which = column === "id" ? "id = ?" : "external_id = ? AND departed IS NULL";
  const [user] = sql.exec<EndUser>(`SELECT ${COLUMNS} FROM end_users WHERE ${which}`, value);
  return user ?? null;
}

export function selectExternalId(sql: SqlStorage, id: string): string | null {
  const [row] = sql
    .exec<{ external_id: string }>(
      "SELECT external_id FROM end_users WHERE id = ? AND departed IS NULL",
      id,
    )
    .toArray();
  return row?.external_id ?? null;
}

export function selectEndUserCount(sql: SqlStorage): number {
  return sql.exec<{ n: number }>("SELECT count(*) AS n FROM end_users WHERE departed IS NULL").one()
    .n;
}

/**
 * Returns a page of end users, oldest first, that starts after `after`. A deleted end user works as
 * `after`; an unknown ID returns null.
 */
export function selectEndUserPage(
  sql: SqlStorage,
  {
    limit,
    offset,
    after,
  }: { readonly limit: number; readonly offset: number; readonly after: string | null },
): EndUser[] | null {
  const [last] =
    after === null
      ? [{ number: 0 }]
      : sql.exec<{ number: number }>("SELECT number FROM end_users WHERE id = ?", after).toArray();
  if (last === undefined) return null;
  return sql
    .exec<EndUser>(
      `SELECT ${COLUMNS} FROM end_users WHERE number > ? AND departed IS NULL ORDER BY number LIMIT ? OFFSET ?`,
      last.number,
      limit,
      offset,
    )
    .toArray();
}

/**
 * Inserts an end user. `account` is the number in requests of a deleted end user with the same
 * external ID, or null.
 */
export function insertEndUser(
  sql: SqlStorage,
  user: EndUser,
  row: { readonly spend: EndUserSpend; readonly changed: number; readonly account: number | null },
): void {
  insertRow(sql, "INTO end_users", {
    id: user.id,
    external_id: user.externalId,
    monthly_quota: user.monthlyQuotaMicro,
    daily_quota: user.dailyQuotaMicro,
    alert_threshold: user.alertThreshold,
    created_at: user.createdAt,
    ...row.spend,
    changed: row.changed,
    account: row.account,
  });
}

export function updateEndUserLimits(sql: SqlStorage, user: EndUser, revision: number): void {
  sql.exec(
    `UPDATE end_users SET monthly_quota = ?, daily_quota = ?, alert_threshold = ?, changed = ?
    WHERE id = ?`,
    user.monthlyQuotaMicro,
    user.dailyQuotaMicro,
    user.alertThreshold,
    revision,
    user.id,
  );
}

export function updateEndUserSpend(
  sql: SqlStorage,
  id: string,
  { spend, changed }: { readonly spend: EndUserSpend; readonly changed: number },
): void {
  sql.exec(
    `UPDATE end_users SET month = ?, monthly_spend = ?, day = ?, daily_spend = ?, changed = ?
    WHERE id = ?`,
    spend.month,
    spend.monthly_spend,
    spend.day,
    spend.daily_spend,
    changed,
    id,
  );
}

/** The number of deleted end users with a row, and when the oldest row can be deleted (Unix ms). */
export type DeletedEndUserStats = { readonly count: number; readonly until: number };

export function selectDeletedEndUserStats(sql: SqlStorage): DeletedEndUserStats {
  const { count, month } = sql
    .exec<{ count: number; month: string | null }>(
      "SELECT count(*) AS count, min(departed) AS month FROM end_users WHERE departed IS NOT NULL",
    )
    .one();
  return { count, until: month === null ? Infinity : endOfMonthMs(month) };
}

export function endOfMonthMs(month: string): number {
  return periodEndMs(periodOfDay(`${month}-01`), "month");
}

export function selectDeletedEndUser(
  sql: SqlStorage,
  hash: string,
  month: string,
): { readonly user: EndUser; readonly account: number } | null {
  const [row] = sql
    .exec<EndUser & { account: number }>(
      `SELECT ${COLUMNS}, coalesce(account, number) AS account FROM end_users
      WHERE external_id = ? AND departed = ?`,
      hash,
      month,
    )
    .toArray();
  if (row === undefined) return null;
  const { account, ...user } = row;
  return { user, account };
}

export function markEndUserDeleted(
  sql: SqlStorage,
  id: string,
  left: { readonly hash: string; readonly month: string; readonly changed: number },
): void {
  sql.exec(
    `UPDATE end_users SET external_id = ?, departed = ?, monthly_quota = NULL, daily_quota = NULL
    WHERE id = ?`,
    left.hash,
    left.month,
    id,
  );
  sql.exec("INSERT INTO deleted_end_users (id, changed) VALUES (?, ?)", id, left.changed);
}

export function purgeEndUserByHash(sql: SqlStorage, hash: string): string[] {
  return purgeEndUsers(sql, "external_id = ?1 LIMIT ?2", [hash, 1]);
}

/** Deletes rows of end users deleted before a month. Returns their IDs. */
export function purgeEndUsersBefore(sql: SqlStorage, month: string, rowsMax: number): string[] {
  return purgeEndUsers(sql, "departed < ?1 LIMIT ?2", [month, rowsMax]);
}

export function purgeOldestEndUser(sql: SqlStorage): string[] {
  return purgeEndUsers(sql, "true ORDER BY departed, number LIMIT ?1", [1]);
}

function purgeEndUsers(
  sql: SqlStorage,
  which: string,
  bindings: readonly (string | number)[],
): string[] {
  return sql
    .exec<{ id: string }>(
      `DELETE FROM end_users WHERE number IN
        (SELECT number FROM end_users WHERE departed IS NOT NULL AND ${which}) RETURNING id`,
      ...bindings,
    )
    .toArray()
    .map(({ id }) => id);
}
