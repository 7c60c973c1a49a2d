import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { unstable_splitSqlQuery } from "wrangler";

const ROOT = path.join(import.meta.dirname, "..");

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
