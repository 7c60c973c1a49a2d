import { cacheShares, stacked, sumOf } from "../lib/spend.ts";
import type { DayRow, Metric } from "../lib/spend.ts";
import { counted, grouped, percent, short, spent } from "../lib/money.ts";
import { DAY, daysBetween, exactly, hourStart, hoursBetween, took } from "../lib/time.ts";
import { daysOf, lengthOf, rangeBefore, rangeOf } from "../lib/range.ts";
import type { Range } from "../lib/range.ts";
import { colorsOf } from "../state/colors.ts";
import { useLatency } from "../state/latency.ts";
import { hrefOf, useQuery } from "../state/route.ts";
import type { Query } from "../state/route.ts";
import { useActivity, useKeyNames } from "../state/spend.ts";
import type { Only, Splits } from "../state/spend.ts";
import { Head, Money, Panel, useNow } from "../ui/basics.tsx";
import { Chart } from "../ui/chart.tsx";
import { ErrorChart } from "../ui/error-chart.tsx";
import { Choice, Day } from "../ui/filters.tsx";
import { ModelFilter } from "../ui/model-picker.tsx";
import { Empty, FirstSteps, Shown } from "../ui/states.tsx";
import { NO_USER, Sums, changed } from "./activity-sums.tsx";

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
const METRICS = [
  ["cost_micro", "spend"],
  ["requests", "requests"],
  ["prompt_tokens", "input tokens"],
  ["completion_tokens", "output tokens"],
  ["cached_tokens", "cached tokens"],
  ["cache_share", "share from cache"],
  ["first_byte", "TTFT"],
  ["errors", "errors"],
] as const;
const SPLITS = [
  ["model", "by model"],
  ["provider", "by provider"],
  ["key", "by key"],
  ["user", "by end user"],
] as const;
/** What is looked at alone, by its name in the address and in the API. */
const CHIPS = [
  ["model", "model"],
  ["provider", "provider"],
  ["key", "key_id"],
  ["user", "external_id"],
] as const;
/** Groups that a chart names; the others are one. */
const MOST = 7;
/** Days are drawn by the hour up to so many. */
const HOURLY_DAYS = 3;

/** Who spent it, on what, when: bars by day or hour, their sums, and the same of the period before. */
export function Activity() {
  const [query, update] = useQuery();
  const now = useNow();
  const range = rangeOf(query, now);
  const isHourly = lengthOf(range) <= HOURLY_DAYS * DAY;
  const days = isHourly
    ? hoursBetween(range.from, range.to, now)
    : daysBetween(range.from, range.to);
  const by = SPLITS.find(([name]) => name === query["split"])?.[0] ?? "model";
  const metric = METRICS.find(([name]) => name === query["metric"])?.[0] ?? "cost_micro";
  const only = onlyOf(query);
  const group_by = isHourly ? (`hour,${by}` as const) : (`day,${by}` as const);
  const read = useActivity({ ...range, ...only, group_by });
  const before = useActivity({ ...rangeBefore(range), ...only, group_by: by });
  const pick = (from: string, to: string): void => update({ range: "dates", from, to });
  return (
    <>
      <Head
        title="Activity"
        text="Click a bar or drag over several to look closer, a row to look at it alone; Back undoes each step."
      />
      <div class="filter-line">
        <Period />
        <Choice name="metric" label="Show" options={METRICS} />
        <Choice name="split" label="Split" options={SPLITS} />
        <ModelFilter />
        <Chips />
        <a href={hrefOf(["requests"], { ...daysOf(range), ...only })}>View requests</a>
      </div>
      <Shown read={read} height={720}>
        {({ rows, isCut, completeFrom }) => (
          <>
            {isCut && <p class="notice">▲ There is more than can be shown: choose fewer days.</p>}
            {completeFrom !== null && Date.parse(completeFrom) > hourStart(range.from) && (
              <p class="notice">
                ▲ What was asked before {exactly(completeFrom)} is no longer kept in this detail.
              </p>
            )}
            <Panel title={titleOf(metric, by)}>
              <Summary rows={rows} before={before.data?.rows} parts={days.length} range={range} />
              <Drawing
                rows={rows}
                days={days}
                range={daysOf(range)}
                by={by}
                metric={metric}
                onSelect={pick}
              />
            </Panel>
            <Sums
              rows={rows}
              before={before.data?.rows}
              by={by}
              drawn={drawnOf(rows, days, metric)}
            />
          </>
        )}
      </Shown>
    </>
  );
}

/** The period: a preset, or two days; choosing one clears the other. */
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
          <Day name="from" />
          <Day name="to" />
        </>
      )}
    </>
  );
}

