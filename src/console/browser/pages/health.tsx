import type { Health as HealthAnswer, Providers as ProvidersAnswer } from "../api/types.ts";
import { countText, formatCount, formatPercent } from "../lib/money.ts";
import { formatDurationInWholeUnits, localAndUtcTime, relativeTime } from "../lib/time.ts";
import { useNow } from "../state/cell.ts";
import { latestOf, useRead } from "../state/reads.ts";
import type { Read } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { Badge, Facts, PageHead, Panel, Time, Button } from "../ui/basics.tsx";
import { ReadResult } from "../ui/states.tsx";
import { Grid, column, countColumn, timeColumn } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

type Outbox = HealthAnswer["outboxes"][number];
type Problem = HealthAnswer["problems"][number];
type Breaker = HealthAnswer["breakers"][number];
type Provider = ProvidersAnswer["data"][number];
type Peer = HealthAnswer["peers"][number];

export function Health() {
  const read = useRead("GET /admin/v1/health", {}, { every: 5000 });
  const providers = useRead("GET /admin/v1/providers", {}, { every: PROVIDERS_EVERY_MS });
  return (
    <>
      <PageHead
        title="Health"
        text="Updates every 5 seconds, the providers' figures every 5 minutes"
      />
      <ReadResult read={read} height={480}>
        {({ book, version, aliases, outboxes, breakers, problems, peers, sweep, wallets }) => {
          const resting = breakers.filter(({ state }) => state !== "half_open");
          return (
            <>
              <Problems problems={problems} resting={resting} figures={latestOf(providers)} />
              <Providers read={providers} />
              <Panel title="Providers in cooldown">
                {resting.length === 0 ? (
                  <p class="good-text">● No routes in cooldown</p>
                ) : (
                  <Grid
                    name="Breakers"
                    columns={BREAKERS}
                    rows={resting}
                    keyOf={({ route }) => route}
                  />
                )}
              </Panel>
              {peers.length > 0 && (
                <Panel title="Other regions">
                  <Grid name="Peers" columns={PEERS} rows={peers} keyOf={({ region }) => region} />
                </Panel>
              )}
              <Technical {...{ book, version, aliases, sweep, wallets }} />
              <Panel title="Outboxes">
                <Outboxes all={outboxes} />
              </Panel>
            </>
          );
        }}
      </ReadResult>
    </>
  );
}

type Technical = Pick<HealthAnswer, "book" | "version" | "aliases" | "sweep" | "wallets">;

function Technical({ book, version, aliases, sweep, wallets }: Technical) {
  return (
    <Facts
      inPanel
      facts={[
        [
          "Database",
          <Badge tone={book ? "good" : "bad"}>{book ? "reachable" : "unreachable"}</Badge>,
        ],
        ["Wallets", `${wallets.asked - wallets.unavailable.length} of ${wallets.asked} available`],
        ["Last sweep", sweep === null ? "none yet" : <Sweep sweep={sweep} />],
        ["Version", <code>{version}</code>],
        ...Object.entries(aliases).map(
          ([alias, model]) => [`Alias ${alias}`, <code key={alias}>{model}</code>] as const,
        ),
      ]}
    />
  );
}

type ProblemsProps = {
  readonly problems: readonly Problem[];
  /** Routes in cooldown or disabled, without a later success. */
  readonly resting: readonly Breaker[];
  readonly figures: ProvidersAnswer | undefined;
};

function Problems({ problems, resting, figures }: ProblemsProps) {
  const warnings = [
    ...(figures?.data ?? [])
      .filter(({ error_rate: rate }) => toneOf(rate) === "bad")
      .map(failureText),
    ...resting.map(({ route, state }) => `Route ${route} ${COOLDOWN_REASONS[state] ?? state}.`),
  ];
  const isWell = problems.length === 0 && warnings.length === 0;
  return (
    <Panel title="Problems">
      {problems.length > 0 && (
        <Grid name="Problems" columns={PROBLEMS} rows={problems} keyOf={({ kind }) => kind} />
      )}
      {warnings.map((text) => (
        <p key={text} class="warn-text">
          ▲ {text}
        </p>
      ))}
      {isWell && (
        <p class="good-text">
          ● {figures?.data.length ? "All systems operational" : "No problems in the region"}
        </p>
      )}
    </Panel>
  );
}

