import { quantile } from "../quantile.ts";
import { cpuMicroseconds } from "../workerd.ts";
import { checkOut, NOW } from "./checkout.ts";
import type { Checkout } from "./checkout.ts";
import { estimate, mark, OTHER_PROGRAMS, progress, watchOthers } from "./figure.ts";
import type { Figure, Report } from "./figure.ts";
import { openOrganization, startHome, targetOf } from "./gateway.ts";
import type { Stage } from "./gateway.ts";
import { sendAtRate, reverseOddTurns } from "./load.ts";
import type { TimedResponse, Ask, Target } from "./load.ts";
import { measureLoaded, pressedFigures } from "./pressed.ts";

/** Maximum rise of other organizations' p99 next to a busy one, in percent. */
const RISE_PERCENT_MAX = 20;
const OTHERS = 24;
const HOT_KEYS = 20;
/** Seconds until the busy organization has all requests in flight. Earlier requests don't count. */
const RAMP_SECONDS = 5;
/** Maximum seconds of a slice on one organization, because its keys have a limit per minute. */
const PRESSED_SECONDS_MAX = 3;

type HotOptions = {
  /** Pairs of runs with and without the busy organization. */
  readonly rounds: number;
  /** Measured seconds of each run. */
  readonly seconds: number;
  /** A commit to measure alternately with this checkout. */
  readonly against?: string | undefined;
};
/**
 * Responses to the other organizations and to the busy one. The gateway's CPU is in percent of a
 * core.
 */
type HotRun = {
  readonly others: readonly TimedResponse[];
  readonly hot: readonly TimedResponse[];
  readonly cpuPercent: number;
};
type HotPair = { readonly alone: HotRun; readonly beside: HotRun };
/** A load in requests per second, which uses the target's keys in turn. */
type Group = { readonly target: Target; readonly rate: number; readonly ask: Ask };

const stream = (words: number): Ask => ({ kind: "stream", words, pace: "slow" });
const OTHER_STREAM = stream(25);
/** A stream takes 4 s on average, so about 1,000 are open at a time. */
const HOT_STREAMS = [50, 75, 125, 150].map(stream);
const HOT_RATE = 64;

/** Loads one organization, then measures pairs of runs of each checkout in alternating order. */
export async function measureHot(stage: Stage, options: HotOptions): Promise<Report> {
  const { rounds, seconds, against } = options;
  const all = against === undefined ? [NOW] : [NOW, checkOut(against, stage.directory)];
  const pressed = await measureLoaded(stage, all, {
    rounds,
    seconds: Math.min(seconds, PRESSED_SECONDS_MAX),
  });
  const sides: Side[] = [];
  for (const checkout of all) sides.push(await startSide(stage, checkout));
  const watched = watchOthers();
  for (let round = 1; round <= rounds; round++) {
    progress(`pair ${round} of ${rounds}`);
    for (const side of reverseOddTurns(sides, round)) {
      side.pairs.push(await measurePair(side, round, seconds));
    }
  }
  const others = watched();
  const [now, before] = sides;
  const ofOthers = hotFigures(now?.pairs ?? [], others);
  const isKept = ofOthers.every((figure) => mark(figure) !== "OVER");
  return {
    figures: [
      ...pressedFigures(pressed),
      ...ofOthers,
      ...(before === undefined ? [] : withoutBounds(hotFigures(before.pairs, others), before.name)),
    ],
    more: { rounds, pressed },
    isMissed: !isKept,
    how:
      `Medians of ${rounds} paired runs of ${seconds} s, without the hot organization and beside it; times from when ` +
      `each request was due; load, upstream and gateway on this machine.`,
  };
}

/** A checkout with other organizations and a busy one. */
type Side = {
  readonly name: string;
  readonly pid: number;
  readonly others: Group;
  readonly hot: readonly Group[];
  readonly pairs: HotPair[];
};

