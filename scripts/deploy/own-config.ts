import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { experimental_readRawConfig } from "wrangler";
import { MERGED_FILE, OWN_FILE, SHARED_FILE } from "./files.ts";
import { error } from "./finding.ts";
import type { Finding } from "./finding.ts";
import { requiredSecrets } from "./settings.ts";

/** The first command of each deploy, which fails if the merged file is outdated. */
const FRESH_COMMAND = "node_modules/.bin/node scripts/deploy-config.ts --fresh";
const HEAD = `// Generated from ${SHARED_FILE} and ${OWN_FILE} by npm run deploy:config. Change those files instead.\n`;

type Table = Readonly<Record<string, unknown>>;

/**
 * Returns the merged file of a folder, or null without OWN_FILE. Throws wrangler's error for an
 * invalid file.
 */
export function mergedText(folder: string): string | null {
  const own = path.join(folder, OWN_FILE);
  if (!existsSync(own)) return null;
  const merged = mergeEnvironments(tableIn(path.join(folder, SHARED_FILE)), tableIn(own));
  const build = isTable(merged["build"]) ? merged["build"] : {};
  const after = typeof build["command"] === "string" ? ` && ${build["command"]}` : "";
  const command = `${FRESH_COMMAND}${after}`;
  return `${HEAD}${JSON.stringify({ ...merged, build: { ...build, command } }, null, 2)}\n`;
}

/** Reports whether a folder's merged file matches its sources, or is missing and not needed. */
export function isFresh(folder: string): boolean {
  const file = path.join(folder, MERGED_FILE);
  return mergedText(folder) === (existsSync(file) ? readFileSync(file, "utf8") : null);
}

/** Reports an outdated merged file. Ignores other files. */
export function staleFindings(file: string): Finding[] {
  if (path.basename(file) !== MERGED_FILE || isFresh(path.dirname(file))) return [];
  const problem = `does not match ${SHARED_FILE} and ${OWN_FILE}`;
  return [error(MERGED_FILE, problem, "npm run deploy:config")];
}

/**
 * Overrides `shared` with `own`. An environment that only `own` has (`eu-staging`) is based on the
 * shared one of its REGION. Each environment requires the secrets of its PEERS, so that wrangler
 * rejects a deploy without them.
 */
function mergeEnvironments(shared: Table, own: Table): Table {
  const bases = tableAt(shared, "env");
  const environments = Object.entries({ ...bases, ...tableAt(own, "env") }).map(([name, one]) => {
    const base = bases[name] ?? baseOf(bases, name, one);
    const merged = mergeTables(isTable(base) ? base : {}, tableAt(tableAt(own, "env"), name));
    return [name, { ...merged, secrets: secretsOf(merged) }] as const;
  });
  return { ...mergeTables(shared, own), env: Object.fromEntries(environments) };
}

/** Returns the region's environment with its own names of the Worker and the database. */
function baseOf(bases: Table, name: string, own: unknown): Table {
  const region = tableAt(own, "vars")["REGION"];
  const base = bases[String(region)];
  if (!isTable(base)) return {};
  const databases = base["d1_databases"];
  const renamed = isBindings(databases)
    ? databases.map((one) =>
        mergeTables(one, { database_name: `turnpike-${name}`, database_id: "" }),
      )
    : [];
  return { ...base, name: `turnpike-${name}`, d1_databases: renamed };
}

function secretsOf(environment: Table): Table {
  const own = tableAt(environment, "secrets");
  const listed: unknown = own["required"] ?? [];
  const derived = requiredSecrets({ vars: tableAt(environment, "vars") });
  return { ...own, required: [...new Set([...(Array.isArray(listed) ? listed : []), ...derived])] };
}

function tableAt(table: unknown, key: string): Table {
  const value = isTable(table) ? table[key] : undefined;
  return isTable(value) ? value : {};
}

/**
 * Merges tables by key and lists of bindings by `binding`. Other values of `own` replace the shared
 * ones.
 */
export function mergeTables(shared: Table, own: Table): Table {
  const merged: Record<string, unknown> = { ...shared };
  for (const [key, value] of Object.entries(own)) merged[key] = mergeValues(shared[key], value);
  return merged;
}

function mergeValues(shared: unknown, own: unknown): unknown {
  if (isTable(shared) && isTable(own)) return mergeTables(shared, own);
  if (isBindings(shared) && isBindings(own)) {
    const added = own.filter(({ binding }) => shared.every((one) => one["binding"] !== binding));
    const kept = shared.map((one) =>
      mergeTables(one, own.find(({ binding }) => binding === one["binding"]) ?? {}),
    );
    return [...kept, ...added];
  }
  return own;
}

function tableIn(file: string): Table {
  return experimental_readRawConfig({ config: file }).rawConfig as Table;
}

function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isBindings(value: unknown): value is readonly Table[] {
  return Array.isArray(value) && value.every((one) => isTable(one) && "binding" in one);
}
