import { setTimeout as sleep } from "node:timers/promises";
import { quantile } from "../quantile.ts";
import type { Counts } from "../workers/counts.ts";
import { estimate, progress } from "./figure.ts";
import type { Figure } from "./figure.ts";
import { openOrganization, startHome, targetOf } from "./gateway.ts";
import type { Stage } from "./gateway.ts";
import { pressAlone, startAlone } from "./alone.ts";
import type { Alone, Checkout, Driver } from "./alone.ts";
import { attempt, prepare, run, turned } from "./load.ts";
import type { Target } from "./load.ts";

/** So many JSON completions of one organisation at once: the first few, and what it may have in flight and beyond. */
export const LEVELS = [8, 64, 256] as const;
const JSON_ASK = { kind: "json", words: 256 } as const;
const KEYS = 100;
const COUNTED = 640;

/** What one slice at one level saw. */
export type Pressed = {
  readonly perSecond: number;
  readonly shedPercent: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
};
/** Of one checkout, slice by slice. */
export type PressedRuns = {
  readonly checkout: string;
  readonly levels: Readonly<Record<number, readonly Pressed[]>>;
  readonly callsPerRequest: Readonly<Record<number, number>>;
  readonly alone: readonly Alone[];
};

type Side = {
  readonly checkout: Checkout;
  readonly hot: Target;
  readonly driver: Driver;
  readonly levels: Record<number, Pressed[]>;
  readonly calls: Record<number, number>;
  readonly alone: Alone[];
};

/** Presses one organisation, then one wallet without anything around it, of each checkout in turn, there and back. */
export async function measurePressed(
  stage: Stage,
  checkouts: readonly Checkout[],
  options: { readonly rounds: number; readonly seconds: number },
): Promise<readonly PressedRuns[]> {
  const sides: Side[] = [];
  for (const checkout of checkouts) sides.push(await startSide(stage, checkout));
  for (let round = 0; round < options.rounds; round++) {
    progress(`pressing one wallet, round ${round + 1} of ${options.rounds}`);
    for (const side of turned(sides, round)) {
      for (const atOnce of LEVELS) {
        (side.levels[atOnce] ??= []).push(await press(side.hot, atOnce, options.seconds));
      }
    }
    for (const side of turned(sides, round)) side.alone.push(await pressAlone(side.driver));
  }
  return sides.map(({ checkout, levels, calls, alone }) => ({
    checkout: checkout.name,
    levels,
    callsPerRequest: calls,
    alone,
  }));
}

async function startSide(stage: Stage, checkout: Checkout): Promise<Side> {
  progress(`${checkout.name}: starting, and counting calls`);
  const { root } = checkout;
  const calls = await countCalls(stage, checkout);
  const home = stage.keep(await startHome(stage, { place: `pressed-${checkout.name}`, root }));
  const keys = await openOrganization(home.admin, "regional", KEYS, "pressed");
  const hot = targetOf("home", [home], keys);
  const driver = await startAlone(stage, checkout);
  const side = { checkout, hot, driver, levels: {}, calls, alone: [] };
  await press(hot, 64, 2);
  await pressAlone(driver);
  return side;
}

/** Calls of objects a completion makes at each level, by the checkout's own counters. */
async function countCalls(stage: Stage, { name, root }: Checkout): Promise<Record<number, number>> {
  const place = `calls-${name}`;
  const home = await startHome(stage, { place, root, entry: "scripts/workers/counting.ts" });
  try {
    const keys = await openOrganization(home.admin, "regional", KEYS, "counted");
    const target = targetOf("home", [home], keys);
    const read = async () => (await (await fetch(`${home.url}__counts`)).json()) as Counts;
    const calls: Record<number, number> = {};
    await press(target, 64, 1); // every key is met
    for (const atOnce of LEVELS.filter((level) => level <= 64)) {
      await sleep(200);
      await read();
      await run({ ...JSON_ASK, target, requests: COUNTED, concurrency: atOnce });
      calls[atOnce] = (await read()).objectCalls / COUNTED;
    }
    return calls;
  } finally {
    await home.stop();
  }
}

