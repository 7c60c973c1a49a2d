import { METRICS, seriesOf } from "./series.ts";
import type { Labels, MetricName } from "./series.ts";
import type { Series, View } from "../../shared/contracts/metrics.ts";
import { elapsedMs } from "../../shared/clock.ts";
import { logWarning, reasonOf } from "../../shared/log.ts";
import { within } from "../../shared/timers.ts";

/** Labels come from bounded sets; this bounds what a mistake could cost. */
const SERIES_MAX = 5000;

/** A histogram's series with its labels, written once where it is counted often: one for each bucket, and the sum. */
export type Histogram = {
  readonly bounds: readonly number[];
  /** One more than bounds: the last has none. */
  readonly buckets: readonly string[];
  readonly sum: string;
};

/** The series of a counter with its labels. */
export function counterSeries(metric: MetricName, labels: Labels = {}): string {
  return seriesOf(METRICS[metric].name, labels);
}

export function histogramOf(metric: MetricName, labels: Labels): Histogram {
  const { name, buckets: bounds = [] } = METRICS[metric] as {
    name: string;
    buckets?: readonly number[];
  };
  const bucket = (le: string): string => seriesOf(`${name}_bucket`, { ...labels, le });
  return {
    bounds,
    buckets: [...bounds.map((bound) => bucket(String(bound))), bucket("+Inf")],
    sum: seriesOf(`${name}_sum`, labels),
  };
}

/** Counts of one isolate, until they are handed over. A histogram counts each value in one bucket. */
export class Tally {
  #series = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#series.size === 0;
  }

  /** Adds to a counter. */
  count(metric: MetricName, labels: Labels = {}, by = 1): void {
    this.add(counterSeries(metric, labels), by);
  }

  /** Adds to a counter whose series is written already (`counterSeries`). */
  add(series: string, by = 1): void {
    if (by === 0) return;
    const known = this.#series.get(series);
    if (known === undefined && this.#series.size >= SERIES_MAX) return;
    this.#series.set(series, (known ?? 0) + by);
  }

  /** Takes one value of a histogram. */
  observe(histogram: Histogram, value: number): void {
    const { bounds, buckets, sum } = histogram;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++;
    this.add(buckets[at] ?? sum);
    this.#addSum(sum, value);
  }

  /** A sum of nothing is a series all the same. */
  #addSum(series: string, value: number): void {
    if (value !== 0) return this.add(series, value);
    if (!this.#series.has(series) && this.#series.size < SERIES_MAX) this.#series.set(series, 0);
  }

  /** Everything counted since the last call. */
  take(): Series {
    const taken = Object.fromEntries(this.#series);
    this.#series = new Map();
    return taken;
  }
}

/** How long a handing over may take, in the time after the answer. */
const ADD_TIMEOUT_MS = 5000;
/** The platform ends a waitUntil at 30 s, and whoever waits in it. */
const LOST_AFTER_MS = 30_000;

type Add = (series: Series, view: View) => Promise<unknown>;

/**
 * One isolate's counts on their way to the region's: the first count after a handing over starts the
 * next one, `delayMs` later, so that an isolate hands over at most once in that time, however busy,
 * and an idle one keeps nothing back.
 */
export class Recorder {
  readonly tally = new Tally();
  readonly #isolate = crypto.randomUUID();
  /** What this isolate alone knows at the moment, as gauges; handed over with the counts. */
  view: () => Series = () => ({});
  readonly #delayMs: number;
  /** When the last handing over began, Unix ms, until its counts are taken; then never. */
  #begunMs = -Infinity;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  /** Whether there is something to hand over and nobody does it yet, or who did was ended by the platform. */
  get isWaiting(): boolean {
    if (this.tally.isEmpty) return false;
    return Math.abs(elapsedMs() - this.#begunMs) > this.#delayMs + LOST_AFTER_MS;
  }

  /** Hands over what is counted, in a while; `waitUntil` keeps the isolate for it. */
  handOver(waitUntil: (work: Promise<unknown>) => void, add: Add): void {
    if (!this.isWaiting) return;
    this.#begunMs = elapsedMs();
    waitUntil(this.#handOver(add));
  }

  async #handOver(add: Add): Promise<void> {
    await scheduler.wait(this.#delayMs);
    this.#begunMs = -Infinity;
    const series = this.tally.take();
    try {
      await within(add(series, { isolate: this.#isolate, series: this.view() }), ADD_TIMEOUT_MS);
    } catch (error) {
      // Not counted again: the lost call may have arrived, and a count must never be twice the truth.
      const lost = Object.keys(series).length;
      logWarning("metrics_not_taken", { series: lost, reason: reasonOf(error) });
    }
  }
}
