import * as z from "zod/mini";
import { parseQuery, wholeNumberParameterWithDefault } from "../shared/http/parse-body.ts";
import { MINUTE_MS, timestamp } from "../shared/clock.ts";
import { success } from "../shared/failure.ts";
import type { Result } from "../shared/failure.ts";
import { mapConcurrently } from "../shared/map-concurrently.ts";
import { callObject } from "../shared/reach-object.ts";
import type { ProviderCallsReport } from "../shared/contracts/reports.ts";
import {
  USED_DELAY_MS,
  countOrganizationsActiveSince,
  listOrganizationsActiveSince,
} from "./bills.store.ts";
import type { OperatorCall } from "./operator-context.ts";

const ORGANIZATIONS_MAX = 200;
const CONCURRENT_MAX = 6;
const MOST_AFFECTED_MAX = 10;

export const providersQuerySchema = z.object({
  minutes: wholeNumberParameterWithDefault(1, 1440, 60),
});

type Organization = { readonly id: string; readonly slug: string };
type ReportResult = readonly [Organization, Result<ProviderCallsReport>];

/**
 * Handles `GET /providers`. Sums the calls of the most recently used wallets. Excludes failures
 * that clients caused.
 */
export async function getProviders(call: OperatorCall) {
  const fields = parseQuery(providersQuerySchema, call.url);
  if (!fields.ok) return fields;
  const fromMs = call.now - fields.value.minutes * MINUTE_MS;
  const [organizations, active] = await Promise.all([
    listOrganizationsActiveSince(call.db, fromMs - USED_DELAY_MS, ORGANIZATIONS_MAX),
    countOrganizationsActiveSince(call.db, fromMs - USED_DELAY_MS),
  ]);
  const answered = await mapConcurrently(
    CONCURRENT_MAX,
    organizations,
    async (one): Promise<ReportResult> => {
      const read = () => call.wallet(one.id).providerCalls(fromMs);
      return [one, await callObject(read, { attemptsMax: 1 })];
    },
  );
  const reports = answered.flatMap(([one, { ok, ...result }]) =>
    ok && "value" in result ? [[one, result.value] as const] : [],
  );
  const starts = reports.map(([, { completeFrom }]) => completeFrom);
  return success({
    complete_from: timestamp(Math.max(fromMs, ...starts)),
    data: sumByProvider(reports).toSorted((a, b) => b.failed - a.failed || b.calls - a.calls),
    active_organizations: active,
    asked_organizations: organizations.length,
    missing: answered.flatMap(([{ slug }, { ok }]) => (ok ? [] : [slug])),
  });
}

function sumByProvider(reports: readonly (readonly [Organization, ProviderCallsReport])[]) {
  const rows = reports.flatMap(([one, { data }]) => data.map((calls) => ({ ...one, ...calls })));
  return [...Map.groupBy(rows, ({ provider }) => provider)].map(([provider, callsOfProvider]) => {
    const reasons: Record<string, number> = {};
    for (const [reason, count] of callsOfProvider.flatMap(({ failed }) => Object.entries(failed))) {
      reasons[reason] = (reasons[reason] ?? 0) + count;
    }
    const affected = callsOfProvider
      .map(({ id, slug, failed }) => ({ id, slug, failed: total(failed) }))
      .filter((one) => one.failed > 0)
      .toSorted((a, b) => b.failed - a.failed);
    const failed = total(reasons);
    const calls = failed + callsOfProvider.reduce((sum, { served }) => sum + served, 0);
    return {
      provider,
      calls,
      failed,
      error_rate: Number((failed / calls).toFixed(4)),
      reasons,
      affected_organizations: affected.length,
      most_affected: affected.slice(0, MOST_AFFECTED_MAX),
    };
  });
}

function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
