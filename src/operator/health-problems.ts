import { NEWEST_MIGRATION } from "../accounts/organizations/organizations.store.ts";
import type { DatabaseState } from "../accounts/organizations/organizations.store.ts";
import { METRICS, metricSeriesName } from "../events/metrics/series.ts";
import type { MetricValues } from "../shared/contracts/metrics.ts";
import type { Model } from "../models/catalog/model.ts";
import { formatRouteName } from "../models/routing/route-health.ts";
import type { RouteStatus } from "../models/routing/route-health.ts";
import type { OutboxState } from "../shared/contracts/outbox.ts";
import type { Region } from "../shared/regions.ts";

type Problem = { readonly kind: ProblemKind; readonly message: string };
type ProblemKind =
  | "book_away"
  | "migrations_missing"
  | "wallets_unavailable"
  | "wallets_in_conflict"
  | "model_refused"
  | "peer_unreachable"
  | "sweep_late"
  | "payments_not_swept"
  | "outbox_silent"
  | "outbox_gave_up"
  | "outbox_late"
  | "outbox_orphaned";

type RegionState = {
  readonly now: number;
  readonly database: DatabaseState;
  readonly wallets: { readonly asked: number; readonly unavailable: readonly string[] };
  readonly sweep: { readonly atMs: number; readonly inConflict: number } | null;
  readonly paymentsAtMs: number | null;
  /** Time of the first metrics (Unix ms). Null if metrics can't be read. */
  readonly sinceMs: number | null;
  readonly models: ReadonlyMap<string, Pick<Model, "routes">>;
  /** Routes in cooldown in this isolate. `isolates` contains the metrics of all isolates. */
  readonly breakers: readonly RouteStatus[];
  readonly isolates: MetricValues;
  readonly peers: readonly { readonly region: Region; readonly fault: string | null }[];
  readonly outboxes: readonly { readonly name: string; readonly depth: OutboxState | null }[];
  /** Outboxes for a region that is no longer configured. */
  readonly orphaned: readonly { readonly name: string }[];
};

/** Returns problems, the most severe first. */
export function findProblems(state: RegionState): readonly Problem[] {
  return [
    ...databaseProblems(state),
    ...walletProblems(state),
    ...modelProblems(state),
    ...state.peers.flatMap(({ region, fault }) =>
      fault === null
        ? []
        : [problem("peer_unreachable", `The region ${region} can't be reached: ${fault}.`)],
    ),
    ...sweepProblems(state),
    ...outboxProblems(state),
    ...problemOfMany(
      "outbox_orphaned",
      state.orphaned.map(({ name }) => name),
      "outboxes have messages for a region that is no longer in PEERS",
    ),
  ];
}

function databaseProblems({ database }: RegionState): Problem[] {
  if (database === "ready") return [];
  if (database === "away") return [problem("book_away", "The database does not respond.")];
  const message = `The database lacks the migration ${NEWEST_MIGRATION}. Apply this release's migrations.`;
  return [problem("migrations_missing", message)];
}

function walletProblems({ wallets, sweep }: RegionState): Problem[] {
  const conflicts = sweep?.inConflict ?? 0;
  const closed = `of ${wallets.asked} checked wallets do not open`;
  return [
    ...problemOfMany("wallets_unavailable", wallets.unavailable, closed),
    ...(conflicts === 0
      ? []
      : [
          problem(
            "wallets_in_conflict",
            `${conflicts} wallets reject holds because they conflict with the database. Their IDs are in the log entries wallet_book_conflict.`,
          ),
        ]),
  ];
}

function modelProblems({ models, breakers, isolates }: RegionState): Problem[] {
  const isRefused = (route: string): boolean =>
    breakers.some((one) => one.route === route && one.state === "disabled") ||
    (isolates[metricSeriesName(METRICS.routesLeftOut.name, { route, state: "disabled" })] ?? 0) > 0;
  const refused = [...models].flatMap(([id, { routes }]) => {
    const names = routes
      .filter(({ provider }) => provider !== "sandbox") // the sandbox's models fail on purpose
      .map(formatRouteName);
    return names.length > 0 && names.every(isRefused) ? [`${id} (${names.join(", ")})`] : [];
  });
  return problemOfMany("model_refused", refused, "models are rejected by all their providers");
}

const SWEEP_MS_MAX = 2 * 60 * 60 * 1000;
/** Maximum age (ms) of the last payments sweep, which runs every 3 minutes. */
const PAYMENTS_MS_MAX = 7 * 60 * 1000;

function sweepProblems({ now, sweep, paymentsAtMs, sinceMs }: RegionState): Problem[] {
  if (sinceMs === null) {
    return [problem("sweep_late", "The results of the last sweep can't be read.")];
  }
  const sweepMs = now - (sweep?.atMs ?? sinceMs);
  const paymentsMs = now - (paymentsAtMs ?? sinceMs);
  const hours = Math.floor(sweepMs / 3_600_000);
  const minutes = Math.floor(paymentsMs / 60_000);
  return [
    ...(sweepMs <= SWEEP_MS_MAX
      ? []
      : [problem("sweep_late", `The hourly sweep has not completed in the last ${hours} hours.`)]),
    ...(paymentsMs <= PAYMENTS_MS_MAX
      ? []
      : [
          problem(
            "payments_not_swept",
            `No payments sweep has succeeded for ${minutes} minutes: Stripe is unreachable or rejects our key, or the cron does not run.`,
          ),
        ]),
  ];
}

/** Maximum age (ms) of a waiting message. */
const WAITING_MS_MAX = 10 * 60_000;

function outboxProblems({ outboxes }: RegionState): Problem[] {
  const outboxesWhere = (matches: (depth: OutboxState) => boolean): string[] =>
    outboxes.filter(({ depth }) => depth !== null && matches(depth)).map(({ name }) => name);
  const silent = outboxes.filter(({ depth }) => depth === null).map(({ name }) => name);
  const gaveUp = outboxesWhere(({ dead, parked }) => dead + parked > 0);
  const late = outboxesWhere(({ oldestMs }) => (oldestMs ?? 0) > WAITING_MS_MAX);
  return [
    ...problemOfMany("outbox_silent", silent, "outboxes do not respond"),
    ...problemOfMany("outbox_gave_up", gaveUp, "outboxes have dead or parked messages"),
    ...problemOfMany("outbox_late", late, "outboxes have messages pending for over 10 minutes"),
  ];
}

function problemOfMany(kind: ProblemKind, which: readonly string[], what: string): Problem[] {
  const [first] = which;
  if (first === undefined) return [];
  return [problem(kind, `${which.length} ${what}, such as ${first}.`)];
}

function problem(kind: ProblemKind, message: string): Problem {
  return { kind, message };
}
