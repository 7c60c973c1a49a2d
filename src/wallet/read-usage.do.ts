import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { micros } from "../lib/money.ts";
import type { Desk } from "./desk.do.ts";
import { USAGE_GROUPS_MAX } from "./usage-totals.ts";
import type { UsageAmounts, UsageGroupBy, UsagePage, UsageReport } from "./wallet-contract.ts";

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

/** Usage of whole UTC days: a page of groups in the order of SQLite's text, and the total of all. */
export function readUsage(
  desk: Desk,
  asked: Asked,
  page: UsagePage = FIRST_PAGE,
): Result<UsageReport> {
  const groups = new Map<string, UsageAmounts>();
  const later = laterGroups(desk, asked, page.after);
  for (const { name, ...sums } of [...storedGroups(desk, asked, page), ...later]) {
    groups.set(name, plus(groups.get(name) ?? NO_AMOUNTS, sums));
  }
  // Of the stored ones one more than a page was read: whichever are on the page are whole.
  const names = [...groups.keys()].toSorted(asText);
  const shown = names.slice(0, page.limit);
  return success({
    data: shown.map((name) =>
      Object.assign({ group: name === "" ? null : name }, groups.get(name) ?? NO_AMOUNTS),
    ),
    total: totalOf(desk, asked),
    nextAfter: names.length > page.limit ? (shown.at(-1) ?? null) : null,
  });
}

function storedGroups(
  { sql }: Desk,
  { from, to, groupBy }: Asked,
  { after, limit }: UsagePage,
): GroupRow[] {
  const name = groupBy === "day" ? "day" : "name";
  return sql
    .exec<GroupRow>(
      `SELECT ${name} AS name, ${SUMS} FROM totals
      WHERE dimension = ?1 AND day BETWEEN ?2 AND ?3 AND (?4 IS NULL OR ${name} > ?4)
      GROUP BY ${name} ORDER BY ${name} LIMIT ?5`,
      groupBy,
      from,
      to,
      after,
      limit + 1,
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
