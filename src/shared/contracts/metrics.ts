/** Counts by series; a series is a metric's name and its labels as Prometheus writes them. */
export type Series = Readonly<Record<string, number>>;

/** What one isolate knows at the moment; `isolate` is any name that no other has. */
export type View = { readonly isolate: string; readonly series: Series };

/** What the region has counted since `sinceMs`, and what the last sweep found. */
export type Counted = {
  readonly sinceMs: number;
  readonly counters: Series;
  /** Null before the first sweep; `atMs` says when it was. Unix ms, as all times. */
  readonly gauges: Moment | null;
  /** What each isolate said last. */
  readonly views: Readonly<Record<string, Moment>>;
};
type Moment = { readonly atMs: number; readonly series: Series };

/** The calls on `RegionMetrics`, of which a region has one. */
export type MetricsCalls = {
  /** Adds a batch of counts; `view`: what their isolate sees besides, in place of what it said before. */
  add(series: Series, view?: View): Promise<void>;
  /** Takes what a sweep found, in place of what the one before did. */
  setGauges(series: Series): Promise<void>;
  read(): Promise<Counted>;
};
