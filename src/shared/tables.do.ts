import { logAlert } from "./log.ts";

/** A migration of an object's tables to the next version. Never change a deployed migration. */
export type TableMigration = {
  readonly sql: string;
  /**
   * The oldest code version that can use the migrated tables. If the step only adds, repeat the
   * previous value.
   */
  readonly readableBy: number;
};

export type TableMigrations = { readonly name: string; readonly steps: readonly TableMigration[] };

/** Migrates tables, and reports whether there are any. Writes nothing to an empty object. */
export function migrateExistingTables(
  storage: DurableObjectStorage,
  tables: TableMigrations,
): boolean {
  if (!hasTables(storage.sql)) return false;
  createOrMigrateTables(storage, tables);
  return true;
}

/**
 * Creates or migrates tables. Keeps newer tables, but logs `tables_too_new` and throws if this
 * version can't read them.
 */
export function createOrMigrateTables(
  storage: DurableObjectStorage,
  { name, steps }: TableMigrations,
): void {
  const { sql } = storage;
  const { version, readableBy } = hasTables(sql) ? readVersion(sql) : NO_TABLES;
  if (readableBy > steps.length) {
    logAlert("tables_too_new", { tables: name, version, readable_by: readableBy });
    throw new Error(
      `the ${name} tables are of version ${version}, this program is ${steps.length}`,
    );
  }
  if (version >= steps.length) return;
  const missingSteps = steps.slice(version);
  storage.transactionSync(() => {
    if (version === 0) sql.exec(VERSION_TABLE);
    for (const step of missingSteps) sql.exec(step.sql);
    sql.exec(
      "INSERT OR REPLACE INTO schema_version (id, version, readable_by) VALUES (1, ?, ?)",
      steps.length,
      Math.max(readableBy, ...missingSteps.map((step) => step.readableBy)),
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

/**
 * Inserts a row of column values. `into` names the table: `INTO events` or `OR REPLACE INTO
 * events`.
 */
export function insertRow(
  sql: SqlStorage,
  into: string,
  row: Readonly<Record<string, SqlStorageValue>>,
): void {
  const columns = Object.keys(row);
  const values = columns.map(() => "?").join(", ");
  sql.exec(`INSERT ${into} (${columns.join(", ")}) VALUES (${values})`, ...Object.values(row));
}
