// npm run bench: what a completion costs, beside a bare pass-through Worker, in one run.
import { parseArgs } from "node:util";
import path from "node:path";
import { countCompletions } from "./bench-count.ts";
import { closeConnections, run } from "./bench-load.ts";
import type { Kind, Sample, Target } from "./bench-load.ts";
import { figures, mark, table } from "./bench-report.ts";
import type { Measured, Round } from "./bench-report.ts";
import { startFloor, startTurnpike, startUpstream } from "./bench-setup.ts";
import type { Bench } from "./bench-setup.ts";
import { removeDirectory, temporaryDirectory, tmpfsMount } from "./tmpfs.ts";
import { cpuMicroseconds, cpuSource } from "./workerd.ts";

const HELP = `npm run bench [-- OPTIONS]

Measures a completion through the gateway against a bare pass-through Worker (the floor) and the
upstream mock alone: CPU per request of the workerd process, times, rows, calls, list price.
Direct workerd sockets, storage in memory where there is a tmpfs. About a minute.

  --rounds N   paired rounds to take the median of, default 6
  --json       the figures as JSON on stdout
  --help       this text
`;
/** Each key may be used 1000 times a minute, and a run sends some 15,000 requests. */
const KEYS = 40;
const WARM_UP = { json: 4000, stream: 40 } as const;
/** Loads that CPU is taken from. More streams at a time cost the floor less per chunk, us not so much. */
const LOAD = {
  json: { requests: 800, concurrency: 8, maxTokens: 256 },
  stream: { requests: 40, concurrency: 8, maxTokens: 256 },
} as const;
/** Loads that times are taken from: few at a time, short streams. */
const TIMED = {
  json: { requests: 60, concurrency: 2, maxTokens: 256 },
  stream: { requests: 30, concurrency: 2, maxTokens: 10 },
} as const;
const KINDS = ["json", "stream"] as const;

const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "6" },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const roundsWanted = Number(options.rounds);

if (options.help) {
  console.log(HELP);
} else if (!Number.isSafeInteger(roundsWanted) || roundsWanted < 1) {
  console.error(`--rounds must be a whole number from 1\n\n${HELP}`);
  process.exitCode = 2;
} else {
  await main();
}

async function main(): Promise<void> {
  const directory = temporaryDirectory("turnpike-bench-");
  process.on("exit", () => removeDirectory(directory)); // also after Ctrl-C
  const stops: (() => unknown)[] = [closeConnections];
  try {
    report(await measure(directory, stops));
  } catch (error) {
    progress("");
    console.error(error);
    process.exitCode = 1;
  }
  await Promise.allSettled(stops.map((stop) => stop()));
}

async function measure(directory: string, stops: (() => unknown)[]): Promise<Measured> {
  progress("starting");
  const upstream = await startUpstream();
  stops.push(upstream.stop);
  const floor = await startFloor(upstream.url);
  stops.push(floor.stop);
  const turnpike = await startTurnpike({
    upstream: upstream.url,
    directory: path.join(directory, "turnpike"),
    keys: KEYS,
  });
  stops.push(turnpike.stop);
  const direct = { ...floor, name: "direct", url: `${upstream.url}/v1/chat/completions` } as const;
  progress("counting rows and calls");
  const counted = await countCompletions({
    upstream: upstream.url,
    directory: path.join(directory, "counting"),
  });
  for (const kind of KINDS) {
    progress(`warming up: ${WARM_UP[kind]} ${kind} requests each`);
    for (const target of [floor, turnpike]) {
      await run({ ...LOAD[kind], target, kind, requests: WARM_UP[kind] });
    }
  }
  return { counted, ...(await measureRounds(direct, floor, turnpike)) };
}

async function measureRounds(
  direct: Target,
  floor: Bench,
  turnpike: Bench,
): Promise<Pick<Measured, "rounds" | "latencies">> {
  const rounds = { json: [] as Round[], stream: [] as Round[] };
  const latencies = { direct: noSamples(), floor: noSamples(), turnpike: noSamples() };
  for (let round = 1; round <= roundsWanted; round++) {
    for (const kind of KINDS) {
      progress(`round ${round} of ${roundsWanted}: ${kind}`);
      const order = round % 2 === 0 ? [floor, turnpike] : [turnpike, floor];
      const cpu = { floor: 0, turnpike: 0, direct: 0 };
      for (const bench of order) cpu[bench.name] = await cpuPerRequest(bench, kind);
      rounds[kind].push({ floorUs: cpu.floor, turnpikeUs: cpu.turnpike });
      for (const target of [direct, ...order]) {
        latencies[target.name][kind].push(...(await run({ ...TIMED[kind], target, kind })));
      }
    }
  }
  return { rounds, latencies };
}

async function cpuPerRequest(bench: Bench, kind: Kind): Promise<number> {
  const before = cpuMicroseconds(bench.pid);
  await run({ ...LOAD[kind], target: bench, kind });
  return (cpuMicroseconds(bench.pid) - before) / LOAD[kind].requests;
}

function noSamples(): Record<Kind, Sample[]> {
  return { json: [], stream: [] };
}

function report(measured: Measured): void {
  const rows = figures(measured);
  progress("");
  if (options.json) {
    const marked = rows.map((figure) => ({ ...figure, mark: mark(figure) }));
    console.log(JSON.stringify({ rounds: measured.rounds, figures: marked }, null, 2));
    return;
  }
  const storage = tmpfsMount() === null ? "on disk (no tmpfs here)" : "in memory";
  console.log(table(rows));
  console.log(
    `\nMedians of ${roundsWanted} paired rounds; CPU of the workerd process from ${cpuSource()}; storage ${storage}; ` +
      `${LOAD.json.concurrency} requests at a time for CPU (streams: 200 words, one every 2 ms), ${TIMED.json.concurrency} for times; ` +
      `counts over ${measured.counted.completions} completions and one publish.`,
  );
}

/** One line on the terminal that is written over, or one line each where nobody watches. */
function progress(what: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${what}`);
  else if (what !== "") process.stderr.write(`${what}\n`);
}
