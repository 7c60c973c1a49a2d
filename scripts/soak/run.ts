import { setTimeout as sleep } from "node:timers/promises";
import { clockMs } from "./client.ts";
import { crowdsOf } from "./crowds.ts";
import { estatesOf, grantLogsOf, keysOf, registerLogsOf } from "./evidence.ts";
import { Faults } from "./faults.ts";
import { outboxDepth, quiet, residueOf } from "./healing.ts";
import { judge } from "./judge.ts";
import type { Met } from "./judge-answers.ts";
import { arrivals, faultPlan } from "./plan.ts";
import { countBy, reportOf } from "./report.ts";
import type { Report } from "./report.ts";
import { Revoking } from "./revoking.ts";
import { makeTenants, QUOTAS } from "./tenants.ts";
import type { Tenant } from "./tenants.ts";
import { Traffic } from "./traffic.ts";
import type { Trace } from "./trace.ts";
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
    return await load(world, tenants, wish, stop);
  } finally {
    await world.stop();
  }
}

async function load(
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
  const verdicts = judge({
    ...(await gather(world, tenants, { traffic, revoking, faults, watch })),
    load: { fromMs: startedMs, untilMs: endedMs, sent: traces.length, leftOut },
    crowds,
  });
  const { events, remarkable } = world;
  const { done } = faults;
  return reportOf({ seed, loadMs, leftOut, traces, done, healed, events, remarkable, verdicts });
}

type Actors = {
  readonly traffic: Traffic;
  readonly revoking: Revoking;
  readonly faults: Faults;
  readonly watch: Watch;
};

async function gather(world: World, tenants: readonly Tenant[], actors: Actors) {
  const { traffic, revoking, faults, watch } = actors;
  const { regions, times, mishaps } = world;
  const keys = (await Promise.all(REGIONS.map((name) => keysOf(regions[name])))).flat().length;
  const residues = await Promise.all(REGIONS.map((name) => residueOf(regions[name], keys)));
  const estates = await estatesOf(world, tenants);
  return {
    traces: traffic.traces,
    windows: faults.windows,
    parties: {
      dry: new Set(tenants.filter(({ role }) => role === "dry").map(({ orgId }) => orgId)),
      capped: cappedUsers(tenants),
      limited: new Set(tenants.filter(({ limit }) => limit !== null).map(({ orgId }) => orgId)),
      revocations: revoking.revocations,
      runMaxMs: times.deadlineS * 1000,
    },
    estates,
    readings: watch.readings,
    depths: watch.depths,
    memory: [...watch.memory, ...world.heaps],
    outboxes: await Promise.all(REGIONS.map((name) => outboxDepth(regions[name]))),
    registers: await registerLogsOf(world, tenants),
    grants: await grantLogsOf(world, tenants),
    residues,
    holdMaxMs: times.peerHoldS * 1000 + ALARM_SLACK_MS,
    mishaps,
    room: { inFlightMax: IN_FLIGHT_MAX, lingerMs: DRAIN_MS },
    met: metBy(actors),
  };
}

function cappedUsers(tenants: readonly Tenant[]): Set<string> {
  const capped = Object.entries(QUOTAS).filter(([, quota]) => quota !== null);
  return new Set(
    tenants
      .filter(({ role }) => role === "users")
      .flatMap(({ orgId }) => capped.map(([user]) => `${orgId} ${user}`)),
  );
}

/** What the load met: a run without it proves nothing. */
function metBy({ traffic, revoking, faults }: Actors): Met {
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
  run: {
    readonly traffic: Traffic;
    readonly faults: Faults;
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
    const { aborted, bookOutages, linkCuts, kills } = faults.done;
    const statuses = countBy(traffic.traces, ({ status, fate }) => String(status ?? fate));
    const seconds = Math.round((clockMs() - startedMs) / 1000);
    progress(
      `${seconds} of ${durationMs / 1000} s: ${traffic.traces.length} ended, ${traffic.inFlight} under way; ` +
        `${Object.entries(statuses)
          .map(([status, many]) => `${status} x ${many}`)
          .join(
            ", ",
          )}; ${aborted} objects aborted, ${bookOutages} book outages, ${linkCuts} cuts, ${kills} kills`,
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
