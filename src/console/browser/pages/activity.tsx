import { stackGroups, sumMetric } from "../lib/spend.ts";
import type { DayRow, UsageMetric } from "../lib/spend.ts";
import { countText } from "../lib/money.ts";
import { dayName } from "../lib/time.ts";
import {
  isCompleteSince,
  partsSince,
  roundRangeToDays,
  rangeBefore,
  rangeName,
} from "../lib/range.ts";
import {
  FILTER_NAMES,
  LATENCY_PARAMETER,
  ACTIVITY_METRICS,
  useActivityGroupings,
  isLatencyMetric,
  metricLabel,
  orderGroupings,
  splitText,
  useActivityQuery,
} from "../state/activity.ts";
import type { ActivityQuery } from "../state/activity.ts";
import { latestOf } from "../state/reads.ts";
import { hrefOf, useQuery } from "../state/route.ts";
import { useActivitySums, useGroupNames } from "../state/spend.ts";
import type { UsageGrouping } from "../state/spend.ts";
import { PageHead, Money, Panel, Button } from "../ui/basics.tsx";
import { ChoiceFilter, DayFilter } from "../ui/filters.tsx";
import { GROUPS_MAX, GroupChart } from "../ui/chart.tsx";
import { ModelFilter } from "../ui/model-picker.tsx";
import { Empty, FirstSteps, ReadResult, LazyPage } from "../ui/states.tsx";
import type { LazyPart } from "../ui/states.tsx";
import { MissingDataNotice, GroupTable, changeText } from "./activity-sums.tsx";

const RANGES = [
  ["30", "30 days"],
  ["1", "today"],
  ["yesterday", "yesterday"],
  ["24h", "24 hours"],
  ["7", "7 days"],
  ["90", "90 days"],
  ["month", "this month"],
  ["last-month", "last month"],
  ["dates", "dates"],
] as const;
const MEASURES: LazyPart = {
  load: async () => (await import("./activity-groups.tsx")).ActivityMeasures,
};
const GROUPS: LazyPart = {
  load: async () => (await import("./activity-groups.tsx")).ActivityGroups,
};

export function Activity() {
  const [, update] = useQuery();
  const { range, parts, isHourly, only, by, second, metric } = useActivityQuery();
  const group_by = isHourly ? (`hour,${by}` as const) : (`day,${by}` as const);
  const timed = isLatencyMetric(metric) && LATENCY_PARAMETER;
  const read = useActivitySums({ ...range, ...only, group_by, ...timed });
  const rangeEarlier = rangeBefore(range);
  const earlier = latestOf(useActivitySums({ ...rangeEarlier, ...only, group_by: by }));
  const before =
    earlier && isCompleteSince(earlier.completeFrom, rangeEarlier) ? earlier.rows : undefined;
  const hasOwnTable = metric === "errors" || isLatencyMetric(metric) || second !== undefined;
  const pick = (from: string, to: string): void => update({ range: "dates", from, to });
  return (
    <>
      <PageHead
        title="Activity"
        text="Click a bar or drag over several bars to zoom in. Back zooms out."
      />
      <div class="filter-line">
        <Period />
        <SplitChoices by={by} />
        <ModelFilter />
        <Chips />
        {only.member_id === undefined && (
          <a href={hrefOf(["requests"], { ...roundRangeToDays(range), ...only })}>View requests</a>
        )}
      </div>
      <ReadResult read={read} height={720}>
        {({ rows, ...gaps }) => {
          const days = partsSince(gaps.completeFrom, parts);
          return (
            <>
              <MissingDataNotice {...gaps} from={range.from} />
              <Panel title={titleOf(metric, by)}>
                <Summary
                  rows={rows}
                  before={before}
                  days={days}
                  isPart={days.length < parts.length}
                  one={isHourly ? "an hour" : "a day"}
                />
                <Drawing rows={rows} days={days} by={by} metric={metric} onSelect={pick} />
              </Panel>
              {hasOwnTable && <LazyPage page={GROUPS} />}
              {!hasOwnTable && (
                <GroupTable
                  name={`Activity ${by} ${rangeName(range)}`}
                  rows={rows}
                  before={before}
                  by={by}
                  drawn={drawnGroups(rows, days, metric)}
                />
              )}
            </>
          );
        }}
      </ReadResult>
    </>
  );
}

