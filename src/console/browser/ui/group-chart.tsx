import { stacked } from "../lib/spend.ts";
import type { DayRow, Metric } from "../lib/spend.ts";
import { colorsOf } from "../state/colors.ts";
import { Chart } from "./chart.tsx";

/** Groups that a chart names; the others are one. */
export const GROUPS_MOST = 7;

/** Bars of UTC days or hours, each of its largest groups in its color. */
export function GroupChart({
  name,
  rows,
  parts,
  metric,
  labelOf,
  show,
  onSelect,
}: {
  name: string;
  rows: readonly DayRow[];
  parts: readonly string[];
  metric: Metric;
  labelOf: (group: string | null) => string;
  show: (value: number) => string;
  /** `group`: of the part that was clicked; undefined where a range was chosen. */
  onSelect?: ((from: string, to: string, group?: string | null) => void) | undefined;
}) {
  const all = stacked(rows, parts, { metric, most: GROUPS_MOST });
  const colorOf = colorsOf(all.map((group) => group.name));
  const series = all.map(({ name: group, values }) => ({
    label: group === "other" ? group : labelOf(group),
    slot: colorOf(group),
    values,
  }));
  return (
    <Chart
      name={name}
      days={parts}
      series={series}
      show={show}
      {...(onSelect !== undefined && {
        onSelect: (from: string, to: string, index?: number) =>
          onSelect(from, to, index === undefined ? undefined : all[index]?.name),
      })}
    />
  );
}
