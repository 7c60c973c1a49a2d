/** The speed of one successful request. `latencyMs` is null for a JSON response. */
export type RouteSample = {
  readonly route: string;
  readonly orgId: string;
  /** Time from the provider call to its first byte. */
  readonly latencyMs: number | null;
  readonly tokensPerSecond: number | null;
};

export type Percentiles = Readonly<Record<"p50" | "p75" | "p90" | "p99", number>>;

/** A route's speed in the last 30 minutes. Latency is in ms, throughput in tokens per second. */
export type RouteSpeed = {
  readonly route: string;
  readonly latency: SpeedMeasure;
  readonly throughput: SpeedMeasure;
};
type SpeedMeasure = {
  readonly requests: number;
  readonly organizations: number;
  /** The percentiles, or null if there are too few requests. */
  readonly percentiles: Percentiles | null;
};

const PUBLIC_REQUESTS_MIN = 20;
const PUBLIC_ORGANIZATIONS_MIN = 3;
const NO_MEASURE: SpeedMeasure = { requests: 0, organizations: 0, percentiles: null };

/**
 * Returns the percentiles if they come from enough requests and organizations to hide each
 * organization's usage, or null.
 */
export function publicPercentiles(measure: SpeedMeasure | undefined): Percentiles | null {
  const { requests, organizations, percentiles } = measure ?? NO_MEASURE;
  const isPublic = requests >= PUBLIC_REQUESTS_MIN && organizations >= PUBLIC_ORGANIZATIONS_MIN;
  return isPublic ? percentiles : null;
}
