/** The speed of one successful request. A JSON response has no `latencyMs`. */
export type RouteSample = {
  readonly route: string;
  readonly orgId: string;
  /** Time from the call to the first byte. */
  readonly latencyMs: number | null;
  readonly tokensPerSecond: number | null;
};

export type Percentiles = Readonly<Record<"p50" | "p75" | "p90" | "p99", number>>;

/** A route's speed in the last 30 minutes: latency in ms, throughput in tokens per second. */
export type RouteSpeed = {
  readonly route: string;
  readonly latency: SpeedMeasure;
  readonly throughput: SpeedMeasure;
};
type SpeedMeasure = {
  readonly requests: number;
  readonly organizations: number;
  /** The measured speed, or null if there are too few requests. */
  readonly percentiles: Percentiles | null;
};

const PUBLIC_REQUESTS_MIN = 20;
const PUBLIC_ORGANIZATIONS_MIN = 3;
const NONE: SpeedMeasure = { requests: 0, organizations: 0, percentiles: null };

/**
 * Returns percentiles that customers may see: of enough requests from enough organizations, so that
 * they reveal nothing about the usage of one.
 */
export function publicPercentiles(measure: SpeedMeasure | undefined): Percentiles | null {
  const { requests, organizations, percentiles } = measure ?? NONE;
  const isPublic = requests >= PUBLIC_REQUESTS_MIN && organizations >= PUBLIC_ORGANIZATIONS_MIN;
  return isPublic ? percentiles : null;
}