async function startSide(stage: Stage, { name, root }: Checkout): Promise<Side> {
  progress(`${name}: starting, and making organizations`);
  const home = stage.keep(await startHome(stage, { place: `hot-${name}`, root }));
  const open = (keys: number, slug: string): Promise<string[]> =>
    openOrganization(home.admin, "regional", keys, slug);
  const slugs = Array.from({ length: OTHERS }, (_, i) => `other-${i}`);
  const ofOthers = (await Promise.all(slugs.map((slug) => open(1, slug)))).flat();
  const target = targetOf("home", [home], await open(HOT_KEYS, "hot"));
  const othersTarget = targetOf("home", [home], ofOthers);
  const others = { target: othersTarget, rate: OTHERS, ask: OTHER_STREAM };
  const hot = HOT_STREAMS.map((ask) => ({ target, rate: HOT_RATE, ask }));
  progress("warming up");
  await runOnce(home.pid, others, hot.slice(0, 1), 1);
  return { name, pid: home.pid, others, hot, pairs: [] };
}

/** Swaps the order of the two runs in every second round, so that slow drifts cancel out. */
async function measurePair(side: Side, round: number, seconds: number): Promise<HotPair> {
  const { pid, others, hot } = side;
  const before = round % 2 === 0 ? await runOnce(pid, others, hot, seconds) : null;
  const alone = await runOnce(pid, others, [], seconds);
  return { alone, beside: before ?? (await runOnce(pid, others, hot, seconds)) };
}

/** Returns an older commit's figures without bounds. */
function withoutBounds(figures: readonly Figure[], who: string): Figure[] {
  return figures
    .filter(({ name }) => name !== OTHER_PROGRAMS)
    .map(({ name, value, unit }) => ({ name: `${name}, ${who}`, value, unit }));
}

/** Returns the medians over all pairs. A rise is calculated for each pair. */
export function hotFigures(pairs: readonly HotPair[], others: Figure): Figure[] {
  const times = (["firstByteMs", "ms"] as const).flatMap((moment) =>
    ([0.5, 0.99] as const).flatMap((share): Figure[] => {
      const of = (side: keyof HotPair): number[] =>
        pairs.map((pair) => {
          const waited = pair[side].others.map((one) => one[moment]);
          return quantile(waited, share);
        });
      const [alone, beside] = [of("alone"), of("beside")];
      const rises = beside.map((ms, i) => (ms / (alone[i] ?? NaN) - 1) * 100);
      const name = `others' ${moment === "ms" ? "total" : "first byte"}, p${share * 100}`;
      const budget = share === 0.99 ? { budget: RISE_PERCENT_MAX } : {};
      return [
        { name: `${name}, alone`, unit: "ms", ...estimate(alone) },
        { name: `${name}, beside`, unit: "ms", ...estimate(beside) },
        { name: `${name}, rise`, unit: "%", ...estimate(rises), ...budget },
      ];
    }),
  );
  const answers = pairs.flatMap(({ alone, beside }) => [...alone.others, ...beside.others]);
  const ofHot = pairs.flatMap(({ beside }) => beside.hot);
  const shed = ofHot.filter(({ status }) => status === 503).length;
  const cpu = (of: keyof HotPair) => estimate(pairs.map((pair) => pair[of].cpuPercent));
  const refused = answers.filter(({ isOk }) => !isOk).length;
  return [
    ...times,
    { name: "others not served", value: refused, unit: "", budget: 0 },
    { name: "hot one's shed", value: (100 * shed) / Math.max(1, ofHot.length), unit: "%" },
    { name: "gateway's share of a core, alone", unit: "%", ...cpu("alone") },
    { name: "gateway's share of a core, beside", unit: "%", ...cpu("beside") },
    others,
  ];
}

/** Sends the requests of the others and of the busy organization concurrently. */
async function runOnce(
  pid: number,
  others: Group,
  hot: readonly Group[],
  seconds: number,
): Promise<HotRun> {
  const [cpuBefore, begunAt] = [cpuMicroseconds([pid]), performance.now()];
  const counted = async (group: Group): Promise<readonly TimedResponse[]> => {
    const answers = await sendAtRate({ ...group, seconds: RAMP_SECONDS + seconds });
    return answers.filter(({ atMs, ms }) => atMs - ms >= RAMP_SECONDS * 1000);
  };
  const [ofOthers, ...ofHot] = await Promise.all([counted(others), ...hot.map(counted)]);
  const elapsedMs = performance.now() - begunAt;
  const cpuPercent = (cpuMicroseconds([pid]) - cpuBefore) / 10 / elapsedMs;
  return { others: ofOthers, hot: ofHot.flat(), cpuPercent };
}
