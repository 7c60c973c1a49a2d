import * as z from "zod/mini";
import type { AppContext } from "../../http/context.ts";
import type { Answer } from "../../http/endpoint.ts";
import { once, parseQuery } from "../../http/parse-body.ts";
import { DAY_MS, now, timestamp } from "../../lib/clock.ts";
import type { FailureCount } from "../../lib/failed-request.ts";
import { invalid, success } from "../../lib/failure.ts";
import { periodOf } from "../../lib/period.ts";
import { keysOf } from "./generations.route.ts";
import type { MemberKeys } from "./generations.route.ts";
import { askOwnWallet } from "./reads.route.ts";
import { day, startOf } from "./usage.route.ts";

export const errorsQuery = z.object({
  from: z.optional(day),
  to: z.optional(day),
  group_by: z._default(z.enum(["code", "key", "hour", "hour,code"]), "code"),
  key_id: z.optional(once.check(z.minLength(1), z.maxLength(256))),
});
type GroupBy = z.infer<typeof errorsQuery>["group_by"];

/**
 * GET /v1/errors?from&to&group_by&key_id: how many requests failed or were refused on the UTC days `from` to `to`
 * (today unless said), by what; a `member` sees those of its own keys. All are counted, also those that are no
 * longer kept by themselves.
 */
export function errorsRoute(memberKeys: MemberKeys): (c: AppContext) => Promise<Answer> {
  return async (c) => {
    const asked = parseQuery(errorsQuery, c.req.url);
    if (!asked.ok) return asked;
    const {
      to = periodOf(now(c.env)).day,
      from = to,
      group_by: groupBy,
      key_id: key,
    } = asked.value;
    const fromMs = startOf(from) ?? 0;
    const beforeMs = (startOf(to) ?? 0) + DAY_MS;
    if (fromMs >= beforeMs) return invalid("from must not be after to.", "from");
    const keys = await keysOf(c, memberKeys, key === undefined ? null : [key]);
    if (!keys.ok) return keys;
    const keyIds = keys.value;
    const report = await askOwnWallet(c, (wallet) => wallet.failures({ fromMs, beforeMs, keyIds }));
    if (!report.ok) return report;
    const { counts } = report.value;
    const total = counts.reduce((sum, one) => sum + one.count, 0);
    return success({ from, to, group_by: groupBy, data: grouped(counts, groupBy), total });
  };
}

/** By what was asked for, the most first; by the hour, the oldest first. */
function grouped(counts: readonly FailureCount[], by: GroupBy): object[] {
  const groups = Map.groupBy(counts, (one) => nameOf(one, by));
  const isTimed = by !== "code" && by !== "key";
  return [...groups.values()]
    .map((ones) => groupOf(ones, by))
    .toSorted((a, b) => (isTimed ? 0 : b.count - a.count));
}

function nameOf({ code, hour, keyId }: FailureCount, by: GroupBy): string {
  const hourly = by === "hour" ? "" : code;
  if (by === "code") return code;
  return by === "key" ? keyId : `${hour} ${hourly}`;
}

function groupOf(ones: readonly FailureCount[], by: GroupBy) {
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
