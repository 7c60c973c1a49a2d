import { buildCatalog } from "../../src/models/catalog/catalog.ts";
import type { Catalog, ActiveProvider } from "../../src/models/catalog/catalog.ts";
import type { DataLocation, ProviderId } from "../../src/models/catalog/entry.ts";
import { parseConfig } from "../../src/shared/config/config.ts";
import type { Config } from "../../src/shared/config/config.ts";
import type { Region } from "../../src/shared/regions.ts";

const BASE = {
  KEY_SECRETS: `a:${"keys-secret-".padEnd(32, "0123")}`,
  ADMIN_TOKEN: "token-of-admin-".padEnd(32, "0123"),
  REGION: "eu",
};

/** The residency that each provider's hosts promise in the EU and in the US. */
const TAGS: Readonly<
  Record<Exclude<ProviderId, "sandbox">, readonly [eu: DataLocation[], us: DataLocation[]]>
> = {
  anthropic: [["global"], ["us", "global"]],
  bedrock: [["eu"], ["us"]],
  cerebras: [["global"], ["global"]],
  cohere: [["global"], ["global"]],
  deepseek: [["global"], ["global"]],
  elevenlabs: [["global"], ["global"]],
  fireworks: [["global"], ["global"]],
  google: [["global"], ["global"]],
  groq: [["global"], ["global"]],
  jina: [["global"], ["global"]],
  mistral: [["eu"], ["us"]],
  openai: [["eu"], ["us"]],
  together: [["global"], ["global"]],
  vertex: [["eu"], ["us"]],
  voyage: [["global"], ["global"]],
  "workers-ai": [["global"], ["global"]],
  xai: [["global"], ["global"]],
  "xai-us": [[], ["us"]],
};

export const PROVIDERS = Object.keys(TAGS) as (keyof typeof TAGS)[];

/** Returns the providers with these IDs, or all, as configured in this region. */
export function liveModelsIn(
  region: Region,
  ids: readonly (keyof typeof TAGS)[] = PROVIDERS,
): ActiveProvider[] {
  return ids.map((id) => ({ id, regions: TAGS[id][region === "eu" ? 0 : 1] }));
}

export function configWith(vars: Readonly<Record<string, string>>): Config {
  const parsed = parseConfig({ ...BASE, ...vars });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.config;
}

/** The date in the tests of the catalog. Models and prices can change later. */
const TODAY = Date.UTC(2026, 10, 23);

/** Returns the catalog of a deployment with these variables and providers. */
export function catalogOf(
  vars: Readonly<Record<string, string>>,
  live: readonly ActiveProvider[],
  at = TODAY,
): Catalog {
  return buildCatalog({ config: configWith(vars), live, at });
}
