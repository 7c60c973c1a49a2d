import type { RegionCounts, MetricValues } from "../../shared/contracts/metrics.ts";
export type MetricDefinition = {
  readonly name: string;
  readonly type: "counter" | "histogram" | "gauge";
  readonly help: string;
  readonly buckets?: readonly number[];
};

const BUCKETS_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
] as const;

const counter = (name: string, help: string): MetricDefinition => ({ name, help, type: "counter" });
const gauge = (name: string, help: string): MetricDefinition => ({ name, help, type: "gauge" });
const secondsHistogram = (name: string, help: string): MetricDefinition => {
  return { name, help, type: "histogram", buckets: BUCKETS_SECONDS };
};

/** Metrics of this region. Names end in the unit. */
export const METRICS = {
  requests: counter("turnpike_requests_total", "Responses by route and status."),
  headers: secondsHistogram(
    "turnpike_response_seconds",
    "Time until the response headers are sent, by route.",
  ),
  firstByte: secondsHistogram(
    "turnpike_first_byte_seconds",
    "Time until the provider's first byte, for paid requests.",
  ),
  duration: secondsHistogram(
    "turnpike_paid_seconds",
    "Time until the last byte, for paid requests.",
  ),
  tokens: counter("turnpike_tokens_total", "Billed tokens by model and kind."),
  cost: counter("turnpike_cost_micro_total", "Micro-credits charged, by model and provider."),
  attempts: counter("turnpike_attempts_total", "Provider routes that successful requests tried."),
  failedAttempts: counter(
    "turnpike_attempts_failed_total",
    "Failed calls to providers, by provider, HTTP status (or none) and cause.",
  ),
  estimated: counter(
    "turnpike_estimated_total",
    "Charges for which the provider reported no usage, by provider.",
  ),
  absorbed: counter(
    "turnpike_absorbed_total",
    "Requests that were sent to a provider but not charged, by reason.",
  ),
  shortfall: counter(
    "turnpike_shortfall_micro_total",
    "Micro-credits of usage that the balance didn't cover.",
  ),
  unsaved: counter(
    "turnpike_unsaved_total",
    "Charges that are only in the log, because neither wallet nor outbox accepted them in time.",
  ),
  unkept: counter(
    "turnpike_responses_unkept_total",
    "Responses from /v1/responses that should have been stored but could not be.",
  ),
  bugs: counter(
    "turnpike_bugs_total",
    "Paid requests that a gateway bug ended. Those sent to a provider were charged.",
  ),
  shed: counter(
    "turnpike_shed_total",
    "Paid requests rejected before the hold because too many requests were running, by reason.",
  ),
  holdsOpen: gauge("turnpike_holds_open", "Open holds in wallets used in the last two days."),
  holdOldest: gauge(
    "turnpike_hold_oldest_seconds",
    "Age of the oldest open hold in wallets used in the last two days.",
  ),
  unpublished: gauge("turnpike_wallets_unpublished", "Wallets with unpublished changes."),
  conflicts: gauge(
    "turnpike_wallets_in_conflict",
    "Wallets that reject holds because they conflict with the database.",
  ),
  unavailable: gauge(
    "turnpike_wallets_unavailable",
    "Wallets that did not open in the last sweep. Their requests return 503.",
  ),
  walletBytes: gauge(
    "turnpike_wallet_bytes_max",
    "Storage size of the largest wallet. The limit is 10 GB.",
  ),
  bookBytes: gauge("turnpike_book_bytes", "Storage size of the database. The limit is 10 GB."),
  outboxMessages: gauge("turnpike_outbox_messages", "Messages in outboxes, by receiver and state."),
  outboxOldest: gauge(
    "turnpike_outbox_oldest_seconds",
    "Age of the oldest message that waits in an outbox.",
  ),
  outboxesSilent: gauge(
    "turnpike_outboxes_silent",
    "Outboxes that did not respond to the last measurement.",
  ),
  routesLeftOut: gauge(
    "turnpike_routes_left_out_isolates",
    "Isolates that reported in the last 5 minutes that they skip a route, by reason.",
  ),
  isolates: gauge("turnpike_isolates", "Isolates that sent a report in the last 5 minutes."),
  isolatesAge: gauge("turnpike_isolates_age_seconds", "Age of the oldest report of an isolate."),
  depthsAge: gauge(
    "turnpike_depths_age_seconds",
    "Time since the last complete sweep of the wallets, or since the region's first sweep began.",
  ),
  outboxesAge: gauge(
    "turnpike_outboxes_age_seconds",
    "Time since the outboxes were measured, or since the region's first measurement began.",
  ),
  paymentsAge: gauge(
    "turnpike_payments_sweep_age_seconds",
    "Time since the last successful payments sweep, or since the region's first such sweep began.",
  ),
} as const satisfies Readonly<Record<string, MetricDefinition>>;

export type MetricName = keyof typeof METRICS;
export type MetricLabels = Readonly<Record<string, string>>;

export function metricSeriesName(name: string, labels: MetricLabels): string {
  let pairs = "";
  for (const [label, value] of Object.entries(labels)) {
    pairs += `${pairs === "" ? "" : ","}${label}="${escapeLabel(value)}"`;
  }
  return pairs === "" ? name : `${name}{${pairs}}`;
}

function escapeLabel(value: string): string {
  if (!/[\\"\n]/.test(value)) return value;
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** Ms without a report after which an isolate counts as ended. */
export const ISOLATE_SILENCE_MAX_MS = 300_000;

export function sumIsolateGauges({ views }: RegionCounts, nowMs: number): MetricValues {
  const activeIsolates = Object.values(views).filter(
    (one) => nowMs - one.atMs < ISOLATE_SILENCE_MAX_MS,
  );
  const sum: Record<string, number> = { [METRICS.isolates.name]: activeIsolates.length };
  for (const { atMs, series } of activeIsolates) {
    const age = METRICS.isolatesAge.name;
    sum[age] = Math.max(sum[age] ?? 0, (nowMs - atMs) / 1000);
    for (const [name, value] of Object.entries(series)) sum[name] = (sum[name] ?? 0) + value;
  }
  return sum;
}

/**
 * Returns the seconds since each job last ran, at least 0. If a job never ran, counts from
 * `sinceMs`.
 */
export function computeAgeGauges(
  { sinceMs, gauges, jobs }: RegionCounts,
  nowMs: number,
): MetricValues {
  const age = (ran: { readonly atMs: number } | null = null): number =>
    Math.max(0, nowMs - (ran?.atMs ?? sinceMs)) / 1000;
  return {
    [METRICS.depthsAge.name]: age(gauges),
    [METRICS.outboxesAge.name]: age(jobs.outboxes),
    [METRICS.paymentsAge.name]: age(jobs.payments),
  };
}
