import { formatUtcDay, hasRouteEnded, getPriceOnDay } from "../src/models/catalog/price.ts";
import type { CatalogEntry, DatedPrice, ModelRouteEntry } from "../src/models/catalog/entry.ts";
import { CATALOG } from "../src/models/catalog/models.ts";
import { textTable } from "./table.ts";
import type { Column } from "./table.ts";

const DAY_MS = 86_400_000;

/** Maximum age of a checked price. */
export const PRICE_DAYS = 60;

/**
 * Reports whether a route's price must be checked again: it was last seen more than `days` ago, or
 * its announced end has passed. `today` is Unix ms.
 */
export function isStale(
  route: Pick<ModelRouteEntry, "prices" | "until">,
  today: number,
  days: number,
): boolean {
  const day = formatUtcDay(today);
  const { seenOn } = getPriceOnDay(route, day);
  return hasRouteEnded(route, day) || today - Date.parse(seenOn) > days * DAY_MS;
}

/** A model's route, with its current and later prices. */
type PricedRoute = {
  readonly model: CatalogEntry["id"];
  readonly route: ModelRouteEntry;
  readonly inForce: DatedPrice;
  readonly later: readonly DatedPrice[];
  readonly stale: boolean;
};

/** Returns every built-in route in the catalog's order. `today` is Unix ms. */
export function pricedRoutes(today: number, days: number): PricedRoute[] {
  return CATALOG.flatMap(({ id: model, routes }) =>
    routes.map((route) => {
      const inForce = getPriceOnDay(route, formatUtcDay(today));
      const later = route.prices.slice(route.prices.indexOf(inForce) + 1);
      return { model, route, inForce, later, stale: isStale(route, today, days) };
    }),
  );
}

/** Returns a JSON array of routes, with prices in micro-credits per million tokens. */
export function jsonOfPrices(routes: readonly PricedRoute[]): string {
  return JSON.stringify(routes.map(recordOf), undefined, 2);
}

const COLUMNS: readonly Column[] = [
  { title: "model" },
  { title: "route" },
  { title: "input", align: "right" },
  { title: "cached", align: "right" },
  { title: "write", align: "right" },
  { title: "output", align: "right" },
  { title: "priced on" },
  { title: "stale" },
  { title: "and" },
];

/** Returns a table in dollars per million tokens, and the number of stale prices. */
export function tableOfPrices(routes: readonly PricedRoute[]): string {
  const rows = routes.map(({ model, route, inForce, later, stale }) => [
    model,
    `${route.provider} ${route.upstreamId}`,
    ...PRICES.map((name) => dollars(inForce.price[name])),
    inForce.seenOn,
    stale ? "STALE" : "",
    extras(route, later),
  ]);
  const stale = routes.filter((route) => route.stale).length;
  return `${textTable(COLUMNS, rows)}\n\nDollars per million tokens at list price; ${stale} of ${routes.length} stale.`;
}

const PRICES = ["input", "cached", "cacheWrite", "output"] as const;

function dollars(micros: number): string {
  return String(micros / 1_000_000);
}

function extras(
  { regions, uplift, longPrompt, until }: ModelRouteEntry,
  later: readonly DatedPrice[],
): string {
  const named = regions.filter((region) => region !== "global");
  return [
    ...(named.length > 0 ? [`${named.join("/")}${uplift ? ` +${uplift}%` : ""}`] : []),
    ...(longPrompt
      ? [
          `>${longPrompt.above} tokens x${longPrompt.inputPercent / 100}/x${longPrompt.outputPercent / 100}`,
        ]
      : []),
    ...later.map(
      ({ from, price }) => `from ${from} ${dollars(price.input)}/${dollars(price.output)}`,
    ),
    ...(until === undefined ? [] : [`until ${until}`]),
  ].join(", ");
}

function recordOf({ model, route, inForce, later, stale }: PricedRoute): object {
  const { provider, upstreamId, until, regions, uplift, longPrompt } = route;
  return {
    model,
    provider,
    upstream_id: upstreamId,
    ...fieldsOf(inForce.price),
    long_prompt: longPrompt
      ? {
          above: longPrompt.above,
          input_percent: longPrompt.inputPercent,
          output_percent: longPrompt.outputPercent,
        }
      : null,
    regions,
    uplift_percent: uplift ?? 0,
    priced_on: inForce.seenOn,
    next: later.map(({ from, price }) => ({ from, ...fieldsOf(price) })),
    until: until ?? null,
    stale,
  };
}

function fieldsOf({ input, cached, cacheWrite, output, units }: DatedPrice["price"]): object {
  return { input, cached, cache_write: cacheWrite, output, ...units };
}
