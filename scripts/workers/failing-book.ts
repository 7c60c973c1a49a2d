import { replacedBook } from "./replaced-book.ts";

/**
 * What becomes of every statement. `lose`: it is carried out, but its answer never comes; `hang`: it is not,
 * and that is said late.
 */
export type Outage = { mode: "none" | "refuse" | "lose" | "hang"; failed: number };

const HANG_MS = 8000;

/** The same database, which fails as D1 does while there is an outage. */
export function failingBook(db: D1Database, outage: Outage): D1Database {
  const failing = (run: () => Promise<unknown>): Promise<unknown> => through(outage, run);
  return replacedBook(db, { statement: failing, batch: failing });
}

async function through(outage: Outage, run: () => Promise<unknown>): Promise<unknown> {
  const { mode } = outage;
  if (mode === "none") return run();
  outage.failed++;
  if (mode === "lose") await run();
  if (mode === "hang") await scheduler.wait(HANG_MS);
  throw new Error("D1_ERROR: Network connection lost.");
}
