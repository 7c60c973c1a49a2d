import { rangeLengthMs, readRange } from "../lib/range.ts";
import type { DateRange } from "../lib/range.ts";
import { DAY_MS, daysBetween, hoursBetween } from "../lib/time.ts";
import { useNow } from "./cell.ts";
import { latestOf, useRead } from "./reads.ts";
import { useQuery } from "./route.ts";
import type { UrlQuery } from "./route.ts";
import { useSession } from "./session.ts";
import { tagKeyOfGrouping } from "./spend.ts";
import type { UsageFilter, UsageGroupingPair, UsageGrouping } from "./spend.ts";

/** The Activity page's metrics, with labels. */
export const ACTIVITY_METRICS = [
  ["cost_micro", "spend"],
  ["requests", "requests"],
  ["prompt_tokens", "input tokens"],
  ["completion_tokens", "output tokens"],
  ["cached_tokens", "cached tokens"],
  ["cache_share", "share from cache"],
  ["first_byte", "TTFT"],
  ["tokens_per_s", "tokens a second"],
  ["errors", "errors"],
] as const;
/** The Activity page's groupings, with labels. */
export const ACTIVITY_GROUPINGS = [
  ["model", "by model"],
  ["provider", "by provider"],
  ["key", "by key"],
  ["user", "by end user"],
  ["member", "by member"],
] as const;
/** The Activity page's filters, with their query parameters. */
export const FILTER_CHIPS = [
  ["model", "model"],
  ["provider", "provider"],
  ["key", "key_id"],
  ["user", "external_id"],
  ["member", "member_id"],
  ["tag", "tag"],
] as const;
export type ActivityQuery = {
  readonly range: DateRange;
  /** The chart's hours (in short ranges) or days. */
  readonly parts: readonly string[];
  readonly isHourly: boolean;
  readonly only: UsageFilter;
  readonly by: UsageGrouping;
  readonly second: UsageGrouping | undefined;
  readonly metric: (typeof ACTIVITY_METRICS)[number][0];
};

const HOURLY_DAYS = 3;
/** The query parameter that requests latencies. */
export const LATENCY_PARAMETER = { with: "latency" } as const;

export function isLatencyMetric(
  metric: ActivityQuery["metric"],
): metric is "first_byte" | "tokens_per_s" {
  return metric === "first_byte" || metric === "tokens_per_s";
}

export function useActivityQuery(): ActivityQuery {
  const [query] = useQuery();
  const now = useNow();
  const range = readRange(query, now);
  const isHourly = rangeLengthMs(range) <= HOURLY_DAYS * DAY_MS;
  const parts = isHourly
    ? hoursBetween(range.from, range.to, now)
    : daysBetween(range.from, range.to);
  const by = splitOf(query["split"]) ?? "model";
  const other = splitOf(query["split2"]);
  const second = other && orderGroupings(by, other) ? other : undefined;
  const metric = ACTIVITY_METRICS.find(([name]) => name === query["metric"])?.[0] ?? "cost_micro";
  return { range, parts, isHourly, only: onlyOf(query), by, second, metric };
}

function splitOf(text = ""): UsageGrouping | undefined {
  return text.startsWith("tag:")
    ? (text as UsageGrouping)
    : ACTIVITY_GROUPINGS.find(([name]) => name === text)?.[0];
}

export function useActivityGroupings(): readonly (readonly [split: UsageGrouping, text: string])[] {
  const { organization } = useSession();
  const path = { org_id: organization?.id ?? "" };
  const settings = latestOf(useRead("GET /v1/orgs/{org_id}/settings", { path }));
  const tags = settings?.tag_keys.map((key) => [`tag:${key}`, `by tag ${key}`] as const);
  return [...ACTIVITY_GROUPINGS, ...(tags ?? [])];
}

/** Returns the query parameters for a group's requests. */
export function filterBy(split: UsageGrouping, group: string): UrlQuery {
  const tag = tagKeyOfGrouping(split);
  return tag === null ? { [split]: group } : { tag: `${tag}:${group}` };
}

function onlyOf(query: UrlQuery): UsageFilter {
  return Object.fromEntries(
    FILTER_CHIPS.flatMap(([name, field]) => {
      const value = query[name];
      return value === undefined ? [] : [[field, value]];
    }),
  );
}

/** Returns two groupings in the API's order, or null if the API doesn't support the pair. */
export function orderGroupings(by: UsageGrouping, second: UsageGrouping): UsageGroupingPair | null {
  const [one, two] = rankOf(by) < rankOf(second) ? [by, second] : [second, by];
  const isNone = two === "member" ? one === "key" : one === "member"; // the API can't group keys or tags by member
  return by === second || isNone ? null : (`${one},${two}` as UsageGroupingPair);
}

function rankOf(split: UsageGrouping): number {
  return tagKeyOfGrouping(split) === null ? ORDER.indexOf(split) : ORDER.length;
}

const ORDER: readonly UsageGrouping[] = ["model", "provider", "key", "user", "member"];
