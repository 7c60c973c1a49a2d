import { InvalidArgumentError } from "commander";
import { quantile } from "../quantile.ts";
import { figureColumns, textTable } from "../table.ts";
import { cpuMicroseconds } from "../workerd.ts";
import { OTHERS, startOther } from "./other-gateways.ts";
import type { OtherGateway } from "./other-gateways.ts";
import { checkOut } from "./checkout.ts";
import { cpuOf, estimate, progress, ratioOf, table, watchOthers, formatNumber } from "./figure.ts";
import type { CpuRound, Estimate, Figure, Report } from "./figure.ts";
import { openOrganization, startBareWorker, startGateway } from "./gateway.ts";
import type { Stage } from "./gateway.ts";
import { sendAtRate, sendInTurn, reverseOddTurns } from "./load.ts";
import type { Ask, Target } from "./load.ts";

/** A constant rate of JSON requests, or of streams with 60 words, one every 5 ms. */
export type Rate = { readonly kind: "json" | "stream"; readonly perSecond: number };
/** Targets besides the provider and the floor, each with one organization or a hundred. */
export const OPEN_PLACES = ["home", "home100", "away", "away100"] as const;
export type OpenPlace = (typeof OPEN_PLACES)[number];
/**
 * The results of a rate. `times` has a list in ms for each target and round: to the last byte for
 * JSON, to the first byte for streams.
 */
type RateResult = {
  readonly rate: Rate;
  readonly times: Readonly<Record<string, readonly (readonly number[])[]>>;
  /** CPU per request of each target's processes. The provider has none. */
  readonly cpu: readonly CpuRound[];
  readonly failed: Readonly<Record<string, number>>;
};
type OpenOptions = {
  readonly rates: readonly Rate[];
  /**
   * Requests of each rate and target over all rounds. The provider gets a quarter, because it
   * varies least.
   */
  readonly requests: number;
  readonly places: readonly OpenPlace[];
  readonly rounds: number;
  /** Other gateways with the same provider. */
  readonly beside: readonly OtherGateway[];
  /** A commit whose home region, with one organization, runs in the same rounds. */
  readonly against?: string;
};

const ASKS: Readonly<Record<Rate["kind"], Ask>> = {
  json: { kind: "json", words: 256 },
  stream: { kind: "stream", words: 60, pace: "steady" },
};
const HOME = "home, one organization";
const BEFORE = "home before";
const ORGANIZATIONS = 100;
const KEY_PER_SECOND = 1000 / 60;
const WARM_SECONDS = 3;
const DIRECT_SHARE = 0.25;

/** Measures each rate at each target in alternating order. */
export async function measureOpen(stage: Stage, options: OpenOptions): Promise<Report> {
  const { requests, rounds } = options;
  progress("starting, and making organizations");
  const places = await startPlaces(stage, options);
  for (const target of places) await warmTarget(target, ASKS.json, WARMING);
  const others = watchOthers();
  const open: RateResult[] = [];
  for (const rate of options.rates) open.push(await measureRate(rate, places, options));
  const figures = openFigures(open, others());
  return {
    figures,
    more: { rounds },
    tables: [table(figures), openTable(open)],
    how:
      `${requests} requests a rate and place, in ${rounds} rounds there and back, of which all figures are the medians; ` +
      `times from when each was due; streams: the first byte.`,
  };
}

async function startPlaces(
  stage: Stage,
  { rates, places, beside, against }: OpenOptions,
): Promise<readonly Target[]> {
  const floor = await startBareWorker(stage, "floor");
  const fastest = Math.max(...rates.map(({ perSecond }) => perSecond));
  const keys = Math.ceil((1.5 * fastest) / KEY_PER_SECOND) + WARMING_KEYS;
  const { home, peer, admin } = await startGateway(stage, { place: "gateway", keys });
  const crowdOf = async (target: Target, scope: "regional" | "global"): Promise<Target> => {
    const made: string[] = [];
    for (let i = 0; i < ORGANIZATIONS; i++) {
      made.push(...(await openOrganization(admin, scope, 1, `bench-${scope}-${i}`)));
    }
    return { ...target, keys: made };
  };
  const started: Target[] = [stage.direct, floor];
  const add = (name: string, target: Target): unknown => started.push({ ...target, name });
  const crowd = `${ORGANIZATIONS} organizations`;
  if (places.includes("home")) add(HOME, home);
  if (places.includes("home100")) add(`home, ${crowd}`, await crowdOf(home, "regional"));
  if (places.includes("away")) add("away, one organization", peer);
  if (places.includes("away100")) add(`away, ${crowd}`, await crowdOf(peer, "global"));
  if (against !== undefined) {
    const { root } = checkOut(against, stage.directory);
    add(BEFORE, (await startGateway(stage, { place: "before", keys, root })).home);
  }
  for (const other of beside) {
    const target = await startOther(stage, other);
    if (target !== null) started.push(target);
  }
  return started;
}

