import type { Health as HealthAnswer } from "../api/types.ts";
import { duration } from "../lib/time.ts";
import { useRead } from "../state/reads.ts";
import { Badge, Facts, Head, Panel, Time } from "../ui/basics.tsx";
import { ReadResult } from "../ui/states.tsx";
import { Grid } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

type Outbox = HealthAnswer["outboxes"][number];
type Problem = HealthAnswer["problems"][number];
type Breaker = HealthAnswer["breakers"][number];
type Peer = HealthAnswer["peers"][number];

/** Whether the region works, and what waits in it. */
export function Health() {
  const read = useRead("GET /admin/v1/health", {}, { every: 5000 });
  return (
    <>
      <Head title="Health" text="Read anew every five seconds." />
      <ReadResult read={read} height={480}>
        {({ book, version, aliases, outboxes, breakers, problems, peers, sweep, wallets }) => (
          <>
            <Troubles
              title="What is wrong"
              none="Nothing: the region is well."
              name="Problems"
              columns={PROBLEMS}
              rows={problems}
              keyOf={({ kind }) => kind}
            />
            <Facts
              inPanel
              facts={[
                [
                  "Database",
                  <Badge key="book" tone={book ? "good" : "bad"}>
                    {book ? "answers" : "away"}
                  </Badge>,
                ],
                [
                  "Wallets",
                  `${wallets.asked - wallets.unavailable.length} of ${wallets.asked} asked open`,
                ],
                ["Last sweep", sweep === null ? "none yet" : <Sweep key="sweep" sweep={sweep} />],
                ["Version", <code key="version">{version}</code>],
                ...Object.entries(aliases).map(
                  ([alias, model]) => [`Alias ${alias}`, <code key={alias}>{model}</code>] as const,
                ),
              ]}
            />
            {peers.length > 0 && (
              <Panel title="Other regions">
                <Grid
                  name="Peers"
                  columns={PEERS}
                  rows={peers}
                  keyOf={({ region }) => region}
                  isSorted={false}
                />
              </Panel>
            )}
            <Panel title="Outboxes: what waits for a wallet or a peer">
              <Outboxes all={outboxes} />
            </Panel>
            <Troubles
              title="Providers resting"
              none="None: every route is asked."
              name="Breakers"
              columns={BREAKERS}
              rows={breakers}
              keyOf={({ route }) => route}
            />
          </>
        )}
      </ReadResult>
    </>
  );
}

function Sweep({ sweep }: { sweep: NonNullable<HealthAnswer["sweep"]> }) {
  const { wallet_bytes_largest: wallet, book_bytes: book, bytes_max: most } = sweep;
  const share = (bytes: number): string => `${((bytes / most) * 100).toFixed(1)} %`;
  return (
    <>
      <Time at={sweep.at} />: {sweep.holds_open} requests hold money, the oldest for{" "}
      {duration(sweep.hold_oldest_ms)}; wallets: {sweep.wallets_unpublished} unpublished,{" "}
      {sweep.wallets_in_conflict} in conflict, {sweep.wallets_unavailable} do not open; of the most
      that fits the largest wallet has {share(wallet)}, the database {share(book)}
    </>
  );
}

type TroublesProps<Row> = {
  readonly title: string;
  readonly none: string;
  readonly name: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
};

function Troubles<Row>({ title, none, ...grid }: TroublesProps<Row>) {
  return (
    <Panel title={title}>
      {grid.rows.length === 0 ? (
        <p class="good-text">● {none}</p>
      ) : (
        <Grid {...grid} isSorted={false} />
      )}
    </Panel>
  );
}

