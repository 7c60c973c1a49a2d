import { setTimeout as sleep } from "node:timers/promises";
import { clockMs } from "./client.ts";
import {
  estatesOf,
  grantLogsOf,
  keysOf,
  outboxDepth,
  quiet,
  registerLogsOf,
  residueOf,
} from "./evidence.ts";
import { Faults, Revoking } from "./faults.ts";
import {
  judgeAnswers,
  judgeMishaps,
  judgeReach,
  judgeUnavailable,
  loadOf,
  unlessTooSlow,
} from "./judge-answers.ts";
import type { Load, Met, Parties } from "./judge-answers.ts";
import {
  judgeLimits,
  judgeMemory,
  judgePlaces,
  judgeResidue,
  judgeRevocations,
} from "./judge-limits.ts";
import type { Crowd } from "./judge-limits.ts";
import {
  judgeBooks,
  judgeBounds,
  judgeCharges,
  judgeExpiries,
  judgeLedgers,
  judgeRest,
} from "./judge-money.ts";
import { arrivals, faultPlan } from "./plan.ts";
import { countBy, listOf, reportOf } from "./report.ts";
import type { Report } from "./report.ts";
import { makeTenants, QUOTAS } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import type { Trace, Verdict } from "./trace.ts";
import { crowdsOf, Traffic } from "./traffic.ts";
import { Watch } from "./watch.ts";
import { DRAIN_MS, IN_FLIGHT_MAX, REGIONS, startWorld } from "./world.ts";
import type { Times, World } from "./world.ts";

const PROGRESS_MS = 5000;
/** An alarm may come so late on a busy machine. */
const ALARM_SLACK_MS = 20_000;
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
  readonly started?: () => void;
};