/** Warms up a target, so that its Worker compiles and reads keys. Failures don't count. */
async function warmTarget(target: Target, ask: Ask, requests: number): Promise<void> {
  await sendInTurn(target, ask, 4, (begun) => begun < requests);
}

/** Number of warm-up requests of each target. Many are needed, because V8 compiles in stages. */
const WARMING = 2000;
const WARMING_KEYS = 4;

async function measureRate(
  rate: Rate,
  places: readonly Target[],
  options: OpenOptions,
): Promise<RateResult> {
  const { kind, perSecond } = rate;
  const ask = ASKS[kind];
  const seconds = options.requests / options.rounds / perSecond;
  const times: Record<string, number[][]> = {};
  const cpu: CpuRound[] = [];
  const failed: Record<string, number> = {};
  for (const target of places) await warmTarget(target, ask, Math.max(target.keys.length, 20));
  for (let round = 0; round < options.rounds; round++) {
    progress(`${nameOf(rate)}: round ${round + 1} of ${options.rounds}`);
    const cpuUs: Record<string, number> = {};
    for (const target of reverseOddTurns(places, round)) {
      const { name } = target;
      const offered = { target, ask, rate: perSecond };
      // Warms up the target. These requests don't count.
      await sendAtRate({ ...offered, seconds: Math.min(WARM_SECONDS, seconds / 4) });
      const share = name === "direct" ? DIRECT_SHARE : 1;
      const usedUs = cpuMicroseconds(target.pids);
      const answers = await sendAtRate({ ...offered, seconds: seconds * share });
      cpuUs[name] = (cpuMicroseconds(target.pids) - usedUs) / answers.length;
      failed[name] = (failed[name] ?? 0) + answers.filter(({ isOk }) => !isOk).length;
      const taken = answers.map(({ ms, firstByteMs }) => (kind === "json" ? ms : firstByteMs));
      (times[name] ??= []).push(taken);
    }
    cpu.push(cpuUs);
  }
  return { rate, times, cpu, failed };
}

function nameOf({ kind, perSecond }: Rate): string {
  return kind === "json" ? `JSON at ${perSecond}/s` : `streams at ${perSecond}/s`;
}

/**
 * Parses `10,50,s20`: JSON at 10 and 50 requests per second, and streams at 20. Throws for other
 * text.
 */
export function ratesOf(text: string): readonly Rate[] {
  return text.split(",").map((word): Rate => {
    const perSecond = Number(word.replace(/^s/, ""));
    if (!(perSecond > 0 && perSecond <= 500)) {
      throw new InvalidArgumentError(
        "It takes requests a second, those of streams after an s: 10,s20.",
      );
    }
    return { kind: word.startsWith("s") ? "stream" : "json", perSecond };
  });
}

const SHARES = { p50: 0.5, p99: 0.99, "p99.9": 0.999 } as const;
/** Maximum ratio of home's added p99 to the floor's. */
const TAIL_MAX = 3;
const BASES = ["direct", "floor"] as const;
const COLUMNS = figureColumns(
  "added in ms",
  "p50",
  "p99",
  "p99.9",
  "of the floor's: p50",
  "p99",
  "p99.9",
  "CPU in us",
  "of the floor's",
  "requests",
  "failed",
);

/** Returns the median of each target's added time over direct and over the floor. */
export function openFigures(open: readonly RateResult[], others: Figure): Figure[] {
  return [...open.flatMap(figuresOf), others];
}

/** Returns the added times over direct as a table with a row for each rate and target. */
function openTable(open: readonly RateResult[]): string {
  const rows = open.flatMap((one) => placesIn(one.times).map((place) => rowOf(one, place)));
  return textTable(COLUMNS, rows);
}

