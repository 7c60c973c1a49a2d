import * as z from "zod/mini";
import type { AppContext } from "../../../shared/http/context.ts";
import { singleValueSchema, parseQuery } from "../../../shared/http/parse-body.ts";
import { DAY_MS, now, timestamp } from "../../../shared/clock.ts";
import { FAILURE_DIMENSIONS } from "../../../shared/failed-request.ts";
import type {
  HourlyFailureCount,
  FailureQuery,
  StoredFailureQuery,
  StoredFailureReport,
} from "../../../shared/failed-request.ts";
import { invalid, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { periodOf } from "../../../shared/period.ts";
import { findReadableKeyIds } from "./generations.route.ts";
import type { ReadMemberKeyIds } from "./generations.route.ts";
import { callWalletOfCaller } from "./reads.route.ts";
import { daySchema, listFilterSchema, parseDayStartMs } from "./usage.route.ts";

/** The groupings that need only counters. The others need stored failures. */
const COUNTED_BY = ["code", "key", "hour", "hour,code"] as const;
export const errorsQuerySchema = z.object({
  from: z.optional(daySchema),
  to: z.optional(daySchema),
  group_by: z._default(z.enum([...COUNTED_BY, ...FAILURE_DIMENSIONS]), "code"),
  key_id: z.optional(listFilterSchema),
  model: z.optional(listFilterSchema),
  provider: z.optional(listFilterSchema),
  external_id: z.optional(singleValueSchema.check(z.minLength(1), z.maxLength(256))),
});
type ErrorsFields = z.infer<typeof errorsQuerySchema>;
type GroupBy = (typeof COUNTED_BY)[number];

/**
 * Handles GET /v1/errors. If grouped by hour, code or key, counts all failures. Otherwise, counts
 * only stored failures, which are complete since `complete_from`. Members see only their own keys.
 */
export function readErrorsRoute(memberKeys: ReadMemberKeyIds) {
  return async (c: AppContext) => {
    const query = parseQuery(errorsQuerySchema, c.req.url);
    if (!query.ok) return query;
    const { to = periodOf(now(c.env)).day, from = to, group_by: groupBy } = query.value;
    const fromMs = parseDayStartMs(from) ?? 0;
    const beforeMs = (parseDayStartMs(to) ?? 0) + DAY_MS;
    if (fromMs >= beforeMs) return invalid("from must not be after to.", "from");
    const keys = await findReadableKeyIds(c, memberKeys, query.value.key_id ?? null);
    if (!keys.ok) return keys;
    const days = { from, to, group_by: groupBy };
    return readErrors(c, { ...query.value, days }, { fromMs, beforeMs, keyIds: keys.value });
  };
}

type Days = {
  readonly from: string;
  readonly to: string;
  readonly group_by: ErrorsFields["group_by"];
};

async function readErrors(
  c: AppContext,
  requested: ErrorsFields & { readonly days: Days },
  query: FailureQuery,
) {
  const { days } = requested;
  const kept = storedFailureQuery(requested, query);
  if (!kept.ok) return kept;
  if (kept.value !== null) {
    const of = kept.value;
    const report = await callWalletOfCaller(c, (wallet) => wallet.keptFailures(of));
    return report.ok ? success({ ...days, ...storedFailuresView(report.value) }) : report;
  }
  const report = await callWalletOfCaller(c, (wallet) => wallet.failures(query));
  if (!report.ok) return report;
  const { counts } = report.value;
  const total = counts.reduce((sum, one) => sum + one.count, 0);
  const by = COUNTED_BY.find((name) => name === requested.group_by) ?? "code";
  return success({ ...days, data: groupCounts(counts, by), total });
}

function storedFailureQuery(
  fields: ErrorsFields,
  query: FailureQuery,
): Result<StoredFailureQuery | null> {
  const { group_by, model = null, provider = null, external_id } = fields;
  const only = { model, provider, user: external_id === undefined ? null : [external_id] };
  const by = FAILURE_DIMENSIONS.find((name) => name === group_by);
  if (by !== undefined) return success({ ...query, by, only });
  const filters = { model, provider, external_id: only.user };
  const [wrong] = Object.entries(filters).find(([, named]) => named !== null) ?? [];
  if (wrong === undefined) return success(null);
  return invalid(`${wrong} requires group_by ${FAILURE_DIMENSIONS.join(", ")}.`, wrong);
}

function storedFailuresView({ groups, completeFrom }: StoredFailureReport) {
  return {
    data: groups.map(({ group, count, lastAt, lastId }) => ({
      group,
      count,
      last_at: timestamp(lastAt),
      last_id: lastId,
    })),
    total: groups.reduce((sum, { count }) => sum + count, 0),
    complete_from: timestamp(completeFrom),
  };
}

function groupCounts(counts: readonly HourlyFailureCount[], by: GroupBy) {
  const groups = Map.groupBy(counts, (one) => groupKey(one, by));
  const isTimed = by !== "code" && by !== "key";
  return [...groups.values()]
    .map((ones) => groupView(ones, by))
    .toSorted((a, b) => (isTimed ? 0 : b.count - a.count));
}

function groupKey({ code, hour, keyId }: HourlyFailureCount, by: GroupBy): string {
  const hourly = by === "hour" ? "" : code;
  if (by === "code") return code;
  return by === "key" ? keyId : `${hour} ${hourly}`;
}

function groupView(ones: readonly HourlyFailureCount[], by: GroupBy) {
  const newest = ones.reduce((a, b) => (b.lastAt > a.lastAt ? b : a));
  const isTimed = by === "hour" || by === "hour,code";
  return {
    ...(isTimed && { hour: timestamp(newest.hour) }),
    ...(by !== "hour" && { group: by === "key" ? newest.keyId : newest.code }),
    ...((by === "code" || by === "hour,code") && { status: newest.status }),
    count: ones.reduce((sum, one) => sum + one.count, 0),
    last_at: timestamp(newest.lastAt),
    last_id: newest.lastId,
  };
}
