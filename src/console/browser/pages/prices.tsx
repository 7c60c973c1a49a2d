import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { PriceRow, Rerated } from "../api/types.ts";
import { formatLeft } from "../lib/money.ts";
import { priceText } from "../lib/price-text.ts";
import { change } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { PageHead, Money, Button } from "../ui/basics.tsx";
import { useNow } from "../state/now.ts";
import { Confirm, DOLLARS, FormDialog, MOMENT, useTyped } from "../ui/dialog.tsx";
import { List } from "../ui/list.tsx";
import { Grid } from "../ui/table.tsx";
import { column, moneyColumn, timeColumn } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";
import { SchedulePrice, TOUCHES } from "./schedule-price.tsx";

export function Prices({ tabs }: { tabs: ComponentChildren }) {
  const may = useMay();
  const [doing, setDoing] = useState<"post" | "rerate" | null>(null);
  const close = (): void => setDoing(null);
  return (
    <>
      <PageHead
        title="Business"
        text="The most specific row wins: a model, then author/*, then *. A customer's own list comes before the region's list."
      >
        {may("POST /admin/v1/rerate") && (
          <Button text="Reprice requests…" onClick={() => setDoing("rerate")} />
        )}
        {may("POST /admin/v1/prices") && (
          <Button text="Schedule price" class="primary" onClick={() => setDoing("post")} />
        )}
      </PageHead>
      {tabs}
      <PriceTable />
      {doing === "post" && <SchedulePrice onClose={close} />}
      {doing === "rerate" && <Rerate onClose={close} />}
    </>
  );
}

export function PriceTable({ list }: { list?: string }) {
  const mayRemove = useMay()("DELETE /admin/v1/prices/{price_id}");
  const [removed, setRemoved] = useState<PriceRow | null>(null);
  const now = useNow();
  const verbs: Column<PriceRow> = column("do", "Status", () => null, {
    csv: [],
    cell: (row) =>
      Date.parse(row.from) <= now ? (
        <span class="muted">in force</span>
      ) : (
        <>
          scheduled{" "}
          {mayRemove && <Button text="Remove…" class="quiet" onClick={() => setRemoved(row)} />}
        </>
      ),
  });
  return (
    <>
      <List
        name="Prices"
        call="GET /admin/v1/prices"
        filling={{ query: list === undefined ? {} : { list } }}
        read={({ prices, next_after }) => ({ rows: prices, next: next_after ?? null })}
        height={240}
        columns={[...COLUMNS, verbs]}
        empty="No prices here: list prices plus the region's markup apply."
      />
      {removed && <Remove row={removed} onClose={() => setRemoved(null)} />}
    </>
  );
}

const COLUMNS: readonly Column<PriceRow>[] = [
  column("list", "List", ({ list }) => list),
  column("item", "For", ({ item }) => item),
  timeColumn("from", "From", ({ from }) => from, { withClock: true }),
  column("price", "Price", priceText),
  column("by", "Posted by", ({ posted_by }) => posted_by, { wide: true }),
];

function Remove({ row, onClose }: { row: PriceRow; onClose: () => void }) {
  return (
    <Confirm
      title={`Remove the price of ${row.item}?`}
      verb="Remove it"
      run={() =>
        change("DELETE /admin/v1/prices/{price_id}", { path: { price_id: row.id } }, TOUCHES)
      }
      onClose={onClose}
    >
      <p>This price isn't in force yet. Until then, the earlier prices apply.</p>
    </Confirm>
  );
}

type Line = Rerated["organizations"][number];
const LINES: readonly Column<Line>[] = [
  column("org", "Customer", ({ organization }) => organization),
  column("requests", "Requests", ({ requests }) => requests, { align: "right" }),
  moneyColumn("credit", "Credit", ({ credit_micro }) => credit_micro),
  column("result", "Result", ({ result }) => result.replaceAll("_", " ")),
];

function Rerate({ onClose }: { onClose: () => void }) {
  const [typed, line] = useTyped({ id: "", model: "", from: "", to: "", input: "", output: "" });
  const [found, setFound] = useState<Rerated | null>(null);
  const isCounted = found?.dry_run === true;
  return (
    <FormDialog
      title="Reprice requests"
      verb={isCounted ? `Credit ${formatLeft(found.total_micro)}` : "Count"}
      run={() => {
        const { id, model, from, to, input, output } = typed;
        const at = { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
        const price = { input: Number(input), output: Number(output) };
        const body = { id, model: model.trim(), ...at, price, dry_run: !isCounted };
        return change("POST /admin/v1/rerate", { body }, ["/admin/v1/orgs"]);
      }}
      onDone={setFound}
      onClose={onClose}
    >
      <p>
        Credits each customer the amount paid above this price. A name credits each customer only
        once. The first click only shows the total.
      </p>
      {line("id", "A name for the credits' references", { required: true })}
      {line("model", "Model", { required: true })}
      {line("from", "From, your time", MOMENT)}
      {line("to", "To, your time", MOMENT)}
      {line("input", "Dollars per million input tokens", { ...DOLLARS, required: true })}
      {line("output", "Dollars per million output tokens", { ...DOLLARS, required: true })}
      {found && (
        <>
          <p role="status">
            <Money micros={found.total_micro} /> {isCounted ? "would be credited." : "credited."}
          </p>
          <Grid
            name="Credits"
            columns={LINES}
            rows={found.organizations}
            keyOf={({ organization }) => organization}
          />
        </>
      )}
    </FormDialog>
  );
}
