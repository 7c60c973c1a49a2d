import { setTimeout as sleep } from "node:timers/promises";
import { createOrganization, postCredits } from "../admin-client.ts";
import { quantile } from "../quantile.ts";
import { cpuMicroseconds } from "../workerd.ts";
import type { Checkout } from "./checkout.ts";
import { whileCounting } from "./count.ts";
import { estimate, progress } from "./figure.ts";
import type { Figure } from "./figure.ts";
import { openOrganization, startHome, targetOf } from "./gateway.ts";
import type { RunningRegion, Stage } from "./gateway.ts";
import { attempt, prepare, run, reverseOddTurns } from "./load.ts";
import type { Outcome, Target } from "./load.ts";

/** Concurrent JSON completions of one organization: few, its limit, and more than its limit. */
const LEVELS = [8, 64, 256] as const;
/** Highest level at which calls are counted. Above it, the gateway sheds most requests. */
const COUNTED_MOST = 64;
const JSON_ASK = { kind: "json", words: 256 } as const;
const KEYS = 100;
const COUNTED = 640;
const DRIVER = "scripts/workers/pressing.ts";
const CALLERS = 8;
const PAIRS = 150; // pairs of each caller in a slice

/** Figures of one slice by the end of their names. `UNITS` has the units. */
type Slice = Readonly<Record<string, number>>;
/** A checkout's slices: its organization at each level, and its wallet without the gateway. */
type PressedRuns = {
  readonly checkout: string;
  readonly slices: Readonly<Record<string, readonly Slice[]>>;
};
const UNITS: Readonly<Record<string, string>> = {
  ": a second": "",
  ": object calls a request": "",
  ": p50": "ms",
  ": p99": "ms",
  ": shed": "%",
  " a second": "",
  ": CPU of a pair": "us",
};
/** Figures that are compared between two checkouts. */
const COMPARED = new Set([": a second", " a second", ": CPU of a pair"]);
const ALONE = "one wallet alone, eight callers: holds and settles";

type Side = {
  readonly checkout: Checkout;
  readonly hot: Target;
  readonly driver: RunningRegion & { readonly orgId: string };
  readonly calls: Readonly<Record<number, number>>;
  readonly slices: Record<string, Slice[]>;
};

/**
 * Loads one organization, then one wallet without the gateway, of each checkout in turn, forward
 * and back.
 */
export async function measureLoaded(
  stage: Stage,
  checkouts: readonly Checkout[],
  { rounds, seconds }: { readonly rounds: number; readonly seconds: number },
): Promise<readonly PressedRuns[]> {
  const sides: Side[] = [];
  for (const checkout of checkouts) sides.push(await startSide(stage, checkout));
  for (let round = 0; round < rounds; round++) {
    progress(`pressing one wallet, round ${round + 1} of ${rounds}`);
    for (const { hot, calls, slices } of reverseOddTurns(sides, round)) {
      for (const atOnce of LEVELS) {
        const slice = { ": object calls a request": calls[atOnce] ?? NaN };
        const pressed = Object.assign(slice, await loadOrganization(hot, atOnce, seconds));
        (slices[`one organization, ${atOnce} JSON at once`] ??= []).push(pressed);
      }
    }
    for (const { driver, slices } of reverseOddTurns(sides, round)) {
      (slices[ALONE] ??= []).push(await loadWallet(driver));
    }
  }
  return sides.map(({ checkout, slices }) => ({ checkout: checkout.name, slices }));
}

async function startSide(stage: Stage, checkout: Checkout): Promise<Side> {
  const { name, root } = checkout;
  progress(`${name}: starting, and counting calls`);
  const calls = await countCalls(stage, checkout);
  const home = stage.keep(await startHome(stage, { place: `pressed-${name}`, root }));
  const hot = targetOf("home", [home], await openOrganization(home.admin, "regional", KEYS));
  const driver = await startAlone(stage, checkout);
  await loadOrganization(hot, 64, 2);
  await loadWallet(driver);
  return { checkout, hot, driver, calls, slices: {} };
}

