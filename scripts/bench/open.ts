import path from "node:path";
import { startBareWorker, startUpstream } from "./bare-workers.ts";
import { estimate, quantile } from "./estimate.ts";
import type { Figure } from "./figure.ts";
import { openOrganization, startGateway } from "./gateway.ts";
import type { Gateway } from "./gateway.ts";
import { attempt, prepare } from "./load.ts";
import { answersTo } from "./open-loop.ts";
import { watchOthers } from "./others.ts";
import { progress } from "./progress.ts";
import type { Ask, Stoppable, Target } from "./target.ts";

/** A steady rate: JSON, or streams of 60 words with one every 5 ms. */
export type Rate = { readonly kind: "json" | "stream"; readonly perSecond: number };
/** Everything that is asked, by what its figures call it. */
type Places = Readonly<Record<string, Target>>;
/** Of one rate: each place's times in ms, a list for each round. JSON: to the last byte; streams: to the first. */
export type Open = {
  readonly rate: Rate;
  readonly times: Readonly<Record<string, readonly (readonly number[])[]>>;
  readonly failed: number;
};
export type OpenOptions = {
  readonly rates: readonly Rate[];
  /** Of each rate at each place, over all rounds. */
  readonly requests: number;
  readonly rounds: number;
};

export const RATES: readonly Rate[] = [
  { kind: "json", perSecond: 10 },
  { kind: "json", perSecond: 50 },
  { kind: "json", perSecond: 200 },
  { kind: "stream", perSecond: 20 },
];
const ASKS: Readonly<Record<Rate["kind"], Ask>> = {
  json: { kind: "json", words: 256 },
  stream: { kind: "stream", words: 60, isSteady: true },
};
const ORGANIZATIONS = 100;
const KEY_PER_SECOND = 1000 / 60;
const WARM_SECONDS = 3;
const SHARES = { p50: 0.5, p99: 0.99, "p99.9": 0.999 } as const;
/** How often what home adds at p99 may be what the floor adds. */
const TAIL_MAX = 3;
/** What every place is compared with. */
const BASES = ["direct", "floor"] as const;

/** Offers each rate to each place in turn, there and back; `stops` gets what must be stopped afterwards. */
export async function measureOpen(
  options: OpenOptions,
  directory: string,
  stops: Stoppable[],
): Promise<{ readonly open: readonly Open[]; readonly others: Figure }> {
  progress("starting, and making organisations");
  const places = await startPlaces(options, directory, stops);
  for (const target of Object.values(places)) await wake(target, ASKS.json, WARMING);
  const others = watchOthers();
  const open: Open[] = [];
  for (const rate of options.rates) open.push(await measureRate(rate, places, options));
  return { open, others: others() };
}

async function startPlaces(
  { rates }: OpenOptions,
  directory: string,
  stops: Stoppable[],
): Promise<Places> {
  const kept = <T extends Stoppable>(started: T): T => {
    stops.push(started);
    return started;
  };
  const direct = kept(await startUpstream());
  const upstream = direct.base;
  const floor = kept(await startBareWorker("floor", upstream));
  const fastest = Math.max(...rates.map(({ perSecond }) => perSecond));
  const keys = Math.ceil((1.5 * fastest) / KEY_PER_SECOND) + WARMING_KEYS;
  const place = path.join(directory, "gateway");
  const gateway = kept(await startGateway({ upstream, directory: place, keys }));
  const many = async (scope: "regional" | "global"): Promise<readonly string[]> => {
    const made: string[] = [];
    for (let i = 0; i < ORGANIZATIONS; i++) made.push(...(await organization(gateway, scope, i)));
    return made;
  };
  return {
    direct,
    floor,
    "home, one organisation": gateway.home,
    [`home, ${ORGANIZATIONS} organisations`]: { ...gateway.home, keys: await many("regional") },
    "away, one organisation": gateway.peer,
    [`away, ${ORGANIZATIONS} organisations`]: { ...gateway.peer, keys: await many("global") },
  };
}

