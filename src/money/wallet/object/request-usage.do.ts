import { assert } from "../../../shared/assert.ts";
import { holdIdBound, lowestHoldIdSince } from "../rules/hold-ids.ts";
import { tokenColumnsSql, NO_USAGE_AMOUNTS, addUsageAmounts } from "../../../shared/usage-sums.ts";
import type { UsageAmounts } from "../../../shared/usage-sums.ts";
import type {
  RequestDimension,
  RequestGroup,
  RequestSumsQuery,
  RequestSumsReport,
} from "../../../shared/contracts/reports.ts";
import { TAG_KEY_PATTERN } from "../../../shared/tags.ts";
import { REQUEST_TAGS_SQL } from "../tables/generation-json.ts";
import { retentionStartMs } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";

const ROWS_MAX = 50_000;
const GROUPS_MAX = 10_000;

const DIMENSION_SQL: Readonly<Record<Exclude<RequestDimension, `tag:${string}`>, string>> = {
  day: "strftime('%Y-%m-%d', admitted_at / 1000, 'unixepoch')",
  hour: "strftime('%Y-%m-%dT%H', admitted_at / 1000, 'unixepoch')",
  model: "sold.text ->> '$.model'",
  provider: "sold.text ->> '$.provider'",
  key: "keys_named.text",
  user: "external_id",
  member: "members.member",
};
const FIRST_BYTE_SQL = "detail ->> '$[4]'";
const DURATION_SQL = "detail ->> '$[5]'";

type UsageSum = UsageAmounts & {
  one: string | null;
  two: string | null;
  /**
   * Total output tokens, and total ms from first to last byte, of requests with a known first-byte
   * time.
   */
  spoken: number;
  speaking: number;
};

/** Reports usage from individual requests instead of daily totals. */
export function readRequestUsage(tx: Tx, query: RequestSumsQuery): RequestSumsReport {
  const from = findReportStart(tx, query);
  const rows = selectUsageGroups(tx.sql, { ...query, ...from });
  const times = query.latency ? selectFirstByteTimes(tx.sql, { ...query, ...from }) : null;
  const data = rows.map((row) => groupFromRow(row, query, times));
  const total = data.reduce(addUsageAmounts, NO_USAGE_AMOUNTS);
  return { data, total, completeFrom: from.fromMs };
}

type ReportStart = { readonly fromId: string; readonly fromMs: number };

/** Returns the ID and time (Unix ms) at which a report of the newest `ROWS_MAX` requests starts. */
export function findReportStart(
  tx: Tx,
  { fromMs, beforeMs }: Pick<RequestSumsQuery, "fromMs" | "beforeMs">,
): ReportStart {
  const { sql } = tx;
  const since = Math.max(fromMs, retentionStartMs(tx), findLastLossMs(sql));
  const fromId = lowestHoldIdSince(since);
  const [end] = sql
    .exec<{ id: string; admitted_at: number }>(
      "SELECT id, admitted_at FROM requests WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?",
      fromId,
      holdIdBound(beforeMs),
      ROWS_MAX - 1,
    )
    .toArray();
  return end === undefined
    ? { fromId, fromMs: since }
    : { fromId: end.id, fromMs: Math.max(since, end.admitted_at) };
}

/**
 * Returns the time (Unix ms) before which requests may be missing, because storage ran low or the
 * wallet was rebuilt.
 */
export function findLastLossMs(sql: SqlStorage): number {
  const { at } = sql
    .exec<{ at: number | null }>(
      "SELECT max(created_at) AS at FROM entries WHERE kind = 'rollup' OR reference GLOB 'rebuild:*'",
    )
    .one();
  return at ?? 0;
}

const MEMBERS_SQL =
  "WITH members AS MATERIALIZED (SELECT key AS key_id, value AS member FROM json_each(?11))";

function reportSql(query: RequestSumsQuery, columns: string, rest: string): string {
  const joined = "LEFT JOIN members ON members.key_id = keys_named.text";
  const [first, more] = query.members === null ? ["", ""] : [MEMBERS_SQL, joined];
  return `${first} SELECT ${groupColumnsSql(query)}, ${columns} ${REPORT_TABLES_SQL} ${more} ${FILTERS_SQL} ${rest}`;
}

const REPORT_TABLES_SQL = `FROM requests JOIN names AS sold ON sold.number = requests.sold
    JOIN names AS keys_named ON keys_named.number = requests.key`;
