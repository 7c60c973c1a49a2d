import { METRICS, seriesOf } from "./series.ts";
import type { Labels, MetricName, Series } from "./series.ts";

/** Labels come from bounded sets; this bounds what a mistake could cost. */
const SERIES_MAX = 5000;

/** Counts of one isolate, until they are handed over. A histogram counts each value in one bucket. */
export class Tally {
  #series = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#series.size === 0;
  }

  /** Adds to a counter. */
  count(metric: MetricName, labels: Labels = {}, by = 1): void {
    if (by !== 0) this.#add(seriesOf(METRICS[metric].name, labels), by);
  }

  /** Takes one value of a histogram. */
  observe(metric: MetricName, value: number, labels: Labels = {}): void {
    const { name, buckets = [] } = METRICS[metric] as { name: string; buckets?: readonly number[] };
    const bound = buckets.find((one) => value <= one);
    const le = bound === undefined ? "+Inf" : String(bound);
    this.#add(seriesOf(`${name}_bucket`, { ...labels, le }), 1);
    this.#add(seriesOf(`${name}_sum`, labels), value);
  }

  /** Everything counted since the last call. */
  take(): Series {
    const taken = Object.fromEntries(this.#series);
    this.#series = new Map();
    return taken;
  }

  #add(series: string, by: number): void {
    const known = this.#series.get(series);
    if (known === undefined && this.#series.size >= SERIES_MAX) return;
    this.#series.set(series, (known ?? 0) + by);
  }
}
