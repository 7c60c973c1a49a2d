import { quantile } from "../quantile.ts";
import { figureColumns, textTable } from "../table.ts";
import { childPids, coresWorkedMs, cpuMicroseconds } from "../workerd.ts";

/** CPU per request of one round, in microseconds, by place. */
export type CpuRound = Readonly<Record<string, number>>;
/** The result of rounds: median, quartiles, and the minimum, which noise can only raise. */
export type Estimate = {
  readonly value: number;
  readonly least: number;
  readonly quartiles: readonly [low: number, high: number];
};

/** CPU per request at a place. */
export function cpuOf(rounds: readonly CpuRound[], place: string): Estimate {
  return estimate(rounds.map((round) => round[place] ?? NaN));
}

/**
 * Returns the ratio of two CPU times: the median of the rounds' own ratios, so that slow rounds cancel out;
 * the least is that of both minimums.
 */
export function ratioOf(rounds: readonly CpuRound[], over: string, under: string): Estimate {
  const ratios = rounds.map((round) => (round[over] ?? NaN) / (round[under] ?? NaN));
  const least = cpuOf(rounds, over).least / cpuOf(rounds, under).least;
  return { ...estimate(ratios), least };
}

/** The cores that other programs used during the measurement. */
export const OTHER_PROGRAMS = "cores kept busy by other programs";

/** The median of values, their quartiles, and the least. */
export function estimate(values: readonly number[]): Estimate {
  return {
    value: quantile(values, 0.5),
    least: Math.min(...values),
    quartiles: [quantile(values, 0.25), quantile(values, 0.75)],
  };
}

/** A figure with its budget, the most it may be; `aim` is where it should go. Names are in the help. */
export type Figure = {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly budget?: number;
  readonly aim?: number;
} & Partial<Omit<Estimate, "value">>;

/** The measurements of a bench mode. */
export type Report = {
  readonly figures: readonly Figure[];
  /** The further fields of `--json`. */
  readonly more: object;
  /** The tables for a terminal; by default that of the figures. */
  readonly tables?: readonly string[];
  /** The method in words. */
  readonly how?: string;
  /** Whether the run has failed for what it measured. */
  readonly isMissed?: boolean;
};

/** A figure's mark: whether it keeps its budget, and whether the aim is reached. */
export function mark({ value, budget, aim }: Figure): string {
  if (budget === undefined) return "";
  if (!(value <= budget)) return "OVER"; // also when nothing was measured
  return aim !== undefined && value <= aim ? "ok, aim reached" : "ok";
}

/** The figures as a table for a terminal, without the columns that are empty. */
export function table(figures: readonly Figure[]): string {
  const columns = figureColumns("figure", "measured", "quartiles", "least", "budget", "aim");
  const rows = figures.map((figure) => {
    const { name, value, unit, quartiles, least, budget, aim } = figure;
    const measured = `${written(value)} ${unit}`.trim();
    const between = quartiles?.map(written).join(" - ") ?? "";
    const bounds = [least === undefined ? "" : written(least), budget ?? "", aim ?? ""].map(String);
    return [name, measured, between, ...bounds, mark(figure)];
  });
  const isUsed = (_: unknown, i: number): boolean => rows.some((row) => row[i] !== "");
  return textTable(
    [...columns, { title: "" }].filter(isUsed),
    rows.map((row) => row.filter(isUsed)),
  );
}

/** A number as tables show it: whole from 100 on. */
export function written(value: number): string {
  return value.toFixed(Math.abs(value) >= 100 ? 0 : 2);
}

/**
 * Watches other programs. The returned function gives the cores that they used on average since. Far above 0
 * they distort the times.
 */
export function watchOthers(): () => Figure {
  const children = childPids();
  const pids = [process.pid, ...children, ...children.flatMap((pid) => childPids(pid))];
  const own = (): number => pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
  const begun = { atMs: performance.now(), busyMs: coresWorkedMs(), ownUs: own() };
  return () => {
    const ownMs = (own() - begun.ownUs) / 1000;
    const elapsedMs = performance.now() - begun.atMs;
    const cores = (coresWorkedMs() - begun.busyMs - ownMs) / elapsedMs;
    return { name: OTHER_PROGRAMS, value: Math.max(0, cores), unit: "" };
  };
}

/** Shows progress on one line of a terminal, or one line each without one; "" clears it. */
export function progress(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${what}`);
  else if (what !== "") process.stderr.write(`${what}\n`);
}
