/** Counts by series; a series is a metric's name and its labels as Prometheus writes them. */
export type Series = Readonly<Record<string, number>>;

/** What one isolate knows at the moment; `isolate` is any name that no other has. */
export type View = { readonly isolate: string; readonly series: Series };

/** A job that runs every few minutes and sets gauges of its own. */
export type WatchJob = "outboxes" | "payments";

/** What the region has counted since `sinceMs`, and what the last sweep found. */
export type RegionCounts = {
  readonly sinceMs: number;
  readonly counters: Series;
  /** The gauges of the last complete round over the wallets; null before the first. `atMs`: Unix ms, as all times. */
  readonly gauges: Moment | null;
  /** The gauges of the last good run of each frequent job. */
  readonly jobs: Readonly<Partial<Record<WatchJob, Moment>>>;
  /** What each isolate said last. */
  readonly views: Readonly<Record<string, Moment>>;
};
type Moment = { readonly atMs: number; readonly series: Series };

/** The calls on `RegionMetrics`, of which a region has one. */
export type MetricsCalls = {
  /** Adds a batch of counts; `view`: what their isolate sees besides, in place of what it said before. */
  add(series: Series, view?: View): Promise<void>;
  /** Replaces the gauges of a job with those of its last good run; without `job`, those of the wallets' round. */
  setGauges(series: Series, job?: WatchJob): Promise<void>;
  read(): Promise<RegionCounts>;
};
