import type { Config, ConfigProblem, ProviderEntry } from "../config.ts";
import { openAiCompatible } from "./openai-compatible.ts";
import { OPENAI_PROFILE, PROFILES } from "./profile.ts";
import type { Provider } from "./provider.ts";

/** What the providers need of the configuration. */
export type ProviderConfig = Pick<Config, "region" | "sandbox" | "providers" | "secret">;

/** A provider that is configured here, and where its hosts promise to run. */
export type ConfiguredProvider = {
  readonly id: string;
  readonly regions: readonly ("eu" | "us" | "global")[];
};

const OPENAI_HOSTS = {
  eu: "https://eu.api.openai.com/v1",
  us: "https://us.api.openai.com/v1",
} as const;
const OPENAI_KEY = "OPENAI_API_KEY";
const OPENAI_BASE_URL = "OPENAI_BASE_URL";

/** Every provider of this deployment by id; those whose secret is named but not set are left out. */
export function buildProviders(
  config: ProviderConfig,
  sandbox: Provider,
): ReadonlyMap<string, Provider> {
  const providers = new Map<string, Provider>();
  const openAiKey = config.secret(OPENAI_KEY);
  if (openAiKey !== undefined) {
    const baseUrl = config.secret(OPENAI_BASE_URL) ?? OPENAI_HOSTS[config.region];
    const host = { id: "openai", baseUrl, profile: OPENAI_PROFILE, secret: openAiKey };
    providers.set("openai", openAiCompatible(host));
  }
  for (const entry of config.providers.filter((one) => isConfigured(one, config))) {
    const provider = providerOfEntry(entry, config);
    if (provider !== null) providers.set(entry.id, provider);
  }
  if (config.sandbox) providers.set(sandbox.id, sandbox);
  return providers;
}

/** The same providers as the catalogue needs them: ids and host tags. */
export function liveProviders(config: ProviderConfig): readonly ConfiguredProvider[] {
  const live: ConfiguredProvider[] = [];
  // The regional hosts, and a proxy set by whoever runs this region, keep to the region.
  if (config.secret(OPENAI_KEY) !== undefined) {
    live.push({ id: "openai", regions: [config.region] });
  }
  for (const entry of config.providers.filter((one) => isConfigured(one, config))) {
    live.push({ id: entry.id, regions: entry.regions });
  }
  if (config.sandbox) live.push({ id: "sandbox", regions: [config.region] });
  return live;
}

/** What in PROVIDERS and OPENAI_BASE_URL cannot work; a deployment with problems must not serve. */
export function providerProblems(config: ProviderConfig): readonly ConfigProblem[] {
  const problems = config.providers
    .filter((entry) => !PROFILES.has(entry.profile))
    .map((entry) => ({
      variable: "PROVIDERS",
      problem: `"${entry.id}" has an unknown profile; choose ${[...PROFILES.keys()].join(" or ")}`,
    }));
  const webOnly = config.providers
    .filter((entry) => !isWebAddress(entry.base_url))
    .map((entry) => ({
      variable: "PROVIDERS",
      problem: `"${entry.id}" needs a base_url of http or https, without user or password`,
    }));
  const proxy = config.secret(OPENAI_BASE_URL);
  const badProxy = proxy !== undefined && !isWebAddress(proxy);
  const proxyProblem = { variable: OPENAI_BASE_URL, problem: "must be an http or https address" };
  return [...problems, ...webOnly, ...(badProxy ? [proxyProblem] : [])];
}

function providerOfEntry(entry: ProviderEntry, config: ProviderConfig): Provider | null {
  const profile = PROFILES.get(entry.profile);
  if (profile === undefined) return null;
  const secret = entry.secret === undefined ? undefined : config.secret(entry.secret);
  return openAiCompatible({
    id: entry.id,
    baseUrl: entry.base_url,
    profile,
    ...(secret !== undefined && { secret }),
  });
}

/** An entry without a secret needs none; one that names a secret waits for it to be set. */
function isConfigured(entry: ProviderEntry, config: ProviderConfig): boolean {
  if (!PROFILES.has(entry.profile)) return false;
  return entry.secret === undefined || config.secret(entry.secret) !== undefined;
}

function isWebAddress(address: string): boolean {
  const url = URL.parse(address);
  if (url === null || url.username !== "" || url.password !== "") return false;
  return url.protocol === "https:" || url.protocol === "http:";
}
