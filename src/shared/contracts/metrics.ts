import type { RouteSample, RouteSpeed } from "../route-speed.ts";

export type Series = Readonly<Record<string, number>>;

/** The gauges of one isolate, and its speed samples since its last report. */
export type View = {
  readonly isolate: string;
  readonly series: Series;
  readonly samples?: readonly RouteSample[];
};

export type WatchJob = "outboxes" | "payments";

export type RegionCounts = {
  readonly sinceMs: number;
  readonly counters: Series;
  /** The gauges of the last complete sweep. Null before the first sweep. */
  readonly gauges: Moment | null;
  readonly jobs: Readonly<Partial<Record<WatchJob, Moment>>>;
  readonly views: Readonly<Record<string, Moment>>;
};
type Moment = { readonly atMs: number; readonly series: Series };

export type MetricsCalls = {
  /**
   * Adds counts. If `view` has speed samples, returns the speeds of the region's routes. Objects of
   * an earlier release return undefined.
   */
  add(series: Series, view?: View): Promise<readonly RouteSpeed[] | undefined>;
  /** Objects of an earlier release lack this method. */
  speeds(): Promise<readonly RouteSpeed[]>;
  setGauges(series: Series, job?: WatchJob): Promise<void>;
  read(): Promise<RegionCounts>;
};
