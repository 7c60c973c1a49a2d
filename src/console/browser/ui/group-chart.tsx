import type { Unit } from "../lib/axis.ts";
import type { Slot } from "../lib/plot-shape.ts";
import { stacked } from "../lib/spend.ts";
import type { DayRow, Metric } from "../lib/spend.ts";
import { colorsOf } from "../state/colors.ts";
import { Chart } from "./chart.tsx";

export const GROUPS_MOST = 6;

export function GroupChart({
  name,
  rows,
  parts,
  metric,
  labelOf,
  unit,
  slotOf,
  onSelect,
}: {
  name: string;
  rows: readonly DayRow[];
  parts: readonly string[];
  metric: Metric;
  labelOf: (group: string | null) => string;
  unit: Unit;
  slotOf?: (group: string | null) => Slot;
  onSelect?: ((from: string, to: string, group?: string | null) => void) | undefined;
}) {
  const all = stacked(rows, parts, { metric, most: GROUPS_MOST });
  const colorOf = colorsOf(all.map((group) => group.name));
  const series = all.map(({ name: group, values }) => ({
    label: group === "other" ? group : labelOf(group),
    slot: slotOf?.(group) ?? colorOf(group),
    values,
  }));
  return (
    <Chart
      name={name}
      days={parts}
      series={series}
      unit={unit}
      {...(onSelect !== undefined && {
        onSelect: (from: string, to: string, index?: number) =>
          onSelect(from, to, index === undefined ? undefined : all[index]?.name),
      })}
    />
  );
}
