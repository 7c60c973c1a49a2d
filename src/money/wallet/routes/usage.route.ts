import * as z from "zod/mini";
import type { AppContext } from "../../../shared/http/context.ts";
import {
  singleValueSchema,
  parseQuery,
  wholeNumberParameterWithDefault,
} from "../../../shared/http/parse-body.ts";
import { queryDatabase } from "../../../shared/query-database.ts";
import { DAY_MS, HOUR_MS, now, timestamp } from "../../../shared/clock.ts";
import { invalid, success } from "../../../shared/failure.ts";
import type { Result } from "../../../shared/failure.ts";
import { periodOf } from "../../../shared/period.ts";
import { usageAmountsView } from "../../../shared/usage-sums.ts";
import { USAGE_GROUPS_MAX } from "../rules/usage-totals.ts";
import type { WalletMethods } from "../../../shared/contracts/wallet.ts";
import type {
  MemberIdByKeyId,
  RequestDimension,
  RequestGroup,
  RequestSumsQuery,
  RequestSumsReport,
  TagFilter,
  UsageReport,
  UsagePage,
  UsageGroupBy,
} from "../../../shared/contracts/reports.ts";
import { callWalletOfCaller } from "./reads.route.ts";

type ReadKeyMembers = (db: D1Database, orgId: string) => Promise<MemberIdByKeyId>;

export function readUsageRoute(readKeyMembers: ReadKeyMembers) {
  return async (c: AppContext) => {
    const { orgId } = c.var.admitted.caller;
    return readUsageReport(c.req.url, now(c.env), {
      ask: (call) => callWalletOfCaller(c, call),
      members: () =>
        queryDatabase(() => readKeyMembers(c.env.DB, orgId), "members_unreadable", {
          org_id: orgId,
        }),
    });
  };
}

type UsageSources = {
  readonly ask: <T>(
    call: (
      wallet: Pick<WalletMethods, "usage" | "usageOfRows" | "usageByMember">,
    ) => Promise<Result<T>>,
  ) => Promise<Result<T>>;
  readonly members: () => Promise<Result<MemberIdByKeyId>>;
};

export async function readUsageReport(url: string, nowMs: number, sources: UsageSources) {
  const fields = parseQuery(usageQuerySchema, url);
  if (!fields.ok) return fields;
  return usesDailyTotals(fields.value)
    ? readDailyUsage(fields.value, nowMs, sources)
    : readRequestUsage(fields.value, nowMs, sources);
}

async function readDailyUsage(fields: Fields, nowMs: number, { ask }: UsageSources) {
  const query = toDailyQuery(fields, nowMs);
  if (!query.ok) return query;
  const { from, to, groupBy, page } = query.value;
  const answer = await ask((wallet) => wallet.usage(from, to, groupBy, page));
  return answer.ok ? success(usageView(query.value, answer.value)) : answer;
}

async function readRequestUsage(fields: Fields, nowMs: number, { ask, members }: UsageSources) {
  const range = toRequestRange(fields, nowMs);
  if (!range.ok) return range;
  const { from, to, fromMs, beforeMs } = range.value;
  const { group_by: groupBy, member_id: memberIds = null } = fields;
  const by = groupBy.split(",") as RequestDimension[];
  const isByMember = by.includes("member");
  const known = isByMember || memberIds !== null ? await members() : success(null);
  if (!known.ok) return known;
  const filters = requestFilters(fields);
  const keyIds = filterKeyIds(filters, memberIds, known.value);
  const query = { fromMs, beforeMs, by, ...filters, members: known.value, keyIds };
  const answer = await ask((wallet) =>
    isByMember ? wallet.usageByMember(query) : wallet.usageOfRows(query),
  );
  return answer.ok ? success(rowsView({ from, to, groupBy }, by, answer.value)) : answer;
}

const DAYS_DEFAULT = 30;
const DAYS_MAX = 366;

type UsageQuery = {
  readonly from: string;
  readonly to: string;
  readonly groupBy: UsageGroupBy;
  readonly page: UsagePage;
};

/** A UTC day (YYYY-MM-DD). */
export const daySchema = singleValueSchema.check(
  z.refine((text) => parseDayStartMs(text) !== null, "must be a valid date such as 2026-11-23"),
);

