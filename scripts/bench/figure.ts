import { quantile } from "../quantile.ts";
import { figureColumns, textTable } from "../table.ts";
import { childPids, coresWorkedMs, cpuMicroseconds } from "../workerd.ts";

/** CPU per request of one round, in microseconds, by target. */
export type CpuRound = Readonly<Record<string, number>>;
/** The median, quartiles and minimum over several rounds. Noise can only raise the minimum. */
export type Estimate = {
  readonly value: number;
  readonly least: number;
  readonly quartiles: readonly [low: number, high: number];
};

export function cpuOf(rounds: readonly CpuRound[], place: string): Estimate {
  return estimate(rounds.map((round) => round[place] ?? NaN));
}

/**
 * Returns the ratio of two CPU times as the median of the rounds' ratios, so that slow rounds
 * cancel out. `least` is the ratio of the minimums.
 */
export function ratioOf(rounds: readonly CpuRound[], over: string, under: string): Estimate {
  const ratios = rounds.map((round) => (round[over] ?? NaN) / (round[under] ?? NaN));
  const least = cpuOf(rounds, over).least / cpuOf(rounds, under).least;
  return { ...estimate(ratios), least };
}

export const OTHER_PROGRAMS = "cores kept busy by other programs";

export function estimate(values: readonly number[]): Estimate {
  return {
    value: quantile(values, 0.5),
    least: Math.min(...values),
    quartiles: [quantile(values, 0.25), quantile(values, 0.75)],
  };
}

/** A figure with its maximum (`budget`) and its target (`aim`). */
export type Figure = {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly budget?: number;
  readonly aim?: number;
} & Partial<Omit<Estimate, "value">>;

export type Report = {
  readonly figures: readonly Figure[];
  /** Additional fields for `--json`. */
  readonly more: object;
  /** Tables for a terminal. By default, one table with all figures. */
  readonly tables?: readonly string[];
  /** The method as text. */
  readonly how?: string;
  /** Whether the measured values fail the run. */
  readonly isMissed?: boolean;
};

/** Returns a figure's mark: over its budget or not, and whether it reaches the aim. */
export function mark({ value, budget, aim }: Figure): string {
  if (budget === undefined) return "";
  if (!(value <= budget)) return "OVER"; // also true for NaN
  return aim !== undefined && value <= aim ? "ok, aim reached" : "ok";
}

/** Returns the figures as a terminal table without empty columns. */
export function table(figures: readonly Figure[]): string {
  const columns = figureColumns("figure", "measured", "quartiles", "least", "budget", "aim");
  const rows = figures.map((figure) => {
    const { name, value, unit, quartiles, least, budget, aim } = figure;
    const measured = `${formatNumber(value)} ${unit}`.trim();
    const between = quartiles?.map(formatNumber).join(" - ") ?? "";
    const bounds = [least === undefined ? "" : formatNumber(least), budget ?? "", aim ?? ""].map(
      String,
    );
    return [name, measured, between, ...bounds, mark(figure)];
  });
  const isUsed = (_: unknown, i: number): boolean => rows.some((row) => row[i] !== "");
  return textTable(
    [...columns, { title: "" }].filter(isUsed),
    rows.map((row) => row.filter(isUsed)),
  );
}

/** Formats a number, without decimals from 100 on. */
export function formatNumber(value: number): string {
  return value.toFixed(Math.abs(value) >= 100 ? 0 : 2);
}

/**
 * Watches other programs. The returned function gives the average number of cores that they have
 * used since then. Values far above 0 distort times.
 */
export function watchOthers(): () => Figure {
  const children = childPids();
  const pids = [process.pid, ...children, ...children.flatMap((pid) => childPids(pid))];
  const begun = { atMs: performance.now(), busyMs: coresWorkedMs(), ownUs: cpuMicroseconds(pids) };
  return () => {
    const ownMs = (cpuMicroseconds(pids) - begun.ownUs) / 1000;
    const elapsedMs = performance.now() - begun.atMs;
    const cores = (coresWorkedMs() - begun.busyMs - ownMs) / elapsedMs;
    return { name: OTHER_PROGRAMS, value: Math.max(0, cores), unit: "" };
  };
}

/**
 * Shows progress on one line of a terminal, or as separate lines elsewhere. An empty text clears
 * the line.
 */
export function progress(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${what}`);
  else if (what !== "") process.stderr.write(`${what}\n`);
}
