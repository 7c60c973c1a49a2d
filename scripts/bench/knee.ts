import { cpus } from "node:os";
import { progress, watchOthers } from "./figure.ts";
import type { Figure, Report } from "./figure.ts";
import { openOrganization, startHome, targetOf } from "./gateway.ts";
import type { RunningRegion, Stage } from "./gateway.ts";
import { offerRate, run } from "./load.ts";
import type { Step, Target } from "./load.ts";

export type Knee = {
  /** The highest rate that held. */
  readonly last: Step;
  /** The low load that it is compared with. */
  readonly low: Step;
  /** False if time ran out, or no rate held, before one failed. */
  readonly isFound: boolean;
  readonly steps: readonly Step[];
};
export type KneeSearch = {
  /** Offers a rate, in requests a second, for a while. */
  readonly offer: (rate: number) => Promise<Step>;
  readonly low: Step;
  /** The first rate to try; lower ones follow as long as none holds. */
  readonly from: number;
  readonly isTimeUp: () => boolean;
};

/** A step holds while its p99 is at most so often that of the low load, and so much of it is achieved. */
export const SLOWER_MAX = 5;
const ACHIEVED_MIN = 0.97;
const STEP = 1.15;
const HALVINGS = 2;
const LOWEST = 0.05; // of `from`; nothing holding above it means no knee

/**
 * Raises the rate by 15 % until a step does not hold, twice in a row (the first may be the machine's
 * doing), then halves the gap to the last that held twice: the knee is known to about 4 %.
 */
export async function findKnee({ offer, low, from, isTimeUp }: KneeSearch): Promise<Knee> {
  const steps: Step[] = [];
  const tryRate = async (rate: number): Promise<Step | null> => {
    const step = await offer(rate);
    steps.push(step);
    return holds(step, low) ? step : null;
  };
  const tryTwice = async (rate: number): Promise<Step | null> =>
    (await tryRate(rate)) ?? (isTimeUp() ? null : await tryRate(rate));
  let rate = from;
  let last = await tryTwice(rate);
  while (last === null && !isTimeUp() && rate > from * LOWEST) {
    rate /= STEP ** 3;
    last = await tryTwice(rate);
  }
  if (last === null) return { last: low, low, steps, isFound: false };
  let tooMuch: number | null = null;
  while (tooMuch === null && !isTimeUp()) {
    rate *= STEP;
    const step: Step | null = await tryTwice(rate);
    if (step === null) tooMuch = rate;
    else last = step;
  }
  for (let i = 0; i < HALVINGS && tooMuch !== null && !isTimeUp(); i++) {
    const middle = Math.sqrt(last.offered * tooMuch);
    const step = await tryRate(middle);
    if (step === null) tooMuch = middle;
    else last = step;
  }
  return { last, low, steps, isFound: tooMuch !== null };
}

/** Whether a load is borne: not much slower than a low one, and nearly all of it answered. */
export function holds(step: Step, low: Step): boolean {
  return step.p99Ms <= SLOWER_MAX * low.p99Ms && step.achieved >= ACHIEVED_MIN * step.offered;
}

/** The knee of many organizations together, and of one alone, each with as many keys as it needs. */
const KNEES = { all: "knee in all", one: "knee of one organization" } as const;
export type Knees = Readonly<Record<keyof typeof KNEES, Knee>> & { readonly others: Figure };

const ASK = { kind: "json", words: 256 } as const;
const ORGANIZATIONS = 50;
const KEY_PER_SECOND = 1000 / 60;
/** The factor above a closed loop's rate until keys run out. */
const ROOM = 1.6;
const CALIBRATING = { keys: 20, warmUp: 3000, requests: 1500, concurrency: 16 } as const;
/** Shares of what the closed loop reached, and how long they are offered. */
const LOW = { share: 0.2, seconds: 2.5, times: 3 } as const;
const FROM_SHARE = 0.4;
const STEP_SECONDS = 3;
/** The total time beside the current step. Each search gets half of the rest. */
const BOUND_MS = 84_000;
const LOW_PATIENCE_MS = 1000;

