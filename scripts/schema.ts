// npm run schema: applies migrations/ to an empty SQLite database and writes the resulting schema to schema.sql.
import { writeFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { readMigrations } from "./migrations.ts";

const HEADER = `-- The schema of each region's D1 database after all migrations.
-- Generated: change it with a new file in migrations/, then run \`npm run schema\`.
`;

/** Returns the text of schema.sql: the tables in order of creation, each followed by its indexes. */
export function schemaText(migrations = readMigrations()): string {
  const database = new DatabaseSync(":memory:");
  for (const { queries } of migrations) for (const query of queries) database.exec(query);
  const tables = database
    .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")
    .all();
  // A NULL `sql` belongs to the automatic index of a UNIQUE column.
  const others = database.prepare(
    "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type <> 'table' AND sql IS NOT NULL ORDER BY rowid",
  );
  const blocks = tables.map(({ name, sql }) => {
    const statements = [sql, ...others.all(String(name)).map((other) => other["sql"])];
    return statements.map((statement) => `${String(statement)};\n`).join("");
  });
  database.close();
  return [HEADER, ...blocks].join("\n");
}

if (import.meta.main) {
  writeFileSync(path.join(import.meta.dirname, "../schema.sql"), schemaText());
}
