import { estatesOf, logsOf, outboxDepth, quiet } from "./evidence.ts";
import { Faults } from "./faults.ts";
import * as answers from "./judge-answers.ts";
import * as limits from "./judge-limits.ts";
import * as money from "./judge-money.ts";
import { arrivals, faultPlan } from "./plan.ts";
import { countBy, listOf } from "./report.ts";
import type { Report } from "./report.ts";
import { makeTenants, QUOTAS } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import { clockMs } from "./trace.ts";
import type { Trace, Verdict } from "./trace.ts";
import { Traffic } from "./traffic.ts";
import { tend } from "./watch.ts";
import { DRAIN_MS, REGIONS, startWorld } from "./world.ts";
import type { Times, World } from "./world.ts";

const PROGRESS_MS = 5000;
/** In a run shorter than this, holds must end sooner than they do in a long one. */
const SHORT_MS = 30_000;
const LONG_TIMES: Times = { deadlineS: 25, holdS: 40, peerHoldS: 60 };
const SHORT_TIMES: Times = { deadlineS: 14, holdS: 16, peerHoldS: 20 };

export type Wish = {
  readonly seed: number;
  readonly minutes: number;
  /** Requests a second, storms not counted. */
  readonly rate: number;
  readonly progress: (line: string) => void;
  /** Both regions run: from then on their runtime's own signal handlers are there too. */
  readonly started: () => void;
};

/** One soak from start to verdict; null when it was stopped before. Leaves nothing running. */
export async function soak(wish: Wish, stop: AbortSignal): Promise<Report | null> {
  const { progress } = wish;
  progress("bundling and starting both regions");
  const world = await startWorld(wish.minutes * 60_000 < SHORT_MS ? SHORT_TIMES : LONG_TIMES);
  progress(`storage in ${world.directory}`);
  wish.started();
  try {
    progress("making organisations");
    const tenants = await makeTenants(world);
    return stop.aborted ? null : await underLoad(world, tenants, wish, stop);
  } finally {
    await world.stop();
  }
}

async function underLoad(
  world: World,
  tenants: readonly Tenant[],
  { seed, rate, minutes, progress }: Wish,
  stop: AbortSignal,
): Promise<Report | null> {
  const durationMs = minutes * 60_000;
  const over = new AbortController();
  const end = AbortSignal.any([stop, over.signal]);
  const traffic = new Traffic(world, tenants);
  const faults = new Faults(world, tenants, traffic);
  const { traces } = traffic;
  const startedMs = clockMs();
  const telling = setInterval(() => {
    const statuses = countBy(traces, ({ status, fate }) => String(status ?? fate));
    const elapsed = Math.round((clockMs() - startedMs) / 1000);
    const ended = `${traces.length} ended, ${traffic.inFlight} under way`;
    const done = `${listOf(statuses)}; ${listOf(faults.done)}`;
    progress(`${elapsed} of ${durationMs / 1000} s: ${ended}; ${done}`);
  }, PROGRESS_MS);
  const plan = faultPlan(seed, durationMs);
  const beside = [
    tend(world, tenants, { durationMs, stop: end }),
    faults.run(plan, startedMs, end),
  ];
  await traffic.run(arrivals({ seed, rate, durationMs }), startedMs, stop);
  clearInterval(telling);
  const untilMs = clockMs();
  over.abort();
  if (stop.aborted) return null;
  progress("load over: healing");
  await Promise.all(beside);
  await faults.heal();
  await traffic.ended();
  if (stop.aborted) return null;
  const healed = await quiet(world, tenants, progress);
  progress("reading ledgers, books and registers");
  const { leftOut } = traffic;
  const load = answers.loadOf(traces, { fromMs: startedMs, untilMs, leftOut });
  const seen = { traffic, faults, load };
  const verdicts = await verdictsOf(world, tenants, seen);
  const { events, remarkable } = world.log;
  const { done } = faults;
  const loadMs = untilMs - startedMs;
  return { seed, loadMs, leftOut, traces, done, healed, events, remarkable, verdicts };
}

/** Those who have seen what happened. */
type Witnesses = {
  readonly traffic: Traffic;
  readonly faults: Faults;
  readonly load: answers.Load;
};

/** Every invariant, each with its figure and what broke it: of the regions at rest, and of all that was seen. */
async function verdictsOf(
  world: World,
  tenants: readonly Tenant[],
  witnesses: Witnesses,
): Promise<readonly Verdict[]> {
  const { regions, times, log } = world;
  const { faults, load, traffic } = witnesses;
  const { traces } = traffic;
  const { windows, revocations } = faults;
  const each = <T>(of: (region: World["regions"]["eu"]) => Promise<T>): Promise<T[]> =>
    Promise.all(REGIONS.map((name) => of(regions[name])));
  const kills = windows.filter(({ what }) => what === "kill");
  const estates = await estatesOf(world, tenants);
  const outboxes = await each(outboxDepth);
  const { registers, grants } = await logsOf(world, tenants);
  const runMaxMs = times.deadlineS * 1000;
  const parties = { ...partiesOf(tenants), revocations, runMaxMs };
  return [
    money.judgeLedgers(estates),
    money.judgeBooks(estates),
    money.judgeRest(estates, outboxes),
    money.judgeCharges(traces, estates, { kills, afterMs: DRAIN_MS + runMaxMs }),
    limits.judgeRevocations(traces, revocations),
    limits.judgeLimits(traces, registers, grants),
    answers.judgeAnswers(traces, kills, parties),
    answers.unlessTooSlow(answers.judgeUnavailable(traces, windows), load),
    answers.judgeMishaps(log.mishaps, kills),
    limits.judgeMemory(log.heaps),
    answers.judgeReach(metBy(witnesses), load),
  ];
}

/** Whose requests may be refused for what they are. */
function partiesOf(
  tenants: readonly Tenant[],
): Pick<answers.Parties, "dry" | "capped" | "limited"> {
  const idsOf = (some: (tenant: Tenant) => boolean): string[] =>
    tenants.filter(some).map(({ orgId }) => orgId);
  const capped = Object.keys(QUOTAS).filter((user) => QUOTAS[user] !== null);
  const having = idsOf(({ role }) => role === "users");
  return {
    dry: new Set(idsOf(({ role }) => role === "dry")),
    capped: new Set(having.flatMap((id) => capped.map((user) => `${id} ${user}`))),
    limited: new Set(idsOf(({ limit }) => limit !== null)),
  };
}

/** What the load met: a run without it proves nothing. */
function metBy({ traffic, faults }: Witnesses): Readonly<Record<string, number>> {
  const count = (of: (trace: Trace) => boolean): number => traffic.traces.filter(of).length;
  const { aborted, bookOutages, linkCuts, kills } = faults.done;
  const dead = [...faults.revocations.values()].filter(({ deletedMs }) => deletedMs !== null);
  return {
    "answers of 200": count(({ status }) => status === 200),
    "clients that left": count(({ fate }) => fate === "left"),
    "402s": count(({ status }) => status === 402),
    "429s": count(({ type }) => type === "rate_limit_exceeded"),
    "quota 429s": count(({ code }) => code === "end_user_quota_exceeded"),
    "forged keys refused": count(({ kind, status }) => kind === "forged" && status === 401),
    "keys revoked": dead.length,
    "upstream failures": count(({ status }) => status === 502),
    aborts: aborted,
    "book outages": bookOutages,
    "link cuts": linkCuts,
    kills,
  };
}
