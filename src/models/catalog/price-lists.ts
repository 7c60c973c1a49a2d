import type { Result } from "../../shared/failure.ts";
import type { Price } from "../../shared/usage.ts";
import type { Model, PriceOrigin, Route } from "./model.ts";
import { longPromptPrice, raisedPrices } from "./price.ts";

/** The list that every organization of the region has behind its own. */
export const REGION_LIST = "default";

/** What a list says of an item: a price of its own, or so many percent on the provider's list price. */
export type ListCharge =
  | { readonly price: Price; readonly percent?: never }
  | { readonly percent: number; readonly price?: never };

/** From a moment on (Unix ms) a list says this of a model's id, of `maker/*` or of `*`. A price is of a model alone. */
export type PriceRow = { readonly item: string; readonly from: number; readonly says: ListCharge };

/** The rows of a list by their items, oldest first. */
export type PriceList = {
  readonly name: string;
  readonly items: ReadonlyMap<string, readonly PriceRow[]>;
};

export function priceListOf(name: string, rows: readonly PriceRow[]): PriceList {
  const items = new Map<string, PriceRow[]>();
  for (const row of rows.toSorted((a, b) => a.from - b.from)) {
    const known = items.get(row.item);
    if (known === undefined) items.set(row.item, [row]);
    else known.push(row);
  }
  return { name, items };
}

/** The lists that say what a customer pays, the first first: the organization's own, then the region's. */
export type PriceLists = readonly PriceList[];

/** What a customer pays at a moment (Unix ms). `list`: the name of its own price list, null without one. */
export type Pricing = {
  readonly list: string | null;
  readonly at: number;
  readonly lists: PriceLists;
};

/** The prices of this moment for an organization, by the list that its wallet named last. Failure: prices_unavailable. */
export type PricingFor = {
  /** As far as this isolate knows. */
  readonly current: (orgId: string, at: number) => Promise<Result<Pricing>>;
  /** As the organization's wallet says: which is remembered. */
  readonly corrected: (orgId: string, list: string | null, at: number) => Promise<Result<Pricing>>;
};

/** The catalog's own prices. */
export const NO_LISTS: Pricing = { list: null, at: 0, lists: [] };

type Rule = { readonly list: string; readonly row: PriceRow };

/** A model at a moment as who has these lists pays for it; the model itself where none of them names it. */
export function pricedModel(model: Model, { lists, at }: Pick<Pricing, "lists" | "at">): Model {
  const rule = ruleFor(model, lists, at);
  if (rule === null) return model;
  return { ...model, routes: model.routes.map((route) => pricedRoute(model, route, rule)) };
}

/**
 * The row that is in force: of the first list that has one for the model, the most specific that has begun; of each
 * item the newest. `maker/*` and `*` leave an entry of MODELS at its own price.
 */
function ruleFor(model: Model, lists: PriceLists, at: number): Rule | null {
  for (const { name, items } of lists) {
    for (const item of itemsOf(model)) {
      const row = items.get(item)?.findLast(({ from }) => from <= at);
      if (row !== undefined) return { list: name, row };
    }
  }
  return null;
}

/** What a row may name a model by, the most specific first. */
function itemsOf({ id, isConfigured }: Model): readonly string[] {
  return isConfigured === true ? [id] : [id, `${id.slice(0, id.indexOf("/"))}/*`, "*"];
}

function pricedRoute(model: Model, route: Route, { list, row }: Rule): Route {
  const { from, says } = row;
  if (says.price !== undefined) {
    const { longPrompt, ...rest } = route;
    const origin = { from, list };
    const long = longPrompt === undefined ? {} : { longPrompt: dearer(longPrompt, says.price) };
    return { ...rest, price: says.price, ...long, origin };
  }
  const base = model.isConfigured === true ? route : (route.bought ?? route);
  return { ...route, ...raisedPrices(base, says.percent), origin: since(route, { from, list }) };
}

/** A long prompt at a list's own price is as much dearer as the provider has it. */
function dearer(long: NonNullable<Route["longPrompt"]>, price: Price) {
  return long.percents === undefined
    ? { ...long, price }
    : { ...long, price: longPromptPrice(price, long.percents) };
}

/** A percentage is of a price that has a day itself: the later of the two. */
function since({ origin }: Route, { from, list }: { from: number; list: string }): PriceOrigin {
  return { from: Math.max(from, origin?.from ?? from), list };
}

/** The moments to come at which what these lists say of a model may change. */
export function upcomingChanges(
  model: Model,
  { lists, at }: Pick<Pricing, "lists" | "at">,
): readonly number[] {
  const rows = lists.flatMap(({ items }) =>
    itemsOf(model).flatMap((item) => items.get(item) ?? []),
  );
  return rows.map(({ from }) => from).filter((from) => from > at);
}