function SplitChoices({ by }: { by: UsageGrouping }) {
  const splits = useActivityGroupings();
  const seconds = splits.filter(([name]) => orderGroupings(by, name));
  const and = seconds.map(([name, text]) => [name, text.replace("by", "and")] as const);
  return (
    <>
      <ChoiceFilter name="metric" label="Show" options={ACTIVITY_METRICS} />
      <ChoiceFilter name="split" label="Split" options={splits} />
      <ChoiceFilter name="split2" label="Then group by" options={[["", "none"], ...and]} />
    </>
  );
}

function Period() {
  const [query, update] = useQuery();
  return (
    <>
      <select
        aria-label="Range"
        value={query["range"] ?? "30"}
        onChange={({ currentTarget: { value } }) =>
          update({
            range: value === "30" ? "" : value,
            ...(value !== "dates" && { from: "", to: "" }),
          })
        }
      >
        {RANGES.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
      {query["range"] === "dates" && (
        <>
          <DayFilter name="from" />
          <DayFilter name="to" />
        </>
      )}
    </>
  );
}

function Chips() {
  const [query, update] = useQuery();
  const nameOf = useGroupNames();
  return (
    <>
      {FILTER_NAMES.flatMap((name) => {
        const value = query[name];
        if (value === undefined) return [];
        return (
          <Button
            key={name}
            text={`${nameOf(name, value)} ✕`}
            onClick={() => update({ [name]: "" })}
          />
        );
      })}
    </>
  );
}

type SummaryProps = {
  rows: readonly DayRow[];
  before: readonly DayRow[] | undefined;
  /** The days or hours of the sums. `isPart`: not the whole period. */
  days: readonly string[];
  isPart: boolean;
  one: string;
};
function Summary({ rows, before, days, isPart, one }: SummaryProps) {
  const cost = sumMetric(rows, "cost_micro");
  const requests = sumMetric(rows, "requests");
  const earlier = before && sumMetric(before, "cost_micro");
  return (
    <p class="small">
      <Money micros={cost} /> in {countText(requests, "request")}
      {isPart && ` since ${dayName(days[0] ?? "")} (UTC)`}; on average{" "}
      <Money micros={Math.ceil(cost / Math.max(1, days.length))} /> {one},{" "}
      <Money micros={Math.ceil(cost / Math.max(1, requests))} /> a request
      {earlier !== undefined && earlier > 0 && (
        <>; {changeText(cost, earlier)} to the period before</>
      )}
    </p>
  );
}

function titleOf(metric: DrawingProps["metric"], by: UsageGrouping): string {
  const isWhole = metric === "cache_share" || metric === "errors";
  const title = `${metricLabel(metric)}${isWhole ? "" : ` ${splitText(by)}`}`;
  return title.slice(0, 1).toUpperCase() + title.slice(1);
}

function hasOwnChart(
  metric: DrawingProps["metric"],
): metric is Exclude<DrawingProps["metric"], UsageMetric> {
  return metric === "cache_share" || metric === "errors" || isLatencyMetric(metric);
}

type DrawingProps = {
  readonly rows: readonly DayRow[];
  readonly days: readonly string[];
  readonly by: UsageGrouping;
  readonly metric: ActivityQuery["metric"];
  readonly onSelect: (from: string, to: string) => void;
};

function Drawing({ rows, days, by, metric, onSelect }: DrawingProps) {
  const nameOf = useGroupNames();
  if (hasOwnChart(metric)) return <LazyPage page={MEASURES} height={304} />;
  if (rows.length === 0) {
    return <Empty text="No requests in this period." children={<FirstSteps />} />;
  }
  return (
    <GroupChart
      name={`${metricLabel(metric)} by day and ${by}`}
      rows={rows}
      parts={days}
      metric={metric}
      labelOf={(group) => nameOf(by, group)}
      unit={metric === "cost_micro" ? "spend" : "count"}
      onSelect={onSelect}
    />
  );
}

function drawnGroups(
  rows: readonly DayRow[],
  days: readonly string[],
  metric: DrawingProps["metric"],
): ReadonlySet<string | null> {
  if (hasOwnChart(metric)) return new Set();
  return new Set(stackGroups(rows, days, { metric, most: GROUPS_MAX }).map(({ name }) => name));
}
