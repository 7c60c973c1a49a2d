import type { Desk } from "./desk.do.ts";
import type { Vitals } from "./wallet-contract.ts";

/** How this wallet is now, for the region's metrics. */
export function vitalsOf({ memory, sql, clockMs }: Desk): Vitals {
  const { books, row, changed } = memory;
  let oldest = Infinity;
  for (const hold of books.holds.values()) oldest = Math.min(oldest, hold.admittedAt);
  return {
    openHolds: books.holds.size,
    oldestHoldMs: oldest === Infinity ? null : Math.max(0, clockMs - oldest),
    isUnpublished: changed,
    isInConflict: row.conflict !== null,
    bytes: sql.databaseSize,
  };
}
