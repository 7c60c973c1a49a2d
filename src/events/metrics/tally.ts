import { METRICS, metricSeriesName } from "./series.ts";
import type { MetricLabels, MetricName } from "./series.ts";
import type { MetricValues, IsolateMetrics } from "../../shared/contracts/metrics.ts";
import type { RouteSpeed } from "../../shared/route-speed.ts";
import { elapsedMs } from "../../shared/clock.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timers.ts";

const SERIES_MAX = 5000;

export type HistogramSeriesNames = {
  readonly bounds: readonly number[];
  /** Bucket names: one more than `bounds`, because the last bucket has no bound. */
  readonly buckets: readonly string[];
  readonly sum: string;
};

export function counterSeriesName(metric: MetricName, labels: MetricLabels = {}): string {
  return metricSeriesName(METRICS[metric].name, labels);
}

export function histogramSeriesNames(
  metric: MetricName,
  labels: MetricLabels,
): HistogramSeriesNames {
  const { name, buckets: bounds = [] } = METRICS[metric] as {
    name: string;
    buckets?: readonly number[];
  };
  const bucket = (le: string): string => metricSeriesName(`${name}_bucket`, { ...labels, le });
  return {
    bounds,
    buckets: [...bounds.map((bound) => bucket(String(bound))), bucket("+Inf")],
    sum: metricSeriesName(`${name}_sum`, labels),
  };
}

/** The counts of one isolate. Histogram buckets aren't cumulative. */
export class MetricCounts {
  #series = new Map<string, number>();

  get isEmpty(): boolean {
    return this.#series.size === 0;
  }

  count(metric: MetricName, labels: MetricLabels = {}, by = 1): void {
    this.add(counterSeriesName(metric, labels), by);
  }

  add(series: string, by = 1): void {
    if (by === 0) return;
    const known = this.#series.get(series);
    if (known === undefined && this.#series.size >= SERIES_MAX) return;
    this.#series.set(series, (known ?? 0) + by);
  }

  observe(histogram: HistogramSeriesNames, value: number): void {
    const { bounds, buckets, sum } = histogram;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++;
    this.add(buckets[at] ?? sum);
    this.#addSum(sum, value);
  }

  #addSum(series: string, value: number): void {
    if (value !== 0) return this.add(series, value);
    if (!this.#series.has(series) && this.#series.size < SERIES_MAX) this.#series.set(series, 0);
  }

  take(): MetricValues {
    const counts = Object.fromEntries(this.#series);
    this.#series = new Map();
    return counts;
  }
}

const ADD_TIMEOUT_MS = 5000;
/** Ms after which the platform ends `waitUntil`. */
const WAIT_UNTIL_MAX_MS = 30_000;

type AddCounts = (
  series: MetricValues,
  view: IsolateMetrics,
) => Promise<readonly RouteSpeed[] | undefined>;

/** Collects and flushes an isolate's counts. */
export class MetricRecorder {
  readonly tally = new MetricCounts();
  readonly #isolate = crypto.randomUUID();
  view: () => Omit<IsolateMetrics, "isolate"> = () => ({ series: {} });
  onSpeeds: (speeds: readonly RouteSpeed[]) => void = () => undefined;
  readonly #delayMs: number;
  #flushStartedMs = -Infinity;

  constructor(delayMs: number) {
    this.#delayMs = delayMs;
  }

  get isWaiting(): boolean {
    if (this.tally.isEmpty) return false;
    return Math.abs(elapsedMs() - this.#flushStartedMs) > this.#delayMs + WAIT_UNTIL_MAX_MS;
  }

  scheduleFlush(waitUntil: (work: Promise<unknown>) => void, add: AddCounts): void {
    if (!this.isWaiting) return;
    this.#flushStartedMs = elapsedMs();
    waitUntil(this.#flush(add));
  }

  async #flush(add: AddCounts): Promise<void> {
    await scheduler.wait(this.#delayMs);
    this.#flushStartedMs = -Infinity;
    const series = this.tally.take();
    try {
      const view = { isolate: this.#isolate, ...this.view() };
      const speeds = await withTimeout(add(series, view), ADD_TIMEOUT_MS);
      if (speeds !== undefined) this.onSpeeds(speeds);
    } catch (error) {
      // The call isn't retried, because a retry could count twice.
      const lostSeries = Object.keys(series).length;
      logWarning("metrics_not_taken", { series: lostSeries, reason: errorMessageOf(error) });
    }
  }
}