/** Lets Workers compile and keys be read from the book; what fails meanwhile does not matter. */
async function wake(target: Target, ask: Ask, requests: number): Promise<void> {
  const asked = prepare(ask);
  let left = requests;
  const worker = async (): Promise<void> => {
    while (left-- > 0) await attempt(target, asked);
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
}

/** So many at each place, and the keys that this takes of a minute. */
const WARMING = 500;
const WARMING_KEYS = 2;

function organization(gateway: Gateway, scope: "regional" | "global", i: number) {
  return openOrganization(gateway.admin, scope, 1, `bench-${scope}-${i}`);
}

async function measureRate(rate: Rate, places: Places, options: OpenOptions): Promise<Open> {
  const { kind, perSecond } = rate;
  const ask = ASKS[kind];
  const seconds = options.requests / options.rounds / perSecond;
  const names = Object.keys(places);
  const times: Record<string, number[][]> = Object.fromEntries(names.map((name) => [name, []]));
  let failed = 0;
  for (const target of Object.values(places)) {
    await wake(target, ask, Math.max(target.keys.length, 20));
  }
  for (let round = 0; round < options.rounds; round++) {
    progress(`${nameOf(rate)}: round ${round + 1} of ${options.rounds}`);
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const target = places[name];
      if (target === undefined) continue;
      const offered = { target, ask, rate: perSecond, patienceMs: 0 };
      await answersTo({ ...offered, seconds: Math.min(WARM_SECONDS, seconds / 4) }); // awake, and not counted
      const answers = await answersTo({ ...offered, seconds });
      failed += answers.filter(({ isOk }) => !isOk).length;
      times[name]?.push(answers.map(({ ms, firstByteMs }) => (kind === "json" ? ms : firstByteMs)));
    }
  }
  return { rate, times, failed };
}

/** What each place adds over direct and over the floor, of all requests; quartiles are those of the rounds. */
export function openFigures(open: readonly Open[], others: Figure): Figure[] {
  return [...open.flatMap(figuresOf), others];
}

function figuresOf({ rate, times, failed }: Open): Figure[] {
  const rows = Object.keys(times)
    .filter((place) => place !== "direct")
    .flatMap((place) => placeFigures(nameOf(rate), times, place));
  return [...rows, { name: `${nameOf(rate)}: failed`, value: failed, unit: "", budget: 0 }];
}

function placeFigures(rate: string, times: Open["times"], place: string): Figure[] {
  const figures: Figure[] = [];
  for (const [share, at] of Object.entries(SHARES)) {
    for (const base of BASES.filter((one) => one !== place)) {
      const { quartiles } = estimate(addedIn(times, place, base, at));
      const value = quantile(all(times, place), at) - quantile(all(times, base), at);
      figures.push({
        name: `${rate}, ${place}: ${share} over ${base}`,
        value,
        unit: "ms",
        quartiles,
      });
    }
    if (place === "floor") continue;
    const { value, quartiles } = estimate(ofFloor(times, place, at));
    figures.push({
      name: `${rate}, ${place}: ${share} added, of the floor's`,
      value,
      unit: "x",
      quartiles,
      ...(share === "p99" && place.startsWith("home") && { budget: TAIL_MAX }),
    });
  }
  return figures;
}

/** Of each round, how often a place adds what the floor adds, over direct. */
function ofFloor(times: Open["times"], place: string, at: number): number[] {
  const floor = addedIn(times, "floor", "direct", at);
  return addedIn(times, place, "direct", at).map((ms, round) => ms / (floor[round] ?? NaN));
}

/** Of each round, what a place's quantile is more than another's. */
function addedIn(times: Open["times"], place: string, base: string, at: number): number[] {
  const of = (name: string): number[] => (times[name] ?? []).map((round) => quantile(round, at));
  const bases = of(base);
  return of(place).map((ms, round) => ms - (bases[round] ?? NaN));
}

function all(times: Open["times"], place: string): number[] {
  return (times[place] ?? []).flat();
}

function nameOf({ kind, perSecond }: Rate): string {
  return kind === "json" ? `JSON at ${perSecond}/s` : `streams at ${perSecond}/s`;
}

/** `10,50,s20`: JSON at 10 and at 50 a second, streams at 20; null when it is none of these. */
export function ratesOf(text: string): readonly Rate[] | null {
  const rates = text.split(",").map((word): Rate => {
    const kind = word.startsWith("s") ? "stream" : "json";
    return { kind, perSecond: Number(word.replace(/^s/, "")) };
  });
  return rates.every(({ perSecond }) => perSecond > 0 && perSecond <= 500) ? rates : null;
}
