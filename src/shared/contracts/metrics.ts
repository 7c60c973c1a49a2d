/** Counts by Prometheus series (name and labels). */
export type Series = Readonly<Record<string, number>>;

/** One isolate's current gauges. `isolate` is unique. */
export type View = { readonly isolate: string; readonly series: Series };

/** A job that runs every few minutes and sets gauges of its own. */
export type WatchJob = "outboxes" | "payments";

/** Counters since `sinceMs`, and the gauges of the last sweep. */
export type RegionCounts = {
  readonly sinceMs: number;
  readonly counters: Series;
  /** The gauges of the last complete round over the wallets; null before the first. `atMs`: Unix ms, as all times. */
  readonly gauges: Moment | null;
  /** The gauges of the last good run of each frequent job. */
  readonly jobs: Readonly<Partial<Record<WatchJob, Moment>>>;
  readonly views: Readonly<Record<string, Moment>>;
};
type Moment = { readonly atMs: number; readonly series: Series };

/** The calls of `RegionMetrics`, one per region. */
export type MetricsCalls = {
  add(series: Series, view?: View): Promise<void>;
  /** Replaces the gauges of a job with those of its last good run; without `job`, those of the wallets' round. */
  setGauges(series: Series, job?: WatchJob): Promise<void>;
  read(): Promise<RegionCounts>;
};
