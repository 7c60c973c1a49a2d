import { readFileSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { readMigrations } from "../../scripts/migrations.ts";
import { schemaText } from "../../scripts/schema.ts";

const FILE = readFileSync(path.join(import.meta.dirname, "../../schema.sql"), "utf8");

describe("schema.sql", () => {
  it("matches the schema that the migrations create", () => {
    expect(FILE).toBe(schemaText());
  });

  it("creates exactly the tables and indexes that all migrations together create", () => {
    expect(objectsOf([FILE])).toEqual(
      objectsOf(readMigrations().flatMap(({ queries }) => queries)),
    );
  });

  it("gets a column that a new migration adds", () => {
    const added = { name: "9999_trial.sql", queries: ["ALTER TABLE keys ADD COLUMN trial TEXT"] };
    expect(schemaText([...readMigrations(), added])).toContain("trial TEXT");
  });
});

/** Returns every table and index that these statements create, by name. */
function objectsOf(statements: readonly string[]) {
  const database = new DatabaseSync(":memory:");
  for (const statement of statements) database.exec(statement);
  return database
    .prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name")
    .all();
}
