import * as z from "zod/mini";
import type { AppContext } from "../../http/context.ts";
import type { Answer, View } from "../../http/endpoint.ts";
import { once, parseQuery, wholeNumber } from "../../http/parse-body.ts";
import { now } from "../../lib/clock.ts";
import { invalid, success } from "../../lib/failure.ts";
import type { Result } from "../../lib/failure.ts";
import { periodOf } from "../../lib/period.ts";
import { USAGE_GROUPS_MAX } from "../rules/usage-totals.ts";
import type {
  UsageReport,
  UsagePage,
  UsageAmounts,
  UsageGroupBy,
} from "../../contracts/reports.ts";
import { askOwnWallet } from "./reads.route.ts";

/** GET /v1/usage?from&to&group_by&limit&after: what the organisation used and paid, always current. */
export async function usageRoute(c: AppContext): Promise<Answer> {
  const asked = usageQuery(c.req.url, now(c.env));
  if (!asked.ok) return asked;
  const { from, to, groupBy, page } = asked.value;
  const answer = await askOwnWallet(c, (wallet) => wallet.usage(from, to, groupBy, page));
  return answer.ok ? success(usageView(asked.value, answer.value)) : answer;
}

export const DAY_MS = 86_400_000;
const DAYS_DEFAULT = 30;
const DAYS_MAX = 366;

/** Which days (YYYY-MM-DD, UTC, both inclusive), how they are grouped, and which groups. */
export type UsageQuery = {
  readonly from: string;
  readonly to: string;
  readonly groupBy: UsageGroupBy;
  readonly page: UsagePage;
};

/** A UTC day of a query, YYYY-MM-DD. */
export const day = once.check(
  z.refine((text) => startOf(text) !== null, "must be a date that exists, as YYYY-MM-DD"),
);

export const usageParameters = z.object({
  from: z.optional(day),
  to: z.optional(day),
  group_by: z._default(
    z.enum(["day", "model", "key", "user", "day,model", "day,key", "day,user"]),
    "day",
  ),
  limit: wholeNumber(1, USAGE_GROUPS_MAX, USAGE_GROUPS_MAX),
  after: z._default(z.nullable(once), null),
});

/** Where a page of usage by day and something more goes on. */
const DAY_AND_NAME = /^\d{4}-\d\d-\d\d,/;

/**
 * `from`, `to`, `group_by`, `limit` and `after` of a URL; `to` is today and `from` makes it 30 days unless given. 400
 * with `param` for a date that does not exist, `from` after `to`, or more than 366 days.
 */
export function usageQuery(url: string, nowMs: number): Result<UsageQuery> {
  const fields = parseQuery(usageParameters, url);
  if (!fields.ok) return fields;
  const { to = periodOf(nowMs).day, group_by: groupBy, limit, after } = fields.value;
  const { from = daysBefore(to, DAYS_DEFAULT - 1) } = fields.value;
  if (from > to) return invalid(`from must not be after to, which is ${to}.`, "from");
  if (from < daysBefore(to, DAYS_MAX - 1)) {
    return invalid(`from must be at most ${DAYS_MAX} days up to and with ${to}.`, "from");
  }
  if (groupBy.includes(",") && !(after === null || DAY_AND_NAME.test(after))) {
    return invalid("after must be a next_after.", "after");
  }
  return success({ from, to, groupBy, page: { limit, after } });
}

/**
 * The JSON of a usage report; a group is a day, a model, a key's id or an external_id. `next_after` only
 * where more groups follow.
 */
export function usageView(asked: UsageQuery, report: UsageReport): View {
  return {
    from: asked.from,
    to: asked.to,
    group_by: asked.groupBy,
    data: report.data.map(({ day: on, group, ...amounts }) => {
      return { ...(on !== undefined && { day: on }), group, ...amountsView(amounts) };
    }),
    total: amountsView(report.total),
    ...(report.nextAfter !== null && { next_after: report.nextAfter }),
  };
}

function amountsView(amounts: UsageAmounts): object {
  return {
    requests: amounts.requests,
    prompt_tokens: amounts.promptTokens,
    cached_tokens: amounts.cachedTokens,
    completion_tokens: amounts.completionTokens,
    cost_micro: amounts.costMicro,
  };
}

/** When a day begins, Unix ms; null when there is no such day. */
export function startOf(text: string): number | null {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return null;
  const ms = Date.parse(text);
  return Number.isNaN(ms) || periodOf(ms).day !== text ? null : ms;
}

/** The day so many days before; never one before the year 0, whose days do not sort. */
function daysBefore(text: string, days: number): string {
  const ms = (startOf(text) ?? 0) - days * DAY_MS;
  return periodOf(Math.max(ms, Date.parse("0000-01-01"))).day;
}
