import { textTable } from "../table.ts";
import type { Column } from "../table.ts";
import type { Estimate } from "./estimate.ts";

/** A figure with its budget, the most it may be; `aim` is where it should go. Names are in the help. */
export type Figure = {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly budget?: number;
  readonly aim?: number;
} & Partial<Omit<Estimate, "value">>;

const COLUMNS: readonly Column[] = [
  { title: "figure" },
  { title: "measured", align: "right" },
  { title: "quartiles", align: "right" },
  { title: "least", align: "right" },
  { title: "budget", align: "right" },
  { title: "aim", align: "right" },
  { title: "" },
];

/** A figure's mark: whether it keeps its budget, and whether the aim is reached. */
export function mark({ value, budget, aim }: Figure): string {
  if (budget === undefined) return "";
  if (!(value <= budget)) return "OVER"; // also when nothing was measured
  return aim !== undefined && value <= aim ? "ok, aim reached" : "ok";
}

/** The figures as a table for a terminal. */
export function table(rows: readonly Figure[]): string {
  const used = COLUMNS.map(
    ({ title }) => title === "" || rows.some((row) => cells(row)[indexOf(title)] !== ""),
  );
  const inUse = <T>(list: readonly T[]): T[] => list.filter((_, i) => used[i]);
  return textTable(
    inUse(COLUMNS),
    rows.map((row) => inUse(cells(row))),
  );
}

/** A number as tables show it: whole from 100 on. */
export function written(value: number): string {
  return value.toFixed(Math.abs(value) >= 100 ? 0 : 2);
}

function indexOf(title: string): number {
  return COLUMNS.findIndex((column) => column.title === title);
}

function cells(figure: Figure): string[] {
  const { name, value, unit, quartiles, least, budget, aim } = figure;
  return [
    name,
    `${written(value)} ${unit}`.trim(),
    quartiles === undefined ? "" : quartiles.map(written).join(" - "),
    least === undefined ? "" : written(least),
    budget?.toString() ?? "",
    aim?.toString() ?? "",
    mark(figure),
  ];
}
