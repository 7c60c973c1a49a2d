import { proxyOf } from "./replaced.ts";
import type { Method } from "./replaced.ts";

/**
 * A replacement for running a statement or batch. It can run it, change its result, or not run it.
 */
type Run = (run: () => Promise<unknown>) => Promise<unknown>;

const statements = new WeakMap<object, D1PreparedStatement>();
const RUNS = new Set<string | symbol>(["run", "all", "first", "raw"]);

export function replacedDatabase(
  db: D1Database,
  { statement, batch }: { readonly statement: Run; readonly batch: Run },
): D1Database {
  return proxyOf(db, (property) => {
    if (property === "prepare") {
      return (sql: string) => replacedStatement(db.prepare(sql), statement);
    }
    if (property !== "batch") return undefined;
    return (all: D1PreparedStatement[]) =>
      batch(() => db.batch(all.map((one) => statements.get(one) ?? one)));
  });
}

function replacedStatement(statement: D1PreparedStatement, through: Run): D1PreparedStatement {
  const made = proxyOf(statement, (property, real) => {
    if (property === "bind") {
      return (...values: unknown[]) => replacedStatement(statement.bind(...values), through);
    }
    if (!RUNS.has(property)) return undefined;
    return (...parameters: unknown[]) =>
      through(async () => (real as Method).apply(statement, parameters));
  });
  statements.set(made, statement);
  return made;
}