/** The outboxes with messages or without an answer; the number of others. */
function Outboxes({ all }: { all: readonly Outbox[] }) {
  const rows = all.filter(({ waiting, parked, dead }) =>
    [waiting, parked, dead].some((count) => count !== 0),
  );
  const empty = all.length - rows.length;
  return (
    <>
      {rows.length > 0 && (
        <Grid
          name="Outboxes"
          columns={OUTBOXES}
          rows={rows}
          keyOf={({ name }) => name}
          isSorted={false}
        />
      )}
      {empty > 0 && (
        <p class="good-text">
          ● Empty: {empty} of {all.length}.
        </p>
      )}
    </>
  );
}

const counted = (count: number | null): string => (count === null ? "unknown" : String(count));

const PROBLEMS: readonly Column<Problem>[] = [
  {
    id: "kind",
    title: "Problem",
    value: ({ kind }) => kind,
    cell: ({ kind }) => <Badge tone="bad">{kind}</Badge>,
  },
  { id: "message", title: "What", value: ({ message }) => message },
  {
    id: "do",
    title: "To do",
    value: () => null,
    cell: ({ kind }) => <a href={`/docs/run/${REMEDIES[kind] ?? WELL}`}>What to do</a>,
  },
];
const WELL = "operate#is-the-region-well";
/** The documentation of a problem, by default the list of all. */
const REMEDIES: Readonly<Record<string, string>> = {
  wallets_unavailable: "operate#a-lost-wallet",
  wallets_in_conflict: "operate#does-the-money-agree",
  model_refused: "runbooks#a-dead-provider-key",
  peer_unreachable: "operate#the-other-region-refuses-our-calls",
};

const PEERS: readonly Column<Peer>[] = [
  { id: "region", title: "Region", value: ({ region }) => region },
  {
    id: "answers",
    title: "State",
    value: ({ answers }) => answers,
    cell: ({ answers }) => (
      <Badge tone={answers ? "good" : "bad"}>{answers ? "answers" : "away"}</Badge>
    ),
  },
  {
    id: "rtt",
    title: "Round trip",
    align: "right",
    value: ({ rtt_ms }) => rtt_ms,
    cell: ({ rtt_ms: ms }) => (ms === null ? "" : `${ms} ms`),
  },
  {
    id: "last",
    title: "Answered last",
    value: ({ last_ok_at }) => last_ok_at,
    cell: ({ last_ok_at }) => <Time at={last_ok_at} none="unknown" />,
  },
];

const OUTBOXES: readonly Column<Outbox>[] = [
  { id: "name", title: "Outbox", value: ({ name }) => name },
  {
    id: "waiting",
    title: "Waiting",
    align: "right",
    value: ({ waiting }) => waiting,
    cell: ({ waiting }) => <Badge tone={waiting === 0 ? "good" : "warn"}>{counted(waiting)}</Badge>,
  },
  {
    id: "oldest",
    title: "Oldest",
    align: "right",
    value: ({ oldest_ms }) => oldest_ms,
    cell: ({ oldest_ms }) => (oldest_ms === null ? "" : duration(oldest_ms)),
  },
  {
    id: "parked",
    title: "Parked",
    align: "right",
    value: ({ parked }) => parked,
    cell: ({ parked }) => counted(parked),
  },
  {
    id: "dead",
    title: "Dead",
    align: "right",
    value: ({ dead }) => dead,
    cell: ({ dead }) => <Badge tone={dead === 0 ? "plain" : "bad"}>{counted(dead)}</Badge>,
  },
];

const BREAKERS: readonly Column<Breaker>[] = [
  { id: "route", title: "Route", value: ({ route }) => route },
  {
    id: "state",
    title: "Why",
    value: ({ state }) => state,
    cell: ({ state }) => WHY_RESTING[state] ?? state,
  },
  {
    id: "until",
    title: "Until",
    value: ({ until }) => until,
    cell: ({ until }) => <Time at={until} />,
  },
];
const WHY_RESTING: Readonly<Record<string, string>> = {
  disabled: "refuses our key or the model's name",
  overloaded: "asked to be left alone",
  open: "failed too often",
  half_open: "is being tried again",
};
