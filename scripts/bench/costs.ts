import { cpus } from "node:os";
import { ROWS_DELETED, dollarsPerMillion } from "../list-price.ts";
import { quantile } from "../quantile.ts";
import { tmpfsMount } from "../tmpfs.ts";
import { cpuSource } from "../workerd.ts";
import type { Counts } from "../workers/counts.ts";
import { countCompletions } from "./count.ts";
import type { Counted } from "./count.ts";
import { cpuOf, progress, ratioOf, table, watchOthers } from "./figure.ts";
import type { CpuRound, Figure, Report } from "./figure.ts";
import { startBareWorker, startGateway } from "./gateway.ts";
import type { Stage } from "./gateway.ts";
import { latencyFigures, latencyTable } from "./latency.ts";
import { keysFor, measureRounds, warmUp } from "./rounds.ts";
import type { Cpu, Samples } from "./rounds.ts";

type Measured = {
  readonly cpu: Cpu;
  readonly samples: Samples;
  readonly counted: Counted;
  /** The figure from `watchOthers`. */
  readonly others: Figure;
};

const BUDGET = 3.5;

/** Measures the cost of a completion in comparison with a plain pass-through Worker. */
export async function measureCosts(stage: Stage, rounds: number): Promise<Report> {
  progress("starting");
  const floor = await startBareWorker(stage, "floor");
  const pump = await startBareWorker(stage, "pump");
  const gateway = await startGateway(stage, { place: "gateway", keys: keysFor(rounds) });
  const targets = { direct: stage.direct, floor, pump, ...gateway };
  progress("warming up, and counting rows and calls");
  const counting = countCompletions(stage, { place: "counting" });
  const [counted] = await Promise.all([counting, warmUp(targets)]);
  const others = watchOthers();
  const { cpu, samples } = await measureRounds(targets, rounds);
  const costs = costFigures({ cpu, samples, counted, others: others() });
  const storage = tmpfsMount() === null ? "on disk (no tmpfs here)" : "in memory";
  return {
    figures: [...costs, ...latencyFigures(samples)],
    more: { rounds: cpu },
    tables: [table(costs), latencyTable(samples)],
    how:
      `Medians of ${cpu.json.length} JSON rounds, ${cpu.stream.length} of streams (200 words, one every 2 ms) and ` +
      `${cpu.typical.length} at 20 ms a word; CPU of the workerd processes from ${cpuSource()}; storage ${storage}; ` +
      `${cpus().length} cores; counts over ${counted.completions} completions and one publish.`,
  };
}

/** Returns the figures in the order of the design's budgets. latency.ts returns the times. */
export function costFigures({ cpu, samples, counted, others }: Measured): Figure[] {
  const { forged } = counted;
  const per = perCompletion(counted);
  const firstByte = (place: string): number =>
    quantile(samples.get(place)?.stream.map(({ firstByteMs }) => firstByteMs) ?? [], 0.5);
  const added = firstByte("home") - firstByte("floor");
  const price = priceOf(counted, cpuOf(cpu.json, "home").value / 1000);
  const atPeer = "CPU per JSON at a peer, both regions";
  return [
    plain("object calls before the upstream call", per.objectCallsBeforeUpstream, 2),
    plain("object calls after it", per.objectCalls - per.objectCallsBeforeUpstream, 1),
    plain("D1 queries before the upstream call", per.d1QueriesBeforeUpstream, 0),
    ...cpuFigures("CPU per JSON", cpu.json, { budget: BUDGET, aim: 2.5 }),
    { name: atPeer, unit: "us", ...cpuOf(cpu.json, "peer") },
    { name: `${atPeer}, ratio`, unit: "x", ...ratioOf(cpu.json, "peer", "floor") },
    ...cpuFigures("CPU per stream", cpu.stream, { budget: BUDGET, aim: 2.7 }),
    ...pumpFigures("CPU per stream", cpu.stream),
    ...cpuFigures("CPU per stream, 64 at once", cpu.crowd, { budget: BUDGET, aim: 2.4 }),
    ...cpuFigures("CPU per stream at 20 ms a word", cpu.typical, {}),
    ...pumpFigures("CPU per stream at 20 ms a word", cpu.typical),
    { name: "time to first byte added, stream, p50", value: added, unit: "ms", budget: 3 },
    plain("rows written in objects per completion", per.objectRowsWritten),
    plain("rows written in D1 per completion", per.d1RowsWritten),
    plain("object requests per completion, alarms included", objectRequests(per)),
    { name: "list price per million completions", value: price, unit: "$", budget: 8, aim: 6 },
    plain("object calls and D1 queries by forged keys", forged, 0),
    others,
  ];
}

function perCompletion({ counts, completions }: Counted): Counts {
  const each = Object.entries(counts).map(([what, sum]) => [what, sum / completions]);
  return Object.fromEntries(each) as Counts;
}

function objectRequests(per: Counts): number {
  return per.objectCalls + per.objectCallsForMetrics + per.alarms;
}

function plain(name: string, value: number, budget?: number): Figure {
  return budget === undefined ? { name, value, unit: "" } : { name, value, unit: "", budget };
}

function cpuFigures(
  name: string,
  rounds: readonly CpuRound[],
  bounds: Pick<Figure, "budget" | "aim">,
): Figure[] {
  return [
    { name: `${name}, floor`, unit: "us", ...cpuOf(rounds, "floor") },
    { name: `${name}, Turnpike`, unit: "us", ...cpuOf(rounds, "home") },
    { name: `${name}, ratio`, unit: "x", ...ratioOf(rounds, "home", "floor"), ...bounds },
  ];
}

function pumpFigures(name: string, rounds: readonly CpuRound[]): Figure[] {
  return [
    { name: `${name}, pump`, unit: "us", ...cpuOf(rounds, "pump") },
    { name: `${name}, pump's ratio`, unit: "x", ...ratioOf(rounds, "pump", "floor") },
    { name: `${name}, Turnpike to pump`, unit: "x", ...ratioOf(rounds, "home", "pump") },
  ];
}

/**
 * Returns the cost of a completion until its row is deleted. Its CPU is an upper bound, because it
 * includes the whole process with its sockets.
 */
function priceOf(counted: Counted, cpuMs: number): number {
  const per = perCompletion(counted);
  return dollarsPerMillion({
    cpuMs,
    objectRequests: objectRequests(per),
    rowsWritten: per.objectRowsWritten + per.d1RowsWritten + ROWS_DELETED,
    rowsRead: per.objectRowsRead + per.d1RowsRead,
    logLines: per.logLines,
  });
}
