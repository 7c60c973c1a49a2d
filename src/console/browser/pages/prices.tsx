import type { ComponentChildren } from "preact";
import { useState, useId } from "preact/hooks";
import type { ListPrice, PriceRow, Rerated, CatalogModels } from "../api/types.ts";
import { formatBalance, countText } from "../lib/money.ts";
import { priceText } from "../lib/price-text.ts";
import { isUnit, formatPricedAmount } from "../../../shared/units.ts";
import { change, latestOf, useRead } from "../state/reads.ts";
import { useCanMakeCall } from "../state/session.ts";
import { PageHead, Money, Button } from "../ui/basics.tsx";
import { useNow } from "../state/cell.ts";
import { Confirm, DOLLARS, FormDialog, MOMENT, useTyped } from "../ui/dialog.tsx";
import { List } from "../ui/list.tsx";
import { Grid, column, moneyColumn, timeColumn, verbColumns } from "../ui/table.tsx";
import type { Column } from "../ui/table.tsx";
import type { CallOutcome } from "../api/client.ts";
import { DAY_MS, formatLocalMinute } from "../lib/time.ts";
import { Options } from "../ui/model-picker.tsx";

/** Paths of reads to refresh after a price change. */
export const TOUCHES = ["/admin/v1/prices"];
type Terms = {
  readonly price?: Readonly<Record<string, number>>;
  readonly percent?: number;
};
type PriceField = readonly [name: keyof ListPrice, label: string];
const TOKEN_FIELDS: readonly PriceField[] = [
  ["input", "Input [$ per million tokens]"],
  ["output", "Output [$ per million tokens], 0 if none"],
];

type SchedulePriceProps = {
  list?: string;
  then?: () => Promise<CallOutcome<unknown>>;
  onClose: () => void;
};
/** The form for a new price. `list` preselects a price list. `then` runs after saving. */
export function SchedulePrice({ list: fixedList, then, onClose }: SchedulePriceProps) {
  const [typed, line] = useTyped({
    list: fixedList ?? "default",
    item: "",
    from: formatLocalMinute(Date.now() + DAY_MS),
    percent: "",
  });
  const [amounts, amountLine] = useTyped<string>({});
  const items = useId();
  const known = useKnownPrices(fixedList ?? "default");
  const dollarField = { ...DOLLARS, required: typed.percent === "" }; // an empty field would mean free
  const fields = known.fieldsOf(typed.item);
  const run = async (): Promise<CallOutcome<unknown>> => {
    const { list, item, from, percent } = typed;
    const price = Object.fromEntries(
      fields
        .map(([name]) => [name, Number(amounts[name])] as const)
        // The API rejects a price for output if the model has no output.
        .filter(([name, dollars]) => name !== "output" || dollars !== 0),
    );
    const row = { list, item: item.trim(), from: new Date(from).toISOString() };
    const terms: Terms = percent === "" ? { price } : { percent: Number(percent) };
    const posted = await savePrice({ ...row, ...terms });
    return posted.ok && then ? then() : posted;
  };
  return (
    <FormDialog title="Schedule price" verb="Schedule price" run={run} onClose={onClose}>
      {fixedList === undefined && line("list", "List", { required: true })}
      {line("item", "Model", { required: true, list: items, hint: "An ID, author/* or *" })}
      <Options id={items} options={known.items} />
      {line("from", `Start [your time], at least ${known.lead} from now`, MOMENT)}
      {fields.map(([name, label], index) =>
        amountLine(name, label, {
          ...dollarField,
          hint: index === 0 ? known.priceOf(typed.item) : undefined,
        }),
      )}
      {line("percent", "Or markup [% above cost]", DOLLARS)}
    </FormDialog>
  );
}

/** Saves a price. Failures name the form's fields. */
async function savePrice(
  row: Terms & Pick<PriceRow, "list" | "item" | "from">,
): Promise<CallOutcome<unknown>> {
  const posted = await change("POST /admin/v1/prices", { body: { rows: [row] } }, TOUCHES);
  if (posted.ok) return posted;
  const { failure } = posted;
  const param = failure.param === null ? null : formField(failure.param);
  return { ok: false, failure: { ...failure, param, message: formField(failure.message) } };
}

/** Replaces the API's field names by the form's labels. */
function formField(text: string): string {
  return text.replaceAll(/rows\[0\]\.(?:price\.)?/g, "");
}

function priceFields(price: ListPrice | null | undefined): readonly PriceField[] {
  const units = Object.keys(price ?? {}).filter(isUnit);
  if (!price || units.length === 0) return TOKEN_FIELDS;
  return [
    ...TOKEN_FIELDS.filter(([name]) => (price[name] ?? 0) > 0),
    ...units.map((unit): PriceField => [unit, `Price [$ per ${formatPricedAmount(unit)}]`]),
  ];
}

