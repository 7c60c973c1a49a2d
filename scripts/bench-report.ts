import type { Counted } from "./bench-count.ts";
import type { Kind, Sample } from "./bench-load.ts";
import { textTable } from "./table.ts";
import type { Column } from "./table.ts";

/** One round's CPU per request, in microseconds of the workerd process. */
export type Round = { readonly floorUs: number; readonly turnpikeUs: number };
export type Latencies = Readonly<
  Record<"direct" | "floor" | "turnpike", Readonly<Record<Kind, readonly Sample[]>>>
>;
export type Measured = {
  readonly rounds: Readonly<Record<Kind, readonly Round[]>>;
  readonly latencies: Latencies;
  readonly counted: Counted;
};

/** A figure with its budget, the most it may be; `aim` is where it should go. */
export type Figure = {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly budget?: number;
  readonly aim?: number;
};

/** Share of requests whose log events are kept: head_sampling_rate of wrangler.toml. */
const LOG_SAMPLING = 0.05;
/** How long an object is busy with one call, for the duration price; counted runs cannot tell. */
const OBJECT_SECONDS_PER_CALL = 0.003;

const COLUMNS: readonly Column[] = [
  { title: "figure" },
  { title: "measured", align: "right" },
  { title: "budget", align: "right" },
  { title: "aim", align: "right" },
  { title: "" },
];

/** The figures of design's budgets, in their order. */
export function figures({ rounds, latencies, counted }: Measured): Figure[] {
  const { counts, completions, forged } = counted;
  const per = (sum: number): number => sum / completions;
  const { direct, floor, turnpike } = latencies;
  const added =
    quantile(firstBytes(turnpike.stream), 0.5) - quantile(firstBytes(floor.stream), 0.5);
  return [
    {
      name: "object calls before the upstream call",
      value: per(counts.objectCallsBeforeUpstream),
      unit: "",
      budget: 2,
    },
    {
      name: "object calls after it",
      value: per(counts.objectCalls - counts.objectCallsBeforeUpstream),
      unit: "",
      budget: 1,
    },
    {
      name: "D1 queries before the upstream call",
      value: per(counts.d1QueriesBeforeUpstream),
      unit: "",
      budget: 0,
    },
    ...cpuFigures("JSON", rounds.json, 2.5),
    ...cpuFigures("stream", rounds.stream, 2.7),
    { name: "time to first byte added, stream, p50", value: added, unit: "ms", budget: 3 },
    ...latencyFigures("direct", direct),
    ...latencyFigures("floor", floor),
    ...latencyFigures("Turnpike", turnpike),
    {
      name: "rows written in objects per completion",
      value: per(counts.objectRowsWritten),
      unit: "",
    },
    { name: "rows written in D1 per completion", value: per(counts.d1RowsWritten), unit: "" },
    {
      name: "object requests per completion, alarms included",
      value: per(counts.objectCalls + counts.objectCallsForMetrics + counts.alarms),
      unit: "",
    },
    {
      name: "list price per million completions",
      value: dollarsPerMillion(counted, medianOf(rounds.json, (round) => round.turnpikeUs) / 1000),
      unit: "$",
      budget: 8,
      aim: 6,
    },
    { name: "object calls and D1 queries by forged keys", value: forged, unit: "", budget: 0 },
  ];
}

/** A figure's mark: whether it keeps its budget, and whether the aim is reached. */
export function mark({ value, budget, aim }: Figure): string {
  if (budget === undefined) return "";
  if (value > budget) return "OVER";
  return aim !== undefined && value <= aim ? "ok, aim reached" : "ok";
}

/** The figures as a table for a terminal. */
export function table(rows: readonly Figure[]): string {
  const lines = rows.map((figure) => {
    const { name, value, unit, budget, aim } = figure;
    const figureText = `${value.toFixed(value >= 100 ? 0 : 2)} ${unit}`.trim();
    return [name, figureText, budget?.toString() ?? "", aim?.toString() ?? "", mark(figure)];
  });
  return textTable(COLUMNS, lines);
}

/**
 * Dollars per million completions on Workers Paid beyond what is included: requests 0.30, CPU 0.02
 * per ms, object requests 0.15, object seconds 1.60, rows written 1.00, rows read 0.001, log events
 * 0.60 (developers.cloudflare.com: Workers, Durable Objects and D1 pricing). CPU is that of the whole
 * process, sockets included: an upper bound.
 */
function dollarsPerMillion({ counts, completions }: Counted, cpuMs: number): number {
  const objectRequests = counts.objectCalls + counts.objectCallsForMetrics + counts.alarms;
  const sum =
    0.15 * objectRequests +
    1.6 * OBJECT_SECONDS_PER_CALL * objectRequests +
    1 * (counts.objectRowsWritten + counts.d1RowsWritten) +
    0.001 * (counts.objectRowsRead + counts.d1RowsRead) +
    0.6 * LOG_SAMPLING * (counts.logLines + completions); // one invocation event each
  return 0.3 + 0.02 * cpuMs + sum / completions;
}

function cpuFigures(kind: string, rounds: readonly Round[], aim: number): Figure[] {
  return [
    { name: `CPU per ${kind}, floor`, value: medianOf(rounds, (r) => r.floorUs), unit: "us" },
    { name: `CPU per ${kind}, Turnpike`, value: medianOf(rounds, (r) => r.turnpikeUs), unit: "us" },
    {
      name: `CPU per ${kind}, ratio`,
      value: medianOf(rounds, (round) => round.turnpikeUs / round.floorUs),
      unit: "x",
      budget: 3.5,
      aim,
    },
  ];
}

function latencyFigures(name: string, samples: Latencies["floor"]): Figure[] {
  const totals = samples.json.map((sample) => sample.totalMs);
  const first = firstBytes(samples.stream);
  return [
    { name: `${name}: JSON, p50`, value: quantile(totals, 0.5), unit: "ms" },
    { name: `${name}: JSON, p99`, value: quantile(totals, 0.99), unit: "ms" },
    { name: `${name}: stream's first byte, p50`, value: quantile(first, 0.5), unit: "ms" },
    { name: `${name}: stream's first byte, p99`, value: quantile(first, 0.99), unit: "ms" },
  ];
}

function firstBytes(samples: readonly Sample[]): number[] {
  return samples.map((sample) => sample.firstByteMs);
}

function medianOf(rounds: readonly Round[], figure: (round: Round) => number): number {
  return quantile(rounds.map(figure), 0.5);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const [low = NaN, high = low] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}
