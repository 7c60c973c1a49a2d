import type { Health as HealthAnswer } from "../api/types.ts";
import { duration } from "../lib/time.ts";
import { useRead } from "../state/reads.ts";
import { Badge, Facts, Head, Panel, Time } from "../ui/basics.tsx";
import { Shown } from "../ui/states.tsx";
import { Grid } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

type Outbox = HealthAnswer["outboxes"][number];
type Problem = HealthAnswer["problems"][number];
type Breaker = HealthAnswer["breakers"][number];

/** Whether the region works, and what waits in it. */
export function Health() {
  const read = useRead("GET /admin/v1/health", {}, { every: 5000 });
  return (
    <>
      <Head title="Health" text="Read anew every five seconds." />
      <Shown read={read} height={480}>
        {({ book, version, aliases, outboxes, breakers, problems }) => (
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
                ["Version", <code key="version">{version}</code>],
                ...Object.entries(aliases).map(
                  ([alias, model]) => [`Alias ${alias}`, <code key={alias}>{model}</code>] as const,
                ),
              ]}
            />
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
      </Shown>
    </>
  );
}

type TroublesProps<Row> = {
  readonly title: string;
  /** What is said when there is none. */
  readonly none: string;
  readonly name: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
};

/** Rows in the order in which they came, or that there is none. */
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

/** Those that hold something, or do not answer; the others are a number. */
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
  { id: "state", title: "State", value: ({ state }) => state },
  {
    id: "until",
    title: "Until",
    value: ({ until }) => until,
    cell: ({ until }) => <Time at={until} />,
  },
];
