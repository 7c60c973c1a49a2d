import { daysOf } from "../lib/range.ts";
import { cacheShares, sumByGroup } from "../lib/spend.ts";
import type { DayRow } from "../lib/spend.ts";
import { LATENCY, METRICS, isTimed, useActivityQuery } from "../state/activity.ts";
import { colorsOf } from "../state/colors.ts";
import { useQuery } from "../state/route.ts";
import { useActivitySums, useGroupNames } from "../state/spend.ts";
import { Chart } from "../ui/chart.tsx";
import { ErrorChart, FilterNotice } from "../ui/error-chart.tsx";
import { GROUPS_MAX } from "../ui/group-chart.tsx";
import { Empty, FirstSteps, ReadResult } from "../ui/states.tsx";

export function ActivityMeasures() {
  const [, update] = useQuery();
  const { range, parts, isHourly, only, by, metric } = useActivityQuery();
  const group_by = isHourly ? (`hour,${by}` as const) : (`day,${by}` as const);
  const timed = isTimed(metric) && LATENCY;
  const read = useActivitySums(
    metric === "errors" ? null : { ...range, ...only, group_by, ...timed },
  );
  if (metric === "errors") {
    const pick = (from: string, to: string): void => update({ range: "dates", from, to });
    return (
      <>
        <FilterNotice only={only} />
        <ErrorChart range={daysOf(range)} keyId={only.key_id} parts={parts} onSelect={pick} />
      </>
    );
  }
  return (
    <ReadResult read={read} height={304}>
      {({ rows }) => {
        if (rows.length === 0) {
          return <Empty text="No requests in this period." children={<FirstSteps />} />;
        }
        return isTimed(metric) ? (
          <Times rows={rows} parts={parts} metric={metric} />
        ) : (
          <Chart
            name="Share from cache"
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

function Times({
  rows,
  parts,
  metric,
}: {
  rows: readonly DayRow[];
  parts: readonly string[];
  metric: Timed;
}) {
  const { by } = useActivityQuery();
  const nameOf = useGroupNames();
  const most = sumByGroup(rows, "requests").slice(0, GROUPS_MAX);
  const colorOf = colorsOf(most.map(({ group }) => group));
  const valueOf = (row: DayRow | undefined): number | null =>
    (metric === "first_byte" ? row?.first_byte_ms?.p50 : row?.tokens_per_s) ?? null;
  const series = most.map(({ group }) => {
    const own = new Map(rows.filter((row) => row.group === group).map((row) => [row.day, row]));
    const values = parts.map((part) => valueOf(own.get(part)));
    return { label: nameOf(by, group), slot: colorOf(group), values };
  });
  return (
    <Chart
      name={`${METRICS.find(([value]) => value === metric)?.[1] ?? ""} by day and ${by}`}
      days={parts}
      kind="lines"
      unit={metric === "first_byte" ? "ms" : "rate"}
      series={series}
    />
  );
}
