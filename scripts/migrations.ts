import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import type { Miniflare } from "miniflare";
import { unstable_splitSqlQuery } from "wrangler";

const ROOT = path.join(import.meta.dirname, "..");

type Database = Awaited<ReturnType<Miniflare["getD1Database"]>>;
export type Migration = { readonly name: string; readonly queries: string[] };

/** Returns a checkout's migrations in the order in which wrangler applies them. */
export function readMigrations(root = ROOT): Migration[] {
  const folder = path.join(root, "migrations");
  const names = readdirSync(folder).filter((name) => name.endsWith(".sql"));
  return names.toSorted().map((name) => {
    const text = readFileSync(path.join(folder, name), "utf8");
    return { name, queries: unstable_splitSqlQuery(text) };
  });
}

/**
 * Applies missing migrations to a local database, each in a transaction, and records them in
 * wrangler's table.
 */
export async function applyMigrations(
  db: Database,
  migrations: readonly Migration[],
): Promise<void> {
  await db.exec(
    "CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)",
  );
  const { results } = await db.prepare("SELECT name FROM d1_migrations").all<{ name: string }>();
  const applied = new Set(results.map(({ name }) => name));
  for (const { name, queries } of migrations.filter((one) => !applied.has(one.name))) {
    const note = db.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(name);
    await db.batch([...queries.map((query) => db.prepare(query)), note]);
  }
}
