import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { PriceRow, Rerated } from "../api/types.ts";
import type { Outcome } from "../api/client.ts";
import { left, microsOf, spent } from "../lib/money.ts";
import { DAY, localMinute } from "../lib/time.ts";
import { change } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { Head, Money } from "../ui/basics.tsx";
import { useNow } from "../state/now.ts";
import { Confirm, Field, FormDialog } from "../ui/dialog.tsx";
import { List } from "../ui/list.tsx";
import { Grid } from "../ui/table.tsx";
import { column, moneyColumn, timeColumn } from "../ui/columns.tsx";
import type { Column } from "../ui/table.tsx";

const TOUCHES = ["/admin/v1/prices"];

export function Prices({ tabs }: { tabs: ComponentChildren }) {
  const may = useMay();
  const [doing, setDoing] = useState<"post" | "rerate" | null>(null);
  const close = (): void => setDoing(null);
  return (
    <>
      <Head
        title="Business"
        text="The most specific row wins: first a model, then an author (author/*), then all models (*). A customer's own list comes before the region's list."
      >
        {may("POST /admin/v1/rerate") && (
          <button type="button" onClick={() => setDoing("rerate")}>
            Reprice requests…
          </button>
        )}
        {may("POST /admin/v1/prices") && (
          <button type="button" class="primary" onClick={() => setDoing("post")}>
            Schedule price
          </button>
        )}
      </Head>
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
        mayRemove && (
          <button type="button" class="quiet" onClick={() => setRemoved(row)}>
            Remove…
          </button>
        )
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
  column("price", "Price", ({ price, percent }) =>
    price === null
      ? `${percent ?? 0}% above cost`
      : `${spent(microsOf(price.input))} in, ${spent(microsOf(price.output ?? 0))} out`,
  ),
  column("by", "Posted by", ({ posted_by }) => posted_by, { wide: true }),
];

function useTyped<Name extends string>(first: Readonly<Record<Name, string>>) {
  const [typed, setTyped] = useState(first);
  const line = (name: Name, label: string, more: object = {}) => (
    <Field label={label} param={name}>
      <input
        value={typed[name]}
        onInput={(event) => setTyped({ ...typed, [name]: event.currentTarget.value })}
        {...more}
      />
    </Field>
  );
  return [typed, line] as const;
}

const NUMBER = { type: "number", step: "any", min: "0" };
const MOMENT = { type: "datetime-local", required: true };

/** The form for a new price. `list` restricts it to one list. `then` runs after the price is posted. */
export function SchedulePrice({
  list: own,
  then,
  onClose,
}: {
  list?: string;
  then?: () => Promise<Outcome<unknown>>;
  onClose: () => void;
}) {
  const [typed, line] = useTyped({
    list: own ?? "default",
    item: "",
    from: localMinute(Date.now() + DAY),
    input: "",
    output: "",
    percent: "",
  });
  const dollars = { ...NUMBER, required: typed.percent === "" }; // an empty field would be free
  const run = async (): Promise<Outcome<unknown>> => {
    const { list, item, from, input, output, percent } = typed;
    const price = { input: Number(input), output: Number(output) };
    const row = { list, item: item.trim(), from: new Date(from).toISOString() };
    const terms = percent === "" ? { price } : { percent: Number(percent) };
    const body = { rows: [{ ...row, ...terms }] };
    const posted = await change("POST /admin/v1/prices", { body }, TOUCHES);
    return posted.ok && then ? then() : posted;
  };
  return (
    <FormDialog title="Schedule price" verb="Schedule price" run={run} onClose={onClose}>
      {own === undefined && line("list", "List", { required: true })}
      {line("item", "Model, author/* or *", { required: true })}
      {line("from", "Start [your time], after the lead time", MOMENT)}
      {line("input", "Input [$ per million tokens]", dollars)}
      {line("output", "Output [$ per million tokens], 0 if none", dollars)}
      {line("percent", "Or markup [% above cost]", NUMBER)}
    </FormDialog>
  );
}

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
      verb={isCounted ? `Credit ${left(found.total_micro)}` : "Count"}
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
      {line("input", "Dollars per million input tokens", { ...NUMBER, required: true })}
      {line("output", "Dollars per million output tokens", { ...NUMBER, required: true })}
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
            isSorted={false}
          />
        </>
      )}
    </FormDialog>
  );
}
