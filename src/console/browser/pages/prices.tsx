import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { PriceRow, Rerated } from "../api/types.ts";
import { change } from "../state/reads.ts";
import { useMay } from "../state/session.ts";
import { Head, Money, Time } from "../ui/basics.tsx";
import { useNow } from "../state/now.ts";
import { Confirm, Field, FormDialog } from "../ui/dialog.tsx";
import { usePages } from "../ui/pages.ts";
import { Empty, ReadResult } from "../ui/states.tsx";
import { Grid, Table } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";

const TOUCHES = ["/admin/v1/prices"];
type Doing = { readonly what: "post" | "rerate" } | { readonly what: "remove"; row: PriceRow };

/** The price lists, posting, and rerating. */
export function Prices({ tabs }: { tabs: ComponentChildren }) {
  const may = useMay();
  const mayRemove = may("DELETE /admin/v1/prices/{price_id}");
  const [doing, setDoing] = useState<Doing | null>(null);
  const now = useNow();
  const { page, rows, pager } = usePages(
    "GET /admin/v1/prices",
    {},
    {
      cursor: "after",
      read: ({ prices, next_after }) => ({ rows: prices, next: next_after ?? null }),
    },
  );
  const close = (): void => setDoing(null);
  const verbs: Column<PriceRow> = {
    id: "do",
    title: "To do",
    value: () => null,
    csv: [],
    cell: (row) =>
      Date.parse(row.from) <= now ? (
        <span class="muted">in force</span>
      ) : (
        mayRemove && (
          <button type="button" class="quiet" onClick={() => setDoing({ what: "remove", row })}>
            Remove…
          </button>
        )
      ),
  };
  return (
    <>
      <Head
        title="Business"
        text="The most specific row wins: a model, a maker (maker/*), all (*); a customer's own list before the region's, default."
      >
        {may("POST /admin/v1/rerate") && (
          <button type="button" onClick={() => setDoing({ what: "rerate" })}>
            Reprice requests…
          </button>
        )}
        {may("POST /admin/v1/prices") && (
          <button type="button" class="primary" onClick={() => setDoing({ what: "post" })}>
            Schedule price
          </button>
        )}
      </Head>
      {tabs}
      <ReadResult read={page} height={480}>
        {() => (
          <Table
            name="Prices"
            columns={[...COLUMNS, verbs]}
            rows={rows}
            keyOf={({ id }: PriceRow) => id}
            pager={pager}
            empty={
              <Empty text="No row: everything is sold at its provider's list price with the markup." />
            }
          />
        )}
      </ReadResult>
      {doing?.what === "post" && <Post onClose={close} />}
      {doing?.what === "rerate" && <Rerate onClose={close} />}
      {doing?.what === "remove" && <Remove row={doing.row} onClose={close} />}
    </>
  );
}

const COLUMNS: readonly Column<PriceRow>[] = [
  { id: "list", title: "List", value: ({ list }) => list },
  { id: "item", title: "For", value: ({ item }) => item },
  {
    id: "from",
    title: "From",
    value: ({ from }) => from,
    cell: ({ from }) => <Time at={from} withClock />,
  },
  {
    id: "price",
    title: "Price",
    value: ({ price, percent }) =>
      price === null ? `${percent ?? 0} % above cost` : `$${price.input}, $${price.output}`,
  },
  { id: "by", title: "Posted by", wide: true, value: ({ posted_by }) => posted_by },
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

function Post({ onClose }: { onClose: () => void }) {
  const [typed, line] = useTyped({
    list: "default",
    item: "",
    from: "",
    input: "",
    output: "",
    percent: "",
  });
  const dollars = { ...NUMBER, required: typed.percent === "" }; // an empty field would be free
  return (
    <FormDialog
      title="Schedule price"
      verb="Schedule price"
      run={() => {
        const { list, item, from, input, output, percent } = typed;
        const price = { input: Number(input), output: Number(output) };
        const row = { list, item: item.trim(), from: new Date(from).toISOString() };
        const terms = percent === "" ? { price } : { percent: Number(percent) };
        return change("POST /admin/v1/prices", { body: { rows: [{ ...row, ...terms }] } }, TOUCHES);
      }}
      onDone={onClose}
      onClose={onClose}
    >
      {line("list", "List", { required: true })}
      {line("item", "Model, maker/* or *", { required: true })}
      {line("from", "From, your time; ahead by the lead time at least", MOMENT)}
      {line("input", "Dollars per million input tokens", dollars)}
      {line("output", "Dollars per million output tokens, 0 where there are none", dollars)}
      {line("percent", "Or percent above cost", NUMBER)}
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
      onDone={onClose}
    >
      <p>It has not begun. What was sold before it goes on to be sold so.</p>
    </Confirm>
  );
}

type Line = Rerated["organizations"][number];
const LINES: readonly Column<Line>[] = [
  { id: "org", title: "Customer", value: ({ organization }) => organization },
  { id: "requests", title: "Requests", align: "right", value: ({ requests }) => requests },
  {
    id: "credit",
    title: "Credit",
    align: "right",
    value: ({ credit_micro }) => credit_micro,
    cell: ({ credit_micro }) => <Money micros={credit_micro} />,
  },
  { id: "result", title: "Result", value: ({ result }) => result.replaceAll("_", " ") },
];

function Rerate({ onClose }: { onClose: () => void }) {
  const [typed, line] = useTyped({ id: "", model: "", from: "", to: "", input: "", output: "" });
  const [found, setFound] = useState<Rerated | null>(null);
  const isCounted = found?.dry_run === true;
  return (
    <FormDialog
      title="Reprice requests"
      verb={isCounted ? "Credit it" : "Count"}
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
        What requests were charged above this price is credited, once for each customer and name.
        Counted first: nothing is credited before the second press.
      </p>
      {line("id", "Its name, as the credit's reference has it", { required: true })}
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
