import { replaced } from "./replaced.ts";

/**
 * What becomes of every statement. `lose`: it is carried out, but its answer never comes; `hang`: it is not,
 * and that is said late.
 */
export type Outage = { mode: "none" | "refuse" | "lose" | "hang"; failed: number };

const HANG_MS = 8000;

type Run = (...parameters: unknown[]) => Promise<unknown>;

const statements = new WeakMap<object, D1PreparedStatement>();
const RUNS = new Set<string | symbol>(["run", "all", "first", "raw"]);

/** The same database, which fails as D1 does while there is an outage. */
export function failingBook(db: D1Database, outage: Outage): D1Database {
  return replaced(db, (property) => {
    if (property === "prepare") return (sql: string) => failingStatement(db.prepare(sql), outage);
    if (property !== "batch") return undefined;
    return (batch: D1PreparedStatement[]) =>
      through(outage, () => db.batch(batch.map((one) => statements.get(one) ?? one)));
  });
}

function failingStatement(statement: D1PreparedStatement, outage: Outage): D1PreparedStatement {
  const failing = replaced(statement, (property, real) => {
    if (property === "bind") {
      return (...values: unknown[]) => failingStatement(statement.bind(...values), outage);
    }
    if (!RUNS.has(property)) return undefined;
    return (...parameters: unknown[]) =>
      through(outage, () => (real as Run).apply(statement, parameters));
  });
  statements.set(failing, statement);
  return failing;
}

async function through(outage: Outage, run: () => Promise<unknown>): Promise<unknown> {
  const { mode } = outage;
  if (mode === "none") return run();
  outage.failed++;
  if (mode === "lose") await run();
  if (mode === "hang") await scheduler.wait(HANG_MS);
  throw new Error("D1_ERROR: Network connection lost.");
}
