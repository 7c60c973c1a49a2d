import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { sumUsageByGroup } from "../lib/spend.ts";
import { DAY_MS, formatDuration, utcDay } from "../lib/time.ts";
import {
  nextPrice,
  outputAndUnitPrices,
  tokenPrice,
  describeModelPrices,
} from "../lib/model-prices.ts";
import { latestOf, useRead, useModels } from "../state/reads.ts";
import { hrefOf } from "../state/route.ts";
import { canReadOrganizationUsage, canMakeCall, useSession } from "../state/session.ts";
import { useSpend } from "../state/spend.ts";
import { Badge, CopyButton, PageHead, Button } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { Empty, ReadResult } from "../ui/states.tsx";
import {
  Table,
  usd,
  Grid,
  actionsColumn,
  column,
  durationColumn,
  moneyColumn,
  tokenColumn,
} from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import type { Model, ModelEndpoints } from "../api/types.ts";
import { Dialog } from "../ui/dialog.tsx";

type Used = { readonly micros: number; readonly ttft: number | null };

export function Models() {
  const read = useModels();
  const used = useModelUsage();
  const who = useSession();
  const mayLimit = canMakeCall(who, "POST /v1/keys");
  const [open, setOpen] = useState<string | null>(null);
  return (
    <>
      <PageHead
        title="Models"
        text="This region's models and your prices in dollars per million tokens. An alias selects the model next to it."
      />
      <ReadResult read={read} height={480}>
        {({ data }) => (
          <Table
            name="Models"
            columns={[
              ...NAMES,
              providersColumn(setOpen),
              ...(canReadOrganizationUsage(who) ? spendColumns(used) : []),
              NEXT_PRICE,
              linksColumn({ mayTry: canMakeCall(who, "POST /v1/chat/completions"), mayLimit }),
            ]}
            rows={data}
            keyOf={({ id }: Model) => id}
            empty={
              <Empty text="This region has no models. Its operator must configure a provider or enable the sandbox." />
            }
          />
        )}
      </ReadResult>
      {open !== null && <Endpoints id={open} onClose={() => setOpen(null)} />}
    </>
  );
}

function useModelUsage(): (id: string) => Used | undefined {
  const senior = canReadOrganizationUsage(useSession());
  const now = useNow();
  const range = { from: utcDay(now - 29 * DAY_MS), to: utcDay(now) };
  const spend = latestOf(useSpend(senior ? "model" : null, range))?.rows ?? [];
  const query = { ...range, group_by: "model", with: "latency" } as const;
  const times = latestOf(useRead(senior ? "GET /v1/usage" : null, { query }))?.data;
  const ttft = new Map(times?.map(({ group, first_byte_ms: ms }) => [group, ms?.p50 ?? null]));
  const sums = new Map(sumUsageByGroup(spend).map(({ group, cost_micro }) => [group, cost_micro]));
  return (id) => {
    const micros = sums.get(id);
    return micros === undefined ? undefined : { micros, ttft: ttft.get(id) ?? null };
  };
}

function millionOf(dollars: string | undefined): string | null {
  return dollars === undefined ? null : (Number(dollars) * 1e6).toFixed(6);
}

function priceColumn(
  id: string,
  title: string,
  of: (model: Model) => string,
  show = (model: Model): ComponentChildren => tokenPrice(model.pricing, of(model)),
): Column<Model> {
  return {
    id,
    title,
    align: "right",
    wide: id === "cached",
    value: (model) => Number(of(model)),
    csv: [[`${id}_usd_per_million`, (model) => (Number(of(model)) * 1e6).toFixed(6)]],
    cell: show,
  };
}

function spendColumns(used: (id: string) => Used | undefined): readonly Column<Model>[] {
  return [
    moneyColumn("spend", "Spend, 30 days", ({ id }) => used(id)?.micros ?? null, {
      wide: true,
      csv: [["spend_usd", ({ id }) => usd(used(id)?.micros ?? null)]],
    }),
    durationColumn("ttft", "TTFT", ({ id }) => used(id)?.ttft ?? null, {
      wide: true,
      csv: [["ttft_ms", ({ id }) => used(id)?.ttft ?? null]],
    }),
  ];
}

