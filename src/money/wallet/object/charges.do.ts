import { DAY_MS } from "../../../shared/clock.ts";
import { micros } from "../../../shared/money.ts";
import { periodOf } from "../../../shared/period.ts";
import { declaredTagsToJson } from "../../../shared/tags.ts";
import { listChargeLines } from "../../../shared/usage.ts";
import type {
  ChargeGroup,
  ChargesPage,
  ChargesQuery,
  LedgerCredit,
} from "../../../shared/contracts/exports.ts";
import type { Generation } from "../../../shared/generation.ts";
import { creationTimeOfHoldId, REQUEST_ID_AGE_MAX_MS } from "../rules/hold-ids.ts";
import { TagCombinationsOfDay } from "../rules/tag-sets.ts";
import {
  addChargeGroup,
  chargeGroupKey,
  readDailyTotalsProgress,
  selectTagsOfDay,
  selectChargeGroups,
  storeChargeGroups,
  writeDailyTotalsProgress,
} from "../tables/charge-sums.do.ts";
import type { ChargeGroupsOfDay } from "../tables/charge-sums.do.ts";
import { parseGeneration } from "../tables/generation-json.ts";
import { findTagKeysDeclaredAt } from "../tables/tag-rows.do.ts";
import type { TagKeys } from "../tables/tag-rows.do.ts";
import { findLowestFutureId } from "./checkpoint.do.ts";
import type { Tx } from "./memory.do.ts";

const BATCH_ROWS = 2000;
const MAX_ID = "~";

export type ChargeGroupsByDay = Map<string, ChargeGroupsOfDay>;

type ChargedRequest = {
  readonly seq: number;
  readonly at: number;
  readonly keyId: string;
  readonly generation: Omit<Generation, "keyId">;
  readonly cost: number;
  readonly charged: number;
};

/**
 * Adds settled requests to the daily totals for exports, by day of settlement. Skips requests newer
 * than the oldest open hold. Returns true if more may remain.
 */
export function foldChargesIntoTotals(tx: Tx): boolean {
  const { sql, memory, storage } = tx;
  const before = readDailyTotalsProgress(sql);
  const floorId = findLowestFutureId(tx);
  if (floorId <= before.foldedId) return false;
  const batch = { fromId: before.foldedId, endId: floorId, only: "true" };
  const { charges, lastId } = selectCharges(sql, memory.tagKeys, { ...batch, limit: BATCH_ROWS });
  const foldedId = lastId === null ? floorId : `${lastId}0`; // this ID sorts directly after lastId
  storage.transactionSync(() => {
    storeCharges(sql, charges);
    const closed = lastId === null ? newestClosedDay(floorId) : "";
    const closedDay = closed > before.closedDay ? closed : before.closedDay;
    writeDailyTotalsProgress(sql, { foldedId, closedDay });
  });
  return lastId !== null;
}

/** Reports whether the daily totals lack charges of a past day. */
export function isChargeFoldDue(tx: Tx): boolean {
  return newestClosedDay(findLowestFutureId(tx)) > readDailyTotalsProgress(tx.sql).closedDay;
}

/**
 * Returns the newest day with final charges. Requests with IDs of at least `floorId` can't add
 * charges to it.
 */
function newestClosedDay(floorId: string): string {
  const ms = creationTimeOfHoldId(floorId);
  return ms === null ? "" : periodOf(ms - REQUEST_ID_AGE_MAX_MS - DAY_MS).day;
}

/** A range of request IDs, and an SQL condition. */
export type RequestBatch = {
  readonly fromId: string;
  readonly endId: string;
  readonly only: string;
  readonly limit?: number;
};

/** Selects charges except late ones, which were added to the daily totals when posted. */
function selectCharges(
  sql: SqlStorage,
  tagKeys: readonly TagKeys[],
  { fromId, endId, only, limit = -1 }: RequestBatch,
): { readonly charges: ChargeGroupsByDay; readonly lastId: string | null } {
  const charges: ChargeGroupsByDay = new Map();
  const rows = sql
    .exec<StoredCharge>(
      `SELECT id, seq, settled_at, (SELECT text FROM names WHERE number = key) AS key_id,
        (SELECT text FROM names WHERE number = sold) AS sold, prompt_tokens, completion_tokens, detail,
        cost, charged
      FROM requests WHERE id >= ? AND id < ? AND state = 'settled' AND late = 0 AND ${only}
      ORDER BY id LIMIT ?`,
      fromId,
      endId,
      limit,
    )
    .toArray();
  for (const row of rows) addChargeToDay(charges, tagKeys, chargeFromRow(row));
  return { charges, lastId: rows.length === limit ? (rows.at(-1)?.id ?? null) : null };
}

