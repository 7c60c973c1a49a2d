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
/** The Activity page's groupings, with titles and query parameters. */
const ACTIVITY_GROUPINGS = [
  ["model", "Model", "model"],
  ["provider", "Provider", "provider"],
  ["key", "Key", "key_id"],
  ["user", "End user", "external_id"],
  ["member", "Member", "member_id"],
] as const;
/** The Activity page's filters, with their query parameters. */
const FILTERS = [
  ...ACTIVITY_GROUPINGS.map(([name, , field]) => [name, field] as const),
  ["tag", "tag"] as const,
];
export const FILTER_NAMES = FILTERS.map(([name]) => name);
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

export function metricLabel(metric: ActivityQuery["metric"]): string {
  return ACTIVITY_METRICS.find(([name]) => name === metric)?.[1] ?? metric;
}

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
  return text.startsWith("tag:") ? (text as UsageGrouping) : groupingOf(text as UsageGrouping)?.[0];
}

export function useActivityGroupings(): readonly (readonly [split: UsageGrouping, text: string])[] {
  const { organization } = useSession();
  const path = { org_id: organization?.id ?? "" };
  const settings = latestOf(useRead("GET /v1/orgs/{org_id}/settings", { path }));
  const tags = settings?.tag_keys.map((key) => `tag:${key}` as const) ?? [];
  const splits = [...ACTIVITY_GROUPINGS.map(([name]) => name), ...tags];
  return splits.map((split) => [split, splitText(split)]);
}

function groupingOf(split: UsageGrouping) {
  return ACTIVITY_GROUPINGS.find(([name]) => name === split);
}

export function titleOf(split: UsageGrouping): string {
  return tagKeyOfGrouping(split) ?? groupingOf(split)?.[1] ?? split;
}

/** Returns a grouping's query parameter, which is also its heading in CSV. */
export function parameterOf(split: UsageGrouping): string {
  return tagKeyOfGrouping(split) ?? groupingOf(split)?.[2] ?? split;
}

export function splitText(split: UsageGrouping): string {
  const tag = tagKeyOfGrouping(split);
  return tag === null ? `by ${titleOf(split).toLowerCase()}` : `by tag ${tag}`;
}

/** Returns the query parameters for a group's requests. */
export function filterBy(split: UsageGrouping, group: string): UrlQuery {
  const tag = tagKeyOfGrouping(split);
  return tag === null ? { [split]: group } : { tag: `${tag}:${group}` };
}

function onlyOf(query: UrlQuery): UsageFilter {
  return Object.fromEntries(
    FILTERS.flatMap(([name, field]) => {
      const value = query[name];
      return value === undefined ? [] : [[field, value]];
    }),
  );
}

/** Returns two groupings in the API's order, or null if the API doesn't support the pair. */
export function orderGroupings(by: UsageGrouping, second: UsageGrouping): UsageGroupingPair | null {
  const [one, two] = rankOf(by) < rankOf(second) ? [by, second] : [second, by];
  const isNone = two === "member" ? one === "key" : one === "member"; // the API can't group keys or tags by member
  return by === second || isNone ? null : `${one},${two}`;
}

function rankOf(split: UsageGrouping): number {
  const rank = ACTIVITY_GROUPINGS.findIndex(([name]) => name === split);
  return rank < 0 ? ACTIVITY_GROUPINGS.length : rank;
}