const statusBadge = (status: keyof typeof TONES): ComponentChildren => (
  <Badge tone={TONES[status]}>{status}</Badge>
);
const TONES = { operational: "good", degraded: "warn", unavailable: "bad" } as const;
const NAMES: readonly Column<Model>[] = [
  column("id", "Model", ({ id }) => id, {
    cell: (model) => (
      <>
        <strong
          class="break"
          title={[describeModelPrices(model), nextPrice(model)].filter(Boolean).join(", then ")}
        >
          {model.id}
        </strong>{" "}
        <CopyButton text={model.id} label="Copy ID" />
      </>
    ),
  }),
  column("status", "Status", ({ status }) => status, {
    cell: ({ id, status }) => (
      <>
        {statusBadge(status)} {status !== "operational" && <FailingProviders id={id} />}
      </>
    ),
  }),
  column("alias", "Aliases", ({ alias_of, aliases }) => alias_of ?? aliases?.join(", ") ?? "", {
    wide: true,
    cell: ({ alias_of, aliases = [] }) =>
      alias_of === undefined ? aliases.join(", ") : <>means {alias_of}</>,
  }),
  column(
    "takes",
    "Input types",
    ({ kind, input_modalities }) =>
      kind === "chat" ? input_modalities.join(", ") : `text, for ${kind}`,
    { wide: true },
  ),
  tokenColumn("context", "Context", ({ context_length }) => context_length, {
    wide: true,
  }),
  tokenColumn("output", "Max output tokens", ({ max_output_tokens }) => max_output_tokens, {
    wide: true,
  }),
  priceColumn("input", "Input", ({ pricing }) => pricing.prompt),
  priceColumn(
    "output_price",
    "Output",
    ({ pricing }) => pricing.completion,
    ({ pricing }) => <span style={{ whiteSpace: "normal" }}>{outputAndUnitPrices(pricing)}</span>,
  ),
  priceColumn("cached", "Cached", ({ pricing }) => pricing.input_cache_read),
];

/** The first column that hides, because most models have no next price. */
const NEXT_PRICE: Column<Model> = column(
  "next",
  "Next price",
  ({ next_price: next }) => next?.from ?? null,
  {
    wide: true,
    csv: [
      ["next_price_from", ({ next_price: next }) => next?.from ?? null],
      ["next_input_usd_per_million", ({ next_price: next }) => millionOf(next?.prompt)],
      ["next_output_usd_per_million", ({ next_price: next }) => millionOf(next?.completion)],
    ],
    cell: nextPrice,
  },
);

function providersColumn(open: (id: string) => void): Column<Model> {
  return column("providers", "Providers", ({ providers }) => providers.join(", "), {
    wide: true,
    cell: ({ id, providers }) => (
      <Button
        text={providers.join(", ")}
        class="quiet"
        title="Prices and speeds"
        onClick={() => open(id)}
      />
    ),
  });
}

function linksColumn({ mayTry, mayLimit }: Record<"mayTry" | "mayLimit", boolean>): Column<Model> {
  return actionsColumn(({ id, kind }) => (
    <>
      {mayTry && kind === "chat" && <a href={hrefOf(["playground"], { model: id })}>Try</a>}{" "}
      {mayLimit && (
        <a href={hrefOf(["keys"], { make: "1", models: id })} title={`A key for ${id} alone`}>
          Create key
        </a>
      )}
    </>
  ));
}

const ENDPOINTS_CALL = "GET /v1/models/{id}/endpoints";

function FailingProviders({ id }: { id: string }) {
  const endpoints = latestOf(useRead(ENDPOINTS_CALL, { path: { id } }))?.data.endpoints ?? [];
  const failing = endpoints.filter(({ status }) => status < 0);
  return <span class="small muted">{[...new Set(failing.map(({ tag }) => tag))].join(", ")}</span>;
}

type Endpoint = ModelEndpoints["data"]["endpoints"][number];
type Speed = Endpoint["latency_last_30m"];

function Endpoints({ id, onClose }: { id: string; onClose: () => void }) {
  const read = useRead(ENDPOINTS_CALL, { path: { id } });
  return (
    <Dialog title={`Providers of ${id}`} onClose={onClose} wide>
      <ReadResult read={read} height={160}>
        {({ data }) => (
          <>
            <Grid
              name="Providers"
              columns={ENDPOINTS}
              rows={data.endpoints}
              keyOf={(one: Endpoint) => `${one.tag} ${data.endpoints.indexOf(one)}`}
            />
            <p class="small muted">
              Providers in order of preference. Speeds are medians of all customers' requests in
              this region in the last 30 minutes. They are empty if too few customers used a
              provider.
            </p>
          </>
        )}
      </ReadResult>
    </Dialog>
  );
}

function speed(
  id: string,
  title: string,
  of: (one: Endpoint) => Speed,
  show: (value: number) => string,
): Column<Endpoint> {
  return column(id, title, (one) => of(one)?.p50 ?? null, {
    align: "right",
    cell: (one) => {
      const known = of(one);
      if (known === null) return "";
      return <span title={`99 of 100: ${show(known.p99)}`}>{show(known.p50)}</span>;
    },
  });
}

const ENDPOINTS: readonly Column<Endpoint>[] = [
  column("tag", "Provider", ({ tag }) => tag),
  column("status", "Status", ({ status }) => status, {
    cell: ({ status }) => statusBadge(status < 0 ? "unavailable" : "operational"),
  }),
  column("data", "Data region", ({ data_region }) => data_region.toUpperCase(), { wide: true }),
  column("input", "Input", ({ pricing }) => tokenPrice(pricing, pricing.prompt), {
    align: "right",
  }),
  column("output", "Output", ({ pricing }) => outputAndUnitPrices(pricing), { align: "right" }),
  speed("latency", "TTFT", ({ latency_last_30m: one }) => one, formatDuration),
  speed(
    "throughput",
    "Tokens per second",
    ({ throughput_last_30m: one }) => one,
    (value) => value.toFixed(0),
  ),
];
