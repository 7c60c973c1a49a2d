import type { CatalogEntry, DatedPrice, RouteEntry } from "./entry.ts";
import { DAY_MS } from "../../shared/clock.ts";

/** The day of a moment, UTC: 2026-11-23. */
export function dayOf(nowMs: number): string {
  return new Date(nowMs).toISOString().slice(0, 10);
}

/** The price of a route on a day: the newest that has begun, else its first. */
export function priceOn({ prices }: Pick<RouteEntry, "prices">, day: string): DatedPrice {
  return prices.findLast(({ from }) => from <= day) ?? prices[0];
}

/** Whether the last day is over on which a route, or its last price, was announced to be there. */
export function hasEnded({ until }: Pick<RouteEntry, "until">, day: string): boolean {
  return until !== undefined && day > until;
}

/** From one moment to before another, Unix ms. */
export type Span = { readonly from: number; readonly until: number };

/** The time around a moment in which no price of these models changes, and no route ends. */
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
