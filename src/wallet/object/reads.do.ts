import { invalid, refuse, success } from "../../lib/failure.ts";
import type { Result } from "../../lib/failure.ts";
import { idFloor } from "../../lib/id.ts";
import { micros } from "../../lib/money.ts";
import { HOLD_ID, ID_AGE_MAX_MS } from "../rules/hold-guards.ts";
import { USAGE_GROUPS_MAX } from "../rules/usage-totals.ts";
import { selectAlertPage } from "../tables/alert-rows.do.ts";
import { selectEventPage } from "../tables/event-rows.do.ts";
import type {
  AlertPage,
  EventPage,
  EventQuery,
  GenerationRecord,
  LedgerPage,
  LedgerRow,
  UsageAmounts,
  UsageGroupBy,
  UsagePage,
  UsageReport,
} from "../wallet-contract.ts";
import { selectGeneration } from "../tables/request-rows.do.ts";
import type { Desk } from "./memory.do.ts";

/** Sorts after every id. */
const LAST_ID = "~";

/** A page of the ledger, read between two marks and so never the whole table. */
export function readLedger(desk: Desk, afterSeq: number, limit: number): Result<LedgerPage> {
  const rows: LedgerRow[] = [];
  let from = afterSeq;
  while (rows.length < limit) {
    const to = nextMark(desk.sql, from + limit);
    rows.push(...ledgerRows(desk.sql, { from, to, limit: limit - rows.length }));
    if (to === null) break;
    from = to.seq;
  }
  return success({ rows, nextAfterSeq: rows.at(-1)?.seq ?? afterSeq });
}

type Mark = { seq: number; newest: number };

function nextMark(sql: SqlStorage, seq: number): Mark | null {
  const [mark] = sql
    .exec<Mark>("SELECT seq, newest FROM checkpoints WHERE seq >= ? ORDER BY seq LIMIT 1", seq)
    .toArray();
  return mark ?? null;
}

type LedgerSqlRow = {
  seq: number;
  kind: LedgerRow["kind"];
  amount: number;
  balance: number;
  absorbed: number;
  at: number;
  reference: string | null;
  request_id: string | null;
};

function ledgerRows(
  sql: SqlStorage,
  range: { readonly from: number; readonly to: Mark | null; readonly limit: number },
): LedgerRow[] {
  const { from, to, limit } = range;
  const [floor] = sql
    .exec<{ floor_id: string }>(
      "SELECT floor_id FROM checkpoints WHERE seq <= ? ORDER BY seq DESC LIMIT 1",
      from,
    )
    .toArray();
  const beforeId = to === null ? LAST_ID : idFloor(HOLD_ID, to.newest + ID_AGE_MAX_MS + 1);
  return sql
    .exec<LedgerSqlRow>(
      `SELECT seq, iif(state = 'settled' AND late = 0, 'usage', 'expire') AS kind,
        iif(state = 'settled' AND late = 0, -charged, 0) AS amount, balance, 0 AS absorbed,
        settled_at AS at, NULL AS reference, id AS request_id
      FROM requests WHERE id >= ?1 AND id < ?2 AND seq > ?3 AND seq <= ?4
      UNION ALL
      SELECT seq, kind, amount, balance, absorbed, created_at, reference, request_id
      FROM entries WHERE seq > ?3 AND seq <= ?4
      ORDER BY seq LIMIT ?5`,
      floor?.floor_id ?? "",
      beforeId,
      from,
      to?.seq ?? Number.MAX_SAFE_INTEGER,
      limit,
    )
    .toArray()
    .map((row) => ({
      seq: row.seq,
      kind: row.kind,
      amountMicro: micros(row.amount),
      balanceMicro: micros(row.balance),
      absorbedMicro: micros(row.absorbed),
      createdAt: row.at,
      reference: row.reference,
      generationId: row.request_id,
    }));
}

/** A settled request as `GET /v1/generations` shows it; `not_found` for any other id. */
export function readGeneration(desk: Desk, id: string): Result<GenerationRecord> {
  const found = selectGeneration(desk.sql, id);
  if (found !== null) return success(found);
  return refuse({ kind: "not_found", message: "No such generation." });
}

export function readAlerts(desk: Desk, limit: number, offset: number): Result<AlertPage> {
  const { n } = desk.sql.exec<{ n: number }>("SELECT count(*) AS n FROM alerts").one();
  return success({ alerts: selectAlertPage(desk.sql, limit, offset), total: n });
}

/** See `WalletCalls.events`. */
export function readEvents(desk: Desk, query: EventQuery): Result<EventPage> {
  const page = selectEventPage(desk, query);
  return page === null
    ? invalid("after must be the id of an event in the log.", "after")
    : success(page);
}

const FIRST_PAGE: UsagePage = { limit: USAGE_GROUPS_MAX, after: null };

/** UTC days (YYYY-MM-DD), both inclusive, and by what they are grouped. */
type Asked = { readonly from: string; readonly to: string; readonly groupBy: UsageGroupBy };

type Sums = {
  readonly requests: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cost: number;
};
type GroupRow = Sums & { readonly name: string };

const SUMS = `coalesce(sum(requests), 0) AS requests, coalesce(sum(prompt_tokens), 0) AS promptTokens,
  coalesce(sum(completion_tokens), 0) AS completionTokens, coalesce(sum(cost), 0) AS cost`;

/** Rows that one answer sums up: of a year of 100,000 end users there are 36 million. */
const ROWS_MAX = 300_000;

