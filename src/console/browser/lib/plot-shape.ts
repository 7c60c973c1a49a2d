import { AXIS_LABEL_FORMATS, createAxis, columnsPerLabel } from "./axis.ts";
import type { ChartUnit } from "./axis.ts";
import { dayName } from "./time.ts";

/** One of six colors, the color for failures, or null for gray. */
export type ColorSlot = number | "bad" | null;
type PlotSeries = {
  readonly label: string;
  readonly slot: ColorSlot;
  readonly values: readonly (number | null)[];
};
export type ChartKind = "bars" | "lines" | "steps";
export type PlotData = {
  readonly days: readonly string[];
  readonly series: readonly PlotSeries[];
  readonly kind: ChartKind;
  readonly unit: ChartUnit;
};

export const CHART_HEIGHT = 264;
export const CHART_TOP_Y = 32;
export const CHART_BOTTOM_Y = CHART_HEIGHT - 24;
export const CHART_RIGHT_MARGIN = 12;

type Mark = {
  readonly index: number;
  readonly series: number;
  readonly top: number;
  readonly height: number;
};
export type PlotShape = {
  readonly left: number;
  readonly column: number;
  readonly bar: number;
  readonly ticks: readonly { readonly y: number; readonly text: string }[];
  readonly marks: readonly Mark[];
  readonly paths: readonly {
    readonly slot: ColorSlot;
    readonly d: string;
    readonly dots: string;
  }[];
  readonly numbers: readonly {
    readonly index: number;
    readonly y: number;
    readonly text: string;
  }[];
  readonly breaks: readonly number[];
  readonly every: number;
};

/** Returns the positions of everything that a chart of `width` px draws. */
export function layOutChart(
  { days, series, kind, unit }: PlotData,
  width: number,
  widthOf: (text: string) => number,
): PlotShape {
  const filled = days.map((_, i) => i).filter((i) => series.some(({ values }) => values[i]));
  const isSingle = filled.length <= 1 && kind !== "steps";
  const isBars = kind === "bars" || isSingle;
  const sums = days.map((_, i) => series.reduce((sum, { values }) => sum + (values[i] ?? 0), 0));
  const all = isBars ? sums : series.flatMap(({ values }) => values.map((value) => value ?? 0));
  const axis = createAxis(all, unit);
  const left = 8 + Math.max(...axis.labels.map(widthOf));
  const column = Math.max(0, width - left - CHART_RIGHT_MARGIN) / Math.max(1, days.length);
  const yOf = (value: number): number =>
    CHART_BOTTOM_Y -
    ((Math.min(value, axis.high) - axis.low) / (axis.high - axis.low)) *
      (CHART_BOTTOM_Y - CHART_TOP_Y);
  const x = (index: number): number => left + (index + 0.5) * column;
  const beyond = isBars ? filled.filter((i) => axis.isBeyond(sums[i] ?? 0)) : [];
  const named = isSingle ? filled : beyond;
  return {
    left,
    column,
    bar: Math.max(1, Math.min(48, column * 0.72)),
    ticks: axis.ticks.map((tick, i) => ({ y: yOf(tick), text: axis.labels[i] ?? "" })),
    marks: isBars ? marksOf(series, days.length, yOf) : [],
    paths: isBars ? [] : series.map((one) => ({ slot: one.slot, ...pathOf(one, kind, x, yOf) })),
    numbers: named.map((index, i) => ({
      index,
      y: yOf(sums[index] ?? 0) - 6 - (i % 2) * 12,
      text: AXIS_LABEL_FORMATS[unit](sums[index] ?? 0),
    })),
    breaks: beyond,
    every: columnsPerLabel(column, 12 + Math.max(...days.map((day) => widthOf(dayName(day))))),
  };
}

function marksOf(
  series: readonly PlotSeries[],
  length: number,
  yOf: (value: number) => number,
): readonly Mark[] {
  const below = Array.from({ length }, () => 0);
  return series.flatMap(({ values }, at) =>
    values.flatMap((value, index) => {
      if (!value) return [];
      const from = below[index] ?? 0;
      below[index] = from + value;
      const top = yOf(from + value);
      const height = Math.max(1, yOf(from) - top - (from > 0 ? 1 : 0));
      return [{ index, series: at, top, height }];
    }),
  );
}

function pathOf(
  { values }: PlotSeries,
  kind: ChartKind,
  x: (index: number) => number,
  yOf: (value: number) => number,
): { d: string; dots: string } {
  let [d, dots] = ["", ""];
  values.forEach((value, i) => {
    if (value === null) return;
    const at = `${x(i)} ${yOf(value)}`;
    const isFirst = (values[i - 1] ?? null) === null;
    if (isFirst) d += `M${at}`;
    else d += kind === "steps" ? `H${x(i)}V${yOf(value)}` : `L${at}`;
    if (values.length <= 31 || (isFirst && (values[i + 1] ?? null) === null)) dots += `M${at}h0`;
  });
  return { d, dots };
}
