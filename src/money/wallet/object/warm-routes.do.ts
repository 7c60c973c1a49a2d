import type { WarmRoute } from "../../../shared/generation.ts";
import { deleteWarmRoute, putWarmRoute, selectWarmRoutes } from "../tables/warm-rows.do.ts";
import type { WarmRouteState } from "../tables/warm-rows.do.ts";
import type { Tx } from "./memory.do.ts";

const WARM_ROUTES_MAX = 1000;

/**
 * Returns the route whose provider has cached the conversation's prompt, and restarts the cache's
 * lifetime. Writes the row only after half of the stored lifetime.
 */
export function findWarmRoute(tx: Tx, affinity: string): string | null {
  const known = loadWarmRoutes(tx).get(affinity);
  if (known === undefined || known.until <= tx.nowMs) return null;
  const until = tx.nowMs + known.seconds * 1000;
  const all = loadWarmRoutes(tx);
  all.delete(affinity);
  all.set(affinity, { ...known, until });
  if (known.stored - tx.nowMs < known.seconds * 500) storeWarmRoute(tx, affinity);
  return known.route;
}

export function setWarmRoute(tx: Tx, { affinity, route, seconds }: WarmRoute): void {
  const { nowMs, sql } = tx;
  const known = loadWarmRoutes(tx);
  const until = nowMs + seconds * 1000;
  known.delete(affinity);
  for (const [other, one] of known) {
    if (one.until > nowMs && known.size < WARM_ROUTES_MAX) break;
    known.delete(other);
    deleteWarmRoute(sql, other);
  }
  known.set(affinity, { route, seconds, until, stored: until });
  storeWarmRoute(tx, affinity);
}

function storeWarmRoute(tx: Tx, affinity: string): void {
  const known = loadWarmRoutes(tx);
  const warm = known.get(affinity);
  if (warm === undefined) return;
  putWarmRoute(tx.sql, affinity, warm);
  known.set(affinity, { ...warm, stored: warm.until });
}

function loadWarmRoutes({ memory, sql }: Tx): Map<string, WarmRouteState> {
  memory.warmRoutes ??= selectWarmRoutes(sql);
  return memory.warmRoutes;
}
