import type { CatalogModels, ListPrice } from "../api/types.ts";
import { formatDollarPrice, unitPriceTexts } from "../lib/price-text.ts";
import { useRead } from "../state/reads.ts";
import { Badge, CopyButton, PageHead } from "../ui/basics.tsx";
import { ChoiceFilter } from "../ui/filters.tsx";
import { useQuery } from "../state/route.ts";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Table, column } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

type Model = CatalogModels["models"][number];
type Row = Model["routes"][number] & Pick<Model, "id" | "kind" | "aliases">;

const OLD_DAYS = 30;
const TOO_OLD_DAYS = 60;
const WHY = {
  not_configured: "its provider is not configured",
  residency: "no host of it is allowed in this region",
  ended: "its announced end date has passed",
} as const;
const STATES = [
  ["", "all routes"],
  ["sold", "sold"],
  ["not", "not sold"],
] as const;

export function Catalog() {
  const [{ state = "" }] = useQuery();
  const read = useRead("GET /admin/v1/catalog");
  return (
    <>
      <PageHead
        title="Catalog"
        text="Each model's routes. Prices are in dollars per million tokens: input, output."
      />
      <ReadResult read={read} height={480}>
        {({ models }) => (
          <Table
            name="Catalog"
            columns={COLUMNS}
            rows={models
              .flatMap(({ routes, ...model }) => routes.map((route) => ({ ...model, ...route })))
              .filter(({ live }) => state === "" || live === (state === "sold"))}
            keyOf={({ id, provider, upstream_id }) => `${id} ${provider} ${upstream_id}`}
            filters={<ChoiceFilter name="state" label="State" options={STATES} />}
            empty={<Empty text="No route has this state." />}
          />
        )}
      </ReadResult>
    </>
  );
}

function priceColumn(id: "cost" | "price", title: string): Column<Row> {
  return {
    id,
    title,
    align: "right",
    value: (row) => row[id]?.input ?? null,
    csv: [
      [`${id}_input_usd`, (row) => row[id]?.input ?? null],
      [`${id}_output_usd`, (row) => row[id]?.output ?? null],
    ],
    cell: (row) => <PriceCell of={row[id]} />,
  };
}

/** A column with the last 30 minutes' median, and other percentiles as tooltip. */
function speedColumn(id: "latency_ms" | "tokens_per_second", title: string): Column<Row> {
  return column(id, title, (row) => row[id]?.p50 ?? null, {
    align: "right",
    wide: true,
    csv: [[`${id}_p50`, (row) => row[id]?.p50 ?? null]],
    cell: (row) => <SpeedCell of={row[id]} />,
  });
}

function SpeedCell({ of }: { of: Row["latency_ms"] }) {
  if (of === null) return null;
  const { p50, p75, p90, p99, requests, organizations } = of;
  const title = `p75 ${p75}, p90 ${p90}, p99 ${p99}, of ${requests} requests by ${organizations} organizations`;
  return (
    <span class="number" title={title}>
      {p50}
    </span>
  );
}

function PriceCell({ of }: { of: ListPrice | null }) {
  if (of === null) return <span class="muted">none</span>;
  const { input, cached, cache_write: written, output } = of;
  const perToken = input === 0 ? [] : [formatDollarPrice(input), formatDollarPrice(output)];
  return (
    <span
      class="number"
      style={{ whiteSpace: "normal" }}
      title={`cached ${formatDollarPrice(cached)}, written to a cache ${formatDollarPrice(written)}`}
    >
      {[perToken.join(", "), ...unitPriceTexts(of)].filter(Boolean).map((part, at) => (
        <span key={part}>
          {at > 0 && <br />}
          {part}
        </span>
      ))}
    </span>
  );
}

function SeenOn({ seen_on, age_days }: Row) {
  if (seen_on === null || age_days === null) return <span class="muted">yours</span>;
  const isRed = age_days >= TOO_OLD_DAYS;
  if (age_days < OLD_DAYS) return <>{seen_on}</>;
  return (
    <Badge tone={isRed ? "bad" : "warn"}>
      {seen_on}, {age_days} days
    </Badge>
  );
}

const COLUMNS: readonly Column<Row>[] = [
  column("id", "Model", ({ id, aliases }) => [id, ...aliases].join(" "), {
    csv: [["model", ({ id }) => id]],
    cell: ({ id, aliases }) => (
      <span title={aliases.length === 0 ? id : `${id}, also ${aliases.join(", ")}`}>
        <strong>{id}</strong> <CopyButton text={id} />
      </span>
    ),
  }),
  column("provider", "Provider", ({ provider }) => provider),
  column("upstream", "Provider's model ID", ({ upstream_id }) => upstream_id, { wide: true }),
  column("hosts", "Hosts", ({ regions }) => regions.map((tag) => tag.toUpperCase()).join(", "), {
    wide: true,
  }),
  priceColumn("cost", "Cost"),
  priceColumn("price", "Price"),
  column("seen", "Price checked on", ({ age_days }) => age_days, {
    wide: true,
    csv: [["seen_on", ({ seen_on }) => seen_on]],
    cell: (row) => <SeenOn {...row} />,
  }),
  column("until", "Until", ({ until }) => until, { wide: true }),
  speedColumn("latency_ms", "Latency (ms)"),
  speedColumn("tokens_per_second", "Tokens per second"),
  column("state", "State", ({ live, why_not }) => (live ? "sold" : why_not), {
    cell: ({ live, why_not }) =>
      live ? (
        <Badge tone="good">sold</Badge>
      ) : (
        <span title={why_not === null ? "" : WHY[why_not]}>
          <Badge>{why_not?.replaceAll("_", " ")}</Badge>
        </span>
      ),
  }),
];
