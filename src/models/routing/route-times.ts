import { evictOldest } from "../../shared/evict-oldest.ts";

/** A route's speed, as medians of recent requests. Null until there are enough requests. */
export type RouteSpeed = {
  /** Time from the call to the first byte, in ms. */
  readonly latencyMs: number | null;
  readonly tokensPerSecond: number | null;
};

const ROUTES_MAX = 1_000;
const SAMPLES_MAX = 32;
const SAMPLES_MIN = 3;
const OUTPUT_MIN = 16;

type Samples = { readonly latencies: number[]; readonly speeds: number[] };

/** Route speeds that this isolate measured and doesn't share. */
export class RouteTimes {
  readonly #routes = new Map<string, Samples>();

  /** Records a request. Ignores the throughput of short outputs. */
  note(
    route: string,
    served: { readonly latencyMs: number; readonly streamMs: number; readonly output: number },
  ): void {
    const known = this.#routes.get(route) ?? { latencies: [], speeds: [] };
    if (!this.#routes.has(route)) evictOldest(this.#routes, ROUTES_MAX);
    this.#routes.set(route, known);
    const { latencyMs, streamMs, output } = served;
    if (latencyMs >= 0) push(known.latencies, latencyMs);
    if (output >= OUTPUT_MIN && streamMs > 0) push(known.speeds, (output * 1000) / streamMs);
  }

  speedOf(route: string): RouteSpeed {
    const { latencies = [], speeds = [] } = this.#routes.get(route) ?? {};
    return { latencyMs: median(latencies), tokensPerSecond: median(speeds) };
  }

  all(): readonly (RouteSpeed & { readonly route: string })[] {
    return [...this.#routes.keys()].map((route) => Object.assign({ route }, this.speedOf(route)));
  }
}

function push(samples: number[], value: number): void {
  samples.push(value);
  if (samples.length > SAMPLES_MAX) samples.shift();
}

function median(samples: readonly number[]): number | null {
  if (samples.length < SAMPLES_MIN) return null;
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}