/** Returns the object calls of a completion at each level, from the checkout's own counters. */
function countCalls(stage: Stage, { name, root }: Checkout): Promise<Record<number, number>> {
  const options = { place: `calls-${name}`, root, keys: KEYS };
  return whileCounting(stage, options, async (target, read) => {
    const calls: Record<number, number> = {};
    await loadOrganization(target, 64, 1); // these requests use every key once
    for (const concurrency of LEVELS.filter((level) => level <= COUNTED_MOST)) {
      await sleep(200);
      await read();
      await run({ ...JSON_ASK, target, requests: COUNTED, concurrency });
      calls[concurrency] = (await read()).objectCalls / COUNTED;
    }
    return calls;
  });
}

/** Sends concurrent completions for a number of seconds. */
async function loadOrganization(target: Target, atOnce: number, seconds: number): Promise<Slice> {
  const asked = prepare(target, JSON_ASK);
  const begunAt = performance.now();
  const answers: Outcome[] = [];
  const one = async (): Promise<void> => {
    while (performance.now() - begunAt < seconds * 1000) {
      const answer = await attempt(target, asked);
      answers.push(answer);
      if (answer.status === 503) await sleep(100); // clients wait like this after 503
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  const elapsedMs = performance.now() - begunAt;
  const served = answers.filter(({ status }) => status === 200).map(({ totalMs }) => totalMs);
  return {
    ": a second": (served.length * 1000) / elapsedMs,
    ": p50": quantile(served, 0.5),
    ": p99": quantile(served, 0.99),
    ": shed": (100 * (answers.length - served.length)) / answers.length,
  };
}

/** Starts a region that calls one wallet without the gateway. */
async function startAlone(stage: Stage, { name, root }: Checkout): Promise<Side["driver"]> {
  const place = { place: `alone-${name}`, root, entry: DRIVER };
  const region = stage.keep(await startHome(stage, place));
  const owner = { name: "Alone", slug: "alone", ownerEmail: "owner@alone.example" };
  const { orgId } = await createOrganization(region.admin, { ...owner, keyScope: "regional" });
  await postCredits(region.admin, orgId, { amount_micro: 1_000_000_000, reference: "bench" });
  return { ...region, orgId };
}

/** Runs eight concurrent callers that only hold and settle. */
async function loadWallet({ url, pid, orgId }: Side["driver"]): Promise<Slice> {
  const [cpuBefore, begunAt] = [cpuMicroseconds([pid]), performance.now()];
  const one = async (): Promise<number> => {
    const response = await fetch(`${url}__press?org=${orgId}&pairs=${PAIRS}`);
    return ((await response.json()) as { readonly done: number }).done;
  };
  const answers = await Promise.all(Array.from({ length: CALLERS }, one));
  const pairs = answers.reduce((sum, done) => sum + done, 0);
  if (pairs !== CALLERS * PAIRS) throw new Error(`${pairs} of ${CALLERS * PAIRS} pairs were done`);
  const elapsedMs = performance.now() - begunAt;
  const cpuUs = (cpuMicroseconds([pid]) - cpuBefore) / pairs;
  return { " a second": (2 * pairs * 1000) / elapsedMs, ": CPU of a pair": cpuUs };
}

/** Returns each checkout's figures, and the median ratio of the first checkout to the second. */
export function pressedFigures(sides: readonly PressedRuns[]): Figure[] {
  const [now, before] = sides;
  return Object.entries(now?.slices ?? {}).flatMap(([what, [first = {}]]) => {
    const ends = Object.keys(UNITS).filter((end) => end in first);
    const of = (side: PressedRuns | undefined, end: string): number[] =>
      (side?.slices[what] ?? []).map((slice) => slice[end] ?? NaN);
    const figure = (name: string, unit: string, values: number[]): Figure =>
      Object.assign(estimate(values), { name: `${what}${name}`, unit });
    const measured = sides.flatMap((side) => {
      const who = before === undefined ? "" : `, ${side.checkout}`;
      return ends.map((end) => figure(end + who, UNITS[end] ?? "", of(side, end)));
    });
    const compared = ends.filter((end) => before !== undefined && COMPARED.has(end));
    const ratios = compared.map((end) => {
      const under = of(before, end);
      const pairs = of(now, end).map((value, i) => value / (under[i] ?? NaN));
      return figure(`${end}, ratio`, "x", pairs);
    });
    return measured.concat(ratios);
  });
}
