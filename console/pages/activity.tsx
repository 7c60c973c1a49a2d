import { cacheShares, stacked, sumOf, summed } from "../lib/spend.ts";
import type { DayRow, Metric, Sum } from "../lib/spend.ts";
import { grouped, percent, short, spent } from "../lib/money.ts";
import { DAY, daysBetween, took, utcDay } from "../lib/time.ts";
import { slotOf } from "../state/colors.ts";
import { useLatency } from "../state/latency.ts";
import { goTo, hrefOf, useQuery } from "../state/route.ts";
import type { Query } from "../state/route.ts";
import { useKeyNames, useSpend } from "../state/spend.ts";
import type { Range, SplitBy } from "../state/spend.ts";
import { Count, Head, ModelName, Money, Panel, Tokens, useNow } from "../ui/basics.tsx";
import { Chart, Swatch } from "../ui/chart.tsx";
import { Choice, Day } from "../ui/filters.tsx";
import { Empty, FirstSteps, Shown } from "../ui/states.tsx";
import { Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

const RANGES = [
  ["30", "30 days"],
  ["1", "today"],
  ["7", "7 days"],
  ["90", "90 days"],
  ["dates", "dates"],
] as const;
const METRICS = [
  ["cost_micro", "spend"],
  ["requests", "requests"],
  ["prompt_tokens", "input tokens"],
  ["completion_tokens", "output tokens"],
  ["cached_tokens", "cached tokens"],
  ["cache_share", "share from cache"],
  ["first_byte", "first byte"],
] as const;
const SPLITS = [
  ["model", "by model"],
  ["key", "by key"],
  ["user", "by end user"],
] as const;
const NO_USER = "without an end user";
/** Groups that a chart names; the others are one. */
const MOST = 7;
/** How a list of requests names what is split by. */
const FILTER_OF = { model: "model", key: "key_id", user: "external_id" } as const;

/** Who spent it, on what: bars by day and their sums. */
export function Activity() {
  const [query, update] = useQuery();
  const range = rangeOf(query, useNow());
  const days = daysBetween(range.from, range.to);
  const by = SPLITS.find(([name]) => name === query["split"])?.[0] ?? "model";
  const metric = METRICS.find(([name]) => name === query["metric"])?.[0] ?? "cost_micro";
  const read = useSpend(by, range);
  const only = query[by];
  const nameOfKey = useKeyNames();
  const pick = (from: string, to: string): void => update({ range: "dates", from, to });
  return (
    <>
      <Head
        title="Activity"
        text="Click a day or drag over several to look closer; click a row for it alone."
      />
      <div class="filter-line">
        <Choice name="range" label="Range" options={RANGES} />
        {query["range"] === "dates" && (
          <>
            <Day name="from" />
            <Day name="to" />
          </>
        )}
        <Choice name="metric" label="Show" options={METRICS} />
        <Choice name="split" label="Split" options={SPLITS} />
        {only !== undefined && (
          <button type="button" onClick={() => update({ [by]: "" })}>
            {by === "key" ? nameOfKey(only) : only} ✕
          </button>
        )}
        <a href={hrefOf(["requests"], requestsOf(by, only, range))}>View requests</a>
      </div>
      <Shown read={read} height={720}>
        {({ rows, isCut }) => {
          const own = only === undefined ? rows : rows.filter(({ group }) => group === only);
          return (
            <>
              {isCut && <p class="notice">▲ There is more than can be shown: choose fewer days.</p>}
              <Panel title={titleOf(metric, by)}>
                <Drawing
                  rows={own}
                  days={days}
                  range={range}
                  by={by}
                  metric={metric}
                  onSelect={pick}
                />
              </Panel>
              <Sums rows={own} by={by} drawn={drawnOf(own, days, metric)} />
            </>
          );
        }}
      </Shown>
    </>
  );
}

function wordOf(list: readonly (readonly [string, string])[], name: string): string {
  return list.find(([value]) => value === name)?.[1] ?? name;
}

function titleOf(metric: Drawn["metric"], by: SplitBy): string {
  const isWhole = metric === "first_byte" || metric === "cache_share";
  const title = `${wordOf(METRICS, metric)}${isWhole ? "" : ` ${wordOf(SPLITS, by)}`}`;
  return title.slice(0, 1).toUpperCase() + title.slice(1);
}

/** The days that are looked at: the last so many, or those of the address; at most 366. */
export function rangeOf(query: Query, now: number): Range {
  const today = utcDay(now);
  const { range = "30", from = "", to = "" } = query;
  const hasDates = /^\d{4}-\d\d-\d\d$/.test(from) && /^\d{4}-\d\d-\d\d$/.test(to) && from <= to;
  if (hasDates) {
    const first = utcDay(Date.parse(to) - 365 * DAY);
    return { from: from < first ? first : from, to };
  }
  const count = Math.min(90, Math.max(1, Number(range) || 30));
  return { from: utcDay(now - (count - 1) * DAY), to: today };
}

function requestsOf(by: SplitBy, only: string | undefined, { from, to }: Range): Query {
  return { from, to, ...(only !== undefined && { [FILTER_OF[by]]: only }) };
}

type Drawn = {
  readonly rows: readonly DayRow[];
  readonly days: readonly string[];
  readonly range: Range;
  readonly by: SplitBy;
  readonly metric: Metric | "cache_share" | "first_byte";
  readonly onSelect: (from: string, to: string) => void;
};

function Drawing({ rows, days, range, by, metric, onSelect }: Drawn) {
  const nameOfKey = useKeyNames();
  if (metric === "first_byte") return <FirstBytes range={range} days={days} />;
  if (metric === "cache_share") {
    const series = [{ label: "of all prompts", slot: 0, values: cacheShares(rows, days) }];
    return (
      <Chart name="Share from cache" days={days} series={series} kind="lines" show={percent} />
    );
  }
  if (rows.length === 0) {
    return <Empty text="Nothing was asked in these days." children={<FirstSteps />} />;
  }
  const series = stacked(rows, days, { metric, most: MOST }).map(({ name, values }) => ({
    label: by === "key" && name !== "other" ? nameOfKey(name) : (name ?? NO_USER),
    slot: slotOf(by, name),
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
  if (metric === "first_byte" || metric === "cache_share") return new Set();
  return new Set(stacked(rows, days, { metric, most: MOST }).map(({ name }) => name));
}

/** What each group came to; a row is looked at alone. */
function Sums({
  rows,
  by,
  drawn,
}: {
  rows: readonly DayRow[];
  by: SplitBy;
  drawn: ReadonlySet<string | null>;
}) {
  const [query] = useQuery();
  const nameOfKey = useKeyNames();
  const total = sumOf(rows, "cost_micro");
  const sums = summed(rows);
  const nameOf = (group: string | null): string =>
    by === "key" ? nameOfKey(group) : (group ?? NO_USER);
  return (
    <Table
      name={`Activity ${by}`}
      columns={[groupColumn(by, drawn, nameOf), ...columnsOf(total)]}
      rows={sums}
      keyOf={({ group }) => group ?? ""}
      open={({ group }) => {
        if (group !== null) goTo(["activity"], { ...query, [by]: group });
      }}
      empty={null}
    />
  );
}

function tokens(id: Metric, title: string): Column<Sum> {
  return {
    id,
    title,
    align: "right",
    wide: true,
    value: (row) => row[id],
    cell: (row) => <Tokens count={row[id]} />,
  };
}

function groupColumn(
  by: SplitBy,
  drawn: ReadonlySet<string | null>,
  nameOf: (group: string | null) => string,
): Column<Sum> {
  return {
    id: "group",
    title: { model: "Model", key: "Key", user: "End user" }[by],
    value: ({ group }) => nameOf(group),
    cell: ({ group }) => (
      <>
        {drawn.size > 0 && <Swatch slot={drawn.has(group) ? slotOf(by, group) : null} />}{" "}
        {by === "model" ? <ModelName id={nameOf(group)} /> : nameOf(group)}
      </>
    ),
  };
}

function columnsOf(total: number): readonly Column<Sum>[] {
  return [
    {
      id: "cost_micro",
      title: "Spend",
      align: "right",
      value: ({ cost_micro }) => cost_micro,
      cell: ({ cost_micro }) => <Money micros={cost_micro} />,
    },
    {
      id: "share",
      title: "Share",
      align: "right",
      value: ({ cost_micro }) => (total === 0 ? 0 : cost_micro / total),
      cell: ({ cost_micro }) => percent(total === 0 ? 0 : cost_micro / total),
    },
    {
      id: "requests",
      title: "Requests",
      align: "right",
      wide: true,
      value: ({ requests }) => requests,
      cell: ({ requests }) => <Count count={requests} />,
    },
    {
      id: "each",
      title: "Avg cost",
      align: "right",
      wide: true,
      value: ({ cost_micro, requests }) => (requests === 0 ? null : cost_micro / requests),
      cell: ({ cost_micro, requests }) =>
        requests === 0 ? "" : <Money micros={Math.ceil(cost_micro / requests)} />,
    },
    tokens("prompt_tokens", "Input tokens"),
    tokens("cached_tokens", "Cached"),
    tokens("completion_tokens", "Output tokens"),
  ];
}