/** Finds both knees, one after the other, within 90 s. */
export async function measureKnees(stage: Stage): Promise<Report> {
  const begunAt = performance.now();
  const leftMs = (): number => BOUND_MS - (performance.now() - begunAt);
  progress("starting");
  const home = stage.keep(await startHome(stage, { place: "knee" }));
  const reached = await closedLoopRate(home);
  const keys = Math.ceil((reached * ROOM) / KEY_PER_SECOND);
  progress(`a closed loop does ${Math.round(reached)} req/s: making keys for an open one`);
  const ofOne = await openOrganization(home.admin, "regional", keys, "bench-one");
  const many = await openMany(home, Math.ceil(keys / ORGANIZATIONS));
  const others = watchOthers();
  const all = await search("in all", targetOf("home", [home], many), reached, leftMs() / 2);
  const target = targetOf("home", [home], ofOne);
  const one = await search("of one organization", target, reached, leftMs());
  const figures = kneeFigures({ all, one, others: others() });
  progress("");
  for (const [which, { isFound }] of Object.entries({ all, one })) {
    if (isFound) continue;
    console.error(`the knee of ${which} was not reached in time: it is higher, or no rate held`);
  }
  return {
    figures,
    more: { steps: { all: all.steps, one: one.steps } },
    how: `${cpus().length} cores, which the load and the upstream share; JSON answered at once by the upstream.`,
  };
}

/** The knees as figures; the low load's times are what "below it" is compared with. */
export function kneeFigures({ others, ...knees }: Knees): Figure[] {
  const figures = Object.entries(KNEES).flatMap(([which, name]) => {
    const { low, last } = knees[which as keyof typeof KNEES];
    return (
      [
        ["rate", last.achieved, "req/s"],
        ["p50 at it", last.p50Ms, "ms"],
        ["p99 at it", last.p99Ms, "ms"],
        ["low load's rate", low.achieved, "req/s"],
        ["low load's p50", low.p50Ms, "ms"],
        ["low load's p99", low.p99Ms, "ms"],
      ] as const
    ).map(([what, value, unit]) => ({ name: `${name}, ${what}`, value, unit }));
  });
  return [...figures, others];
}

/** Requests a second that a closed loop gets answered: where the search for the knee begins. */
async function closedLoopRate(home: RunningRegion): Promise<number> {
  const { keys, warmUp, requests, concurrency } = CALIBRATING;
  const target = targetOf("home", [home], await openOrganization(home.admin, "regional", keys));
  await run({ ...ASK, target, requests: warmUp, concurrency });
  const begunAt = performance.now();
  await run({ ...ASK, target, requests, concurrency });
  return (requests * 1000) / (performance.now() - begunAt);
}

async function openMany(home: RunningRegion, keysEach: number): Promise<string[]> {
  const keys: string[][] = [];
  for (let i = 0; i < ORGANIZATIONS; i++) {
    keys.push(await openOrganization(home.admin, "regional", keysEach, `bench-${i}`));
  }
  // One key of each organization after the other, not one organization after the other.
  return Array.from({ length: keysEach }, (_, i) =>
    keys.flatMap((of) => of.slice(i, i + 1)),
  ).flat();
}

async function search(
  what: string,
  target: Target,
  reached: number,
  limitMs: number,
): Promise<Knee> {
  const until = performance.now() + limitMs;
  await run({ ...ASK, target, requests: target.keys.length, concurrency: 8 }); // keys' first use
  const step = async (rate: number, seconds: number, patienceMs: number): Promise<Step> => {
    progress(`the knee ${what}: ${Math.round(rate)} req/s`);
    return offerRate({ target, ask: ASK, rate, seconds, patienceMs });
  };
  const lows: Step[] = [];
  for (let i = 0; i < LOW.times; i++) {
    lows.push(await step(LOW.share * reached, LOW.seconds, LOW_PATIENCE_MS));
  }
  // the machine's other work can only slow a step down
  const low = lows.reduce((least, one) => (one.p99Ms < least.p99Ms ? one : least));
  return findKnee({
    low,
    from: FROM_SHARE * reached,
    offer: (rate) => step(rate, STEP_SECONDS, SLOWER_MAX * low.p99Ms),
    isTimeUp: () => performance.now() > until,
  });
}
