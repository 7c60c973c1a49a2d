import { useId } from "preact/hooks";
import type { CatalogModels, PriceRow } from "../api/types.ts";
import type { Outcome } from "../api/client.ts";
import { countText } from "../lib/money.ts";
import { priceText } from "../lib/price-text.ts";
import { DAY, localMinute } from "../lib/time.ts";
import { change, latestOf, useRead } from "../state/reads.ts";
import { useNow } from "../state/now.ts";
import { DOLLARS, FormDialog, MOMENT, useTyped } from "../ui/dialog.tsx";
import { Options } from "../ui/model-picker.tsx";

export const TOUCHES = ["/admin/v1/prices"];
type Terms = {
  readonly price?: { readonly input: number; readonly output?: number };
  readonly percent?: number;
};

/**
 * The form for a new price. `list` preselects a price list. `then` runs after the price is saved.
 */
export function SchedulePrice({
  list: fixedList,
  then,
  onClose,
}: {
  list?: string;
  then?: () => Promise<Outcome<unknown>>;
  onClose: () => void;
}) {
  const [typed, line] = useTyped({
    list: fixedList ?? "default",
    item: "",
    from: localMinute(Date.now() + DAY),
    input: "",
    output: "",
    percent: "",
  });
  const items = useId();
  const known = useKnownPrices(fixedList ?? "default");
  const dollars = { ...DOLLARS, required: typed.percent === "" }; // an empty field would mean free
  const run = async (): Promise<Outcome<unknown>> => {
    const { list, item, from, input, output, percent } = typed;
    const price = {
      input: Number(input),
      ...(Number(output) !== 0 && { output: Number(output) }), // models without output reject the field
    };
    const row = { list, item: item.trim(), from: new Date(from).toISOString() };
    const terms: Terms = percent === "" ? { price } : { percent: Number(percent) };
    const posted = await savePrice({ ...row, ...terms });
    return posted.ok && then ? then() : posted;
  };
  return (
    <FormDialog title="Schedule price" verb="Schedule price" run={run} onClose={onClose}>
      {fixedList === undefined && line("list", "List", { required: true })}
      {line("item", "Model, author/* or *", { required: true, list: items })}
      <Options id={items} options={known.items} />
      {line("from", `Start [your time], at least ${known.lead} from now`, MOMENT)}
      {line("input", "Input [$ per million tokens]", {
        ...dollars,
        hint: known.priceOf(typed.item),
      })}
      {line("output", "Output [$ per million tokens], 0 if none", dollars)}
      {line("percent", "Or markup [% above cost]", DOLLARS)}
    </FormDialog>
  );
}

/** Saves one price. Failures name the form's fields. */
async function savePrice(
  row: Terms & Pick<PriceRow, "list" | "item" | "from">,
): Promise<Outcome<unknown>> {
  const posted = await change("POST /admin/v1/prices", { body: { rows: [row] } }, TOUCHES);
  if (posted.ok) return posted;
  const { failure } = posted;
  const param = failure.param === null ? null : formField(failure.param);
  return { ok: false, failure: { ...failure, param, message: formField(failure.message) } };
}

/** Replaces the API's field names by the form's. */
function formField(text: string): string {
  return text.replaceAll(/rows\[0\]\.(?:price\.)?/g, "");
}

/** Returns the selectable models, each model's current price, and the lead time as text. */
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
  const price = model.routes.find(({ live }) => live)?.price ?? null;
  return price && `${priceText({ price, percent: null })} (list price)`;
}

/** Reports whether MODELS defines the model. `author/*` and `*` don't apply to such models. */
function isConfigured({ id, routes }: CatalogModels["models"][number]): boolean {
  return !id.startsWith("sandbox/") && routes.every(({ cost }) => cost === null);
}
