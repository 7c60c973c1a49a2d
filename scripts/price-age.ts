import { dayOf, hasRouteEnded, priceOn } from "../src/models/catalog/dated-prices.ts";
import type { RouteEntry } from "../src/models/catalog/entry.ts";

const DAY_MS = 86_400_000;

/** Older than this a price should be looked up again. */
export const PRICE_DAYS = 60;

/**
 * Whether a route's price should be looked up again: the one in force was seen more than `days` ago, or the day until which
 * it was announced has passed. `today` is Unix ms.
 */
export function isStale(
  route: Pick<RouteEntry, "prices" | "until">,
  today: number,
  days: number,
): boolean {
  const day = dayOf(today);
  const { seenOn } = priceOn(route, day);
  return hasRouteEnded(route, day) || today - Date.parse(seenOn) > days * DAY_MS;
}
