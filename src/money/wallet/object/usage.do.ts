import { success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import type { Micros } from "../../../shared/money.ts";
import { USAGE_GROUPS_MAX } from "../rules/usage-totals.ts";
import type { UsageTotal } from "../rules/usage-totals.ts";
import { tokenColumnsSql, NO_USAGE_AMOUNTS, addUsageAmounts } from "../../../shared/usage-sums.ts";
import type { UsageAmounts } from "../../../shared/usage-sums.ts";
import type { UsageReport, UsagePage, UsageGroupBy } from "../../../shared/contracts/reports.ts";
import type { Tx } from "./memory.do.ts";
import { readTagUsage } from "./tag-usage.do.ts";

const FIRST_PAGE: UsagePage = { limit: USAGE_GROUPS_MAX, after: null };

/** UTC days (YYYY-MM-DD), inclusive. */
type Days = { readonly from: string; readonly to: string };
type Dimension = "day" | "model" | "key" | "user";
const DAILY_DIMENSIONS: ReadonlyMap<UsageGroupBy, Dimension> = new Map([
  ["day,model", "model"],
  ["day,key", "key"],
  ["day,user", "user"],
]);
type UsageQuery = Days & { readonly groupBy: Dimension };

type GroupRow = UsageAmounts & { readonly name: string };

const SUM_COLUMNS_SQL = `coalesce(sum(requests), 0) AS requests, coalesce(sum(cost), 0) AS costMicro,
  ${tokenColumnsSql(({ column }) => `coalesce(sum(${column}), 0)`)}`;

/** Maximum rows read per response. */
const ROWS_MAX = 300_000;

/** Reports usage from the daily totals. */
export function readUsage(
  tx: Tx,
  { groupBy, ...days }: Days & { readonly groupBy: UsageGroupBy },
  page: UsagePage = FIRST_PAGE,
): Result<UsageReport> {
  const [, daily, key] = /^(day,)?tag:(.*)$/.exec(groupBy) ?? [];
  if (key !== undefined) {
    const of = usageBy(tx, { ...days, groupBy: "day" }, FIRST_PAGE);
    const tagged = { ...days, key, isDaily: daily !== undefined };
    return of.ok ? readTagUsage(tx, tagged, { page, days: of.value }) : of;
  }
  const dimension = DAILY_DIMENSIONS.get(groupBy);
  return dimension === undefined
    ? usageBy(tx, { ...days, groupBy: groupBy as Dimension }, page)
    : usageByDay(tx, { ...days, groupBy: dimension }, page);
}

function usageByDay(tx: Tx, query: UsageQuery, { limit, after }: UsagePage): Result<UsageReport> {
  const [afterDay, afterName] = after === null ? ["", ""] : [after.slice(0, 10), after.slice(11)];
  const rows = new Map<string, GroupRow & { readonly day: string }>();
  const stored = tx.sql
    .exec<GroupRow & { day: string }>(
      `SELECT day, name, requests, ${tokenColumnsSql(({ column }) => column)}, cost AS costMicro FROM totals
      WHERE dimension = ?1 AND day BETWEEN ?2 AND ?3 AND (day, name) > (?4, ?5)
      ORDER BY day, name LIMIT ?6`,
      query.groupBy,
      query.from,
      query.to,
      afterDay,
      afterName,
      limit + 1,
    )
    .toArray();
  const later = totalsInMemory(tx, query).filter(
    ({ day, name }) => day > afterDay || (day === afterDay && compareText(name, afterName) > 0),
  );
  for (const row of [...stored, ...later]) {
    const key = `${row.day},${row.name}`;
    const before = rows.get(key);
    rows.set(key, before === undefined ? row : { ...row, ...addUsageAmounts(before, row) });
  }
  const ordered = [...rows.values()].toSorted(
    (a, b) => compareText(a.day, b.day) || compareText(a.name, b.name),
  );
  const shown = ordered.slice(0, limit);
  const last = ordered.length > limit ? shown.at(-1) : undefined;
  return success({
    data: shown.map((row) => {
      const group = row.name === "" ? null : row.name;
      return Object.assign({ day: row.day, group }, addUsageAmounts(NO_USAGE_AMOUNTS, row));
    }),
    total: readTotal(tx, query),
    nextAfter: last === undefined ? null : `${last.day},${last.name}`,
  });
}

/**
 * Returns usage by group, in SQLite's text order. A page that covers many days can be smaller than
 * `limit`.
 */
function usageBy(tx: Tx, query: UsageQuery, page: UsagePage): Result<UsageReport> {
  const groups = new Map<string, UsageAmounts>();
  const end = query.groupBy === "day" ? null : findPageEnd(tx.sql, query, page);
  const later = groupsInMemory(tx, query, page.after).filter(
    ({ name }) => end === null || compareText(name, end) < 0,
  );
  for (const row of [...selectStoredGroups(tx.sql, query, { ...page, end }), ...later]) {
    groups.set(row.name, addUsageAmounts(groups.get(row.name) ?? NO_USAGE_AMOUNTS, row));
  }
  // The query reads one group more than the page needs, so the page's last group is complete.
  const names = [...groups.keys()].toSorted(compareText);
  const shown = names.slice(0, page.limit);
  const isLast = names.length <= page.limit && end === null;
  return success({
    data: shown.map((name) =>
      Object.assign({ group: name === "" ? null : name }, groups.get(name) ?? NO_USAGE_AMOUNTS),
    ),
    total: readTotal(tx, query),
    nextAfter: isLast ? null : (shown.at(-1) ?? null),
  });
}

const DAYS_SQL = "SELECT day FROM totals WHERE dimension = 'day' AND day BETWEEN ?2 AND ?3";

function findPageEnd(
  sql: SqlStorage,
  { from, to, groupBy }: UsageQuery,
  { after, limit }: UsagePage,
): string | null {
  const { days } = sql
    .exec<{ days: number }>(
      `SELECT count(*) AS days FROM (${DAYS_SQL}) WHERE ?1 = 'day'`,
      "day",
      from,
      to,
    )
    .one();
  const names = Math.max(1, Math.min(limit, Math.floor(ROWS_MAX / Math.max(1, days))));
  const { name } = sql
    .exec<{ name: string | null }>(
      `SELECT min(name) AS name FROM (SELECT (SELECT name FROM totals
        WHERE dimension = ?1 AND day = days.day AND ${afterNameSql(after)} ORDER BY name LIMIT 1 OFFSET ?5) AS name
      FROM (${DAYS_SQL}) AS days)`,
      groupBy,
      from,
      to,
      after ?? "",
      names,
    )
    .one();
  return name;
}

function afterNameSql(after: string | null): string {
  return after === null ? "name >= ?4" : "name > ?4";
}

function selectStoredGroups(
  sql: SqlStorage,
  { from, to, groupBy }: UsageQuery,
  { after, limit, end }: UsagePage & { readonly end: string | null },
): GroupRow[] {
  if (groupBy === "day") {
    return sql
      .exec<GroupRow>(
        `SELECT day AS name, ${SUM_COLUMNS_SQL} FROM totals WHERE dimension = 'day' AND day BETWEEN ?2 AND ?3
          AND (?1 IS NULL OR day > ?1) GROUP BY day ORDER BY day LIMIT ?4`,
        after,
        from,
        to,
        limit + 1,
      )
      .toArray();
  }
  return sql
    .exec<GroupRow>(
      `SELECT name, ${SUM_COLUMNS_SQL} FROM totals WHERE dimension = ?1 AND day IN (${DAYS_SQL})
        AND ${afterNameSql(after)} AND name < coalesce(?6, x'') GROUP BY name ORDER BY name LIMIT ?5`,
      groupBy,
      from,
      to,
      after ?? "",
      limit + 1,
      end, // null means no end: the blob sorts after all text
    )
    .toArray();
}

function totalsInMemory({ memory }: Tx, { from, to, groupBy }: UsageQuery): UsageTotal[] {
  return [...memory.usage.values()].filter(
    ({ dimension, day }) => dimension === groupBy && day >= from && day <= to,
  );
}

function groupsInMemory(tx: Tx, query: UsageQuery, after: string | null): GroupRow[] {
  const { groupBy } = query;
  return totalsInMemory(tx, query)
    .map((total) => Object.assign({}, total, { name: groupBy === "day" ? total.day : total.name }))
    .filter(({ name }) => after === null || compareText(name, after) > 0);
}

function readTotal(tx: Tx, query: UsageQuery): UsageAmounts {
  const { from, to } = query;
  const stored = tx.sql
    .exec<UsageAmounts>(
      `SELECT ${SUM_COLUMNS_SQL} FROM totals WHERE dimension = 'day' AND day BETWEEN ? AND ?`,
      from,
      to,
    )
    .one();
  const later = groupsInMemory(tx, { ...query, groupBy: "day" }, null);
  return [stored, ...later].reduce(addUsageAmounts, NO_USAGE_AMOUNTS);
}

export function readTotalCharged(tx: Tx): Micros {
  return readTotal(tx, { from: "", to: "9", groupBy: "day" }).costMicro;
}

/** Compares texts by code points, like SQLite. JavaScript's `<` compares UTF-16 units. */
function compareText(a: string, b: string): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return codePointRank(x) - codePointRank(y);
  }
  return a.length - b.length;
}

function codePointRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
