import type { RouteEntry } from "../src/catalog/entry.ts";

const DAY_MS = 86_400_000;

/** Older than this a price should be looked up again. */
export const PRICE_DAYS = 60;

/**
 * Whether a price should be looked up again: it was seen more than `days` ago, or the day until which it
 * was announced has passed. `today` is Unix ms.
 */
export function isStale(
  { pricedOn, until }: Pick<RouteEntry, "pricedOn" | "until">,
  today: number,
  days: number,
): boolean {
  const isOver = until !== undefined && today >= Date.parse(until) + DAY_MS;
  return isOver || today - Date.parse(pricedOn) > days * DAY_MS;
}