const DAILY_GROUPINGS = [
  "day",
  "model",
  "key",
  "user",
  "day,model",
  "day,key",
  "day,user",
] as const;
const REQUEST_GROUPINGS = [
  "hour",
  "hour,model",
  "hour,provider",
  "hour,key",
  "hour,user",
  "provider",
  "day,provider",
  "model,provider",
  "model,key",
  "model,user",
  "provider,key",
  "provider,user",
  "key,user",
  "member",
  "hour,member",
  "day,member",
  "model,member",
  "provider,member",
  "user,member",
] as const;
const TAG_PATTERN = "tag:[A-Za-z0-9][A-Za-z0-9_./-]{0,63}";
const DAILY_GROUPING_PATTERN = new RegExp(
  `^(?:${DAILY_GROUPINGS.join("|")}|(?:day,)?${TAG_PATTERN})$`,
);
const NO_DAY_OR_HOUR = "must be a day or an hour such as 2026-11-23T14";
const dayOrHour = singleValueSchema.check(
  z.regex(/^\d{4}-\d\d-\d\d(?:T(?:[01]\d|2[0-3]))?$/, NO_DAY_OR_HOUR),
  z.refine((text) => dayOrHourStartMs(text) !== null, NO_DAY_OR_HOUR),
);
/** A query parameter with values separated by commas. */
export const listFilterSchema = z.pipe(
  singleValueSchema.check(z.minLength(1), z.maxLength(2000)),
  z.transform((list) => list.split(",")),
);
const TAG_GROUP = new RegExp(
  `^(?:(?:day|hour|model|provider|key|user|${TAG_PATTERN}),)?${TAG_PATTERN}$`,
);
const tagGrouping = singleValueSchema.check(
  z.regex(
    TAG_GROUP,
    "must be a list of day, hour, model, provider, key, user and tags, such as day,tag:team",
  ),
);
/** A filter by tag, such as `team:search`. */
export const tagFilterSchema = z.pipe(
  singleValueSchema.check(
    z.regex(new RegExp(`^${TAG_PATTERN.slice(4)}:.+$`), "must be a tag such as team:search"),
  ),
  z.transform((text): TagFilter => {
    const at = text.indexOf(":");
    return { key: text.slice(0, at), value: text.slice(at + 1) };
  }),
);
export const usageQuerySchema = z.object({
  from: z.optional(dayOrHour),
  to: z.optional(dayOrHour),
  group_by: z._default(
    z.union([z.enum([...DAILY_GROUPINGS, ...REQUEST_GROUPINGS]), tagGrouping]),
    "day",
  ),
  model: z.optional(listFilterSchema),
  provider: z.optional(listFilterSchema),
  key_id: z.optional(listFilterSchema),
  external_id: z.optional(singleValueSchema.check(z.maxLength(256))),
  member_id: z.optional(listFilterSchema),
  tag: z.optional(tagFilterSchema),
  with: z.optional(z.enum(["latency"])),
  limit: wholeNumberParameterWithDefault(1, USAGE_GROUPS_MAX, USAGE_GROUPS_MAX),
  after: z._default(z.nullable(singleValueSchema), null),
});

const DAY_AND_NAME = /^\d{4}-\d\d-\d\d,/;

/** Returns a query of daily totals, by default for the 30 days up to today. */
export function toDailyQuery(fields: Fields, nowMs: number): Result<UsageQuery> {
  const { to = periodOf(nowMs).day, group_by, limit, after } = fields;
  const groupBy = group_by as UsageGroupBy; // queries by other groupings read individual requests
  const { from = daysBefore(to, DAYS_DEFAULT - 1) } = fields;
  if (from > to) return invalid(`from must not be after to, which is ${to}.`, "from");
  if (from < daysBefore(to, DAYS_MAX - 1)) {
    return invalid(
      `from is too early: the period until the end of ${to} can't exceed ${DAYS_MAX} days.`,
      "from",
    );
  }
  if (groupBy.includes(",") && !(after === null || DAY_AND_NAME.test(after))) {
    return invalid("after must be the next_after of an earlier response.", "after");
  }
  return success({ from, to, groupBy, page: { limit, after } });
}

function usageView(query: UsageQuery, report: UsageReport) {
  return {
    from: query.from,
    to: query.to,
    group_by: query.groupBy,
    data: report.data.map(({ day: on, group, ...amounts }) => {
      return { ...(on !== undefined && { day: on }), group, ...usageAmountsView(amounts) };
    }),
    total: usageAmountsView(report.total),
    ...(report.nextAfter !== null && { next_after: report.nextAfter }),
  };
}

