import { isCompleteSince, rangeName, roundRangeToDays } from "../lib/range.ts";
import {
  useActivityQuery,
  LATENCY_PARAMETER,
  isLatencyMetric,
  metricLabel,
  filterBy,
  orderGroupings,
  parameterOf,
  titleOf,
} from "../state/activity.ts";
import type { Errors } from "../api/types.ts";
import { localAndUtcTime } from "../lib/time.ts";
import { useRead } from "../state/reads.ts";
import { goTo, useQuery } from "../state/route.ts";
import { useGroupNames, useActivitySums } from "../state/spend.ts";
import type { UsageFilter, UsageRange, UsageGrouping } from "../state/spend.ts";
import { FilterNotice, ErrorChart } from "../ui/error-chart.tsx";
import { Empty, ReadResult, FirstSteps } from "../ui/states.tsx";
import {
  Table,
  column,
  countColumn,
  durationColumn,
  rateColumn,
  timeColumn,
} from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import { MissingDataNotice } from "./activity-sums.tsx";
import { cacheShares, sumUsageByGroup, sumMetric } from "../lib/spend.ts";
import type { DayRow } from "../lib/spend.ts";
import { assignColors } from "../state/colors.ts";
import { Chart, GROUPS_MAX } from "../ui/chart.tsx";
import { ModelName } from "../ui/basics.tsx";
import {
  AVERAGE_COST_COLUMN,
  REQUESTS_COLUMN,
  SPEND_COLUMN,
  shareColumn,
} from "../ui/spend-columns.tsx";

export function ActivityGroups() {
  const { range, only, by, second, metric } = useActivityQuery();
  if (metric === "errors") {
    return <ErrorGroups by={by} range={roundRangeToDays(range)} only={only} />;
  }
  const asked = { ...range, ...only };
  if (second === undefined) return <GroupTimes by={by} asked={asked} />;
  return <PairTable by={by} second={second} asked={asked} />;
}

const EVERY_MS = 30_000;
const ERRORS_BY = ["model", "provider", "key", "user"] as const;

function ErrorGroups({
  by,
  range,
  only,
}: {
  by: UsageGrouping;
  range: UsageRange;
  only: UsageFilter;
}) {
  const split = by === "member" ? "key" : (ERRORS_BY.find((one) => one === by) ?? "model");
  const nameOf = useGroupNames();
  const { member_id, tag, key_id, ...otherFilters } = only; // these don't apply to error counts
  const chosen = { ...(split !== "key" && otherFilters), ...(key_id !== undefined && { key_id }) };
  const unusedFilters = {
    ...(split === "key" && otherFilters),
    ...(member_id !== undefined && { member_id }),
    ...(tag !== undefined && { tag }),
  };
  const query = { ...range, ...chosen, group_by: split };
  const read = useRead("GET /v1/errors", { query }, { every: EVERY_MS });
  const columns: readonly Column<Errors["data"][number]>[] = [
    column("group", titleOf(split), ({ group = null }) => nameOf(split, group), {
      csv: [[parameterOf(split), ({ group = null }) => group]],
    }),
    countColumn("errors", "Failed or stopped", ({ count }) => count),
    timeColumn("last", "Last", ({ last_at }) => last_at),
  ];
  return (
    <ReadResult read={read} height={240}>
      {({ data, complete_from: since }) => (
        <>
          <FilterNotice only={unusedFilters} />
          {!isCompleteSince(since, range) && (
            <p class="notice">
              ▲ Complete since {localAndUtcTime(since ?? "")}. Some earlier errors are counted only
              by code and key.
            </p>
          )}
          <Table
            name={`Errors by ${split} ${rangeName(range)}`}
            columns={columns}
            rows={data}
            keyOf={({ group }) => group ?? ""}
            open={({ group = null }) => {
              if (group === null) return; // requests without a group can't be filtered
              goTo(["requests"], {
                ...range,
                ...chosen,
                status: "error",
                [parameterOf(split)]: group,
              });
            }}
            empty={<Empty text="No errors in this period." />}
          />
        </>
      )}
    </ReadResult>
  );
}

export function ActivityMeasures() {
  const [, update] = useQuery();
  const { range, parts, isHourly, only, by, metric } = useActivityQuery();
  const group_by = isHourly ? (`hour,${by}` as const) : (`day,${by}` as const);
  const timed = isLatencyMetric(metric) && LATENCY_PARAMETER;
  const read = useActivitySums(
    metric === "errors" ? null : { ...range, ...only, group_by, ...timed },
  );
  if (metric === "errors") {
    const pick = (from: string, to: string): void => update({ range: "dates", from, to });
    return (
      <>
        <FilterNotice only={only} />
        <ErrorChart
          range={roundRangeToDays(range)}
          keyId={only.key_id}
          parts={parts}
          onSelect={pick}
        />
      </>
    );
  }
  return (
    <ReadResult read={read} height={304}>
      {({ rows }) => {
        if (rows.length === 0) {
          return <Empty text="No requests in this period." children={<FirstSteps />} />;
        }
        return isLatencyMetric(metric) ? (
          <Times rows={rows} parts={parts} metric={metric} />
        ) : (
          <Chart
            name="Cached share"
            days={parts}
            series={[{ label: "of all prompts", slot: 0, values: cacheShares(rows, parts) }]}
            kind="lines"
            unit="share"
          />
        );
      }}
    </ReadResult>
  );
}

