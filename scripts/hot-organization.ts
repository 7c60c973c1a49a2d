// npm run hot-organization: whether one organisation at overload slows the others.
import { fork, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { parseArgs } from "node:util";
import type { AdminClient } from "./admin-client.ts";
import { startUpstream } from "./bench/bare-workers.ts";
import { openOrganization, startHome } from "./bench/gateway.ts";
import { watchOthers } from "./bench/others.ts";
import { progress } from "./bench/progress.ts";
import type { Group, Outcome, Plan } from "./hot-organization/load.ts";
import { figuresOf, isKept, linesOf, RISE_PERCENT_MAX } from "./hot-organization/report.ts";
import type { Mode, ModeFigures, Pair, Ran } from "./hot-organization/report.ts";
import { removeDirectory, temporaryDirectory, tmpfsMount } from "./tmpfs.ts";
import { childPids, cpuMicroseconds } from "./workerd.ts";

const OTHERS = 24;
const HOT_KEYS = 20;
const HELP = `npm run hot-organization [-- OPTIONS]

Measures what ${OTHERS} organisations at a steady modest rate wait for, without and with one more that offers
several times what it may have in flight (${HOT_KEYS} keys, as many connections as it takes). An open loop,
timed from when each request was due; a real region on a direct socket, storage in memory where there is
a tmpfs. Mode model: the upstream takes 50 ms to its first token and gives 25 a second, streams of 25
tokens, the hot one's of 50 to 150. Mode instant: it answers JSON at once, so that the gateway's own work is all
there is, and the hot one takes all of the processor: no budget, for honesty. About four minutes.

  --pairs N        paired runs to take the median of, default 5
  --seconds N      measured time of each run, default 12
  --mode M         model, instant or both, default both
  --in-flight N    ORGANIZATION_IN_FLIGHT_MAX, default the product's own
  --pin            the gateway on one core, generator and upstream on the next (needs taskset)
  --json           the figures as JSON on stdout:
                   { risePercentMax, kept, modes: [{ mode, hotShedPercent, otherCores, firstByteP50, firstByteP99,
                   totalP50, totalP99: { without, with, risePercent } in ms and percent, pairs: [{ without,
                   with: { firstByteMs, totalMs: { p50, p99 }, statuses, hotStatuses, cpuPercent } }] }] };
                   cpuPercent: of one core, by the gateway's process
  --help           this text

Ends with 1 when in mode model the others' p99 rises by ${RISE_PERCENT_MAX} % or more, or any of them was refused.
`;
const MODELS: Readonly<Record<Mode, string>> = { model: "bench/slow", instant: "bench/model" };
/** A hot stream lasts 4 s on average: 128 at a time are 32 a second, and eight times that are offered. */
const LOADS: Readonly<Record<Mode, Readonly<Record<"other" | "hot", readonly Rate[]>>>> = {
  model: {
    other: [{ perSecond: 1, words: 25 }],
    hot: [50, 75, 125, 150].map((words) => ({ perSecond: 64, words })),
  },
  instant: { other: [{ perSecond: 1, words: 0 }], hot: [{ perSecond: 320, words: 0 }] },
};
/** Until the hot one has all that it may have in flight. */
const RAMP_MS = 5000;
const WARM_UP_MS = 6000;

/** The process that sends, and the gateway's. */
type Parts = { readonly load: ChildProcess; readonly pid: number };
type Rate = { readonly perSecond: number; readonly words: number };

const { values: options } = parseArgs({
  options: {
    pairs: { type: "string", default: "5" },
    seconds: { type: "string", default: "12" },
    mode: { type: "string", default: "both" },
    "in-flight": { type: "string" },
    pin: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const modes = (["model", "instant"] as const).filter((mode) =>
  [mode, "both"].includes(options.mode),
);
const [pairsWanted, seconds] = [Number(options.pairs), Number(options.seconds)];

if (options.help) {
  console.log(HELP);
} else if (![pairsWanted, seconds].every((n) => Number.isSafeInteger(n) && n >= 1)) {
  console.error(`--pairs and --seconds must be whole numbers from 1\n\n${HELP}`);
  process.exitCode = 2;
} else if (modes.length === 0) {
  console.error(`--mode must be model, instant or both\n\n${HELP}`);
  process.exitCode = 2;
} else {
  await main();
}

async function main(): Promise<void> {
  const directory = temporaryDirectory("turnpike-hot-");
  process.on("exit", () => removeDirectory(directory)); // also after Ctrl-C
  const stops: (() => unknown)[] = [];
  try {
    const measured: ModeFigures[] = [];
    for (const mode of modes) measured.push(await measure(mode, directory, stops));
    report(measured);
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  }
  await Promise.allSettled(stops.map((stop) => stop()));
}

async function measure(
  mode: Mode,
  directory: string,
  stops: (() => unknown)[],
): Promise<ModeFigures> {
  progress(`${mode}: starting`);
  const upstream = await startUpstream();
  stops.push(upstream.stop);
  const inFlight = options["in-flight"];
  const home = await startHome({
    upstream: upstream.base,
    directory: path.join(directory, mode),
    ...(inFlight !== undefined && { bindings: { ORGANIZATION_IN_FLIGHT_MAX: inFlight } }),
  });
  stops.push(home.stop);
  const load = fork(path.join(import.meta.dirname, "hot-organization/load.ts"));
  stops.push(() => load.disconnect());
  if (options.pin) pin(home.pid);
  const parts = { load, pid: home.pid };
  const others = await groupsOf(mode, home.admin);
  const keys = await openOrganization(home.admin, "regional", HOT_KEYS, "hot");
  const hot = LOADS[mode].hot.map((rate) => groupOf(keys, rate, false));
  const url = `${home.url}v1/chat/completions`;
  const plan = { url, model: MODELS[mode], rampMs: RAMP_MS, measureMs: seconds * 1000 };
  progress(`${mode}: warming up`);
  const warmUp = { ...plan, rampMs: WARM_UP_MS, measureMs: 1 };
  await run(parts, { ...warmUp, groups: [...others, ...hot.slice(0, 1)] });
  const busy = watchOthers();
  const pairs: Pair[] = [];
  for (let pair = 1; pair <= pairsWanted; pair++) {
    progress(`${mode}: pair ${pair} of ${pairsWanted}`);
    const alone = { ...plan, groups: others };
    const beside = { ...plan, groups: [...others, ...hot] };
    // each comes first every other time: what drifts over the minutes is in both
    const [first, second] = pair % 2 === 0 ? [beside, alone] : [alone, beside];
    const outcomes = [await run(parts, first), await run(parts, second)] as const;
    const [without, withHot] = pair % 2 === 0 ? outcomes.toReversed() : outcomes;
    if (without !== undefined && withHot !== undefined) pairs.push({ without, with: withHot });
  }
  const otherCores = busy().value;
  await Promise.allSettled(stops.splice(0).map((stop) => stop()));
  return figuresOf(mode, pairs, otherCores);
}

/** The gateway, all of its threads, on core 0; generator and upstream on core 1. */
function pin(gateway: number): void {
  for (const pid of childPids()) {
    const core = pid === gateway ? "0" : "1";
    const { status } = spawnSync("taskset", ["-acp", core, String(pid)]);
    if (status !== 0) throw new Error("--pin needs taskset and two cores: leave it out");
  }
}

/** Organisations of one key each. */
async function groupsOf(mode: Mode, admin: AdminClient): Promise<Group[]> {
  const slugs = Array.from({ length: OTHERS }, (_, i) => `other-${i}`);
  const made = slugs.map(async (slug) => {
    const keys = await openOrganization(admin, "regional", 1, slug);
    return LOADS[mode].other.map((rate) => groupOf(keys, rate, true));
  });
  return (await Promise.all(made)).flat();
}

function groupOf(keys: readonly string[], { perSecond, words }: Rate, isTimed: boolean): Group {
  return { keys, perSecond, words, isTimed };
}

/** A plan carried out, with the CPU that the gateway took meanwhile. */
async function run({ load, pid }: Parts, plan: Plan): Promise<Ran> {
  const [cpuBefore, begunAt] = [cpuMicroseconds(pid), performance.now()];
  load.send(plan);
  const [outcome] = (await once(load, "message")) as [Outcome];
  const ms = performance.now() - begunAt;
  return { ...outcome, cpuPercent: (cpuMicroseconds(pid) - cpuBefore) / 10 / ms };
}

function report(measured: readonly ModeFigures[]): void {
  progress("");
  const kept = measured.every((figures) => figures.mode === "instant" || isKept(figures));
  if (!kept) process.exitCode = 1;
  if (options.json) {
    const figures = { risePercentMax: RISE_PERCENT_MAX, kept, modes: measured };
    console.log(JSON.stringify(figures, null, 2));
    return;
  }
  for (const figures of measured) console.log(linesOf(figures).join("\n"));
  const storage = tmpfsMount() === null ? "on disk (no tmpfs here)" : "in memory";
  console.log(
    `\n${kept ? "Kept" : "NOT KEPT"}: the others' p99 may rise by less than ${RISE_PERCENT_MAX} % beside a hot organisation. ` +
      `Medians of ${pairsWanted} paired runs of ${seconds} s; ${OTHERS} organisations of a request a second; ` +
      `generator, upstream and gateway in three processes on this machine; storage ${storage}.`,
  );
}
