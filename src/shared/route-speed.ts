/** One successful request's speed. `latencyMs` is null for a JSON response. */
export type RouteSample = {
  readonly route: string;
  readonly orgId: string;
  /** Time until the provider's first byte. */
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
  /** Percentiles, or null with too few requests. */
  readonly percentiles: Percentiles | null;
};

const PUBLIC_REQUESTS_MIN = 20;
const PUBLIC_ORGANIZATIONS_MIN = 3;
const NO_MEASURE: SpeedMeasure = { requests: 0, organizations: 0, percentiles: null };

/**
 * Returns the percentiles, or null if too few requests or organizations could reveal one
 * organization's usage.
 */
export function publicPercentiles(measure: SpeedMeasure | undefined): Percentiles | null {
  const { requests, organizations, percentiles } = measure ?? NO_MEASURE;
  const isPublic = requests >= PUBLIC_REQUESTS_MIN && organizations >= PUBLIC_ORGANIZATIONS_MIN;
  return isPublic ? percentiles : null;
}