function failureText({
  provider,
  calls,
  failed,
  affected_organizations: affected,
}: Provider): string {
  return `Provider ${provider} fails: ${formatCount(failed)} of ${countText(calls, "call")} (${formatPercent(failed / calls)}) in 60 minutes, ${countText(affected, "customer")} affected.`;
}

const PROVIDERS_EVERY_MS = 5 * 60_000; // each read calls up to 200 wallets
/** The period of the providers' figures, minus a minute for the call and clock differences. */
const PROVIDERS_PERIOD_MS = 59 * 60_000;

/** Providers' failed calls for all customers. Failures that a request caused don't count. */
function Providers({ read }: { read: Read<ProvidersAnswer> }) {
  const now = useNow();
  return (
    <Panel
      title="Providers, last 60 minutes"
      aside={
        <>
          {read.at > 0 && (
            <span class="small muted">Read {relativeTime(read.at, Math.max(now, read.at))}</span>
          )}{" "}
          <Button text="Refresh" class="quiet" onClick={read.reload} />
        </>
      }
    >
      <ReadResult read={read} height={108}>
        {({
          complete_from,
          data,
          active_organizations: active,
          asked_organizations: asked,
          missing,
        }) => (
          <>
            {Date.parse(complete_from) > read.at - PROVIDERS_PERIOD_MS && (
              <p class="notice">
                ▲ Requests before {localAndUtcTime(complete_from)} are not included.
              </p>
            )}
            {data.length === 0 ? (
              <p class="muted">No provider calls in this period.</p>
            ) : (
              <Grid
                name="Providers"
                columns={PROVIDERS}
                rows={data}
                keyOf={({ provider }) => provider}
              />
            )}
            {asked - missing.length < active && (
              <p class="small muted">
                From {asked - missing.length} of {countText(active, "active customer")}.
              </p>
            )}
          </>
        )}
      </ReadResult>
    </Panel>
  );
}

const PROVIDERS: readonly Column<Provider>[] = [
  column("provider", "Provider", ({ provider }) => provider),
  column("rate", "Error rate", ({ error_rate }) => error_rate, {
    align: "right",
    cell: ({ error_rate: rate }) => <Badge tone={toneOf(rate)}>{(100 * rate).toFixed(2)}%</Badge>,
  }),
  countColumn("calls", "Calls", ({ calls }) => calls),
  countColumn("failed", "Failed", ({ failed }) => failed),
  column("affected", "Customers affected", ({ affected_organizations: count }) => count, {
    cell: ({ affected_organizations: count, most_affected: most }) => (
      <>
        {count}{" "}
        {most.map(({ id, slug }) => (
          <a key={id} href={hrefOf(["organizations", id])}>
            {slug}{" "}
          </a>
        ))}
      </>
    ),
  }),
  column("why", "Reasons", ({ reasons }) => reasonsOf(reasons), { wide: true }),
];

function toneOf(rate: number): "good" | "warn" | "bad" {
  if (rate === 0) return "good";
  return rate < 0.05 ? "warn" : "bad";
}

function reasonsOf(reasons: Provider["reasons"]): string {
  return Object.entries(reasons)
    .map(([why, count]) => `${count} × ${reasonOf(why)}`)
    .join(", ");
}

function reasonOf(why: string): string {
  return /^\d+$/.test(why) ? `status ${why}` : why.replaceAll("_", " ");
}

function Sweep({ sweep }: { sweep: NonNullable<HealthAnswer["sweep"]> }) {
  const { wallets_unpublished, wallets_in_conflict, wallets_unavailable, holds_open } = sweep;
  const wrong = wallets_unpublished + wallets_in_conflict + wallets_unavailable;
  const fullest = Math.max(sweep.wallet_bytes_largest, sweep.book_bytes) / sweep.bytes_max;
  return (
    <span
      title={`Wallets: ${wallets_unpublished} unpublished, ${wallets_in_conflict} in conflict, ${wallets_unavailable} unavailable. Oldest hold: ${formatDurationInWholeUnits(sweep.hold_oldest_ms)}`}
    >
      <Time at={sweep.at} />: {wrong === 0 ? "no problems" : countText(wrong, "wallet problem")},{" "}
      {countText(holds_open, "open hold")}, storage {(100 * fullest).toFixed(1)}% full
    </span>
  );
}

