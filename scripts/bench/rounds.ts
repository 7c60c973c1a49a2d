import { setTimeout as sleep } from "node:timers/promises";
import { cpuMicroseconds } from "../workerd.ts";
import { progress } from "./figure.ts";
import type { CpuRound } from "./figure.ts";
import { run, turned } from "./load.ts";
import type { Ask, Kind, Sample, Target } from "./load.ts";

/** CPU per request by round. `typical` are streams at a model's pace, `crowd` many short concurrent ones. */
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
/** Loads that CPU is taken from. More streams at a time cost the floor less per chunk, us not so much. */
const SLICE = {
  json: { ...JSON_ASK, requests: 100, concurrency: 8 },
  floorJson: { ...JSON_ASK, requests: 300, concurrency: 8 }, // as long as the gateway's
  stream: { ...STREAM_ASK, requests: 8, concurrency: 8 },
} as const;
export const JSON_PASSES = 2; // a round, there and back
const TYPICAL: Share = { ...STREAM_ASK, pace: "typical", requests: 24, concurrency: 24 };
const CROWD: Share = { kind: "stream", words: 60, pace: "steady", requests: 64, concurrency: 64 };
/** The uncounted start of every slice, because an idle process is slow. */
const AWAKENING = { words: 4, requests: 24 } as const;
const ROUNDS_PER_TYPICAL = 5; // 4 s each
/** Loads that times are taken from: one JSON at a time, two short streams. A slice's first ones do not count. */
const TIMED = {
  json: { ...JSON_ASK, requests: 25, concurrency: 1 },
  stream: { kind: "stream", words: 10, requests: 25, concurrency: 2 },
} as const;
const COLD = 2;
export const KINDS = ["json", "stream"] as const;
const KEY_PER_MINUTE = 1000;

/** A process is quiet when it has used so little CPU in so long. */
const QUIET_US = 200;
const QUIET_POLL_MS = 4;
const QUIET_POLLS = 12;

/**
 * Returns the keys that a target needs for `rounds` rounds within one minute, warm-up included; `times`: for
 * several targets.
 */
export function keysFor(rounds: number, times = 1): number {
  return Math.ceil((1.5 * times * requestsOf(rounds)) / KEY_PER_MINUTE);
}

/** The most requests that `rounds` rounds send to one target. */
function requestsOf(rounds: number): number {
  const warming = WARMING.json.requests + WARMING.stream.requests;
  const timed = TIMED.json.requests + TIMED.stream.requests + 2 * COLD;
  const json = JSON_PASSES * (SLICE.json.requests + AWAKENING.requests);
  const slices = SLICE.stream.requests + TYPICAL.requests + CROWD.requests;
  const streams = slices + 3 * AWAKENING.requests;
  return warming + rounds * (json + streams + timed);
}

/** Lets every Worker compile, every key be read from D1, every connection open. */
export async function warmUp({ direct, floor, pump, home, peer }: Targets): Promise<void> {
  await warm([floor, pump, home, peer]);
  for (const kind of KINDS) await run({ ...TIMED[kind], target: direct });
}

/** Warms up these targets. */
export async function warm(targets: readonly Target[]): Promise<void> {
  for (const target of targets) {
    for (const kind of KINDS) await run({ ...WARMING[kind], target });
  }
}

/** Rounds of short slices, one target after the other, the other way round in every second round. */
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
      cpu.json.push(await cpuInTurn(turned([floor, home, peer], pass), "json"));
    }
    cpu.stream.push(await cpuInTurn(turned([floor, pump, home], round), "stream"));
    cpu.crowd.push(await cpuInTurn(turned([floor, home], round), "stream", CROWD));
    for (const target of turned(timed, round)) {
      const lists = samples.get(target.name);
      for (const kind of KINDS) lists?.[kind].push(...(await time(target, kind)));
    }
    if (round % ROUNDS_PER_TYPICAL === 0) cpu.typical.push(await cpuAtOnce([floor, pump, home]));
  }
  return { cpu, samples };
}

type Lists = Record<Kind, Sample[]>;

/** CPU per request of one target after the other; `share`: instead of the kind's own slice. */
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

/** Measures all concurrently, which works for slow streams that use a fraction of a core. */
async function cpuAtOnce(targets: readonly Target[]): Promise<CpuRound> {
  const round: Record<string, number> = {};
  const measure = async (target: Target): Promise<void> => {
    round[target.name] = await cpuOfSlice(target, TYPICAL);
  };
  await Promise.all(targets.map(measure));
  return round;
}

/** CPU per request at a target, in microseconds. */
async function cpuOfSlice(target: Target, share: Share): Promise<number> {
  await run({ ...share, ...AWAKENING, pace: undefined, target });
  await untilQuiet(target);
  const before = cpuUsed(target);
  await run({ ...share, target });
  await untilQuiet(target);
  return (cpuUsed(target) - before) / share.requests;
}

/** Times of a slice of one kind. */
export async function time(target: Target, kind: Kind): Promise<Sample[]> {
  const share = { ...TIMED[kind], target };
  const samples = await run({ ...share, requests: share.requests + COLD });
  await untilQuiet(target);
  return samples.slice(COLD);
}

function cpuUsed({ pids }: Target): number {
  return pids.reduce((sum, pid) => sum + cpuMicroseconds(pid), 0);
}

/** Waits, at most some 50 ms, for what an answer leaves to be done after it: that belongs to its slice. */
async function untilQuiet(target: Target): Promise<void> {
  let before = cpuUsed(target);
  for (let poll = 0; poll < QUIET_POLLS; poll++) {
    await sleep(QUIET_POLL_MS);
    const after = cpuUsed(target);
    if (after - before < QUIET_US) return;
    before = after;
  }
}