/**
 * Usage of whole UTC days: a page of groups in the order of SQLite's text, and the total of all. A page over many
 * days has fewer groups than asked for.
 */
export function readUsage(
  desk: Desk,
  asked: Asked,
  page: UsagePage = FIRST_PAGE,
): Result<UsageReport> {
  const groups = new Map<string, UsageAmounts>();
  const end = asked.groupBy === "day" ? null : endOfPage(desk.sql, asked, page);
  const later = laterGroups(desk, asked, page.after).filter(
    ({ name }) => end === null || asText(name, end) < 0,
  );
  for (const { name, ...sums } of [...storedGroups(desk.sql, asked, { ...page, end }), ...later]) {
    groups.set(name, plus(groups.get(name) ?? NO_AMOUNTS, sums));
  }
  // Of the stored ones one more than a page was read: whichever are on the page are whole.
  const names = [...groups.keys()].toSorted(asText);
  const shown = names.slice(0, page.limit);
  const isLast = names.length <= page.limit && end === null;
  return success({
    data: shown.map((name) =>
      Object.assign({ group: name === "" ? null : name }, groups.get(name) ?? NO_AMOUNTS),
    ),
    total: totalOf(desk, asked),
    nextAfter: isLast ? null : (shown.at(-1) ?? null),
  });
}

/** The days of which anything is stored; each has a row of its own. */
const DAYS = "SELECT day FROM totals WHERE dimension = 'day' AND day BETWEEN ?2 AND ?3";

/**
 * The first name that is left to the next page: no day has more names before it than a page may have, nor all days
 * together more rows. Null when there is none. Walks over as many rows as the page then has.
 */
function endOfPage(
  sql: SqlStorage,
  { from, to, groupBy }: Asked,
  { after, limit }: UsagePage,
): string | null {
  const { days } = sql
    .exec<{ days: number }>(
      `SELECT count(*) AS days FROM (${DAYS}) WHERE ?1 = 'day'`,
      "day",
      from,
      to,
    )
    .one();
  const names = Math.max(1, Math.min(limit, Math.floor(ROWS_MAX / Math.max(1, days))));
  const { name } = sql
    .exec<{ name: string | null }>(
      `SELECT min(name) AS name FROM (SELECT (SELECT name FROM totals
        WHERE dimension = ?1 AND day = days.day AND ${isAfter(after)} ORDER BY name LIMIT 1 OFFSET ?5) AS name
      FROM (${DAYS}) AS days)`,
      groupBy,
      from,
      to,
      after ?? "",
      names,
    )
    .one();
  return name;
}

/** `?4` is the name before the page, or "" at the beginning, which is a name itself. */
function isAfter(after: string | null): string {
  return after === null ? "name >= ?4" : "name > ?4";
}

function storedGroups(
  sql: SqlStorage,
  { from, to, groupBy }: Asked,
  { after, limit, end }: UsagePage & { readonly end: string | null },
): GroupRow[] {
  if (groupBy === "day") {
    return sql
      .exec<GroupRow>(
        `SELECT day AS name, ${SUMS} FROM totals WHERE dimension = 'day' AND day BETWEEN ?2 AND ?3
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
      `SELECT name, ${SUMS} FROM totals WHERE dimension = ?1 AND day IN (${DAYS})
        AND ${isAfter(after)} AND name < coalesce(?6, x'') GROUP BY name ORDER BY name LIMIT ?5`,
      groupBy,
      from,
      to,
      after ?? "",
      limit + 1,
      end, // a blob sorts after every text
    )
    .toArray();
}

/** What the newest checkpoint does not have yet. */
function laterGroups(
  { memory }: Desk,
  { from, to, groupBy }: Asked,
  after: string | null,
): GroupRow[] {
  return [...memory.usage.values()]
    .filter(({ dimension, day }) => dimension === groupBy && day >= from && day <= to)
    .map((total) => Object.assign({}, total, { name: groupBy === "day" ? total.day : total.name }))
    .filter(({ name }) => after === null || asText(name, after) > 0);
}

/** Every request is counted on its day, whatever else it is counted by. */
function totalOf(desk: Desk, asked: Asked): UsageAmounts {
  const { from, to } = asked;
  const stored = desk.sql
    .exec<Sums>(
      `SELECT ${SUMS} FROM totals WHERE dimension = 'day' AND day BETWEEN ? AND ?`,
      from,
      to,
    )
    .one();
  const later = laterGroups(desk, { ...asked, groupBy: "day" }, null);
  return [stored, ...later].reduce(plus, NO_AMOUNTS);
}

const NO_AMOUNTS: UsageAmounts = {
  requests: 0,
  promptTokens: 0,
  completionTokens: 0,
  costMicro: micros(0),
};

function plus(amounts: UsageAmounts, sums: Sums): UsageAmounts {
  return {
    requests: amounts.requests + sums.requests,
    promptTokens: amounts.promptTokens + sums.promptTokens,
    completionTokens: amounts.completionTokens + sums.completionTokens,
    costMicro: micros(amounts.costMicro + sums.cost),
  };
}

/** SQLite compares text by its UTF-8 bytes, so by code points; `<` goes by UTF-16 units. */
function asText(a: string, b: string): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return codePointRank(x) - codePointRank(y);
  }
  return a.length - b.length;
}

/** Halves of characters beyond U+FFFF come after all others. */
function codePointRank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
