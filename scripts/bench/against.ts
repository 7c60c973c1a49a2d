import path from "node:path";
import { quantile } from "../quantile.ts";
import { checkOut } from "./checkout.ts";
import { countCompletions } from "./count.ts";
import type { Counted } from "./count.ts";
import { cpuOf, estimate, progress, ratioOf, watchOthers } from "./figure.ts";
import type { CpuRound, Figure, Report } from "./figure.ts";
import { openStage, startBareWorker, startGateway } from "./gateway.ts";
import type { Stage } from "./gateway.ts";
import { reverseOddTurns } from "./load.ts";
import type { Kind, Target } from "./load.ts";
import { cpuInTurn, JSON_PASSES, keysFor, KINDS, time, warm } from "./rounds.ts";

/** Maximum ratio between the two commits' costs of a paid request. */
const RATIO_MAX = 1.03;

/**
 * Rounds after which both processes restart in the other order. Start order and memory layout can
 * make two processes of one commit differ by 4%.
 */
const ROUNDS_OF_START = 10;

/** The gateways of both commits, and the floor for comparison. */
type PairedTargets = Readonly<
  Record<"floor" | "home" | "peer" | "homeBefore" | "peerBefore", Target>
>;
/** CPU per request and time to first byte (ms) by round. Each value is the median of a slice. */
type Pairs = Readonly<Record<"cpu" | "firstByte", Readonly<Record<Kind, CpuRound[]>>>>;

type Against = {
  readonly pairs: Pairs;
  readonly counted: { readonly before: Counted; readonly now: Counted };
  readonly others: Figure;
};

/** Measures this checkout's gateway and that of a commit in turn. */
export async function measureAgainst(stage: Stage, named: string, rounds: number): Promise<Report> {
  progress(`building ${named}`);
  const { name: commit, root } = checkOut(named, stage.directory);
  progress("counting rows and calls");
  const counted = {
    now: await countCompletions(stage, { place: "counting" }),
    before: await countCompletions(stage, { place: "counted", root }),
  };
  const others: Figure[] = [];
  const pairs: Pairs = { cpu: { json: [], stream: [] }, firstByte: { json: [], stream: [] } };
  for (let first = 0; first < rounds; first += ROUNDS_OF_START) {
    const some = Math.min(ROUNDS_OF_START, rounds - first);
    const nth = first / ROUNDS_OF_START;
    const began = await openStage(path.join(stage.directory, `start-${nth}`));
    try {
      progress(`rounds ${first + 1} to ${first + some} of ${rounds}: starting and warming up`);
      const targets = await startBoth(began, root, { rounds: some, turn: nth });
      const watched = watchOthers(); // the watch covers only this start
      await measurePairs(targets, some, pairs);
      others.push(watched());
    } finally {
      await began.stop();
    }
  }
  const busiest = others.reduce((most, one) => (one.value > most.value ? one : most));
  return {
    figures: againstFigures({ pairs, counted, others: busiest }, commit),
    more: { commit, rounds: pairs },
    how: `${rounds} rounds, both gateways in alternating order, restarted every ${ROUNDS_OF_START}. A ratio is the median of the rounds' ratios.`,
  };
}

/**
 * Starts and warms up both gateways and the floor. The older gateway starts first every second
 * time.
 */
async function startBoth(
  stage: Stage,
  root: string,
  { rounds, turn }: { readonly rounds: number; readonly turn: number },
): Promise<PairedTargets> {
  const floor = await startBareWorker(stage, "floor");
  const keys = keysFor(rounds);
  const startNow = () => startGateway(stage, { place: "now", keys });
  const startBefore = () => startGateway(stage, { place: "before", keys, root });
  const older = turn % 2 === 0 ? null : await startBefore();
  const now = await startNow();
  const before = older ?? (await startBefore());
  const targets = {
    floor,
    home: now.home,
    peer: now.peer,
    homeBefore: { ...before.home, name: "home before" },
    peerBefore: { ...before.peer, name: "peer before" },
  };
  await warm(reverseOddTurns(Object.values(targets), turn));
  return targets;
}

