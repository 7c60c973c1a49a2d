import type { Generation } from "../api/types.ts";
import { took } from "../lib/time.ts";
import { goTo } from "../state/route.ts";
import { useKeyNames } from "../state/spend.ts";
import { Badge, ModelName, Money, Time, Tokens } from "./basics.tsx";
import { Grid } from "./table.tsx";
import type { Column } from "./table.tsx";

const TONES = {
  held: "warn",
  voided: "plain",
  expired: "bad",
  refused: "bad",
} as const;
const STATUS_WORDS = {
  held: "under way",
  settled: "charged",
  voided: "not charged",
  expired: "never ended",
  refused: "refused",
} as const;

/** What became of a request. */
export function Status({ of }: { of: Generation["status"] }) {
  if (of === "settled") return <>{STATUS_WORDS[of]}</>;
  return <Badge tone={TONES[of]}>{STATUS_WORDS[of]}</Badge>;
}

type Row = Generation;

function tokens(id: string, title: string, of: (row: Row) => number | null): Column<Row> {
  const cell = (row: Row) => {
    const count = of(row);
    return count === null ? "" : <Tokens count={count} />;
  };
  return { id, title, align: "right", wide: true, value: of, cell };
}

function time(id: string, title: string, of: (row: Row) => number | null): Column<Row> {
  const cell = (row: Row) => {
    const ms = of(row);
    return ms === null ? "" : took(ms);
  };
  return { id, title, align: "right", wide: true, value: of, cell };
}

/** The columns of a list of requests. */
export function requestColumns(nameOfKey: (id: string | null) => string): readonly Column<Row>[] {
  return [
    {
      id: "time",
      title: "Time",
      value: (row) => row.created_at,
      cell: (row) => <Time at={row.created_at} withClock />,
    },
    {
      id: "model",
      title: "Model",
      value: (row) => row.model,
      cell: ({ model }) => (model === null ? "" : <ModelName id={model} />),
    },
    {
      id: "cost",
      title: "Cost",
      align: "right",
      value: (row) => row.cost_micro,
      cell: (row) => <Money micros={row.cost_micro} />,
    },
    { id: "key", title: "Key", wide: true, value: (row) => nameOfKey(row.key_id) },
    { id: "user", title: "End user", wide: true, value: (row) => row.external_id },
    {
      id: "status",
      title: "Status",
      wide: true,
      value: (row) => row.status,
      cell: (row) => <Status of={row.status} />,
    },
    tokens("in", "In", (row) => row.prompt_tokens),
    tokens("cached", "Cached", (row) => row.cached_tokens),
    tokens("out", "Out", (row) => row.completion_tokens),
    time("first_byte", "First byte", (row) => row.first_byte_ms),
    time("took", "Took", (row) => row.duration_ms),
  ];
}

const LEFT_OUT = new Set(["cached", "took", "status"]);

/** A few requests, without sorting and filter; a row opens its receipt. */
export function RequestTable({ rows }: { rows: readonly Row[] }) {
  const columns = requestColumns(useKeyNames()).filter(({ id }) => !LEFT_OUT.has(id));
  return (
    <Grid
      name="Newest requests"
      columns={columns}
      rows={rows}
      keyOf={({ id }) => id}
      open={({ id }) => goTo(["requests", id])}
      isSorted={false}
    />
  );
}
