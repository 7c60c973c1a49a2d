import { setTimeout as sleep } from "node:timers/promises";
import { clockMs } from "../../scripts/exchange.ts";
import { quiet, readAll } from "./evidence.ts";
import { Faults } from "./faults.ts";
import { verdictsOf } from "./invariants.ts";
import { arrivals, faultPlan } from "./plan.ts";
import { countBy, listOf } from "./report.ts";
import type { Report } from "./report.ts";
import { makeTenants, QUOTAS, topUp } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import { Traffic } from "./traffic.ts";
import { REGIONS, startSoakRegions } from "./regions.ts";
import type { Times, SoakRegions } from "./regions.ts";

const PROGRESS_MS = 5000;
/** Runs below this length need shorter holds. */
const SHORT_MS = 30_000;
const LONG_TIMES: Times = { deadlineS: 25, holdS: 40, peerHoldS: 60 };
const SHORT_TIMES: Times = { deadlineS: 14, holdS: 16, peerHoldS: 20 };
/** Memory samples of a run, at most one every three seconds. */
const MEMORY_SAMPLES = 60;
const MEMORY_EVERY_MS = 3000;
const TOP_UP_EVERY_MS = 7000;

type SoakOptions = {
  readonly seed: number;
  readonly minutes: number;
  /** Requests per second without storms. */
  readonly rate: number;
  readonly progress: (line: string) => void;
  /** Called when both regions run, after their runtime has installed its signal handlers. */
  readonly started: () => void;
};

/** Runs a soak. Returns null if it was stopped. Leaves nothing running. */
export async function soak(options: SoakOptions, stop: AbortSignal): Promise<Report | null> {
  const { progress } = options;
  progress("bundling and starting both regions");
  const soakRegions = await startSoakRegions(
    options.minutes * 60_000 < SHORT_MS ? SHORT_TIMES : LONG_TIMES,
  );
  progress(`storage in ${soakRegions.directory}`);
  options.started();
  try {
    progress("making organizations");
    const tenants = await makeTenants(soakRegions);
    return stop.aborted ? null : await underLoad(soakRegions, tenants, options, stop);
  } finally {
    await soakRegions.stop();
  }
}

async function underLoad(
  soakRegions: SoakRegions,
  tenants: readonly Tenant[],
  { seed, rate, minutes, progress }: SoakOptions,
  stop: AbortSignal,
): Promise<Report | null> {
  const durationMs = minutes * 60_000;
  const over = new AbortController();
  const end = AbortSignal.any([stop, over.signal]);
  const traffic = new Traffic(soakRegions, tenants);
  const faults = new Faults(soakRegions, tenants, traffic);
  const { traces } = traffic;
  const { windows, revocations, done } = faults;
  const fromMs = clockMs();
  const progressTimer = setInterval(() => {
    const statuses = countBy(traces, ({ status, fate }) => String(status ?? fate));
    const elapsed = Math.round((clockMs() - fromMs) / 1000);
    const ended = `${traces.length} ended, ${traffic.inFlight} in progress`;
    progress(
      `${elapsed} of ${durationMs / 1000} s: ${ended}; ${listOf(statuses)}; ${listOf(done)}`,
    );
  }, PROGRESS_MS);
  const backgroundTasks = [
    tend(soakRegions, tenants, { durationMs, stop: end }),
    faults.run(faultPlan(seed, durationMs), fromMs, end),
  ];
  await traffic.run(arrivals({ seed, rate, durationMs }), fromMs, stop);
  clearInterval(progressTimer);
  const load = { fromMs, untilMs: clockMs(), leftOut: traffic.leftOut };
  over.abort();
  if (stop.aborted) return null;
  progress("load over: healing");
  await Promise.all(backgroundTasks);
  await faults.heal();
  await traffic.ended();
  if (stop.aborted) return null;
  const healed = await quiet(soakRegions, tenants, progress);
  progress("reading ledgers, books and registers");
  const { heaps, mishaps, events, remarkable } = soakRegions.log;
  const seen = { traces, windows, revocations, done, load, heaps, mishaps };
  const runMaxMs = soakRegions.times.deadlineS * 1000;
  const atRest = await readAll(soakRegions, tenants);
  const verdicts = verdictsOf({ ...seen, ...partiesOf(tenants), ...atRest, runMaxMs });
  return { seed, load, traces, done, healed, events, remarkable, verdicts };
}

/**
 * During the load, makes both regions collect garbage, which logs their heap, and adds credits to
 * organizations that run out.
 */
async function tend(
  soakRegions: SoakRegions,
  tenants: readonly Tenant[],
  { durationMs, stop }: { readonly durationMs: number; readonly stop: AbortSignal },
): Promise<void> {
  const repeat = async (everyMs: number, work: () => Promise<unknown>): Promise<void> => {
    while (!stop.aborted) {
      await work().catch(() => undefined); // a region can be unavailable, so the next run retries
      await sleep(everyMs, undefined, { signal: stop }).catch(() => undefined);
    }
  };
  const everyMs = Math.min(MEMORY_EVERY_MS, durationMs / MEMORY_SAMPLES);
  let topUps = 0;
  await Promise.all([
    ...REGIONS.map((name) => repeat(everyMs, () => soakRegions.regions[name].control("collect"))),
    repeat(TOP_UP_EVERY_MS, () => topUp(soakRegions, tenants, `top-up ${++topUps}`)),
  ]);
}

/** Returns the organizations and end users whose requests can be rejected. */
function partiesOf(tenants: readonly Tenant[]) {
  const capped = Object.keys(QUOTAS).filter((user) => QUOTAS[user] !== null);
  const having = tenants.filter(({ role }) => role === "users");
  return {
    dry: new Set(tenants.filter(({ role }) => role === "dry").map(({ orgId }) => orgId)),
    capped: new Set(having.flatMap(({ orgId }) => capped.map((user) => `${orgId} ${user}`))),
  };
}
