import type { RegionMetricsMethods } from "../../shared/contracts/metrics.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import type { Percentiles, RouteSample, RouteSpeed } from "../../shared/route-speed.ts";
import { withTimeout } from "../../shared/timers.ts";

const WINDOW_MS = 1_800_000;
const ROUTES_MAX = 500;
const SAMPLES_MAX = 200;
/** Maximum samples per route and organization. */
const ORG_SAMPLES_MAX = 10;

type TimedSample = RouteSample & { readonly atMs: number };

/** Speeds of a region's routes in the last 30 minutes. */
export class RegionSpeeds {
  readonly #routes = new Map<string, readonly TimedSample[]>();

  add(samples: readonly RouteSample[], atMs: number): void {
    for (const sample of samples) {
      const { route, orgId } = sample;
      const samplesOfRoute = this.#routes.get(route) ?? [];
      if (samplesOfRoute.length === 0) evictOldest(this.#routes, ROUTES_MAX);
      const samplesOfOrg = samplesOfRoute.filter((one) => one.orgId === orgId);
      const surplus = samplesOfOrg.length < ORG_SAMPLES_MAX ? undefined : samplesOfOrg[0];
      const remaining = samplesOfRoute.filter((one) => one !== surplus && isRecent(one, atMs));
      this.#routes.set(route, [...remaining.slice(1 - SAMPLES_MAX), { ...sample, atMs }]);
    }
  }

  all(nowMs: number): readonly RouteSpeed[] {
    return [...this.#routes].flatMap(([route, samplesOfRoute]) => {
      const recent = samplesOfRoute.filter((one) => isRecent(one, nowMs));
      if (recent.length === 0) return [];
      return {
        route,
        latency: measureSpeed(recent, ({ latencyMs }) => latencyMs),
        throughput: measureSpeed(recent, ({ tokensPerSecond }) => tokensPerSecond),
      };
    });
  }
}

function isRecent({ atMs }: TimedSample, nowMs: number): boolean {
  return nowMs - atMs < WINDOW_MS;
}

function measureSpeed(
  recent: readonly TimedSample[],
  valueOf: (sample: TimedSample) => number | null,
): RouteSpeed["latency"] {
  const measured = recent.filter((one) => valueOf(one) !== null);
  const values = measured.flatMap((one) => valueOf(one) ?? []).toSorted((a, b) => a - b);
  return {
    requests: values.length,
    organizations: new Set(measured.map(({ orgId }) => orgId)).size,
    percentiles: values.length < REQUESTS_MIN ? null : percentilesOf(values),
  };
}

const REQUESTS_MIN = 3;

function percentilesOf(sorted: readonly number[]): Percentiles {
  const at = (share: number): number =>
    round(sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN);
  return { p50: at(0.5), p75: at(0.75), p90: at(0.9), p99: at(0.99) };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

const READ_TIMEOUT_MS = 2000;

export async function readRouteSpeeds(
  metrics: Pick<RegionMetricsMethods, "speeds">,
): Promise<ReadonlyMap<string, RouteSpeed> | null> {
  try {
    const speeds = await withTimeout(metrics.speeds(), READ_TIMEOUT_MS);
    return new Map(speeds.map((one) => [one.route, one]));
  } catch (error) {
    logWarning("speeds_not_read", { reason: errorMessageOf(error) });
    return null;
  }
}