/** Measures slices of both gateways in alternating order. */
async function measurePairs(
  { floor, home, peer, homeBefore, peerBefore }: PairedTargets,
  rounds: number,
  { cpu, firstByte }: Pairs,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    progress(`round ${round + 1} of ${rounds}`);
    const atHome = reverseOddTurns([homeBefore, home], round);
    const all = [floor, ...atHome, ...reverseOddTurns([peerBefore, peer], round)];
    for (let pass = 0; pass < JSON_PASSES; pass++) {
      cpu.json.push(await cpuInTurn(reverseOddTurns(all, pass), "json"));
      cpu.stream.push(await cpuInTurn(reverseOddTurns(atHome, pass), "stream"));
    }
    for (const kind of KINDS) {
      for (let pass = 0; pass < 2; pass++) {
        firstByte[kind].push(await firstBytes(reverseOddTurns([floor, ...atHome], pass), kind));
      }
    }
  }
}

async function firstBytes(targets: readonly Target[], kind: Kind): Promise<CpuRound> {
  const round: Record<string, number> = {};
  for (const target of targets) {
    const times = (await time(target, kind)).map(({ firstByteMs }) => firstByteMs);
    round[target.name] = quantile(times, 0.5);
  }
  return round;
}

/** Returns both gateways' figures and the median of the rounds' ratios. */
export function againstFigures({ pairs, counted, others }: Against, commit: string): Figure[] {
  const { cpu, firstByte } = pairs;
  return [
    ...compareCpu("CPU per JSON", commit, cpu.json, "home"),
    ...compareCpu("CPU per stream", commit, cpu.stream, "home"),
    ...compareCpu("CPU per JSON at a peer, both regions", commit, cpu.json, "peer"),
    ...timesOverFloor("first byte added, JSON", commit, firstByte.json),
    ...timesOverFloor("first byte added, stream", commit, firstByte.stream),
    ...countFigures(commit, counted.before),
    ...countFigures("now", counted.now),
    others,
  ];
}

type Side = "home" | "peer";

function compareCpu(
  what: string,
  commit: string,
  rounds: readonly CpuRound[],
  side: Side,
): Figure[] {
  const before = `${side} before`;
  const bound = side === "home" ? { budget: RATIO_MAX } : {};
  return [
    { name: `${what}, ${commit}`, unit: "us", ...cpuOf(rounds, before) },
    { name: `${what}, now`, unit: "us", ...cpuOf(rounds, side) },
    { name: `${what}, ratio`, unit: "x", ...ratioOf(rounds, side, before), ...bound },
  ];
}

/** Returns the time in ms above the floor's in the same round, from each slice's median. */
function timesOverFloor(what: string, commit: string, rounds: readonly CpuRound[]): Figure[] {
  const over = (place: string): number[] =>
    rounds.map((round) => (round[place] ?? NaN) - (round["floor"] ?? NaN));
  const [before, now] = [over("home before"), over("home")];
  const each = (of: (now: number, before: number) => number): number[] =>
    now.map((ms, round) => of(ms, before[round] ?? NaN));
  return [
    { name: `${what}, ${commit}`, unit: "ms", ...estimate(before) },
    { name: `${what}, now`, unit: "ms", ...estimate(now) },
    { name: `${what}, now less ${commit}`, unit: "ms", ...estimate(each((a, b) => a - b)) },
    { name: `${what}, ratio`, unit: "x", ...estimate(each((a, b) => a / b)) },
  ];
}

function countFigures(who: string, { counts, completions }: Counted): Figure[] {
  const { objectCalls, objectCallsBeforeUpstream } = counts;
  const sums = {
    "object calls before the upstream call": objectCallsBeforeUpstream,
    "object calls after it": objectCalls - objectCallsBeforeUpstream,
    "D1 queries before it": counts.d1QueriesBeforeUpstream,
    "rows written in objects": counts.objectRowsWritten,
    "rows written in D1": counts.d1RowsWritten,
  };
  return Object.entries(sums).map(([what, sum]) => {
    return { name: `${what} per completion, ${who}`, value: sum / completions, unit: "" };
  });
}
