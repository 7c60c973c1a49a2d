import type { Generation } from "../api/types.ts";
import { rewriteAmounts } from "../lib/money.ts";
import { goTo } from "../state/route.ts";
import { useKeyNames } from "../state/spend.ts";
import { Badge, ModelName } from "./basics.tsx";
import {
  Grid,
  usd,
  column,
  durationColumn,
  moneyColumn,
  timeColumn,
  tokenColumn,
} from "./table.tsx";
import type { Column } from "./table.tsx";

export const STATUSES = {
  held: ["Running", "warn"],
  settled: ["Succeeded", "plain"],
  voided: ["Failed", "bad"],
  expired: ["Expired", "bad"],
  refused: ["Rejected", "bad"],
} as const;

export function Status({ of: { status, error } }: { of: Pick<Generation, "status" | "error"> }) {
  if (error?.code === "client_left") return <Badge tone="plain">Stopped by the client</Badge>;
  const [word, tone] = STATUSES[status === "settled" && error !== null ? "voided" : status];
  if (error === null) return tone === "plain" ? <>{word}</> : <Badge tone={tone}>{word}</Badge>;
  return (
    <span title={rewriteAmounts(error.message)}>
      <Badge tone={tone}>{word}</Badge> <code class="small">{error.code}</code>
    </span>
  );
}

type Row = Generation;

type Measure = (row: Row) => number | null;
const tokens = (id: string, title: string, of: Measure): Column<Row> =>
  tokenColumn(id, title, of, { wide: true });
const time = (id: string, title: string, of: Measure): Column<Row> =>
  durationColumn(id, title, of, { wide: true, csv: [[`${title.toLowerCase()}_ms`, of]] });

export function requestColumns(nameOfKey: (id: string | null) => string): readonly Column<Row>[] {
  return [
    timeColumn("time", "Time", (row) => row.created_at, {
      withClock: true,
      csv: [
        ["created_at", (row) => row.created_at],
        ["request_id", (row) => row.request_id],
      ],
    }),
    column("status", "Status", (row) => row.status, {
      csv: [
        ["status", (row) => row.status],
        ["error_code", (row) => row.error?.code ?? null],
        ["error_status", (row) => row.error?.status ?? null],
      ],
      cell: (row) => <Status of={row} />,
    }),
    column("model", "Model", (row) => row.model, {
      csv: [
        ["model", (row) => row.model],
        ["provider", (row) => row.provider],
      ],
      cell: ({ model, purpose }) => (
        <span title={purpose?.description}>
          {purposeText(purpose) || (model !== null && <ModelName id={model} />)}
        </span>
      ),
    }),
    moneyColumn("cost", "Cost", (row) => row.cost_micro, {
      csv: [["cost_usd", (row) => usd(row.cost_micro)]],
    }),
    column("key", "Key", (row) => nameOfKey(row.key_id), {
      wide: true,
      csv: [
        ["key_id", (row) => row.key_id],
        ["key", (row) => nameOfKey(row.key_id)],
      ],
    }),
    column("user", "End user", (row) => row.external_id, {
      wide: true,
      csv: [["external_id", (row) => row.external_id]],
    }),
    column("tags", "Tags", tagsText, { wide: true }),
    tokens("in", "Input tokens", (row) => row.prompt_tokens),
    tokens("cached", "Cached tokens", (row) => row.cached_tokens),
    tokens("out", "Output tokens", (row) => row.completion_tokens),
    time("first_byte", "TTFT", (row) => row.first_byte_ms),
    time("took", "Duration", (row) => row.duration_ms),
  ];
}

export function purposeText(purpose: Generation["purpose"]): string {
  if (purpose === null) return "";
  return purpose.merchant === null ? "Direct charge" : `Charge by ${purpose.merchant}`;
}

export function tagsText({ tags }: Pick<Row, "tags">): string {
  return Object.entries(tags)
    .map(([key, value]) => `${key}:${value}`)
    .join(", ");
}

const OMITTED_COLUMNS = new Set(["cached", "took", "tags"]);

export function RequestTable({ rows }: { rows: readonly Row[] }) {
  const columns = requestColumns(useKeyNames()).filter(({ id }) => !OMITTED_COLUMNS.has(id));
  return (
    <Grid
      name="Newest requests"
      columns={columns}
      rows={rows}
      keyOf={({ id }) => id}
      open={({ id }) => goTo(["requests", id])}
    />
  );
}
