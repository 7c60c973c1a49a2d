import { experimental_readRawConfig, unstable_readConfig } from "wrangler";
import type { Unstable_Config } from "wrangler";
import { findRegion } from "../../src/shared/regions.ts";
import type { RegionName } from "../region-names.ts";

process.env["WRANGLER_LOG"] ??= "error"; // hides wrangler's warnings

type WithVars = { readonly vars: Readonly<Record<string, unknown>> };

/**
 * The configuration of an environment and of the file's other environments, as wrangler reads them.
 */
export type Settings = {
  /** The environment: a region's name or another one, such as `eu-staging`. */
  readonly env: string;
  readonly region: RegionName;
  readonly config: Unstable_Config;
  readonly others: ReadonlyMap<string, Unstable_Config>;
};

/**
 * Reads the settings. Returns null if the file is invalid, or has no such environment or region.
 */
export function readSettings(file: string, env: string): Settings | null {
  const config = readEnvironment(file, env);
  // An environment with a region's name is that region. A different REGION is reported later.
  const region = findRegion(env) ?? findRegion(textOf(config?.vars["REGION"]));
  if (config === null || region === undefined) return null;
  const others = new Map<string, Unstable_Config>();
  for (const name of environmentsIn(file).filter((one) => one !== env)) {
    const other = readEnvironment(file, name);
    if (other !== null) others.set(name, other);
  }
  return { env, region, config, others };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** Returns the file's environments, or none if it is invalid. */
export function environmentsIn(file: string): string[] {
  try {
    return Object.keys(experimental_readRawConfig({ config: file }).rawConfig.env ?? {});
  } catch {
    return [];
  }
}

/** Reads the file's environment. Hides wrangler's error, which can quote a line with a secret. */
function readEnvironment(file: string, env: string): Unstable_Config | null {
  try {
    return unstable_readConfig({ config: file, env });
  } catch {
    return null;
  }
}

export function databaseOf({ env, config }: Settings): string {
  const database = config.d1_databases.find(({ binding }) => binding === "DB");
  return database?.database_name ?? `turnpike-${env}`;
}

/** Returns a region's host names, and whether each is a custom domain. */
export function addressesOf(
  config: Unstable_Config,
): readonly { readonly host: string; readonly isCustomDomain: boolean }[] {
  const routes = config.routes ?? (config.route === undefined ? [] : [config.route]);
  return routes.map((route) => {
    const pattern = typeof route === "string" ? route : route.pattern;
    const isCustomDomain = typeof route === "object" && route.custom_domain === true;
    return { host: pattern.replace(/\/.*$/s, "").toLowerCase(), isCustomDomain };
  });
}

/** Returns the valid entries of PEERS. `parseConfig` reports the others. */
export function peersOf(
  config: WithVars,
): readonly { readonly region: string; readonly url: string }[] {
  return entriesOf(config, "PEERS").flatMap(({ region, url }) =>
    typeof region === "string" && typeof url === "string" ? [{ region, url }] : [],
  );
}

/** Returns the objects in a variable's JSON array, or none for other values. */
export function entriesOf(
  config: WithVars,
  variable: string,
): readonly Readonly<Record<string, unknown>>[] {
  const text = config.vars[variable];
  if (typeof text !== "string") return [];
  try {
    const value: unknown = JSON.parse(text);
    if (!Array.isArray(value)) return [];
    return value.filter((entry) => typeof entry === "object" && entry !== null);
  } catch {
    return [];
  }
}

/** Returns the secrets that a region needs to serve requests. */
export function requiredSecrets(config: WithVars): readonly string[] {
  const links = peersOf(config).flatMap(({ region }) => {
    const name = region.toUpperCase();
    return [`PEER_OUT_${name}`, `PEER_IN_${name}`];
  });
  return [...new Set(["KEY_SECRETS", "ADMIN_TOKEN", ...links])];
}
