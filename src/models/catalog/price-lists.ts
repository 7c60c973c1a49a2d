import type { Result } from "../../shared/failure.ts";
import type { Price } from "../../shared/usage.ts";
import type { Model, Route } from "./model.ts";
import { scaleTokenPrices, applyMarkupToPrices } from "./price.ts";

/**
 * The region's price list. It applies to models that an organization's own list doesn't contain.
 */
export const REGION_PRICE_LIST = "default";

/** A price, or a markup in percent on the catalog's price. */
export type PriceOrMarkup =
  | { readonly price: Price; readonly percent?: never }
  | { readonly percent: number; readonly price?: never };

/**
 * A price or markup that starts at a time (Unix ms). The item is a model ID, `author/*` or `*`.
 * Wildcards can only have a markup.
 */
export type PriceRow = {
  readonly item: string;
  readonly from: number;
  readonly says: PriceOrMarkup;
};

export type PriceList = {
  readonly name: string;
  readonly items: ReadonlyMap<string, readonly PriceRow[]>;
};

export function createPriceList(name: string, rows: readonly PriceRow[]): PriceList {
  const items = new Map<string, PriceRow[]>();
  for (const row of rows.toSorted((a, b) => a.from - b.from)) {
    const known = items.get(row.item);
    if (known === undefined) items.set(row.item, [row]);
    else known.push(row);
  }
  return { name, items };
}

export type PriceLists = readonly PriceList[];

/**
 * A customer's price lists at the time `at` (Unix ms). `list` is the name of the customer's own
 * list.
 */
export type Pricing = {
  readonly list: string | null;
  readonly at: number;
  readonly lists: PriceLists;
};

/**
 * Functions that return an organization's price lists, or `prices_unavailable`. `current` uses the
 * cached name of the organization's list. `corrected` uses the name that the wallet returned.
 */
export type PricingLookup = {
  readonly current: (orgId: string, at: number) => Promise<Result<Pricing>>;
  readonly corrected: (orgId: string, list: string | null, at: number) => Promise<Result<Pricing>>;
};

/** Empty price lists: the catalog's own prices apply. */
export const NO_PRICE_LISTS: Pricing = { list: null, at: 0, lists: [] };

type PriceRule = { readonly list: string; readonly row: PriceRow };

export function applyPriceLists(model: Model, { lists, at }: Pick<Pricing, "lists" | "at">): Model {
  const rule = ruleFor(model, lists, at);
  if (rule === null) return model;
  return { ...model, routes: model.routes.map((route) => pricedRoute(model, route, rule)) };
}

/**
 * Returns a model's price: in the first list with a started price, the latest started row of the
 * most specific item. Wildcards never match models of MODELS.
 */
function ruleFor(model: Model, lists: PriceLists, at: number): PriceRule | null {
  for (const { name, items } of lists) {
    for (const item of itemNamesOf(model)) {
      const row = items.get(item)?.findLast(({ from }) => from <= at);
      if (row !== undefined) return { list: name, row };
    }
  }
  return null;
}

function itemNamesOf({ id, isConfigured }: Model): readonly string[] {
  return isConfigured === true ? [id] : [id, `${id.slice(0, id.indexOf("/"))}/*`, "*"];
}

function pricedRoute(model: Model, route: Route, { list, row }: PriceRule): Route {
  const { from, says } = row;
  if (says.price !== undefined) {
    const { longPrompt, ...rest } = route;
    const origin = { from, list };
    const long =
      longPrompt === undefined ? {} : { longPrompt: longPromptAt(longPrompt, says.price) };
    return { ...rest, price: says.price, ...long, origin };
  }
  const base = model.isConfigured === true ? route : (route.bought ?? route);
  return {
    ...route,
    ...applyMarkupToPrices(base, says.percent),
    origin: { from: Math.max(from, route.origin?.from ?? from), list },
  };
}

function longPromptAt(long: NonNullable<Route["longPrompt"]>, price: Price) {
  return long.percents === undefined
    ? { ...long, price }
    : { ...long, price: scaleTokenPrices(price, long.percents) };
}

export function listUpcomingPriceChangeTimes(
  model: Model,
  { lists, at }: Pick<Pricing, "lists" | "at">,
): readonly number[] {
  const rows = lists.flatMap(({ items }) =>
    itemNamesOf(model).flatMap((item) => items.get(item) ?? []),
  );
  return rows.map(({ from }) => from).filter((from) => from > at);
}
