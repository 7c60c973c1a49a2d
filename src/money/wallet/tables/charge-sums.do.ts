import { insertRow } from "../../../shared/tables.do.ts";
import { parseStoredJson } from "../../../shared/stored-json.ts";
import { micros } from "../../../shared/money.ts";
import type { Price } from "../../../shared/usage.ts";
import type { ChargeDimensions, ChargeGroup } from "../../../shared/contracts/exports.ts";

/** Daily totals of charges, which remain after the rows of their requests are deleted. */
export const CHARGE_SUMS_TABLES_SQL =
  "CREATE TABLE charge_sums (" +
  "day TEXT NOT NULL," + // UTC day of the ledger row
  "name TEXT NOT NULL," + // JSON: key, model, provider, region, price, tags
  "tags TEXT NOT NULL," +
  "sums TEXT NOT NULL CHECK (json_valid(sums))," + // JSON: requests, cost, charge, quantities by bill line
  "PRIMARY KEY (day, name)" +
  ") STRICT, WITHOUT ROWID;" +
  "CREATE TABLE charge_fold (" +
  "id INTEGER PRIMARY KEY CHECK (id = 1)," +
  "folded_id TEXT NOT NULL," + // settled requests below this ID are in charge_sums
  "closed_day TEXT NOT NULL" + // newest day that can't get more charges
  ") STRICT;" +
  "INSERT INTO charge_fold (id, folded_id, closed_day) VALUES (1, '', '');";

type FoldProgress = { readonly foldedId: string; readonly closedDay: string };

export function readDailyTotalsProgress(sql: SqlStorage): FoldProgress {
  return sql
    .exec<FoldProgress>("SELECT folded_id AS foldedId, closed_day AS closedDay FROM charge_fold")
    .one();
}

export function writeDailyTotalsProgress(
  sql: SqlStorage,
  { foldedId, closedDay }: FoldProgress,
): void {
  sql.exec("UPDATE charge_fold SET folded_id = ?, closed_day = ?", foldedId, closedDay);
}

type GroupKeyFields = readonly [
  keyId: string,
  model: string,
  provider: string,
  region: string,
  price: Price,
  tags: string,
];
type GroupSums = readonly [
  requests: number,
  cost: number,
  charged: number,
  lines: Readonly<Record<string, number>>,
];

export type ChargeGroupsOfDay = Map<string, ChargeGroup>;

/**
 * Returns the JSON that identifies a charge group. The fields of `price` must have the same order
 * as in `sharedChargeFieldsJson`.
 */
export function chargeGroupKey({
  keyId,
  model,
  provider,
  region,
  price,
  tags,
}: ChargeDimensions): string {
  return JSON.stringify([keyId, model, provider, region, price, tags] satisfies GroupKeyFields);
}

export function addChargeGroup(groups: ChargeGroupsOfDay, group: ChargeGroup): void {
  const name = chargeGroupKey(group);
  const before = groups.get(name);
  groups.set(name, before === undefined ? group : mergeGroups(before, group));
}

function mergeGroups(one: ChargeGroup, other: ChargeGroup): ChargeGroup {
  const lines = { ...one.lines };
  for (const [what, n] of Object.entries(other.lines)) lines[what] = (lines[what] ?? 0) + n;
  return {
    ...one,
    requests: one.requests + other.requests,
    costMicro: micros(one.costMicro + other.costMicro),
    chargedMicro: micros(one.chargedMicro + other.chargedMicro),
    lines,
  };
}

export function storeChargeGroups(sql: SqlStorage, day: string, groups: ChargeGroupsOfDay): void {
  for (const group of groups.values()) {
    const name = chargeGroupKey(group);
    const [stored] = sql
      .exec<StoredGroup>("SELECT name, sums FROM charge_sums WHERE day = ? AND name = ?", day, name)
      .toArray();
    const { requests, costMicro, chargedMicro, lines } =
      stored === undefined ? group : mergeGroups(groupFromRow(stored), group);
    const sums = JSON.stringify([requests, costMicro, chargedMicro, lines] satisfies GroupSums);
    insertRow(sql, "OR REPLACE INTO charge_sums", { day, name, tags: group.tags, sums });
  }
}

type StoredGroup = { name: string; sums: string };

function groupFromRow({ name, sums }: StoredGroup): ChargeGroup {
  const [keyId, model, provider, region, price, tags] = parseStoredJson<GroupKeyFields>(name);
  const [requests, cost, charged, lines] = parseStoredJson<GroupSums>(sums);
  const money = { costMicro: micros(cost), chargedMicro: micros(charged) };
  return { keyId, model, provider, region, price, tags, requests, ...money, lines };
}

/** Returns a page of one day's charge totals. */
export function selectChargeGroups(
  sql: SqlStorage,
  day: string,
  { after, limit }: { readonly after: string; readonly limit: number },
): ChargeGroup[] {
  return sql
    .exec<StoredGroup>(
      "SELECT name, sums FROM charge_sums WHERE day = ? AND name > ? ORDER BY name LIMIT ?",
      day,
      after,
      limit,
    )
    .toArray()
    .map(groupFromRow);
}

export function selectTagsOfDay(sql: SqlStorage, day: string): string[] {
  return sql
    .exec<{ tags: string }>(
      "SELECT DISTINCT tags FROM charge_sums WHERE day = ? AND tags <> ''",
      day,
    )
    .toArray()
    .map(({ tags }) => tags);
}
