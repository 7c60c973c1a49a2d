import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { startBareWorker, startUpstream } from "./bare-workers.ts";
import { countCompletions } from "./count.ts";
import type { Counted } from "./count.ts";
import { cpuOf, estimate, ratioOf } from "./estimate.ts";
import type { CpuRound } from "./estimate.ts";
import type { Figure } from "./figure.ts";
import { startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { watchOthers } from "./others.ts";
import { progress } from "./progress.ts";
import { measurePairs, requestsOf, warm } from "./rounds.ts";
import type { Pairs } from "./rounds.ts";
import type { Place, Stoppable } from "./target.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const KEY_PER_MINUTE = 1000;
/** What a change may make of the paid path's cost. */
const RATIO_MAX = 1.03;

export type Against = {
  readonly pairs: Pairs;
  readonly counted: { readonly before: Counted; readonly now: Counted };
  readonly others: Figure;
};

/** Measures this gateway and that of `commit` in turn; `stops` gets what must be stopped afterwards. */
export async function measureAgainst(
  commit: string,
  rounds: number,
  directory: string,
  stops: Stoppable[],
): Promise<Against> {
  progress(`building ${commit}`);
  const root = checkOut(commit, path.join(directory, "commit"));
  const direct = await startUpstream();
  stops.push(direct);
  const floor = await startBareWorker("floor", direct.base);
  stops.push(floor);
  const keys = Math.ceil((1.5 * requestsOf(rounds)) / KEY_PER_MINUTE);
  const start = async (name: string, options: { readonly root?: string }): Promise<Gateway> => {
    const place = { upstream: direct.base, directory: path.join(directory, name) };
    const gateway = await startGateway({ ...place, keys, ...options });
    stops.push(gateway);
    return gateway;
  };
  const now = await start("now", {});
  const before = await start("before", { root });
  const targets = {
    floor,
    home: now.home,
    peer: now.peer,
    homeBefore: { ...before.home, name: "home before" },
    peerBefore: { ...before.peer, name: "peer before" },
  } as const;
  progress("warming up, and counting rows and calls");
  await warm(Object.values(targets));
  const upstream = direct.base;
  const counted = {
    now: await countCompletions({ upstream, directory: path.join(directory, "counting") }),
    before: await countCompletions({ upstream, directory: path.join(directory, "counted"), root }),
  };
  const others = watchOthers();
  const pairs = await measurePairs(targets, rounds);
  return { pairs, counted, others: others() };
}

/** Both gateways' figures, and of each the median of the rounds' own ratios. */
export function againstFigures({ pairs, counted, others }: Against, commit: string): Figure[] {
  const { cpu, firstByte } = pairs;
  return [
    ...compared("CPU per JSON", commit, cpu.json, "home"),
    ...compared("CPU per stream", commit, cpu.stream, "home"),
    ...compared("CPU per JSON at a peer, both regions", commit, cpu.json, "peer"),
    ...added("first byte added, JSON", commit, firstByte.json),
    ...added("first byte added, stream", commit, firstByte.stream),
    ...countFigures(commit, counted.before),
    ...countFigures("now", counted.now),
    others,
  ];
}

type Side = "home" | "peer";

function compared(what: string, commit: string, rounds: readonly CpuRound[], side: Side): Figure[] {
  const before: Place = `${side} before`;
  const bound = side === "home" ? { budget: RATIO_MAX } : {};
  return [
    { name: `${what}, ${commit}`, unit: "us", ...cpuOf(rounds, before) },
    { name: `${what}, now`, unit: "us", ...cpuOf(rounds, side) },
    { name: `${what}, ratio`, unit: "x", ...ratioOf(rounds, side, before), ...bound },
  ];
}

/** Milliseconds over the floor's in the same round; each round's is the median of its slice. */
function added(what: string, commit: string, rounds: readonly CpuRound[]): Figure[] {
  const over = (place: Place): number[] =>
    rounds.map((round) => (round[place] ?? NaN) - (round.floor ?? NaN));
  const [before, now] = [over("home before"), over("home")];
  const more = now.map((ms, round) => ms - (before[round] ?? NaN));
  const ratios = now.map((ms, round) => ms / (before[round] ?? NaN));
  return [
    { name: `${what}, ${commit}`, unit: "ms", ...estimate(before) },
    { name: `${what}, now`, unit: "ms", ...estimate(now) },
    { name: `${what}, now less ${commit}`, unit: "ms", ...estimate(more) },
    { name: `${what}, ratio`, unit: "x", ...estimate(ratios) },
  ];
}

function countFigures(who: string, { counts, completions }: Counted): Figure[] {
  const { objectCalls, objectCallsBeforeUpstream, d1QueriesBeforeUpstream } = counts;
  const sums = {
    "object calls before the upstream call": objectCallsBeforeUpstream,
    "object calls after it": objectCalls - objectCallsBeforeUpstream,
    "D1 queries before it": d1QueriesBeforeUpstream,
    "rows written in objects": counts.objectRowsWritten,
    "rows written in D1": counts.d1RowsWritten,
  };
  return Object.entries(sums).map(([what, sum]) => ({
    name: `${what} per completion, ${who}`,
    value: sum / completions,
    unit: "",
  }));
}

/** The short name of a commit, or of what a branch or tag names; throws when there is none. */
export function commitOf(named: string): string {
  const words = ["rev-parse", "--verify", "--short", `${named}^{commit}`];
  return execFileSync("git", words, { cwd: ROOT, encoding: "utf8" }).trim();
}

/** The files of a commit in an empty directory, beside the packages that are installed here. */
function checkOut(commit: string, directory: string): string {
  mkdirSync(directory, { recursive: true });
  const archive = execFileSync("git", ["archive", "--format=tar", commit], {
    cwd: ROOT,
    maxBuffer: 1 << 30,
  });
  execFileSync("tar", ["-x", "-C", directory], { input: archive });
  symlinkSync(path.join(ROOT, "node_modules"), path.join(directory, "node_modules"));
  return directory;
}
