import type { Command } from "commander";
import { formatUtcDay, getPriceOnDay } from "../../src/models/catalog/price.ts";
import { CATALOG } from "../../src/models/catalog/models.ts";
import { priceInDollars } from "../../src/shared/cost.ts";
import { formatPricedAmount } from "../../src/shared/units.ts";
import { UNITS } from "../../src/shared/usage.ts";
import { callAdmin, pagesOf } from "../admin-client.ts";
import type { AdminAnswer, AdminBody } from "../admin-client.ts";
import { WrongUsage } from "./arguments.ts";
import { csvLines, numberIn, readInput } from "./csv.ts";
import type { CsvLine } from "./csv.ts";
import { setAction, examples, setFailed, printNote, printResult } from "./session.ts";
import type { Session } from "./session.ts";
import { table } from "./words.ts";

type Fields = Readonly<Record<string, number>>;
type Row = {
  readonly list: string;
  readonly item: string;
  readonly from: string;
  readonly price?: Fields | null;
  readonly percent?: number | null;
};
type PriceOrPercent = Pick<Row, "price" | "percent">;
type Options = { readonly file?: string; readonly from?: string; readonly yes?: true };
/** The factor by which a price rose, and the field that rose most. */
type PriceRise = { readonly times: number; readonly field: string };
type ComparedRow = Row &
  PriceRise & { readonly what: string; readonly was: string; readonly is: string };

const PRICES = ["input", "cached", "cache_write", "output", ...UNITS];
const COLUMNS = ["list", "item", "from", ...PRICES, "percent"];
/** Maximum rows in one call. */
const ROWS_MAX = 500;
/** Maximum factor of a price change without confirmation. */
const TIMES_MAX = 2;

/** Adds `prices propose` and `prices post`, which show and post the rows of a file. */
export function addPriceCommands(program: Command): void {
  const prices = program.commands.find((one) => one.name() === "prices");
  if (prices === undefined) throw new Error("the operations have no prices");
  const propose = withFile(prices.command("propose")).description(
    "show the changes of a price file; exits with 1 if a price more than doubles",
  );
  examples(propose, "prices propose --local eu --from 2027-01-01 < prices.csv");
  setAction(propose, async (session, _: [], options: Options) => {
    const compared = await compareRows(session, rowsOf(options));
    printCompared(session, compared);
    if (riseProblem(compared).length > 0) setFailed();
  });
  const post = withFile(prices.command("post"))
    .description("post a file of prices that start later")
    .option("--yes", "also post prices that more than double");
  examples(post, "prices post --local eu --from 2027-01-01 --file prices.csv");
  setAction(post, async (session, _: [], options: Options) => {
    const rows = rowsOf(options);
    const dear = riseProblem(await compareRows(session, rows));
    if (dear.length > 0 && options.yes !== true) {
      const items = dear.map(({ item }) => item).join(", ");
      throw new WrongUsage(`These prices more than double: ${items}. To post them, add --yes.`);
    }
    const posted: Row[] = [];
    for (let at = 0; at < rows.length; at += ROWS_MAX) {
      const body = { rows: rows.slice(at, at + ROWS_MAX) } as AdminBody<"POST /prices">;
      const answer = await callAdmin(session.admin, "POST /prices", { body });
      posted.push(...answer.prices);
    }
    printResult(session, { prices: posted }, () => table(posted, "list, item, =from, percent"));
    printNote(`${posted.length} rows posted.`);
  });
}

function withFile(command: Command): Command {
  return command
    .option("--file <path>", "the rows (default: stdin)")
    .option("--from <time>", "the start of rows without one: a day or a time in UTC")
    .addHelpText(
      "after",
      `\nColumns: ${COLUMNS.join(", ")}. Prices are in dollars per million tokens.`,
    );
}

function rowsOf({ file, from }: Options): readonly Row[] {
  return csvLines(readInput(file), COLUMNS).map((line) => {
    const { list = "default", item, from: own = from } = line.of;
    if (item === undefined) throw new WrongUsage(`Line ${line.line} has no item.`);
    if (own === undefined) {
      throw new WrongUsage(`Line ${line.line} has no "from". Add it or give --from.`);
    }
    const percent = numberIn(line, "percent");
    const price = priceIn(line);
    const given = Object.entries({ price, percent }).filter(
      ([, value]) => (value ?? null) !== null,
    );
    return Object.assign({ list, item, from: own }, Object.fromEntries(given));
  });
}

function priceIn(line: CsvLine): Fields | null {
  const given = PRICES.map((name) => [name, numberIn(line, name)] as const);
  const fields = given.filter(([, value]) => value !== undefined);
  return fields.length === 0 ? null : (Object.fromEntries(fields) as Fields);
}

