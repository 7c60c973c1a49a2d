import { DurableObject } from "cloudflare:workers";
import { now } from "../../shared/clock.ts";
import type {
  RegionMetricsMethods,
  IsolateMetrics,
  RegionCounts,
  MetricValues,
  WatchedJob,
} from "../../shared/contracts/metrics.ts";
import type { RouteSpeed } from "../../shared/route-speed.ts";
import { RegionSpeeds } from "./region-speeds.ts";
import { ISOLATE_SILENCE_MAX_MS } from "./series.ts";

const SERIES_MAX = 10_000;

const NO_COUNTS = { counters: {}, gauges: null, views: {}, jobs: {} };

export class RegionMetrics extends DurableObject<Env> implements RegionMetricsMethods {
  #counts: RegionCounts | null = null;
  readonly #speeds = new RegionSpeeds();

  async add(
    series: MetricValues,
    view?: IsolateMetrics,
  ): Promise<readonly RouteSpeed[] | undefined> {
    const { counters, views, ...rest } = this.#read();
    const atMs = now(this.env);
    const sum: Record<string, number> = { ...counters };
    let size = Object.keys(sum).length;
    for (const [name, value] of Object.entries(series)) {
      if (sum[name] === undefined && ++size > SERIES_MAX) continue;
      sum[name] = (sum[name] ?? 0) + value;
    }
    const activeViews = Object.entries(views).filter(
      ([, one]) => atMs - one.atMs < ISOLATE_SILENCE_MAX_MS,
    );
    if (view !== undefined) activeViews.push([view.isolate, { atMs, series: view.series }]);
    this.#write({ ...rest, counters: sum, views: Object.fromEntries(activeViews) });
    const samples = view?.samples ?? [];
    if (samples.length === 0) return undefined;
    this.#speeds.add(samples, atMs);
    return this.#speeds.all(atMs);
  }

  async speeds(): Promise<readonly RouteSpeed[]> {
    return this.#speeds.all(now(this.env));
  }

  async setGauges(series: MetricValues, job?: WatchedJob): Promise<void> {
    const counted = this.#read();
    const gauges = { atMs: now(this.env), series };
    if (job === undefined) return this.#write({ ...counted, gauges });
    this.#write({ ...counted, jobs: { ...counted.jobs, [job]: gauges } });
  }

  /**
   * Returns the counts. The first call stores the current time, from which the age of jobs that
   * never ran is measured.
   */
  async read(): Promise<RegionCounts> {
    const counted = this.#read();
    if (this.#counts === null) this.#write(counted);
    return counted;
  }

  #read(): RegionCounts {
    if (this.#counts !== null) return this.#counts;
    const stored = this.ctx.storage.kv.get<Partial<RegionCounts>>("counted");
    if (stored === undefined) return { ...NO_COUNTS, sinceMs: now(this.env) };
    this.#counts = { ...NO_COUNTS, sinceMs: now(this.env), ...stored };
    return this.#counts;
  }

  #write(counted: RegionCounts): void {
    this.ctx.storage.kv.put("counted", counted);
    this.#counts = counted;
  }
}
