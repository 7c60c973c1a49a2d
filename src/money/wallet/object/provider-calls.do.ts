import type { ProviderCalls, ProviderCallsReport } from "../../../shared/contracts/reports.ts";
import type { FailedAttempt } from "../../../shared/generation.ts";
import { idFloor } from "../../../shared/id.ts";
import { storedJson } from "../../../shared/stored-json.ts";
import { HOLD_ID, ID_AGE_MAX_MS } from "../rules/hold-guards.ts";
import { keptSince, selectKept } from "../tables/failed-rows.do.ts";
import { ATTEMPTS_IN_ROW, PURPOSE_IN_ROW } from "../tables/generation-text.ts";
import type { Tx } from "./memory.do.ts";

const FAILED_ROWS_MAX = 5000;
/** 4xx statuses that don't blame the request. */
const PROVIDER_STATUSES: ReadonlySet<number> = new Set([401, 403, 408, 429]);

/** Reports whether the provider, not the request, made an attempt fail. */
function isOfProvider({ status }: FailedAttempt): boolean {
  return status === undefined || status >= 500 || PROVIDER_STATUSES.has(status);
}

/**
 * Returns the calls of each provider since `fromMs`, or since the time from which all failed requests are
 * stored. A request that failed over counts a failed call of each provider before.
 */
export function readProviderCalls({ sql }: Tx, fromMs: number): ProviderCallsReport {
  const completeFrom = Math.max(fromMs, keptSince(sql));
  const range = [idFloor(HOLD_ID, completeFrom - ID_AGE_MAX_MS), completeFrom] as const;
  const calls = new Map<string, ProviderCalls>();
  const of = (provider: string): ProviderCalls => {
    const known = calls.get(provider) ?? { provider, served: 0, failed: {} };
    calls.set(provider, known);
    return known;
  };
  const kept = selectKept(sql, completeFrom, Number.MAX_SAFE_INTEGER);
  const failedIds = JSON.stringify(kept.map(({ id }) => id.slice(id.indexOf("_"))));
  const settled = `FROM requests WHERE requests.id >= ?1 AND admitted_at >= ?2 AND state = 'settled'
    AND substr(requests.id, instr(requests.id, '_')) NOT IN (SELECT value FROM json_each(?3))`;
  const served = sql.exec<{ provider: string; served: number }>(
    `SELECT names.text ->> '$.provider' AS provider, count(*) AS served
    ${settled.replace("WHERE", "JOIN names ON names.number = sold WHERE")}
      AND ${PURPOSE_IN_ROW} IS NULL GROUP BY provider`,
    ...range,
    failedIds,
  );
  for (const { provider, served: count } of served) of(provider).served = count;
  const recovered = sql.exec<{ attempts: string }>(
    `SELECT ${ATTEMPTS_IN_ROW} AS attempts ${settled} AND json_array_length(${ATTEMPTS_IN_ROW}) > 0
    ORDER BY requests.id DESC LIMIT ${FAILED_ROWS_MAX}`,
    ...range,
    failedIds,
  );
  const attempts = [
    ...kept.flatMap((one) => one.attempts),
    ...recovered.toArray().flatMap((row) => storedJson<FailedAttempt[]>(row.attempts)),
  ];
  for (const one of attempts.filter(isOfProvider)) {
    const { failed } = of(one.route.split(":", 1).join());
    failed[one.why] = (failed[one.why] ?? 0) + 1;
  }
  return { data: [...calls.values()], completeFrom };
}
