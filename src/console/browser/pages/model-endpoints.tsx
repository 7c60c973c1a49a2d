import type { ModelEndpoints } from "../api/types.ts";
import { formatDuration } from "../lib/time.ts";
import { outputPrice, tokenPrice } from "../state/model-prices.ts";
import { useRead } from "../state/reads.ts";
import { column } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { ReadResult } from "../ui/states.tsx";
import { Grid } from "../ui/table.tsx";

type Endpoint = ModelEndpoints["data"]["endpoints"][number];
type Speed = Endpoint["latency_last_30m"];

export function Endpoints({ id, onClose }: { id: string; onClose: () => void }) {
  const read = useRead("GET /v1/models/{id}/endpoints", { path: { id } });
  return (
    <Dialog title={`Providers of ${id}`} onClose={onClose} wide>
      <ReadResult read={read} height={160}>
        {({ data }) => (
          <>
            <Grid
              name="Providers"
              columns={COLUMNS}
              rows={data.endpoints}
              keyOf={(one: Endpoint) => `${one.tag} ${data.endpoints.indexOf(one)}`}
            />
            <p class="small muted">
              In the order of preference. Speeds are medians of all customers' requests in this
              region in the last 30 minutes. They are empty if too few customers used a provider.
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

const COLUMNS: readonly Column<Endpoint>[] = [
  column("tag", "Provider", ({ tag }) => tag),
  column("data", "Data region", ({ data_region }) => data_region.toUpperCase(), { wide: true }),
  column("input", "Input", ({ pricing }) => tokenPrice(pricing, pricing.prompt), {
    align: "right",
  }),
  column("output", "Output", ({ pricing }) => outputPrice(pricing), { align: "right" }),
  speed("latency", "TTFT", ({ latency_last_30m: one }) => one, formatDuration),
  speed(
    "throughput",
    "Tokens per second",
    ({ throughput_last_30m: one }) => one,
    (value) => value.toFixed(0),
  ),
];
