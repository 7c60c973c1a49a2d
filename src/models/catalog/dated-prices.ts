import type { CatalogEntry, DatedPrice, RouteEntry } from "./entry.ts";
import { DAY_MS } from "../../shared/clock.ts";

export function dayOf(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10);
}

export function priceOn({ prices }: Pick<RouteEntry, "prices">, day: string): DatedPrice {
  return prices.findLast(({ from }) => from <= day) ?? prices[0];
}

export function hasRouteEnded({ until }: Pick<RouteEntry, "until">, day: string): boolean {
  return until !== undefined && day > until;
}

/** A time span in Unix ms. `until` is the first ms after it. */
export type Span = { readonly from: number; readonly until: number };

/** Returns the longest span around a time in which no price changes and no route ends. */
export function spanAround(entries: readonly CatalogEntry[], nowMs: number): Span {
  let [start, end] = [-Infinity, Infinity];
  for (const { prices, until } of entries.flatMap(({ routes }) => routes)) {
    const changes = prices.slice(1).map(({ from }) => Date.parse(from));
    if (until !== undefined) changes.push(Date.parse(until) + DAY_MS);
    for (const change of changes) {
      if (change <= nowMs) start = Math.max(start, change);
      else end = Math.min(end, change);
    }
  }
  return { from: start, until: end };
}
