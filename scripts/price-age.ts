import { dayOf, hasRouteEnded, priceOn } from "../src/models/catalog/price.ts";
import type { RouteEntry } from "../src/models/catalog/entry.ts";

const DAY_MS = 86_400_000;

/** Maximum age of a checked price. */
export const PRICE_DAYS = 60;

/**
 * Reports whether a route's price must be checked again: it was last seen more than `days` ago, or
 * its announced end has passed. `today` is Unix ms.
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
