import { timestamp } from "../shared/clock.ts";
import { success } from "../shared/failure.ts";
import type { RegionCounts, MetricValues } from "../shared/contracts/metrics.ts";
import { METRICS, sumIsolateGauges } from "../events/metrics/series.ts";
import type { MetricName } from "../events/metrics/series.ts";
import { readDatabaseState } from "../accounts/organizations/organizations.store.ts";
import { allOutboxNames, peerOutboxNames } from "../regions/outbox-schedule.ts";
import { REGIONS } from "../shared/regions.ts";
import { STORAGE_BYTES_MAX } from "./sweep-metrics.ts";
import { findProblems } from "./health-problems.ts";
import type { OperatorContext } from "./operator-context.ts";
import { probeWallets } from "./unavailable-wallets.store.ts";

/** Handles `GET /health`. Lists only this isolate's routes in cooldown. */
export async function getHealth(context: OperatorContext) {
  const { region, version, db, now, models } = context;
  const [database, wallets, metrics, peers, outboxes, orphaned] = await Promise.all([
    readDatabaseState(db),
    probeWallets(db, now, (orgId) => context.wallet(orgId).balance()),
    context
      .metrics()
      .read()
      .catch(() => null),
    Promise.all(
      context.peers.map(async (peer) => ({ region: peer, ...(await context.checkPeer(peer)) })),
    ),
    outboxStates(context, allOutboxNames(context.peers)),
    orphanedOutboxes(context),
  ]);
  const { gauges = null, sinceMs = null, jobs = {} } = metrics ?? {};
  const sweep = gauges && {
    atMs: gauges.atMs,
    inConflict: gaugeOf(gauges.series, "conflicts"),
  };
  const isolates = metrics === null ? {} : sumIsolateGauges(metrics, now);
  const { breakers } = context;
  const paymentsAtMs = jobs.payments?.atMs ?? null;
  const sweepTimes = { sweep, paymentsAtMs, sinceMs };
  const status = { now, database, wallets, ...sweepTimes, models, breakers, isolates };
  return success({
    region,
    version,
    problems: findProblems({ ...status, peers, outboxes, orphaned }),
    aliases: Object.fromEntries(context.aliases),
    book: database !== "away",
    wallets,
    peers: peers.map(({ region: peer, url, fault, rttMs, lastOkMs }) => ({
      region: peer,
      url,
      answers: fault === null,
      rtt_ms: rttMs,
      last_ok_at: lastOkMs === null ? null : timestamp(lastOkMs),
    })),
    outboxes: [...outboxes, ...orphaned].map(outboxView),
    sweep: gauges && sweepView(gauges),
    payments_swept_at: paymentsAtMs === null ? null : timestamp(paymentsAtMs),
    breakers: breakers.map(({ route, state, untilMs }) => {
      return { route, state, until: timestamp(untilMs) };
    }),
  });
}

type Swept = NonNullable<RegionCounts["gauges"]>;

function sweepView({ atMs, series }: Swept) {
  return {
    at: timestamp(atMs),
    holds_open: gaugeOf(series, "holdsOpen"),
    hold_oldest_ms: Math.round(gaugeOf(series, "holdOldest") * 1000),
    wallets_unpublished: gaugeOf(series, "unpublished"),
    wallets_in_conflict: gaugeOf(series, "conflicts"),
    wallets_unavailable: gaugeOf(series, "unavailable"),
    wallet_bytes_largest: gaugeOf(series, "walletBytes"),
    book_bytes: gaugeOf(series, "bookBytes"),
    bytes_max: STORAGE_BYTES_MAX,
  };
}

function gaugeOf(series: MetricValues, metric: MetricName): number {
  return series[METRICS[metric].name] ?? 0;
}

function outboxStates({ outbox }: OperatorContext, names: readonly string[]) {
  return Promise.all(
    names.map(async (name) => {
      const depth = await outbox(name)
        .depth()
        .catch(() => null);
      return { name, depth };
    }),
  );
}

async function orphanedOutboxes(context: OperatorContext) {
  const removed = REGIONS.filter(
    (region) => region !== context.region && !context.peers.includes(region),
  );
  const states = await outboxStates(context, removed.flatMap(peerOutboxNames));
  return states.filter(
    ({ depth }) => depth !== null && depth.waiting + depth.dead + depth.parked > 0,
  );
}

function outboxView({ name, depth }: Awaited<ReturnType<typeof outboxStates>>[number]) {
  const { waiting = null, dead = null, parked = null, oldestMs = null } = depth ?? {};
  return { name, waiting, dead, parked, oldest_ms: oldestMs };
}
