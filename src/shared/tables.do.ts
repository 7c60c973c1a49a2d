import { logAlert } from "./log.ts";

/**
 * One step of an object's tables; its place among them, from 1, is the version that it makes. A step that was
 * ever deployed stays as it is, also when its release was taken back.
 */
export type TableStep = {
  readonly sql: string;
  /**
   * The oldest program that may read and write what this step leaves, by the number of steps that it knows. An
   * additive step (a table, an index, a column that an insert may leave out and whose null means what was true
   * without it) has that of the step before.
   */
  readonly readableBy: number;
};

/** The tables of one kind of object, step by step; `name` is for the log. */
export type Tables = { readonly name: string; readonly steps: readonly TableStep[] };

/**
 * Brings an object's tables to the newest version, and says whether there are any: asking writes nothing where
 * nothing was ever stored. Throws as `makeTables` does.
 */
export function openTables(storage: DurableObjectStorage, tables: Tables): boolean {
  if (!hasTables(storage.sql)) return false;
  makeTables(storage, tables);
  return true;
}

/**
 * Makes an object's tables, or brings them to the newest version: the steps that they lack, in one transaction.
 * Tables of a newer program are left as they are. Throws, and logs `tables_too_new`, when they say that this
 * program may not read them; nothing is changed then.
 */
export function makeTables(storage: DurableObjectStorage, { name, steps }: Tables): void {
  const { sql } = storage;
  const { version, readableBy } = hasTables(sql) ? readVersion(sql) : NO_TABLES;
  if (readableBy > steps.length) {
    logAlert("tables_too_new", { tables: name, version, readable_by: readableBy });
    throw new Error(
      `the ${name} tables are of version ${version}, this program is ${steps.length}`,
    );
  }
  if (version >= steps.length) return;
  const missing = steps.slice(version);
  storage.transactionSync(() => {
    if (version === 0) sql.exec(VERSION_TABLE);
    for (const step of missing) sql.exec(step.sql);
    sql.exec(
      "INSERT OR REPLACE INTO schema_version (id, version, readable_by) VALUES (1, ?, ?)",
      steps.length,
      Math.max(readableBy, ...missing.map((step) => step.readableBy)),
    );
  });
}

const VERSION_TABLE = `CREATE TABLE schema_version (
  id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL, readable_by INTEGER NOT NULL) STRICT`;
const NO_TABLES = { version: 0, readableBy: 0 };

function hasTables(sql: SqlStorage): boolean {
  return sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'schema_version'").toArray().length > 0;
}

function readVersion(sql: SqlStorage): typeof NO_TABLES {
  return sql
    .exec<typeof NO_TABLES>("SELECT version, readable_by AS readableBy FROM schema_version")
    .one();
}