function rowOf({ rate, times, cpu, failed }: RateResult, place: string): string[] {
  const added = textsOf((at) => addedTimes(times, place, "direct", at));
  const shares = place === "floor" ? ["", "", ""] : textsOf((at) => ratioToFloor(times, place, at));
  const used = formatNumber(cpuOf(cpu, place).value);
  const usedShare = place === "floor" ? "" : formatNumber(ratioOf(cpu, place, "floor").value);
  const requests = String((times[place] ?? []).flat().length);
  const row = [`${nameOf(rate)}, ${place}`, ...added, ...shares, used, usedShare, requests];
  return [...row, String(failed[place] ?? 0)];
}

function textsOf(roundsAt: (at: number) => readonly number[]): string[] {
  return Object.values(SHARES).map((at) => formatNumber(estimate(roundsAt(at)).value));
}

function placesIn(times: RateResult["times"]): string[] {
  return Object.keys(times).filter((place) => place !== "direct");
}

function figuresOf({ rate, times, cpu, failed }: RateResult): Figure[] {
  const name = nameOf(rate);
  const rows = placesIn(times).flatMap((place) =>
    placeFigures(name, times, place).concat(
      cpuFigures(`${name}, ${place}: CPU per request`, cpu, place),
    ),
  );
  const paired = BEFORE in times && HOME in times ? pairedFigures(name, times) : [];
  const others = OTHERS.filter((other) => other in times);
  const all = Object.values(failed).reduce((sum, some) => sum + some, 0);
  const theirs = others.map((other) => ({ other, value: failed[other] ?? 0 }));
  const ours = all - theirs.reduce((sum, { value }) => sum + value, 0);
  return [
    ...rows,
    ...paired,
    { name: `${name}: failed`, value: ours, unit: "", budget: 0 },
    ...theirs.map(({ other, value }) => ({ name: `${name}, ${other}: failed`, value, unit: "" })),
  ];
}

/** Returns the ratio between home and the older commit in the same round. */
function pairedFigures(rate: string, times: RateResult["times"]): Figure[] {
  const at = (place: string, share: number): number[] =>
    (times[place] ?? []).map((round) => quantile(round, share));
  return Object.entries(SHARES).map(([name, share]) => {
    const before = at(BEFORE, share);
    const ratios = at(HOME, share).map((ms, round) => ms / (before[round] ?? NaN));
    const { value, quartiles } = medianOf(ratios);
    return { name: `${rate}: ${name}, of the commit's before`, unit: "x", value, quartiles };
  });
}

function cpuFigures(name: string, cpu: readonly CpuRound[], place: string): Figure[] {
  const used: Figure = { name, unit: "us", ...cpuOf(cpu, place) };
  if (place === "floor") return [used];
  return [used, { name: `${name}, of the floor's`, unit: "x", ...ratioOf(cpu, place, "floor") }];
}

function placeFigures(rate: string, times: RateResult["times"], place: string): Figure[] {
  const figures: Figure[] = [];
  for (const [share, at] of Object.entries(SHARES)) {
    for (const base of BASES.filter((one) => one !== place)) {
      const name = `${rate}, ${place}: ${share} over ${base}`;
      figures.push({ name, unit: "ms", ...medianOf(addedTimes(times, place, base, at)) });
    }
    if (place === "floor") continue;
    figures.push({
      name: `${rate}, ${place}: ${share} added, of the floor's`,
      unit: "x",
      ...medianOf(ratioToFloor(times, place, at)),
      ...(share === "p99" && place.startsWith("home") && { budget: TAIL_MAX }),
    });
  }
  return figures;
}

function medianOf(rounds: readonly number[]): Pick<Estimate, "value" | "quartiles"> {
  const { value, quartiles } = estimate(rounds);
  return { value, quartiles };
}

/**
 * Returns each round's ratio between the added times of a target and of the floor, both over
 * direct.
 */
function ratioToFloor(times: RateResult["times"], place: string, at: number): number[] {
  const floor = addedTimes(times, "floor", "direct", at);
  return addedTimes(times, place, "direct", at).map((ms, round) => ms / (floor[round] ?? NaN));
}

/** Returns each round's difference of a quantile between two targets. */
function addedTimes(times: RateResult["times"], place: string, base: string, at: number): number[] {
  const of = (name: string): number[] => (times[name] ?? []).map((round) => quantile(round, at));
  const bases = of(base);
  return of(place).map((ms, round) => ms - (bases[round] ?? NaN));
}
