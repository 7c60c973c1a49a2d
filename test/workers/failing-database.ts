import { replacedDatabase } from "../../scripts/workers/replaced-book.ts";

/**
 * The effect on every statement. `lose`: runs it without a result. `hang`: doesn't run it and fails
 * late.
 */
export type Outage = { mode: "none" | "refuse" | "lose" | "hang"; failed: number };

const HANG_MS = 8000;

/** Returns the database with D1's failures during an outage. */
export function failingDatabase(db: D1Database, outage: Outage): D1Database {
  const failing = (run: () => Promise<unknown>): Promise<unknown> => runDuringOutage(outage, run);
  return replacedDatabase(db, { statement: failing, batch: failing });
}

async function runDuringOutage(outage: Outage, run: () => Promise<unknown>): Promise<unknown> {
  const { mode } = outage;
  if (mode === "none") return run();
  outage.failed++;
  if (mode === "lose") await run();
  if (mode === "hang") await scheduler.wait(HANG_MS);
  throw new Error("D1_ERROR: Network connection lost.");
}
