import type { ProviderCalls, ProviderCallsReport } from "../../../shared/contracts/reports.ts";
import type { FailedAttempt } from "../../../shared/generation.ts";
import { failuresStoredSince, selectStoredFailures } from "../tables/failed-rows.do.ts";
import { FAILED_ATTEMPTS_SQL, CAPTURED_PURPOSE_SQL } from "../tables/generation-text.ts";
import type { Tx } from "./memory.do.ts";
import { findReportStart } from "./request-usage.do.ts";

/** 4xx statuses that are the provider's fault, not the request's. */
const PROVIDER_STATUSES: ReadonlySet<number> = new Set([401, 403, 408, 429]);

function isProviderFault({ status }: FailedAttempt): boolean {
  return status === undefined || status >= 500 || PROVIDER_STATUSES.has(status);
}

type RecoveredCount = { route: string; why: string; status: number | null; count: number };

/**
 * Returns each provider's served and failed calls since `fromMs`, or since data is complete. A
 * failover counts as a failed call of each earlier provider.
 */
export function readProviderCalls(tx: Tx, fromMs: number): ProviderCallsReport {
  const { sql, nowMs } = tx;
  const keptMs = Math.max(fromMs, failuresStoredSince(sql));
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
  const kept = selectStoredFailures(sql, completeFrom, Number.MAX_SAFE_INTEGER);
  const failedIds = JSON.stringify(kept.map(({ id }) => id.slice(id.indexOf("_"))));
  const settled = `requests.id >= ?1 AND admitted_at >= ?2 AND state = 'settled'
    AND substr(requests.id, instr(requests.id, '_')) NOT IN (SELECT value FROM json_each(?3))`;
  const bindings = [fromId, completeFrom, failedIds] as const;
  const served = sql.exec<{ provider: string; served: number }>(
    `SELECT names.text ->> '$.provider' AS provider, count(*) AS served
    FROM requests JOIN names ON names.number = sold
    WHERE ${settled} AND ${CAPTURED_PURPOSE_SQL} IS NULL GROUP BY provider`,
    ...bindings,
  );
  for (const { provider, served: count } of served) of(provider).served = count;
  for (const one of kept.flatMap(({ attempts }) => attempts)) countFailed(one, 1);
  const recovered = sql.exec<RecoveredCount>(
    `SELECT attempt.value ->> '$.route' AS route, attempt.value ->> '$.why' AS why,
      attempt.value ->> '$.status' AS status, count(*) AS count
    FROM requests JOIN json_each(${FAILED_ATTEMPTS_SQL}) AS attempt
    WHERE ${settled} AND json_array_length(${FAILED_ATTEMPTS_SQL}) > 0 GROUP BY 1, 2, 3`,
    ...bindings,
  );
  for (const { count, status, ...one } of recovered) {
    countFailed(status === null ? one : { ...one, status }, count);
  }
  return { data: [...calls.values()], completeFrom };
}
