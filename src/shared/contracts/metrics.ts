export type Series = Readonly<Record<string, number>>;

export type View = { readonly isolate: string; readonly series: Series };

export type WatchJob = "outboxes" | "payments";

/** The counters since `sinceMs`, and the gauges of the last sweep. */
export type RegionCounts = {
  readonly sinceMs: number;
  readonly counters: Series;
  /** The gauges of the last complete sweep of wallets; null before the first. Times are Unix ms. */
  readonly gauges: Moment | null;
  readonly jobs: Readonly<Partial<Record<WatchJob, Moment>>>;
  readonly views: Readonly<Record<string, Moment>>;
};
type Moment = { readonly atMs: number; readonly series: Series };

export type MetricsCalls = {
  add(series: Series, view?: View): Promise<void>;
  /** Replaces the gauges of a job, or without `job`, of the sweep of wallets. */
  setGauges(series: Series, job?: WatchJob): Promise<void>;
  read(): Promise<RegionCounts>;
};