const FILTERS_SQL = `WHERE id >= ?1 AND id < ?2 AND admitted_at >= ?3 AND admitted_at < ?4 AND state = 'settled'
    AND (?5 IS NULL OR sold.text ->> '$.model' IN (SELECT value FROM json_each(?5)))
    AND (?6 IS NULL OR sold.text ->> '$.provider' IN (SELECT value FROM json_each(?6)))
    AND (?7 IS NULL OR keys_named.text IN (SELECT value FROM json_each(?7)))
    AND (?8 IS NULL OR coalesce(external_id, '') IN (SELECT value FROM json_each(?8)))
    AND (?9 IS NULL OR ${REQUEST_TAGS_SQL} ->> ('$."' || ?9 || '"') = ?10)`;

function reportBindings(query: RequestSumsQuery & ReportStart): (string | number | null)[] {
  const { fromId, fromMs, beforeMs, models, providers, keyIds, externalIds, members } = query;
  const lists = [models, providers, keyIds, externalIds];
  return [
    fromId,
    holdIdBound(beforeMs),
    fromMs,
    beforeMs,
    ...lists.map((list) => (list === null ? null : JSON.stringify(list))),
    query.tag?.key ?? null,
    query.tag?.value ?? null,
    ...(members === null ? [] : [JSON.stringify(members)]),
  ];
}

function groupColumnsSql({ by: [one, two] }: RequestSumsQuery): string {
  return `${dimensionSql(one)} AS one, ${dimensionSql(two)} AS two`;
}

function dimensionSql(dimension: RequestDimension | undefined): string {
  if (dimension === undefined) return "NULL";
  if (!isTagDimension(dimension)) return DIMENSION_SQL[dimension];
  const key = dimension.slice(TAG_PREFIX.length);
  assert(TAG_KEY_PATTERN.test(key), "the route checks tag keys");
  return `${REQUEST_TAGS_SQL} ->> '$."${key}"'`;
}

const TAG_PREFIX = "tag:";

function isTagDimension(dimension: RequestDimension): dimension is `tag:${string}` {
  return dimension.startsWith(TAG_PREFIX);
}

function selectUsageGroups(sql: SqlStorage, query: RequestSumsQuery & ReportStart): UsageSum[] {
  return sql
    .exec<UsageSum>(
      reportSql(
        query,
        `count(*) AS requests, sum(charged) AS costMicro,
        ${tokenColumnsSql(({ inRow }) => `sum(${inRow})`)},
        coalesce(sum(completion_tokens) FILTER (WHERE ${FIRST_BYTE_SQL} IS NOT NULL), 0) AS spoken,
        coalesce(sum(${DURATION_SQL} - ${FIRST_BYTE_SQL}), 0) AS speaking`,
        `GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ${GROUPS_MAX}`,
      ),
      ...reportBindings(query),
    )
    .toArray();
}

type FirstByteTimes = ReadonlyMap<string, readonly number[]>;

function selectFirstByteTimes(
  sql: SqlStorage,
  query: RequestSumsQuery & ReportStart,
): FirstByteTimes {
  const times = new Map<string, number[]>();
  const rows = sql.exec<{ one: string | null; two: string | null; ms: number }>(
    reportSql(query, `${FIRST_BYTE_SQL} AS ms`, `AND ${FIRST_BYTE_SQL} IS NOT NULL ORDER BY ms`),
    ...reportBindings(query),
  );
  for (const { one, two, ms } of rows) {
    const name = JSON.stringify([one, two]);
    const known = times.get(name);
    if (known === undefined) times.set(name, [ms]);
    else known.push(ms);
  }
  return times;
}

function groupFromRow(
  row: UsageSum,
  { by }: RequestSumsQuery,
  times: FirstByteTimes | null,
): RequestGroup {
  const { one, two, spoken, speaking, ...amounts } = row;
  const names = by.length === 1 ? [one] : [one, two];
  if (times === null) return { ...amounts, names };
  const sorted = times.get(JSON.stringify([one, two])) ?? [];
  const at = (share: number): number | null =>
    sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? null;
  return {
    ...amounts,
    names,
    firstByteMs: { p50: at(0.5), p99: at(0.99), n: sorted.length },
    tokensPerSecond: speaking > 0 ? (spoken * 1000) / speaking : null,
  };
}
