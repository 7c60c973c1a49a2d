import { unstable_readConfig } from "wrangler";
import type { Unstable_Config } from "wrangler";
import { REGION_NAMES } from "../region-names.ts";
import type { RegionName } from "../region-names.ts";

process.env["WRANGLER_LOG"] ??= "error"; // its warnings are not ours to repeat

/** What wrangler.toml says of a region, as wrangler itself reads it, and of the others it knows. */
export type Settings = {
  readonly region: RegionName;
  readonly config: Unstable_Config;
  readonly others: ReadonlyMap<RegionName, Unstable_Config>;
};

/** Null where wrangler cannot read the file or there is no such region in it. */
export function readSettings(file: string, region: RegionName): Settings | null {
  const config = readRegion(file, region);
  if (config === null) return null;
  const others = new Map<RegionName, Unstable_Config>();
  for (const name of REGION_NAMES.filter((one) => one !== region)) {
    const other = readRegion(file, name);
    if (other !== null) others.set(name, other);
  }
  return { region, config, others };
}

/** Wrangler's own words are left out: they may show a line of the file, and a secret may stand there. */
function readRegion(file: string, region: RegionName): Unstable_Config | null {
  try {
    return unstable_readConfig({ config: file, env: region });
  } catch {
    return null;
  }
}

/** The name of a region's database. */
export function databaseOf({ region, config }: Settings): string {
  const database = config.d1_databases.find(({ binding }) => binding === "DB");
  return database?.database_name ?? `turnpike-${region}`;
}

/** The host names at which a region answers, and whether each is a custom domain. */
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

/** The entries of PEERS, as far as they are entries: parseConfig says what is wrong with the others. */
export function peersOf(
  config: Unstable_Config,
): readonly { readonly region: string; readonly url: string }[] {
  return entriesOf(config, "PEERS").flatMap(({ region, url }) =>
    typeof region === "string" && typeof url === "string" ? [{ region, url }] : [],
  );
}

/** The objects in the JSON array of a var; none where it is something else. */
export function entriesOf(
  config: Unstable_Config,
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

/** The secrets without which this region serves nothing. */
export function requiredSecrets(config: Unstable_Config): readonly string[] {
  const links = peersOf(config).flatMap(({ region }) => {
    const name = region.toUpperCase();
    return [`PEER_OUT_${name}`, `PEER_IN_${name}`];
  });
  return [...new Set(["KEY_SECRETS", "ADMIN_TOKEN", ...links])];
}