type Timed = "first_byte" | "tokens_per_s";

type TimesProps = { rows: readonly DayRow[]; parts: readonly string[]; metric: Timed };
function Times({ rows, parts, metric }: TimesProps) {
  const { by } = useActivityQuery();
  const nameOf = useGroupNames();
  const most = sumUsageByGroup(rows, "requests").slice(0, GROUPS_MAX);
  const colorOf = assignColors(most.map(({ group }) => group));
  const valueOf = (row: DayRow | undefined): number | null =>
    (metric === "first_byte" ? row?.first_byte_ms?.p50 : row?.tokens_per_s) ?? null;
  const series = most.map(({ group }) => {
    const own = new Map(rows.filter((row) => row.group === group).map((row) => [row.day, row]));
    const values = parts.map((part) => valueOf(own.get(part)));
    return { label: nameOf(by, group), slot: colorOf(group), values };
  });
  return (
    <Chart
      name={`${metricLabel(metric)} by day and ${by}`}
      days={parts}
      kind="lines"
      unit={metric === "first_byte" ? "ms" : "rate"}
      series={series}
    />
  );
}

type PairTableProps = { by: UsageGrouping; second: UsageGrouping; asked: UsageRange & UsageFilter };
function PairTable({ by, second, asked }: PairTableProps) {
  const [query] = useQuery();
  const pair = orderGroupings(by, second);
  const read = useActivitySums(pair === null ? null : { ...asked, group_by: pair });
  const isTurned = pair !== `${by},${second}`;
  const nameOf = useGroupNames();
  const group = (row: DayRow, isFirst: boolean): string | null =>
    isFirst === isTurned ? (row.group2 ?? null) : row.group;
  const groupColumn = (split: UsageGrouping, isFirst: boolean): Column<DayRow> => ({
    id: split,
    title: titleOf(split),
    value: (row) => nameOf(split, group(row, isFirst)),
    csv: [[parameterOf(split), (row) => group(row, isFirst)]],
    cell: (row) => {
      const name = nameOf(split, group(row, isFirst));
      return split === "model" ? <ModelName id={name} /> : name;
    },
  });
  return (
    <ReadResult read={read} height={480}>
      {({ rows, ...gaps }) => (
        <>
          <MissingDataNotice {...gaps} from={asked.from} />
          <Table
            name={`Activity ${by} and ${second} ${rangeName(asked)}`}
            columns={[
              groupColumn(by, true),
              groupColumn(second, false),
              SPEND_COLUMN,
              shareColumn(sumMetric(rows, "cost_micro")),
              REQUESTS_COLUMN,
              AVERAGE_COST_COLUMN,
            ]}
            rows={rows.toSorted((a, b) => b.cost_micro - a.cost_micro)}
            keyOf={(row) => JSON.stringify([row.group, row.group2])}
            open={(row) => {
              const [first, other] = [group(row, true), group(row, false)];
              if (first === null || other === null) return; // requests without a group can't be filtered
              goTo(["activity"], { ...query, ...filterBy(by, first), ...filterBy(second, other) });
            }}
            empty={<Empty text="No requests in this period." />}
          />
        </>
      )}
    </ReadResult>
  );
}

function GroupTimes({ by, asked }: { by: UsageGrouping; asked: UsageRange & UsageFilter }) {
  const [query] = useQuery();
  const nameOf = useGroupNames();
  const read = useActivitySums({ ...asked, group_by: by, ...LATENCY_PARAMETER });
  const group: Column<DayRow> = {
    id: "group",
    title: titleOf(by),
    value: (row) => nameOf(by, row.group),
    csv: [[parameterOf(by), (row) => row.group]],
  };
  return (
    <ReadResult read={read} height={480}>
      {({ rows }) => (
        <Table
          name={`Times ${by} ${rangeName(asked)}`}
          columns={[group, ...TIMES, REQUESTS_COLUMN, SPEND_COLUMN]}
          rows={rows.toSorted((a, b) => b.requests - a.requests)}
          keyOf={(row) => row.group ?? ""}
          open={(row) => {
            if (row.group !== null) goTo(["activity"], { ...query, ...filterBy(by, row.group) });
          }}
          empty={<Empty text="No requests in this period." />}
        />
      )}
    </ReadResult>
  );
}

function speedColumn(
  id: string,
  title: string,
  value: (row: DayRow) => number | null | undefined,
  make = durationColumn,
): Column<DayRow> {
  const known = (row: DayRow): number | null => value(row) ?? null;
  return make(id, title, known, { csv: [[id, known]] });
}

const TIMES: readonly Column<DayRow>[] = [
  speedColumn("ttft_p50_ms", "TTFT p50", (row) => row.first_byte_ms?.p50),
  speedColumn("ttft_p99_ms", "TTFT p99", (row) => row.first_byte_ms?.p99),
  speedColumn("tokens_per_s", "Tokens per second", (row) => row.tokens_per_s, rateColumn),
];