const HOURS_MAX = 72;

type Fields = z.infer<typeof usageQuerySchema>;

function toRequestRange(fields: Fields, nowMs: number) {
  const { group_by: groupBy, to = periodOf(nowMs).day, from = to.slice(0, 10) } = fields;
  const fromMs = dayOrHourStartMs(from) ?? 0;
  const beforeMs = (dayOrHourStartMs(to) ?? 0) + (to.includes("T") ? HOUR_MS : DAY_MS);
  if (fromMs >= beforeMs) return invalid(`from must not be after to, which is ${to}.`, "from");
  if (groupBy.startsWith("hour") && beforeMs - fromMs > HOURS_MAX * HOUR_MS) {
    return invalid(
      `from is too early: the period until the end of ${to} can't exceed ${HOURS_MAX} hours.`,
      "from",
    );
  }
  return success({ from, to, fromMs, beforeMs });
}

function filterKeyIds(
  { keyIds }: Pick<RequestSumsQuery, "keyIds">,
  memberIds: readonly string[] | null,
  members: MemberIdByKeyId | null,
): readonly string[] | null {
  if (memberIds === null || members === null) return keyIds;
  const theirs = Object.keys(members).filter((id) => memberIds.includes(members[id] ?? ""));
  return keyIds === null ? theirs : theirs.filter((id) => keyIds.includes(id));
}

function requestFilters(
  fields: Fields,
): Omit<RequestSumsQuery, "fromMs" | "beforeMs" | "by" | "members"> {
  return {
    models: fields.model ?? null,
    providers: fields.provider ?? null,
    keyIds: fields.key_id ?? null,
    externalIds: fields.external_id === undefined ? null : [fields.external_id],
    tag: fields.tag ?? null,
    latency: fields.with !== undefined,
  };
}

function usesDailyTotals(fields: Fields): boolean {
  const { latency, ...lists } = { ...requestFilters(fields), members: fields.member_id ?? null };
  const isHourly = [fields.from, fields.to].some((text) => text?.includes("T") === true);
  const isDaily = DAILY_GROUPING_PATTERN.test(fields.group_by);
  return isDaily && !isHourly && !latency && Object.values(lists).every((list) => list === null);
}

type RangeFields = { readonly from: string; readonly to: string; readonly groupBy: string };

function rowsView(
  { from, to, groupBy }: RangeFields,
  by: readonly RequestDimension[],
  report: RequestSumsReport,
) {
  const { data, total, completeFrom } = report;
  return {
    from,
    to,
    group_by: groupBy,
    source: "rows" as const,
    complete_from: timestamp(completeFrom),
    data: data.map((group) => rowView(by, group)),
    total: usageAmountsView(total),
  };
}

function rowView(by: readonly RequestDimension[], { names, ...group }: RequestGroup) {
  const { firstByteMs, tokensPerSecond } = group;
  return {
    ...namesView(by, names),
    ...usageAmountsView(group),
    ...(firstByteMs !== undefined && { first_byte_ms: firstByteMs }),
    ...(tokensPerSecond !== undefined && { tokens_per_s: tokensPerSecond }),
  };
}

function namesView(by: readonly RequestDimension[], names: readonly (string | null)[]) {
  const [one = null, two = null] = names;
  const [first] = by;
  if (first !== "day" && first !== "hour") {
    return { group: one, ...(by.length > 1 && { group2: two }) };
  }
  return { [first]: one, group: by.length > 1 ? two : one };
}

function dayOrHourStartMs(text: string): number | null {
  const [, on = text, hour = "00"] = /^(\d{4}-\d\d-\d\d)T([01]\d|2[0-3])$/.exec(text) ?? [];
  const start = parseDayStartMs(on);
  return start === null ? null : start + Number(hour) * HOUR_MS;
}

/** Returns the start of a UTC day (Unix ms), or null for an invalid date. */
export function parseDayStartMs(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) || periodOf(ms).day !== text ? null : ms;
}

/** Returns the date `days` earlier, never before 0000-01-01. */
function daysBefore(text: string, days: number): string {
  const ms = (parseDayStartMs(text) ?? 0) - days * DAY_MS;
  return periodOf(Math.max(ms, Date.parse("0000-01-01"))).day;
}