/** One soak from start to verdict; null when it was stopped before. Leaves nothing running. */
export async function soak(wish: Wish, stop: AbortSignal): Promise<Report | null> {
  const { progress } = wish;
  const durationMs = wish.minutes * 60_000;
  progress("bundling and starting both regions");
  const world = await startWorld(durationMs < SHORT_MS ? SHORT_TIMES : LONG_TIMES);
  progress(`storage in ${world.directory}`);
  wish.started?.();
  try {
    const tenants = await makeTenants(world, (made, of) => {
      if (made % 10 === 0) progress(`${made} of ${of} organisations made`);
    });
    if (stop.aborted) return null;
    return await underLoad(world, tenants, wish, stop);
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
  const revoking = new Revoking(world, tenants, traffic);
  const faults = new Faults(world, revoking);
  const watch = new Watch(world, tenants, durationMs);
  const startedMs = clockMs();
  const watching = watch.run(end);
  const failing = faults.run(faultPlan(seed, durationMs), startedMs, end);
  const telling = tell({ traffic, faults, startedMs, durationMs }, progress, end);
  await traffic.run(arrivals({ seed, rate, durationMs }), startedMs, stop);
  const endedMs = clockMs();
  const loadMs = endedMs - startedMs;
  over.abort();
  if (stop.aborted) return null;
  progress(`load over after ${(loadMs / 1000).toFixed(0)} s: healing`);
  await Promise.all([failing, watching, telling]);
  await faults.heal();
  await traffic.ended();
  if (stop.aborted) return null;
  const waiting = throttled(progress);
  const healed = await quiet(world, tenants, (line) => waiting(`waiting for ${line}`));
  progress("filling the room of some organisations at rest");
  const crowds = await crowdsOf(tenants, traffic, IN_FLIGHT_MAX);
  await quiet(world, tenants, (line) => waiting(`waiting for ${line}`));
  progress("reading ledgers, books and registers");
  const { traces, leftOut } = traffic;
  const sent = loadOf(traces, { fromMs: startedMs, untilMs: endedMs, leftOut });
  const seen = { traffic, revoking, faults, watch, crowds };
  const verdicts = await verdictsOf(world, tenants, seen, sent);
  const { events, remarkable } = world;
  const { done } = faults;
  return reportOf({ seed, loadMs, leftOut, traces, done, healed, events, remarkable, verdicts });
}

/** Those who have seen what happened. */
type Witnesses = {
  readonly traffic: Traffic;
  readonly revoking: Revoking;
  readonly faults: Faults;
  readonly watch: Watch;
  readonly crowds: readonly Crowd[];
};

/** Every invariant, each with its figure and what broke it: of the regions at rest, and of all that was seen. */
async function verdictsOf(
  world: World,
  tenants: readonly Tenant[],
  witnesses: Witnesses,
  load: Load,
): Promise<readonly Verdict[]> {
  const { regions, times, mishaps, heaps } = world;
  const { readings, depths, memory } = witnesses.watch;
  const { traces } = witnesses.traffic;
  const { windows } = witnesses.faults;
  const { revocations } = witnesses.revoking;
  const kills = windows.filter(({ what }) => what === "kill");
  const keys = (await Promise.all(REGIONS.map((name) => keysOf(regions[name])))).flat().length;
  const residues = await Promise.all(REGIONS.map((name) => residueOf(regions[name], keys)));
  const estates = await estatesOf(world, tenants);
  const outboxes = await Promise.all(REGIONS.map((name) => outboxDepth(regions[name])));
  const registers = await registerLogsOf(world, tenants);
  const grants = await grantLogsOf(world, tenants);
  const runMaxMs = times.deadlineS * 1000;
  const holdMaxMs = times.peerHoldS * 1000 + ALARM_SLACK_MS;
  const parties = { ...partiesOf(tenants), revocations, runMaxMs };
  const room = { inFlightMax: IN_FLIGHT_MAX, lingerMs: DRAIN_MS };
  return [
    judgeLedgers(estates),
    judgeBooks(estates),
    judgeRest(estates, outboxes, { depths, holdMaxMs }),
    judgeExpiries(grants, { restarts: kills, traces }, load),
    judgeCharges(traces, estates, { kills, afterMs: DRAIN_MS + runMaxMs }),
    judgeRevocations(traces, revocations),
    judgeLimits(traces, registers, grants),
    judgeAnswers(traces, kills, parties),
    unlessTooSlow(judgeUnavailable(traces, windows, room), load),
    unlessTooSlow(judgePlaces(witnesses.crowds, IN_FLIGHT_MAX), load),
    judgeMishaps(mishaps, kills),
    judgeBounds(readings, estates),
    judgeMemory([...memory, ...heaps]),
    judgeResidue(residues),
    judgeReach(metBy(witnesses), load),
  ];
}

/** Whose requests may be refused for what they are. */
function partiesOf(tenants: readonly Tenant[]): Pick<Parties, "dry" | "capped" | "limited"> {
  const idsOf = (some: (tenant: Tenant) => boolean): string[] =>
    tenants.filter(some).map(({ orgId }) => orgId);
  const capped = Object.keys(QUOTAS).filter((user) => QUOTAS[user] !== null);
  return {
    dry: new Set(idsOf(({ role }) => role === "dry")),
    capped: new Set(
      idsOf(({ role }) => role === "users").flatMap((id) => capped.map((user) => `${id} ${user}`)),
    ),
    limited: new Set(idsOf(({ limit }) => limit !== null)),
  };
}

/** What the load met: a run without it proves nothing. */
function metBy({ traffic, revoking, faults }: Witnesses): Met {
  const { traces } = traffic;
  const count = (of: (trace: Trace) => boolean): number => traces.filter(of).length;
  const { done } = faults;
  const dead = [...revoking.revocations.values()].filter(({ deletedMs }) => deletedMs !== null);
  return {
    "answers of 200": count(({ status }) => status === 200),
    "clients that left": count(({ fate }) => fate === "left"),
    "402s": count(({ status }) => status === 402),
    "429s": count(({ type }) => type === "rate_limit_exceeded"),
    "quota 429s": count(({ code }) => code === "end_user_quota_exceeded"),
    "forged keys refused": count(({ kind, status }) => kind === "forged" && status === 401),
    "keys revoked": dead.length,
    "upstream failures": count(({ status }) => status === 502),
    aborts: done.aborted,
    "book outages": done.bookOutages,
    "link cuts": done.linkCuts,
    kills: done.kills,
  };
}

async function tell(
  run: Pick<Witnesses, "traffic" | "faults"> & {
    readonly startedMs: number;
    readonly durationMs: number;
  },
  progress: Wish["progress"],
  end: AbortSignal,
): Promise<void> {
  const { traffic, faults, startedMs, durationMs } = run;
  while (!end.aborted) {
    await sleep(PROGRESS_MS, undefined, { signal: end }).catch(() => undefined);
    if (end.aborted) return;
    const { traces, inFlight } = traffic;
    const statuses = countBy(traces, ({ status, fate }) => String(status ?? fate));
    const elapsed = Math.round((clockMs() - startedMs) / 1000);
    progress(
      `${elapsed} of ${durationMs / 1000} s: ${traces.length} ended, ${inFlight} under way; ` +
        `${listOf(statuses)}; ${listOf(faults.done)}`,
    );
  }
}

function throttled(progress: Wish["progress"]): Wish["progress"] {
  let saidMs = -Infinity;
  return (line) => {
    if (clockMs() - saidMs < PROGRESS_MS) return;
    saidMs = clockMs();
    progress(line);
  };
}
