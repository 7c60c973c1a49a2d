import type { View } from "../http/endpoint.ts";
import { timestamp } from "../lib/clock.ts";
import { success } from "../lib/failure.ts";
import type { Result } from "../lib/failure.ts";
import { METRICS } from "../metrics/series.ts";
import type { MetricName } from "../metrics/series.ts";
import { bookAnswers } from "../organizations/organizations.store.ts";
import { outboxNames } from "../regions/outbox-schedule.ts";
import { BYTES_MAX } from "./depths.ts";
import type { OperatorContext } from "./operator-context.ts";

/**
 * `GET /health`: what this deployment is and what its aliases mean, whether the book answers, what waits
 * in each outbox (null for one that cannot say), what the last sweep found, and which routes are left out,
 * until when. Each isolate knows only the routes that it has asked, so that two calls may name different ones.
 */
export async function getHealth(context: OperatorContext): Promise<Result<View>> {
  const [book, sweep, ...outboxes] = await Promise.all([
    bookAnswers(context.db),
    lastSweep(context),
    ...outboxNames(context.peers).map((name) => outboxHealth(context, name)),
  ]);
  const { region, version } = context;
  const aliases = Object.fromEntries(context.aliases);
  const breakers = context.breakers.map(({ route, state, untilMs }) => {
    return { route, state, until: timestamp(untilMs) };
  });
  return success({ region, version, aliases, book, outboxes, sweep, breakers });
}

/** Null before the first sweep, and where its figures cannot be read. */
async function lastSweep(context: OperatorContext): Promise<View | null> {
  const counted = await context.counted().catch(() => null);
  if (counted === null || counted.gauges === null) return null;
  const { atMs, series } = counted.gauges;
  const found = (metric: MetricName): number => series[METRICS[metric].name] ?? 0;
  return {
    at: timestamp(atMs),
    holds_open: found("holdsOpen"),
    hold_oldest_ms: Math.round(found("holdOldest") * 1000),
    wallets_unpublished: found("unpublished"),
    wallets_in_conflict: found("conflicts"),
    wallet_bytes_largest: found("walletBytes"),
    book_bytes: found("bookBytes"),
    bytes_max: BYTES_MAX,
  };
}

async function outboxHealth(context: OperatorContext, name: string): Promise<View> {
  try {
    const { waiting, dead, parked, oldestMs } = await context.outbox(name).depth();
    return { name, waiting, dead, parked, oldest_ms: oldestMs };
  } catch {
    return { name, waiting: null, dead: null, parked: null, oldest_ms: null };
  }
}
