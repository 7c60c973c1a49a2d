import { useState } from "preact/hooks";
import { AXIS_LABEL_FORMATS } from "../lib/axis.ts";
import type { ChartKind, ColorSlot } from "../lib/plot-shape.ts";
import { dayName } from "../lib/time.ts";
import { Plot } from "./plot.tsx";
import type { PlotProps } from "./plot.tsx";
import { Button } from "./basics.tsx";
import type { ChartUnit } from "../lib/axis.ts";
import { stackGroups } from "../lib/spend.ts";
import type { DayRow, UsageMetric } from "../lib/spend.ts";
import { assignColors } from "../state/colors.ts";

type Props = Pick<PlotProps, "name" | "days" | "series" | "unit"> & {
  readonly kind?: ChartKind;
  /** Receives a dragged range, or a clicked bar and the index of its series. */
  readonly onSelect?: ((from: string, to: string, series?: number) => void) | undefined;
};
type Entry = { readonly label: string; readonly slot: ColorSlot; readonly value: number };

export function Chart(props: Props) {
  const { days, series, unit, kind = "bars", onSelect } = props;
  const [at, setAt] = useState<{ readonly index: number; readonly x: number } | null>(null);
  const [asTable, setAsTable] = useState(false);
  const show = AXIS_LABEL_FORMATS[unit];
  const describe = (index: number): string => {
    const parts = entriesOf(props, index).map(({ label, value }) => `${label} ${show(value)}`);
    return `${dayName(days[index] ?? "")}: ${parts.join(", ") || "none"}`;
  };
  const select: PlotProps["onSelect"] =
    onSelect && ((from, to, part) => onSelect(days[from] ?? "", days[to] ?? "", part));
  return (
    <figure class="chart">
      {asTable ? (
        <ChartTable {...props} />
      ) : (
        <div class="plot-frame">
          <Plot {...props} kind={kind} describe={describe} onRead={setAt} onSelect={select} />
          {at && <HoverBox {...props} index={at.index} x={at.x} />}
        </div>
      )}
      <figcaption>
        <span class="names">
          {series.map(({ label, slot }) => (
            <span key={label} class="small">
              <Swatch slot={slot} /> {label}
            </span>
          ))}
        </span>
        <span class="small muted">
          {kind === "bars" && `${show(sumOf(series.flatMap(({ values }) => values)))} in total, `}
          {dayName(days[0] ?? "")} to {dayName(days.at(-1) ?? "")} UTC
        </span>
        <Button
          text={asTable ? "View as chart" : "View as table"}
          class="quiet small"
          onClick={() => setAsTable(!asTable)}
        />
      </figcaption>
    </figure>
  );
}

const sumOf = (values: readonly (number | null)[]): number =>
  values.reduce<number>((sum, value) => sum + (value ?? 0), 0);

function entriesOf({ series, kind = "bars" }: Props, index: number): readonly Entry[] {
  return series
    .flatMap(({ label, slot, values }) => {
      const value = values[index] ?? null;
      return value === null || (kind === "bars" && value === 0) ? [] : [{ label, slot, value }];
    })
    .toSorted((a, b) => b.value - a.value);
}

export function Swatch({ slot }: { slot: ColorSlot }) {
  return (
    <svg class="swatch" viewBox="0 0 10 10" aria-hidden="true">
      <rect class={`series-${slot ?? "other"}`} width="10" height="10" rx="2" />
    </svg>
  );
}

function HoverBox({ index, x, ...props }: Props & { index: number; x: number }) {
  const { days, unit, kind = "bars" } = props;
  const entries = entriesOf(props, index);
  const isLeft = index > days.length / 2;
  return (
    <div
      class="hover"
      style={isLeft ? { right: `calc(100% - ${x - 12}px)` } : { left: `${x + 12}px` }}
    >
      <strong>{dayName(days[index] ?? "")}</strong>
      {entries.map(({ label, slot, value }) => (
        <span key={label} class="hover-row">
          <span>
            <Swatch slot={slot} /> {label}
          </span>
          <span class="number">{AXIS_LABEL_FORMATS[unit](value)}</span>
        </span>
      ))}
      {kind === "bars" && entries.length !== 1 && (
        <span class="hover-row sum">
          <span>Total</span>
          <span class="number">
            {AXIS_LABEL_FORMATS[unit](sumOf(entries.map(({ value }) => value)))}
          </span>
        </span>
      )}
    </div>
  );
}

function ChartTable({ name, days, series, unit }: Props) {
  return (
    <div class="table tall" role="region" aria-label={name} tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Time (UTC)</th>
            {series.map(({ label }) => (
              <th key={label} scope="col" class="right">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {days
            .map((day, i) => (
              <tr key={day}>
                <td>{dayName(day)}</td>
                {series.map(({ label, values }) => {
                  const value = values[i] ?? null;
                  return (
                    <td key={label} class="right number">
                      {value === null ? "" : AXIS_LABEL_FORMATS[unit](value)}
                    </td>
                  );
                })}
              </tr>
            ))
            .toReversed()}
        </tbody>
      </table>
    </div>
  );
}

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
  metric: UsageMetric;
  labelOf: (group: string | null) => string;
  unit: ChartUnit;
  slotOf?: (group: string | null) => ColorSlot;
  onSelect?: ((from: string, to: string, group?: string | null) => void) | undefined;
}) {
  const all = stackGroups(rows, parts, { metric, most: GROUPS_MAX });
  const colorOf = assignColors(all.map((group) => group.name));
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
      onSelect={
        onSelect &&
        ((from, to, index) =>
          onSelect(from, to, index === undefined ? undefined : all[index]?.name))
      }
    />
  );
}
