import type { Unit } from "../lib/axis.ts";
import type { ColorSlot } from "../lib/plot-shape.ts";
import { stackGroups } from "../lib/spend.ts";
import type { DayRow, Metric } from "../lib/spend.ts";
import { colorsOf } from "../state/colors.ts";
import { Chart } from "./chart.tsx";

export const GROUPS_MAX = 6;

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
  slotOf?: (group: string | null) => ColorSlot;
  onSelect?: ((from: string, to: string, group?: string | null) => void) | undefined;
}) {
  const all = stackGroups(rows, parts, { metric, most: GROUPS_MAX });
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
