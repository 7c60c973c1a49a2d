import { evictOldest } from "../../shared/evict-oldest.ts";
import { publicPercentiles } from "../../shared/route-speed.ts";
import type { RouteSample, RouteSpeed } from "../../shared/route-speed.ts";

/**
 * A route's median speeds, which decide the order of routes. Null until there are enough requests.
 */
export type MedianSpeed = Pick<RouteSample, "latencyMs" | "tokensPerSecond">;

const ROUTES_MAX = 1_000;
const SAMPLES_MAX = 32;
const SAMPLES_MIN = 3;
const OUTPUT_TOKENS_MIN = 16;
const UNSENT_SAMPLES_MAX = 200;

type Samples = { readonly latencies: number[]; readonly speeds: number[] };

/**
 * Measured speeds of routes. If enough organizations used a route, returns its speed in the region.
 * Otherwise, returns the organization's own speed in this isolate. The order of routes thus reveals
 * no other organization's usage.
 */
export class RouteSpeeds {
  readonly #localSamples = new Map<string, Samples>();
  #regionSpeeds = new Map<string, MedianSpeed>();
  #unsentSamples: RouteSample[] = [];

  record(
    { route, orgId }: Pick<RouteSample, "route" | "orgId">,
    served: {
      readonly latencyMs: number | null;
      readonly streamMs: number;
      readonly output: number;
    },
  ): void {
    const { latencyMs, streamMs, output } = served;
    const isLong = output >= OUTPUT_TOKENS_MIN && streamMs > 0;
    const tokensPerSecond = isLong ? (output * 1000) / streamMs : null;
    if (latencyMs === null && tokensPerSecond === null) return;
    const name = sampleKey(route, orgId);
    const known = this.#localSamples.get(name) ?? { latencies: [], speeds: [] };
    if (!this.#localSamples.has(name)) evictOldest(this.#localSamples, ROUTES_MAX);
    this.#localSamples.set(name, known);
    pushLimited(known.latencies, latencyMs, SAMPLES_MAX);
    pushLimited(known.speeds, tokensPerSecond, SAMPLES_MAX);
    pushLimited(
      this.#unsentSamples,
      { route, orgId, latencyMs, tokensPerSecond },
      UNSENT_SAMPLES_MAX,
    );
  }

  /** Returns the samples since the last call, for the region's metrics. */
  takeSamples(): readonly RouteSample[] {
    const taken = this.#unsentSamples;
    this.#unsentSamples = [];
    return taken;
  }

  setRegionSpeeds(speeds: readonly RouteSpeed[]): void {
    this.#regionSpeeds = new Map(
      speeds.map(({ route, latency, throughput }) => [
        route,
        {
          latencyMs: publicPercentiles(latency)?.p50 ?? null,
          tokensPerSecond: publicPercentiles(throughput)?.p50 ?? null,
        },
      ]),
    );
  }

  speedOf(route: string, orgId: string): MedianSpeed {
    const region = this.#regionSpeeds.get(route);
    const { latencies = [], speeds = [] } = this.#localSamples.get(sampleKey(route, orgId)) ?? {};
    return {
      latencyMs: region?.latencyMs ?? median(latencies),
      tokensPerSecond: region?.tokensPerSecond ?? median(speeds),
    };
  }
}

function sampleKey(route: string, orgId: string): string {
  return `${orgId} ${route}`;
}

function pushLimited<T>(list: T[], value: T | null, itemsMax: number): void {
  if (value === null) return;
  list.push(value);
  if (list.length > itemsMax) list.shift();
}

function median(samples: readonly number[]): number | null {
  if (samples.length < SAMPLES_MIN) return null;
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}
