import { setTimeout as sleep } from "node:timers/promises";
import { cpuMicroseconds } from "../workerd.ts";
import { progress } from "./figure.ts";
import type { CpuRound } from "./figure.ts";
import { run, reverseOddTurns } from "./load.ts";
import type { Ask, Kind, Sample, Target } from "./load.ts";

/**
 * CPU per request by round. `typical`: streams at a model's pace. `crowd`: many short concurrent
 * streams.
 */
export type Cpu = Readonly<Record<Kind | "typical" | "crowd", readonly CpuRound[]>>;
export type Samples = ReadonlyMap<string, Readonly<Record<Kind, readonly Sample[]>>>;
type Targets = Readonly<Record<"direct" | "floor" | "pump" | "home" | "peer", Target>>;
type Share = Ask & { readonly requests: number; readonly concurrency: number };

const JSON_ASK = { kind: "json", words: 256 } as const;
const STREAM_ASK = { kind: "stream", words: 200 } as const;
const WARMING = {
  json: { ...JSON_ASK, requests: 3000, concurrency: 8 },
  stream: { ...STREAM_ASK, requests: 32, concurrency: 8 },
} as const;
/**
 * Loads for CPU. More concurrent streams would lower the floor's cost per chunk, but hardly the
 * gateway's.
 */
const SLICE = {
  json: { ...JSON_ASK, requests: 100, concurrency: 8 },
  floorJson: { ...JSON_ASK, requests: 300, concurrency: 8 }, // as long as the gateway's slice
  stream: { ...STREAM_ASK, requests: 8, concurrency: 8 },
} as const;
export const JSON_PASSES = 2; // per round, forward and back
const TYPICAL: Share = { ...STREAM_ASK, pace: "typical", requests: 24, concurrency: 24 };
const CROWD: Share = { kind: "stream", words: 60, pace: "steady", requests: 64, concurrency: 64 };
/**
 * The requests at the start of every slice, which aren't counted, because an idle process is slow.
 */
const AWAKENING = { words: 4, requests: 24 } as const;
const ROUNDS_PER_TYPICAL = 5; // each takes 4 s
/**
 * Loads for times: one JSON request at a time, and two short streams. The first requests of a slice
 * don't count.
 */
const TIMED = {
  json: { ...JSON_ASK, requests: 25, concurrency: 1 },
  stream: { kind: "stream", words: 10, requests: 25, concurrency: 2 },
} as const;
const COLD = 2;
export const KINDS = ["json", "stream"] as const;
const KEY_PER_MINUTE = 1000;

/** A process is quiet if it uses less than `QUIET_US` of CPU between two polls. */
const QUIET_US = 200;
const QUIET_POLL_MS = 4;
const QUIET_POLLS = 12;

/**
 * Returns the number of keys that `times` targets need for all rounds within one minute, including
 * the warm-up.
 */
export function keysFor(rounds: number, times = 1): number {
  return Math.ceil((1.5 * times * requestsOf(rounds)) / KEY_PER_MINUTE);
}

/** Returns the maximum requests that one target gets. */
function requestsOf(rounds: number): number {
  const warming = WARMING.json.requests + WARMING.stream.requests;
  const timed = TIMED.json.requests + TIMED.stream.requests + 2 * COLD;
  const json = JSON_PASSES * (SLICE.json.requests + AWAKENING.requests);
  const slices = SLICE.stream.requests + TYPICAL.requests + CROWD.requests;
  const streams = slices + 3 * AWAKENING.requests;
  return warming + rounds * (json + streams + timed);
}

/** Warms up all targets: Workers compile, keys are loaded and connections open. */
export async function warmUp({ direct, floor, pump, home, peer }: Targets): Promise<void> {
  await warm([floor, pump, home, peer]);
  for (const kind of KINDS) await run({ ...TIMED[kind], target: direct });
}

export async function warm(targets: readonly Target[]): Promise<void> {
  for (const target of targets) {
    for (const kind of KINDS) await run({ ...WARMING[kind], target });
  }
}

/** Measures short slices of all targets in turn, in reverse order in every second round. */
export async function measureRounds(
  targets: Targets,
  rounds: number,
): Promise<{ readonly cpu: Cpu; readonly samples: Samples }> {
  const { direct, floor, pump, home, peer } = targets;
  const cpu: Record<keyof Cpu, CpuRound[]> = { json: [], stream: [], typical: [], crowd: [] };
  const timed = [direct, floor, home, peer];
  const samples = new Map<string, Lists>(timed.map(({ name }) => [name, { json: [], stream: [] }]));
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`);
    for (let pass = 0; pass < JSON_PASSES; pass++) {
      cpu.json.push(await cpuInTurn(reverseOddTurns([floor, home, peer], pass), "json"));
    }
    cpu.stream.push(await cpuInTurn(reverseOddTurns([floor, pump, home], round), "stream"));
    cpu.crowd.push(await cpuInTurn(reverseOddTurns([floor, home], round), "stream", CROWD));
    for (const target of reverseOddTurns(timed, round)) {
      const lists = samples.get(target.name);
      for (const kind of KINDS) lists?.[kind].push(...(await time(target, kind)));
    }
    if (round % ROUNDS_PER_TYPICAL === 0) cpu.typical.push(await cpuAtOnce([floor, pump, home]));
  }
  return { cpu, samples };
}

type Lists = Record<Kind, Sample[]>;

/**
 * Returns the CPU per request of each target, one after the other. `share` replaces the kind's
 * slice.
 */
export async function cpuInTurn(
  targets: readonly Target[],
  kind: Kind,
  share?: Share,
): Promise<CpuRound> {
  const round: Record<string, number> = {};
  for (const target of targets) {
    const isFloorJson = kind === "json" && target.name === "floor";
    round[target.name] = await cpuOfSlice(
      target,
      share ?? (isFloorJson ? SLICE.floorJson : SLICE[kind]),
    );
  }
  return round;
}

/** Measures all targets concurrently, because slow streams use only a fraction of a core. */
async function cpuAtOnce(targets: readonly Target[]): Promise<CpuRound> {
  const round: Record<string, number> = {};
  const measure = async (target: Target): Promise<void> => {
    round[target.name] = await cpuOfSlice(target, TYPICAL);
  };
  await Promise.all(targets.map(measure));
  return round;
}

/** Returns the CPU per request at a target, in microseconds. */
async function cpuOfSlice(target: Target, share: Share): Promise<number> {
  await run({ ...share, ...AWAKENING, pace: undefined, target });
  await untilQuiet(target);
  const before = cpuMicroseconds(target.pids);
  await run({ ...share, target });
  await untilQuiet(target);
  return (cpuMicroseconds(target.pids) - before) / share.requests;
}

/** Returns the times of a slice of one kind. */
export async function time(target: Target, kind: Kind): Promise<Sample[]> {
  const share = { ...TIMED[kind], target };
  const samples = await run({ ...share, requests: share.requests + COLD });
  await untilQuiet(target);
  return samples.slice(COLD);
}

/** Waits up to about 50 ms for work after the last response, which belongs to the slice. */
async function untilQuiet(target: Target): Promise<void> {
  let before = cpuMicroseconds(target.pids);
  for (let poll = 0; poll < QUIET_POLLS; poll++) {
    await sleep(QUIET_POLL_MS);
    const after = cpuMicroseconds(target.pids);
    if (after - before < QUIET_US) return;
    before = after;
  }
}
