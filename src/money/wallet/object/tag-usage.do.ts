import { invalid, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { micros } from "../../../shared/money.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";
import type { Tags } from "../../../shared/tags.ts";
import {
  addUsageAmounts,
  tokenColumnsSql,
  NO_USAGE_AMOUNTS,
  mapTokenNames,
} from "../../../shared/usage-sums.ts";
import type { UsageAmounts } from "../../../shared/usage-sums.ts";
import type { UsagePage, UsageReport } from "../../../shared/contracts/reports.ts";
import { TagCombinationsOfDay } from "../rules/tag-sets.ts";
import type { UsageTotal, UsageTotalsByGroup } from "../rules/usage-totals.ts";
import type { Tx } from "./memory.do.ts";

type TagQuery = {
  readonly from: string;
  readonly to: string;
  readonly key: string;
  readonly isDaily: boolean;
};

/**
 * Yields the totals to store. Above a day's maximum of tag combinations, new tag values become
 * `other`.
 */
export function* iterateTotalsToStore(
  sql: SqlStorage,
  usage: UsageTotalsByGroup,
): Generator<UsageTotal> {
  const days = new Map<string, TagCombinationsOfDay>();
  for (const total of usage.values()) {
    if (total.dimension === "tags") {
      const sets = days.get(total.day) ?? new TagCombinationsOfDay(selectTagSets(sql, total.day));
      days.set(total.day, sets);
      yield { ...total, name: sets.assignGroup(total.name) };
    } else {
      yield total;
    }
  }
}

function selectTagSets(sql: SqlStorage, day: string): string[] {
  return sql
    .exec<{ name: string }>("SELECT name FROM totals WHERE dimension = 'tags' AND day = ?", day)
    .toArray()
    .map(({ name }) => name);
}

type TagGroup = { readonly day: string; readonly name: string; readonly amounts: UsageAmounts };

/** Returns usage by a tag's values. The group `null` contains usage without the tag. */
export function readTagUsage(
  tx: Tx,
  query: TagQuery,
  { page, days }: { readonly page: UsagePage; readonly days: UsageReport },
): Result<UsageReport> {
  const { tagKeys } = tx.memory.row.settings;
  if (!tagKeys.includes(query.key)) {
    const declare = "Add it to the setting 'tag_keys', or group by hour or another dimension too";
    return invalid(`The tag key '${query.key}' has no daily totals. ${declare}.`, "group_by");
  }
  const groups = groupsOf(tx, query);
  addUntagged(groups, query, days);
  const ordered = [...groups.values()].toSorted(
    (a, b) => compareText(a.day, b.day) || compareText(a.name, b.name),
  );
  const after = page.after === null ? null : parsePosition(query, page.after);
  const wanted = ordered.filter((one) => after === null || isAfter(one, after));
  const shown = wanted.slice(0, page.limit);
  const last = wanted.length > page.limit ? shown.at(-1) : undefined;
  return success({
    data: shown.map(({ day, name, amounts }) => {
      const group = Object.assign({ group: name === "" ? null : name }, amounts);
      return query.isDaily ? Object.assign({ day }, group) : group;
    }),
    total: days.total,
    nextAfter: last === undefined ? null : `${query.isDaily ? `${last.day},` : ""}${last.name}`,
  });
}

type GroupPosition = Pick<TagGroup, "day" | "name">;

function parsePosition({ isDaily }: TagQuery, after: string): GroupPosition {
  return isDaily ? { day: after.slice(0, 10), name: after.slice(11) } : { day: "", name: after };
}

function isAfter(one: GroupPosition, after: GroupPosition): boolean {
  return (compareText(one.day, after.day) || compareText(one.name, after.name)) > 0;
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function groupsOf(tx: Tx, query: TagQuery): Map<string, TagGroup> {
  const { from, to, key, isDaily } = query;
  const groups = new Map<string, TagGroup>();
  const stored = tx.sql.exec<UsageAmounts & { day: string; name: string }>(
    `SELECT ${isDaily ? "day" : "''"} AS day, name ->> ('$."' || ?1 || '"') AS name,
      sum(requests) AS requests, sum(cost) AS costMicro, ${tokenColumnsSql(({ column }) => `sum(${column})`)}
    FROM totals WHERE dimension = 'tags' AND day BETWEEN ?2 AND ?3
      AND name ->> ('$."' || ?1 || '"') IS NOT NULL GROUP BY 1, 2`,
    key,
    from,
    to,
  );
  for (const row of stored) addGroup(groups, row.day, row.name, row);
  for (const total of iterateTotalsToStore(tx.sql, tx.memory.usage)) {
    if (total.dimension !== "tags" || total.day < from || total.day > to) continue;
    const value = parseStoredJson<Tags>(total.name)[key];
    if (value !== undefined) addGroup(groups, isDaily ? total.day : "", value, total);
  }
  return groups;
}

function addGroup(
  groups: Map<string, TagGroup>,
  day: string,
  name: string,
  amounts: UsageAmounts,
): void {
  const id = `${day}\n${name}`;
  const before = groups.get(id)?.amounts ?? NO_USAGE_AMOUNTS;
  groups.set(id, { day, name, amounts: addUsageAmounts(before, amounts) });
}

function addUntagged(
  groups: Map<string, TagGroup>,
  { isDaily }: TagQuery,
  days: UsageReport,
): void {
  const tagged = new Map<string, UsageAmounts>();
  for (const { day, amounts } of groups.values()) {
    tagged.set(day, addUsageAmounts(tagged.get(day) ?? NO_USAGE_AMOUNTS, amounts));
  }
  const totals = new Map<string, UsageAmounts>();
  for (const { group, ...amounts } of days.data) {
    const day = isDaily ? (group ?? "") : "";
    totals.set(day, addUsageAmounts(totals.get(day) ?? NO_USAGE_AMOUNTS, amounts));
  }
  for (const [day, total] of totals) {
    const rest = subtractUsage(total, tagged.get(day) ?? NO_USAGE_AMOUNTS);
    if (rest.requests !== 0 || rest.costMicro !== 0) addGroup(groups, day, "", rest);
  }
}

function subtractUsage(one: UsageAmounts, other: UsageAmounts): UsageAmounts {
  return {
    requests: one.requests - other.requests,
    ...mapTokenNames((name) => one[name] - other[name]),
    costMicro: micros(one.costMicro - other.costMicro),
  };
}