type Answer = { readonly status: number; readonly ms: number };

/** Asks for completions, so many at once, for so long. */
async function pressed(
  target: Target,
  atOnce: number,
  seconds: number,
): Promise<{ readonly answers: readonly Answer[]; readonly elapsedMs: number }> {
  const asked = prepare(target, JSON_ASK);
  const begunAt = performance.now();
  const answers: Answer[] = [];
  const one = async (): Promise<void> => {
    while (performance.now() - begunAt < seconds * 1000) {
      const { status, totalMs } = await attempt(target, asked);
      answers.push({ status, ms: totalMs });
      if (status === 503) await sleep(100); // as a client that was told to come later
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  return { answers, elapsedMs: performance.now() - begunAt };
}

async function press(target: Target, atOnce: number, seconds: number): Promise<Pressed> {
  const { answers, elapsedMs } = await pressed(target, atOnce, seconds);
  const served = answers.filter(({ status }) => status === 200).map(({ ms }) => ms);
  return {
    perSecond: (served.length * 1000) / elapsedMs,
    shedPercent: (100 * (answers.length - served.length)) / answers.length,
    p50Ms: quantile(served, 0.5),
    p99Ms: quantile(served, 0.99),
  };
}

/** The figures of each checkout, and of the first one's to the second's the median of the slices' own ratios. */
// oxlint-disable-next-line complexity -- one figure after the other
export function pressedFigures([now, before]: readonly PressedRuns[]): Figure[] {
  if (now === undefined) return [];
  const figures: Figure[] = [];
  for (const atOnce of LEVELS) {
    const name = `one organisation, ${atOnce} JSON at once`;
    for (const side of before === undefined ? [now] : [now, before]) {
      const of = (what: keyof Pressed) =>
        estimate((side.levels[atOnce] ?? []).map((one) => one[what]));
      const who = before === undefined ? "" : `, ${side.checkout}`;
      figures.push(
        { name: `${name}: a second${who}`, unit: "", ...of("perSecond") },
        {
          name: `${name}: object calls a request${who}`,
          unit: "",
          value: side.callsPerRequest[atOnce] ?? NaN,
        },
        { name: `${name}: p50${who}`, unit: "ms", ...of("p50Ms") },
        { name: `${name}: p99${who}`, unit: "ms", ...of("p99Ms") },
        { name: `${name}: shed${who}`, unit: "%", ...of("shedPercent") },
      );
    }
    if (before !== undefined) {
      const pairs = ratios(now.levels[atOnce] ?? [], before.levels[atOnce] ?? [], "perSecond");
      figures.push({ name: `${name}: a second, ratio`, unit: "x", ...estimate(pairs) });
    }
  }
  const alone = "one wallet alone, eight callers: holds and settles";
  for (const side of before === undefined ? [now] : [now, before]) {
    const who = before === undefined ? "" : `, ${side.checkout}`;
    figures.push(
      {
        name: `${alone} a second${who}`,
        unit: "",
        ...estimate(side.alone.map((one) => 2 * one.pairsPerSecond)),
      },
      {
        name: `${alone}: CPU of a pair${who}`,
        unit: "us",
        ...estimate(side.alone.map((one) => one.cpuUs)),
      },
    );
  }
  if (before === undefined) return figures;
  return [
    ...figures,
    {
      name: `${alone} a second, ratio`,
      unit: "x",
      ...estimate(ratios(now.alone, before.alone, "pairsPerSecond")),
    },
    {
      name: `${alone}: CPU of a pair, ratio`,
      unit: "x",
      ...estimate(ratios(now.alone, before.alone, "cpuUs")),
    },
  ];
}

function ratios<K extends string>(
  over: readonly Readonly<Record<K, number>>[],
  under: readonly Readonly<Record<K, number>>[],
  what: K,
): number[] {
  return over.map((one, i) => one[what] / (under[i]?.[what] ?? NaN));
}
