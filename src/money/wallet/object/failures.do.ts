import { numberVar } from "../../../shared/config/config.ts";
import type {
  FailureBatch,
  FailedRequest,
  FailureCount,
  FailureDimension,
  FailureGroup,
  FailureQuery,
  FailureReport,
  StoredFailureQuery,
  StoredFailureReport,
} from "../../../shared/failed-request.ts";
import { refuse, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import {
  insertFailedRequests,
  selectFailureCounts,
  selectStoredFailures,
} from "../tables/failed-rows.do.ts";
import { findDeletedEndUser } from "./end-users.do.ts";
import type { Tx } from "./memory.do.ts";
import { DAY_MS, HOUR_MS } from "../../../shared/clock.ts";

export function storeFailures(tx: Tx, batch: FailureBatch): Result<null> {
  if (tx.memory.storageState.isFull) return refuse({ kind: "storage_unavailable" });
  const fromMs = tx.nowMs - numberVar(tx.env, "RETENTION_DAYS") * DAY_MS;
  const requests = batch.requests.map((one) => replaceDeletedName(tx, one));
  tx.storage.transactionSync(() => insertFailedRequests(tx.sql, { ...batch, requests }, fromMs));
  return success(null);
}

/**
 * Replaces the external ID of an end user deleted this month. Failures can be reported after the
 * deletion.
 */
function replaceDeletedName(tx: Tx, one: FailedRequest): FailedRequest {
  const departed = one.externalId === null ? null : findDeletedEndUser(tx, one.externalId);
  return departed === null ? one : { ...one, externalId: departed.user.id };
}

export function readFailures({ sql }: Tx, query: FailureQuery): Result<FailureReport> {
  return success({ counts: readFailureCounts(sql, query) });
}

export function readStoredFailures(
  { sql, nowMs }: Tx,
  query: StoredFailureQuery,
): StoredFailureReport {
  const kept = selectStoredFailures(sql, query.fromMs, query.beforeMs).filter(
    hasKeyIn(query.keyIds),
  );
  const groups = new Map<string | null, FailureGroup>();
  for (const one of kept) {
    if (!matchesFilters(one, query.only)) continue;
    const group = DIMENSIONS[query.by](one);
    const known = groups.get(group) ?? { group, count: 0, lastAt: 0, lastId: "" };
    known.count += 1;
    Object.assign(known, one.at >= known.lastAt && { lastAt: one.at, lastId: one.id });
    groups.set(group, known);
  }
  const data = [...groups.values()].toSorted((a, b) => b.count - a.count);
  const wholeMs = completeFromMs(query, readFailureCounts(sql, query), kept);
  return { groups: data, completeFrom: Math.min(wholeMs, query.beforeMs, nowMs) };
}

const DIMENSIONS: Readonly<Record<FailureDimension, (one: FailedRequest) => string | null>> = {
  model: ({ model, askedModel }) => model ?? askedModel,
  provider: ({ attempts }) => attempts.at(-1)?.route.split(":")[0] ?? null,
  user: ({ externalId }) => externalId,
};

function isDimension(name: string): name is FailureDimension {
  return name in DIMENSIONS;
}

function matchesFilters(one: FailedRequest, only: StoredFailureQuery["only"]): boolean {
  return Object.keys(DIMENSIONS).every((name) => {
    if (!isDimension(name)) return true;
    const named = only[name];
    return named === null || named.includes(DIMENSIONS[name](one) ?? "");
  });
}

function readFailureCounts(
  sql: SqlStorage,
  { fromMs, beforeMs, keyIds }: FailureQuery,
): FailureCount[] {
  return selectFailureCounts(sql, fromMs, beforeMs).filter(hasKeyIn(keyIds));
}

function hasKeyIn(keyIds: FailureQuery["keyIds"]): (one: { readonly keyId: string }) => boolean {
  return ({ keyId }) => keyIds?.includes(keyId) ?? true;
}

/** Returns the time (Unix ms) since which all failures are stored, at least `fromMs`. */
function completeFromMs(
  { fromMs }: FailureQuery,
  counts: readonly FailureCount[],
  kept: readonly FailedRequest[],
): number {
  const missing = new Map<number, number>();
  const add = (hour: number, by: number): void => {
    missing.set(hour, (missing.get(hour) ?? 0) + by);
  };
  for (const { hour, count } of counts) add(hour, count);
  for (const { at } of kept) add(at - (at % HOUR_MS), -1);
  const cut = [...missing].filter(([, lacks]) => lacks > 0).map(([hour]) => hour + HOUR_MS);
  return Math.max(fromMs, ...cut);
}
