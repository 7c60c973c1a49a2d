import { readMigrations } from "../migrations.ts";
import { askWrangler, namesIn } from "./ask-wrangler.ts";
import { error, note, warning } from "./finding.ts";
import type { Finding } from "./finding.ts";

const WHERE = "migrations";

/** Migrations of a region's database, or null if unknown. */
type AppliedMigrations = readonly string[] | null;

/** Reads the migrations through wrangler. A new database has none. */
export async function readAppliedMigrations(
  env: string,
  configFile: string,
): Promise<AppliedMigrations> {
  const query = "SELECT name FROM d1_migrations ORDER BY id";
  const where = ["--env", env, "--remote", "--json", "--config", configFile];
  const { ok, out, err } = await askWrangler(["d1", "execute", "DB", ...where, "--command", query]);
  if (ok) return namesIn(out, (json) => (json as { results?: unknown }[])[0]?.results);
  return /no such table: d1_migrations/.test(out + err) ? [] : null;
}

/**
 * Reports missing migrations, without which statements with new names fail. `undefined` means that
 * the database wasn't read.
 */
export function migrationFindings(
  env: string,
  database: string,
  applied: AppliedMigrations | undefined,
): Finding[] {
  const apply = `npx wrangler d1 migrations apply ${database} --env ${env} --remote`;
  if (applied === null || applied === undefined) {
    const list = `npx wrangler d1 migrations list ${database} --env ${env} --remote`;
    const remedy = `Check that this lists no migrations: ${list}. Otherwise run ${apply}`;
    if (applied === undefined) return [note(WHERE, "were not compared with the database", remedy)];
    return [
      warning(WHERE, "could not be compared, because the database could not be queried", remedy),
    ];
  }
  const own = readMigrations().map(({ name }) => name);
  const missing = own.filter((name) => !applied.includes(name));
  const newer = applied.filter((name) => !own.includes(name));
  return [
    ...missing.map((name) => error(WHERE, `the database lacks ${name}`, `${apply}, then deploy.`)),
    ...newer.map((name) =>
      note(WHERE, `the database has ${name}, of a newer release`, "This release works with it."),
    ),
  ];
}