/**
 * Returns the rows with their previous price: the item's own, or else the provider's list price.
 */
async function compareRows(
  session: Session,
  rows: readonly Row[],
): Promise<readonly ComparedRow[]> {
  const known = await allRows(session);
  return rows.map((row) => {
    const fromMs = Date.parse(row.from);
    const before = known.findLast(
      ({ list, item, from }) => list === row.list && item === row.item && Date.parse(from) < fromMs,
    );
    const times = priceRise(row, before);
    const was = before === undefined ? "" : priceText(before);
    const beside = { what: describeRow(before, times), was, is: priceText(row) };
    return Object.assign({}, row, beside, times ?? SAME);
  });
}

const SAME: PriceRise = { times: 1, field: "percent" };

function describeRow(before: Row | undefined, compared: PriceRise | null): string {
  if (before === undefined) return "new";
  if (compared === null) return "other";
  if (compared.times === 1) return "same";
  return compared.times > 1 ? "dearer" : "cheaper";
}

/**
 * Returns the rise of a price. Returns null if one side is a percentage and the price is unknown.
 */
function priceRise(row: Row, before: Row | undefined): PriceRise | null {
  const listed = listedRow(row.item);
  const was = before ?? listed;
  if (was === null) return null;
  if (!row.price && !was.price) {
    return { ...SAME, times: (100 + (row.percent ?? 0)) / (100 + (was.percent ?? 0)) };
  }
  const [now, then] = [pricedBy(row, listed), pricedBy(was, listed)];
  return now === null || then === null ? null : highestRise(now, then);
}

/** Returns the price of a row. Percentages apply to the provider's list price. */
function pricedBy(
  { price, percent }: PriceOrPercent,
  listed: PriceOrPercent | null,
): Fields | null {
  if (price) return price;
  if (!listed?.price) return null;
  const raised = 1 + (percent ?? 0) / 100;
  const fields = Object.entries(listed.price).map(([name, each]) => [name, each * raised] as const);
  return Object.fromEntries(fields) as Fields;
}

/** Compares the fields that both prices have. */
function highestRise(now: Fields, then: Fields): PriceRise {
  const [is, was] = [withDefaults(now), withDefaults(then)];
  const ratios = Object.entries(is).flatMap(([field, each]): PriceRise[] => {
    const before = was[field];
    return before === undefined || each === 0 ? [] : [{ field, times: each / before }];
  });
  return ratios.reduce((most, one) => (one.times > most.times ? one : most), { ...SAME, times: 0 });
}

/** Fills in missing cached and cache-write prices with the input price. */
function withDefaults(price: Fields): Fields {
  const { input } = price;
  return input === undefined ? price : { input, cached: input, cache_write: input, ...price };
}

/** Returns a built-in model's current list price at its first provider. */
function listedRow(item: string): PriceOrPercent | null {
  const route = CATALOG.find(({ id }) => id === item)?.routes[0];
  if (route === undefined) return item.endsWith("*") ? { percent: 0 } : null;
  const { price } = getPriceOnDay(route, formatUtcDay(Date.now()));
  return { price: priceInDollars(price), percent: 0 };
}

function priceText({ price, percent }: Row): string {
  if (!price) return `+${percent ?? 0} %`;
  const { input, output, ...units } = price;
  const perUnit = UNITS.filter((unit) => units[unit] !== undefined);
  const shown = perUnit.map((unit) => `${units[unit]} per ${formatPricedAmount(unit)}`);
  const perToken = [input, output].filter((each) => each !== undefined && each > 0);
  return [...(perToken.length > 0 ? [perToken.join("/")] : []), ...shown].join(", ");
}

async function allRows({ admin }: Session): Promise<readonly Row[]> {
  const rows: Row[] = [];
  const call = { method: "GET", path: "/prices", query: { limit: ROWS_MAX } } as const;
  for await (const { prices } of pagesOf<AdminAnswer<"GET /prices">>(admin, call)) {
    rows.push(...prices);
  }
  return rows;
}

function riseProblem(compared: readonly ComparedRow[]): readonly ComparedRow[] {
  return compared.filter(({ times }) => times > TIMES_MAX);
}

function printCompared(session: Session, compared: readonly ComparedRow[]): void {
  printResult(session, { prices: compared }, () =>
    table(compared, "list, item, =from, what, >was, >is"),
  );
  for (const { item, field, times } of riseProblem(compared)) {
    printNote(`${item}: ${field} is ${times.toFixed(1)} times the previous price`);
  }
}
