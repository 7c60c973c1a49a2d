import type { Outcome } from "./load.ts";
import { quantile } from "../bench/estimate.ts";

/** The other organisations' times may rise by so much beside a hot one. */
export const RISE_PERCENT_MAX = 20;

export type Mode = "model" | "instant";
/** What came of a plan, and the CPU of the gateway's process meanwhile, in percent of one core. */
export type Ran = Outcome & { readonly cpuPercent: number };
/** One run without the hot organisation and one with it. */
export type Pair = { readonly without: Ran; readonly with: Ran };
type Times = { readonly p50: number; readonly p99: number };
/** What one run says: the others' times in ms, and what they and the hot one were answered, by status. */
type RunFigures = {
  readonly firstByteMs: Times;
  readonly totalMs: Times;
  readonly statuses: Readonly<Record<string, number>>;
  readonly hotStatuses: Readonly<Record<string, number>>;
  readonly cpuPercent: number;
};
type Rise = { readonly without: number; readonly with: number; readonly risePercent: number };
/** Medians over the pairs; a rise is the median of the pairs' own rises. */
export type ModeFigures = {
  readonly mode: Mode;
  readonly pairs: readonly { readonly without: RunFigures; readonly with: RunFigures }[];
  readonly firstByteP50: Rise;
  readonly firstByteP99: Rise;
  readonly totalP50: Rise;
  readonly totalP99: Rise;
  /** Of what the hot one offered while measured. */
  readonly hotShedPercent: number;
  /** Cores that other programs kept busy meanwhile: far above 0 the times are theirs as well. */
  readonly otherCores: number;
};

/** Whether the others were all served, the hot one was shed, and their p99 stayed within the budget. */
export function isKept(figures: ModeFigures): boolean {
  const isServed = figures.pairs.every((pair) =>
    [pair.without, pair.with].every(({ statuses }) => Object.keys(statuses).join() === "200"),
  );
  const rises = [figures.firstByteP99, figures.totalP99];
  const isCalm = rises.every(({ risePercent }) => risePercent < RISE_PERCENT_MAX);
  return isServed && isCalm && figures.hotShedPercent > 0;
}

export function figuresOf(mode: Mode, pairs: readonly Pair[], otherCores: number): ModeFigures {
  const runs = pairs.map((pair) => ({ without: runOf(pair.without), with: runOf(pair.with) }));
  const rise = (of: (run: RunFigures) => number): Rise => ({
    without: median(runs.map((run) => of(run.without))),
    with: median(runs.map((run) => of(run.with))),
    risePercent: median(runs.map((run) => (of(run.with) / of(run.without) - 1) * 100)),
  });
  const hot = runs.map(({ with: { hotStatuses } }) => hotStatuses);
  const offered = hot.reduce((sum, one) => sum + total(one), 0);
  const shed = hot.reduce((sum, one) => sum + (one["503"] ?? 0), 0);
  return {
    mode,
    pairs: runs,
    firstByteP50: rise((run) => run.firstByteMs.p50),
    firstByteP99: rise((run) => run.firstByteMs.p99),
    totalP50: rise((run) => run.totalMs.p50),
    totalP99: rise((run) => run.totalMs.p99),
    otherCores,
    hotShedPercent: offered === 0 ? 0 : (shed / offered) * 100,
  };
}

/** The figures as lines of text. */
export function linesOf(figures: ModeFigures): string[] {
  const line = (name: string, { without, with: beside, risePercent }: Rise): string =>
    `${figures.mode.padEnd(8)} others' ${name.padEnd(16)} ${without.toFixed(1).padStart(8)} ms alone ` +
    `${beside.toFixed(1).padStart(8)} ms beside  ${signed(risePercent).padStart(8)} %`;
  const [last] = figures.pairs.slice(-1);
  const answers = JSON.stringify(last?.with.hotStatuses ?? {});
  const cpu = (of: (pair: ModeFigures["pairs"][number]) => number): string =>
    median(figures.pairs.map(of)).toFixed(0);
  return [
    line("first byte, p50", figures.firstByteP50),
    line("first byte, p99", figures.firstByteP99),
    line("whole, p50", figures.totalP50),
    line("whole, p99", figures.totalP99),
    `${figures.mode.padEnd(8)} hot one: ${figures.hotShedPercent.toFixed(0)} % shed (last run, by status: ${answers}); ` +
      `gateway ${cpu((pair) => pair.without.cpuPercent)} % of a core alone, ${cpu((pair) => pair.with.cpuPercent)} % beside; ` +
      `${figures.otherCores.toFixed(1)} cores busy with other programs`,
  ];
}

function runOf(outcome: Ran): RunFigures {
  return {
    firstByteMs: timesOf(outcome.firstByteMs),
    totalMs: timesOf(outcome.totalMs),
    statuses: outcome.timedStatuses,
    hotStatuses: outcome.untimedStatuses,
    cpuPercent: outcome.cpuPercent,
  };
}

function timesOf(values: readonly number[]): Times {
  return { p50: quantile(values, 0.5), p99: quantile(values, 0.99) };
}

function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function signed(percent: number): string {
  return `${percent < 0 ? "" : "+"}${percent.toFixed(1)}`;
}
