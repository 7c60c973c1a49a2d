import type { RouteSample, RouteSpeed } from "../route-speed.ts";

export type MetricValues = Readonly<Record<string, number>>;

/** One isolate's gauges, and its speed samples since its last report. */
export type IsolateMetrics = {
  readonly isolate: string;
  readonly series: MetricValues;
  readonly samples?: readonly RouteSample[];
};

/** A job whose last run the metrics show. */
export type WatchedJob = "outboxes" | "payments";

export type RegionCounts = {
  readonly sinceMs: number;
  readonly counters: MetricValues;
  /** The gauges of the last complete sweep. Null before the first sweep. */
  readonly gauges: Moment | null;
  readonly jobs: Readonly<Partial<Record<WatchedJob, Moment>>>;
  readonly views: Readonly<Record<string, Moment>>;
};
type Moment = { readonly atMs: number; readonly series: MetricValues };

export type RegionMetricsMethods = {
  /** Adds to the region's counters. If `view` has speed samples, returns the routes' speeds. */
  add(series: MetricValues, view?: IsolateMetrics): Promise<readonly RouteSpeed[] | undefined>;
  /** Returns the routes' speeds. Objects of an earlier release lack this method. */
  speeds(): Promise<readonly RouteSpeed[]>;
  setGauges(series: MetricValues, job?: WatchedJob): Promise<void>;
  read(): Promise<RegionCounts>;
};
