import path from "node:path";
import { startBareWorker, startUpstream } from "./bare-workers.ts";
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
/** Where rates are offered beside the upstream itself and the floor, each with one organisation or a hundred. */
export const OPEN_PLACES = ["home", "home100", "away", "away100"] as const;
export type OpenPlace = (typeof OPEN_PLACES)[number];
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
  /** Of each rate at each place, over all rounds; a quarter of it at the upstream itself, which varies least. */
  readonly requests: number;
  readonly places: readonly OpenPlace[];
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
  stream: { kind: "stream", words: 60, pace: "steady" },
};
const ORGANIZATIONS = 100;
const KEY_PER_SECOND = 1000 / 60;
const WARM_SECONDS = 3;
const DIRECT_SHARE = 0.25;

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
  { rates, places }: OpenOptions,
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
  const started: Record<string, Target> = { direct, floor };
  const crowd = `${ORGANIZATIONS} organisations`;
  if (places.includes("home")) started["home, one organisation"] = gateway.home;
  if (places.includes("home100")) {
    started[`home, ${crowd}`] = { ...gateway.home, keys: await many("regional") };
  }
  if (places.includes("away")) started["away, one organisation"] = gateway.peer;
  if (places.includes("away100")) {
    started[`away, ${crowd}`] = { ...gateway.peer, keys: await many("global") };
  }
  return started;
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

/** So many at each place, for V8 compiles what is hot for long; and the keys that this takes of a minute. */
const WARMING = 2000;
const WARMING_KEYS = 4;

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
      const share = name === "direct" ? DIRECT_SHARE : 1;
      const answers = await answersTo({ ...offered, seconds: seconds * share });
      failed += answers.filter(({ isOk }) => !isOk).length;
      times[name]?.push(answers.map(({ ms, firstByteMs }) => (kind === "json" ? ms : firstByteMs)));
    }
  }
  return { rate, times, failed };
}

/** How a rate is called in figures. */
export function nameOf({ kind, perSecond }: Rate): string {
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

/** `home,away100`: these places; null when one is none of them. */
export function placesOf(text: string): readonly OpenPlace[] | null {
  const places = text.split(",").map((word) => OPEN_PLACES.find((place) => place === word));
  return places.every((place) => place !== undefined) ? places : null;
}