function useKnownPrices(list: string) {
  const now = useNow();
  const models = latestOf(useRead("GET /admin/v1/catalog"))?.models ?? [];
  const read = useRead("GET /admin/v1/prices", { query: { list, limit: 500 } });
  const shared = useRead("GET /admin/v1/prices", { query: { list: "default", limit: 500 } });
  const [fixedList, others] = [latestOf(read), latestOf(shared)];
  const lead = fixedList?.lead_seconds ?? 3600;
  const isCut = (fixedList?.next_after ?? others?.next_after) !== undefined; // a current price may be missing
  const rows = fixedList && others && !isCut ? [...fixedList.prices, ...others.prices] : null;
  const sold = models.filter(({ routes }) => routes.some(({ live }) => live));
  const authors = new Set(sold.map(({ id }) => `${id.split("/", 1).join()}/*`));
  return {
    items: [
      ...sold.map(({ id }) => [id, presentPrice(id, { rows, models, now }) ?? ""] as const),
      ...[...authors].map((author) => [author, "all models of the author"] as const),
      ["*", "all models"] as const,
    ],
    fieldsOf: (item: string) => priceFields(livePrice(models.find(({ id }) => id === item.trim()))),
    priceOf: (item: string): string | undefined => {
      const price = presentPrice(item.trim(), { rows, models, now });
      return price === null ? undefined : `Now ${price}`;
    },
    lead:
      lead % 3600 === 0
        ? countText(lead / 3600, "hour")
        : countText(Math.ceil(lead / 60), "minute"),
  };
}

type KnownPrices = {
  /** Rows of the customer's list, then of the region's. Null if incomplete. */
  readonly rows: readonly PriceRow[] | null;
  readonly models: CatalogModels["models"];
  readonly now: number;
};

/** Returns a model's current price as text, or null if unknown. */
function presentPrice(item: string, { rows, models, now }: KnownPrices): string | null {
  const model = models.find(({ id }) => id === item);
  if (model === undefined || rows === null) return null;
  const started = rows.filter(({ from }) => Date.parse(from) <= now);
  const names = isConfigured(model) ? [item] : [item, `${item.split("/", 1).join()}/*`, "*"];
  for (const list of new Set(started.map((row) => row.list))) {
    for (const name of names) {
      const row = started
        .filter((one) => one.list === list && one.item === name)
        .reduce<PriceRow | null>((last, one) => (last && last.from > one.from ? last : one), null);
      if (row !== null) return `${priceText(row)} (list ${list})`;
    }
  }
  const price = livePrice(model);
  return price && `${priceText({ price, percent: null })} (list price)`;
}

const livePrice = (model?: CatalogModels["models"][number]): ListPrice | null =>
  model?.routes.find(({ live }) => live)?.price ?? null;

/** Reports whether MODELS defines the model. Prices for `author/*` and `*` exclude such models. */
function isConfigured({ id, routes }: CatalogModels["models"][number]): boolean {
  return !id.startsWith("sandbox/") && routes.every(({ cost }) => cost === null);
}

export function Prices({ tabs }: { tabs: ComponentChildren }) {
  const may = useCanMakeCall();
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
  const mayRemove = useCanMakeCall()("DELETE /admin/v1/prices/{price_id}");
  const [removed, setRemoved] = useState<PriceRow | null>(null);
  const now = useNow();
  const known = useKnownPrices(list ?? "default");
  const isScheduled = ({ from }: PriceRow): boolean => Date.parse(from) > now;
  const status: Column<PriceRow> = column("status", "Status", () => null, {
    csv: [],
    cell: (row) =>
      isScheduled(row) ? (
        <>
          scheduled{" "}
          <span class="small muted">
            {row.list === (list ?? "default") && known.priceOf(row.item)}
          </span>
        </>
      ) : (
        <span class="muted">in force</span>
      ),
  });
  const verbs = mayRemove ? REMOVE : [];
  return (
    <>
      <List
        name="Prices"
        call="GET /admin/v1/prices"
        filling={{ query: list === undefined ? {} : { list } }}
        rowsOf={({ prices }) => prices}
        height={240}
        columns={[
          ...COLUMNS,
          status,
          ...verbColumns(verbs, (_, row) => setRemoved(row), isScheduled),
        ]}
        empty="No prices here: list prices plus the region's markup apply."
      />
      {removed && <Remove row={removed} onClose={() => setRemoved(null)} />}
    </>
  );
}

const REMOVE = [["remove", "Remove…"]] as const;
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
      verb="Remove price"
      run={() =>
        change("DELETE /admin/v1/prices/{price_id}", { path: { price_id: row.id } }, TOUCHES)
      }
      onClose={onClose}
    >
      <p>This price hasn't started. The current prices continue to apply.</p>
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
      verb={isCounted ? `Credit ${formatBalance(found.total_micro)}` : "Count"}
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
        Credits each customer the amount paid above this price, at most once per prefix. The first
        click only shows the total.
      </p>
      {line("id", "Reference prefix for these credits", { required: true })}
      {line("model", "Model", { required: true })}
      {line("from", "From (your time)", MOMENT)}
      {line("to", "To (your time)", MOMENT)}
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