/** What is looked at alone, each gone at a click. */
function Chips() {
  const [query, update] = useQuery();
  const nameOfKey = useKeyNames();
  return (
    <>
      {CHIPS.flatMap(([name]) => {
        const value = query[name];
        if (value === undefined) return [];
        return (
          <button key={name} type="button" onClick={() => update({ [name]: "" })}>
            {name === "key" ? nameOfKey(value) : value} ✕
          </button>
        );
      })}
    </>
  );
}

function onlyOf(query: Query): Only {
  return Object.fromEntries(
    CHIPS.flatMap(([name, field]) => {
      const value = query[name];
      return value === undefined ? [] : [[field, value]];
    }),
  );
}

/** Sum, average and what changed, in a line. */
function Summary({
  rows,
  before,
  parts,
  range,
}: {
  rows: readonly DayRow[];
  before: readonly DayRow[] | undefined;
  parts: number;
  range: Range;
}) {
  const cost = sumOf(rows, "cost_micro");
  const requests = sumOf(rows, "requests");
  const earlier = before && sumOf(before, "cost_micro");
  const one = lengthOf(range) <= HOURLY_DAYS * DAY ? "an hour" : "a day";
  return (
    <p class="small">
      <Money micros={cost} /> in {counted(requests, "request")}; on average{" "}
      <Money micros={Math.ceil(cost / Math.max(1, parts))} /> {one},{" "}
      <Money micros={Math.ceil(cost / Math.max(1, requests))} /> a request
      {earlier !== undefined && earlier > 0 && <>; {changed(cost, earlier)} to the period before</>}
    </p>
  );
}

function wordOf(list: readonly (readonly [string, string])[], name: string): string {
  return list.find(([value]) => value === name)?.[1] ?? name;
}

function titleOf(metric: Drawn["metric"], by: Splits): string {
  const isWhole = isUngrouped(metric);
  const title = `${wordOf(METRICS, metric)}${isWhole ? "" : ` ${wordOf(SPLITS, by)}`}`;
  return title.slice(0, 1).toUpperCase() + title.slice(1);
}

/** Whether a measure has no groups: it is one for all, or has groups of its own. */
function isUngrouped(metric: Drawn["metric"]): metric is "cache_share" | "first_byte" | "errors" {
  return metric === "first_byte" || metric === "cache_share" || metric === "errors";
}

type Drawn = {
  readonly rows: readonly DayRow[];
  readonly days: readonly string[];
  readonly range: Range;
  readonly by: Splits;
  readonly metric: Metric | "cache_share" | "first_byte" | "errors";
  readonly onSelect: (from: string, to: string) => void;
};

function Drawing({ rows, days, range, by, metric, onSelect }: Drawn) {
  const nameOfKey = useKeyNames();
  if (metric === "first_byte") return <FirstBytes range={range} days={days} />;
  if (metric === "errors") return <ErrorChart range={range} parts={days} onSelect={onSelect} />;
  if (metric === "cache_share") {
    const series = [{ label: "of all prompts", slot: 0, values: cacheShares(rows, days) }];
    return (
      <Chart name="Share from cache" days={days} series={series} kind="lines" show={percent} />
    );
  }
  if (rows.length === 0) {
    return <Empty text="Nothing was asked in these days." children={<FirstSteps />} />;
  }
  const all = stacked(rows, days, { metric, most: MOST });
  const colorOf = colorsOf(all.map(({ name }) => name));
  const series = all.map(({ name, values }) => ({
    label: by === "key" && name !== "other" ? nameOfKey(name) : (name ?? NO_USER),
    slot: colorOf(name),
    values,
  }));
  return (
    <Chart
      name={`${wordOf(METRICS, metric)} by day and ${by}`}
      days={days}
      series={series}
      show={metric === "cost_micro" ? spent : short}
      onSelect={onSelect}
    />
  );
}

function FirstBytes({ range, days }: { range: Range; days: readonly string[] }) {
  const read = useLatency(range, days);
  return (
    <Shown read={read} height={304}>
      {({ requests, p50, p99 }) => (
        <>
          <Chart
            name="TTFT by day"
            days={days}
            kind="lines"
            show={took}
            series={[
              { label: "p50", slot: 0, values: p50 },
              { label: "p99", slot: 1, values: p99 },
            ]}
          />
          <p class="small muted">Of the newest {grouped(requests)} charged requests.</p>
        </>
      )}
    </Shown>
  );
}

/** The groups that have a colour of their own in the chart; none where it has no groups. */
function drawnOf(
  rows: readonly DayRow[],
  days: readonly string[],
  metric: Drawn["metric"],
): ReadonlySet<string | null> {
  if (isUngrouped(metric)) return new Set();
  return new Set(stacked(rows, days, { metric, most: MOST }).map(({ name }) => name));
}
