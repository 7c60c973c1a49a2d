import { FAILURE_DIMENSIONS } from "../../../shared/failed-request.ts";
import type {
  FailureBatch,
  FailedRequest,
  HourlyFailureCount,
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
  selectFailedRequestCounts,
  selectStoredFailedRequests,
  selectFailuresStoredSince,
} from "../tables/failed-rows.do.ts";
import { findDeletedEndUser } from "./end-users.do.ts";
import { retentionStartMs } from "./memory.do.ts";
import type { Tx } from "./memory.do.ts";
import { HOUR_MS } from "../../../shared/clock.ts";
import type { ProviderCalls, ProviderCallsReport } from "../../../shared/contracts/reports.ts";
import { isUnfinishedProviderCallReason } from "../../../shared/generation.ts";
import type { FailedAttempt } from "../../../shared/generation.ts";
import { FAILED_PROVIDER_CALLS_SQL, CAPTURED_HOLD_PURPOSE_SQL } from "../tables/generation-json.ts";
import { findReportStart } from "./request-usage.do.ts";

export function storeFailures(tx: Tx, batch: FailureBatch): Result<null> {
  if (tx.memory.storageState.isFull) return refuse({ kind: "storage_unavailable" });
  const fromMs = retentionStartMs(tx);
  const requests = batch.requests.map((one) => replaceDeletedName(tx, one));
  tx.storage.transactionSync(() => insertFailedRequests(tx.sql, { ...batch, requests }, fromMs));
  return success(null);
}

/** Replaces a deleted end user's external ID with the end user's ID. */
function replaceDeletedName(tx: Tx, one: FailedRequest): FailedRequest {
  const departed = one.externalId === null ? null : findDeletedEndUser(tx, one.externalId);
  return departed === null ? one : { ...one, externalId: departed.user.id };
}

export function readFailureReport({ sql }: Tx, query: FailureQuery): Result<FailureReport> {
  return success({ counts: readFailureCounts(sql, query) });
}

export function readStoredFailureReport(
  { sql, nowMs }: Tx,
  query: StoredFailureQuery,
): StoredFailureReport {
  const kept = selectStoredFailedRequests(sql, query.fromMs, query.beforeMs).filter(
    hasKeyIn(query.keyIds),
  );
  const groups = new Map<string | null, FailureGroup>();
  for (const one of kept) {
    if (!matchesFilters(one, query.only)) continue;
    const group = GROUP_OF[query.by](one);
    const known = groups.get(group) ?? { group, count: 0, lastAt: 0, lastId: "" };
    known.count += 1;
    Object.assign(known, one.at >= known.lastAt && { lastAt: one.at, lastId: one.id });
    groups.set(group, known);
  }
  const data = [...groups.values()].toSorted((a, b) => b.count - a.count);
  const wholeMs = completeFromMs(query, readFailureCounts(sql, query), kept);
  return { groups: data, completeFrom: Math.min(wholeMs, query.beforeMs, nowMs) };
}

const GROUP_OF: Readonly<Record<FailureDimension, (one: FailedRequest) => string | null>> = {
  model: ({ model, askedModel }) => model ?? askedModel,
  provider: ({ attempts }) => attempts.at(-1)?.route.split(":")[0] ?? null,
  user: ({ externalId }) => externalId,
};

function matchesFilters(one: FailedRequest, only: StoredFailureQuery["only"]): boolean {
  return FAILURE_DIMENSIONS.every((name) => {
    const named = only[name];
    return named === null || named.includes(GROUP_OF[name](one) ?? "");
  });
}

function readFailureCounts(
  sql: SqlStorage,
  { fromMs, beforeMs, keyIds }: FailureQuery,
): HourlyFailureCount[] {
  return selectFailedRequestCounts(sql, fromMs, beforeMs).filter(hasKeyIn(keyIds));
}

function hasKeyIn(keyIds: FailureQuery["keyIds"]): (one: { readonly keyId: string }) => boolean {
  return ({ keyId }) => keyIds?.includes(keyId) ?? true;
}

/** Returns the later of `fromMs` and the time (Unix ms) since which all failures are stored. */
function completeFromMs(
  { fromMs }: FailureQuery,
  counts: readonly HourlyFailureCount[],
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

/** 4xx statuses that are the provider's fault, not the request's. */
const PROVIDER_STATUSES: ReadonlySet<number> = new Set([401, 403, 408, 429]);

function isProviderFault({ why, status }: FailedAttempt): boolean {
  if (isUnfinishedProviderCallReason(why)) return false;
  return status === undefined || status >= 500 || PROVIDER_STATUSES.has(status);
}

type RecoveredCount = { route: string; why: string; status: number | null; count: number };

/**
 * Returns each provider's served and failed calls since `fromMs`, or since data is complete if that
 * is later. A failover counts as one failed call for each earlier provider.
 */
export function readProviderCalls(tx: Tx, fromMs: number): ProviderCallsReport {
  const { sql, nowMs } = tx;
  const keptMs = Math.max(fromMs, selectFailuresStoredSince(sql));
  const { fromId, fromMs: completeFrom } = findReportStart(tx, { fromMs: keptMs, beforeMs: nowMs });
  const calls = new Map<string, ProviderCalls>();
  const of = (provider: string): ProviderCalls => {
    const known = calls.get(provider) ?? { provider, served: 0, failed: {} };
    calls.set(provider, known);
    return known;
  };
  const countFailed = (one: FailedAttempt, count: number): void => {
    if (!isProviderFault(one)) return;
    const { failed } = of(one.route.split(":", 1).join());
    failed[one.why] = (failed[one.why] ?? 0) + count;
  };
  const kept = selectStoredFailedRequests(sql, completeFrom, Number.MAX_SAFE_INTEGER);
  const failedIds = JSON.stringify(kept.map(({ id }) => id.slice(id.indexOf("_"))));
  const settled = `requests.id >= ?1 AND admitted_at >= ?2 AND state = 'settled'
    AND substr(requests.id, instr(requests.id, '_')) NOT IN (SELECT value FROM json_each(?3))`;
  const bindings = [fromId, completeFrom, failedIds] as const;
  const served = sql.exec<{ provider: string; served: number }>(
    `SELECT names.text ->> '$.provider' AS provider, count(*) AS served
    FROM requests JOIN names ON names.number = sold
    WHERE ${settled} AND ${CAPTURED_HOLD_PURPOSE_SQL} IS NULL GROUP BY provider`,
    ...bindings,
  );
  for (const { provider, served: count } of served) of(provider).served = count;
  for (const one of kept.flatMap(({ attempts }) => attempts)) countFailed(one, 1);
  const recovered = sql.exec<RecoveredCount>(
    `SELECT attempt.value ->> '$.route' AS route, attempt.value ->> '$.why' AS why,
      attempt.value ->> '$.status' AS status, count(*) AS count
    FROM requests JOIN json_each(${FAILED_PROVIDER_CALLS_SQL}) AS attempt
    WHERE ${settled} AND json_array_length(${FAILED_PROVIDER_CALLS_SQL}) > 0 GROUP BY 1, 2, 3`,
    ...bindings,
  );
  for (const { count, status, ...one } of recovered) {
    countFailed(status === null ? one : { ...one, status }, count);
  }
  return { data: [...calls.values()], completeFrom };
}