function Outboxes({ all }: { all: readonly Outbox[] }) {
  const rows = all.filter(({ waiting, parked, dead }) =>
    [waiting, parked, dead].some((count) => count !== 0),
  );
  const empty = all.length - rows.length;
  return (
    <>
      {rows.length > 0 && (
        <Grid name="Outboxes" columns={OUTBOXES} rows={rows} keyOf={({ name }) => name} />
      )}
      {empty > 0 && (
        <p class="good-text">
          ● {empty} of {all.length} outboxes are empty.
        </p>
      )}
    </>
  );
}

const countOrUnknown = (count: number | null): string =>
  count === null ? "unknown" : String(count);

const PROBLEMS: readonly Column<Problem>[] = [
  column("kind", "Problem", ({ kind }) => kind, {
    cell: ({ kind }) => <Badge tone="bad">{kind}</Badge>,
  }),
  column("message", "Description", ({ message }) => message),
  column("do", "Runbook", () => null, {
    cell: ({ kind }) => <a href={`/docs/run/${RUNBOOKS[kind] ?? DEFAULT_RUNBOOK}`}>Open runbook</a>,
  }),
];
const DEFAULT_RUNBOOK = "operate#health-checks";
const RUNBOOKS: Readonly<Record<string, string>> = {
  wallets_unavailable: "operate#a-lost-wallet",
  wallets_in_conflict: "operate#reconciliation",
  model_refused: "runbooks#an-invalid-provider-key",
  peer_unreachable: "operate#the-other-region-rejects-our-calls",
};

const PEERS: readonly Column<Peer>[] = [
  column("region", "Region", ({ region }) => region),
  column("answers", "State", ({ answers }) => answers, {
    cell: ({ answers }) => (
      <Badge tone={answers ? "good" : "bad"}>{answers ? "reachable" : "unreachable"}</Badge>
    ),
  }),
  column("rtt", "Round trip", ({ rtt_ms }) => rtt_ms, {
    align: "right",
    cell: ({ rtt_ms: ms }) => (ms === null ? "" : `${ms} ms`),
  }),
  column("url", "Console", ({ url }) => url, {
    cell: ({ url, region }) =>
      url !== null && (
        <a href={`${url}/console/#/health`}>Open the {region.toUpperCase()} console</a>
      ),
  }),
  timeColumn("last", "Last response", ({ last_ok_at }) => last_ok_at, { none: "unknown" }),
];

const OUTBOXES: readonly Column<Outbox>[] = [
  column("name", "Outbox", ({ name }) => name),
  column("waiting", "Waiting", ({ waiting }) => waiting, {
    align: "right",
    cell: ({ waiting }) => (
      <Badge tone={waiting === 0 ? "good" : "warn"}>{countOrUnknown(waiting)}</Badge>
    ),
  }),
  column("oldest", "Oldest", ({ oldest_ms }) => oldest_ms, {
    align: "right",
    cell: ({ oldest_ms }) => (oldest_ms === null ? "" : formatDurationInWholeUnits(oldest_ms)),
  }),
  column("parked", "Dead-lettered", ({ parked }) => parked, {
    align: "right",
    cell: ({ parked }) => countOrUnknown(parked),
  }),
  column("dead", "Dead", ({ dead }) => dead, {
    align: "right",
    cell: ({ dead }) => <Badge tone={dead === 0 ? "plain" : "bad"}>{countOrUnknown(dead)}</Badge>,
  }),
];

const BREAKERS: readonly Column<Breaker>[] = [
  column("route", "Route", ({ route }) => route),
  column("state", "Reason", ({ state }) => state, {
    cell: ({ state }) => COOLDOWN_REASONS[state] ?? state,
  }),
  timeColumn("until", "Until", ({ until }) => until),
];
const COOLDOWN_REASONS: Readonly<Record<string, string>> = {
  disabled: "rejects our key or the model's name",
  overloaded: "rate limits us",
  open: "failed too often",
};
