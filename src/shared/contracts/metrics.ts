import type { RouteSample, RouteSpeed } from "../route-speed.ts";

export type Series = Readonly<Record<string, number>>;

/** The gauges and new samples of an isolate. */
export type View = {
  readonly isolate: string;
  readonly series: Series;
  readonly samples?: readonly RouteSample[];
};

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
  /**
   * Adds counts. If `view` has samples of speeds, returns the latency and throughput of the
   * region's routes. An object that still runs an earlier release returns undefined.
   */
  add(series: Series, view?: View): Promise<readonly RouteSpeed[] | undefined>;
  /** Missing in an object that still runs an earlier release. */
  speeds(): Promise<readonly RouteSpeed[]>;
  setGauges(series: Series, job?: WatchJob): Promise<void>;
  read(): Promise<RegionCounts>;
};