type StoredCharge = {
  id: string;
  seq: number;
  settled_at: number;
  key_id: string;
  sold: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  detail: string | null;
  cost: number;
  charged: number;
};

function chargeFromRow(row: StoredCharge): ChargedRequest {
  const { seq, settled_at: at, key_id: keyId, cost, charged } = row;
  return { seq, at, keyId, generation: parseGeneration(row), cost, charged };
}

export function addChargeToDay(
  charges: ChargeGroupsByDay,
  tagKeys: readonly TagKeys[],
  one: ChargedRequest,
): void {
  const { day } = periodOf(one.at);
  const groups = charges.get(day) ?? new Map<string, ChargeGroup>();
  const { model, provider, region, price, usage, tags } = one.generation;
  const lines: Record<string, number> = {};
  for (const [what, n] of listChargeLines(price, usage)) if (n > 0) lines[what] = n;
  addChargeGroup(groups, {
    keyId: one.keyId,
    model,
    provider,
    region,
    price,
    tags: declaredTagsToJson(tags, findTagKeysDeclaredAt(tagKeys, one.seq)) ?? "",
    requests: 1,
    costMicro: micros(one.cost),
    chargedMicro: micros(one.charged),
    lines,
  });
  charges.set(day, groups);
}

/** Adds charges to the daily totals. Late charges of a closed day count on the next open day. */
export function storeCharges(sql: SqlStorage, charges: ChargeGroupsByDay): void {
  const { closedDay } = readDailyTotalsProgress(sql);
  for (const [day, groups] of charges) {
    const open = day > closedDay ? day : periodOf(Date.parse(closedDay) + DAY_MS).day;
    storeChargeGroups(sql, open, withBoundedTags(sql, open, groups));
  }
}

function withBoundedTags(
  sql: SqlStorage,
  day: string,
  groups: ChargeGroupsOfDay,
): ChargeGroupsOfDay {
  if (![...groups.values()].some(({ tags }) => tags !== "")) return groups;
  const sets = new TagCombinationsOfDay(selectTagsOfDay(sql, day));
  const bounded: ChargeGroupsOfDay = new Map();
  for (const group of groups.values()) {
    addChargeGroup(
      bounded,
      group.tags === "" ? group : { ...group, tags: sets.assignGroup(group.tags) },
    );
  }
  return bounded;
}

/** Returns the charges that the daily totals don't include yet. */
export function selectUnfoldedCharges({ sql, memory }: Tx, batch: RequestBatch): ChargeGroupsByDay {
  const { foldedId } = readDailyTotalsProgress(sql);
  const fromId = batch.fromId > foldedId ? batch.fromId : foldedId;
  return selectCharges(sql, memory.tagKeys, { ...batch, fromId }).charges;
}

/** Returns a page of a day's charges, including requests that aren't in the daily totals yet. */
export function readCharges(tx: Tx, { day, after, limit }: ChargesQuery): ChargesPage {
  const { sql } = tx;
  const { closedDay, foldedId } = readDailyTotalsProgress(sql);
  const isClosed = day <= closedDay;
  const page = { after: after ?? "", limit: limit + 1 };
  const groups = isClosed
    ? selectChargeGroups(sql, day, page)
    : groupsOfOpenDay(tx, day, foldedId, page);
  const shown = groups.slice(0, limit);
  const last = groups.length > limit ? shown.at(-1) : undefined;
  return {
    groups: shown,
    credits: after === null ? creditsOfDay(sql, day) : [],
    nextAfter: last === undefined ? null : chargeGroupKey(last),
    completeThrough: closedDay === "" ? null : closedDay,
  };
}

function groupsOfOpenDay(
  { sql, memory }: Tx,
  day: string,
  foldedId: string,
  { after, limit }: { readonly after: string; readonly limit: number },
): ChargeGroup[] {
  const groups: ChargeGroupsOfDay = new Map();
  const later = selectCharges(sql, memory.tagKeys, {
    fromId: foldedId,
    endId: MAX_ID,
    only: "true",
  });
  for (const one of selectChargeGroups(sql, day, { after: "", limit: -1 })) {
    addChargeGroup(groups, one);
  }
  const unfolded = withBoundedTags(sql, day, later.charges.get(day) ?? new Map());
  for (const one of unfolded.values()) addChargeGroup(groups, one);
  return [...groups.entries()]
    .filter(([name]) => name > after)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, limit)
    .map(([, group]) => group);
}

function creditsOfDay(sql: SqlStorage, day: string): LedgerCredit[] {
  const fromMs = Date.parse(day);
  return sql
    .exec<LedgerCredit>(
      `SELECT seq, amount AS amountMicro, reference FROM entries
      WHERE kind = 'credit' AND created_at >= ? AND created_at < ? ORDER BY seq`,
      fromMs,
      fromMs + DAY_MS,
    )
    .toArray();
}
