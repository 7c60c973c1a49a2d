import type { ConfigProblem, ProviderEntry } from "../../shared/config/config.ts";
import { ANTHROPIC_PROVIDER } from "./anthropic.ts";
import { BEDROCK_PROVIDER } from "./bedrock.ts";
import { isWebAddress } from "../core/built-in.ts";
import type { BuiltInProvider, DataLocation, ProviderConfig } from "../core/built-in.ts";
import { COHERE_PROVIDER } from "./cohere.ts";
import { ELEVENLABS_PROVIDER } from "./elevenlabs.ts";
import { GOOGLE_PROVIDERS } from "./google.ts";
import { OPENAI_COMPATIBLE_PROVIDERS } from "./openai-hosts.ts";
import { createOpenAiCompatibleProvider } from "./openai-compatible.ts";
import { PROVIDER_HOST_PROFILES } from "./profiles.ts";
import type { Provider } from "../core/provider.ts";
import { WORKERS_AI_PROVIDER } from "./workers-ai.ts";

export const BUILT_IN_PROVIDERS: readonly BuiltInProvider[] = [
  ...OPENAI_COMPATIBLE_PROVIDERS,
  ANTHROPIC_PROVIDER,
  BEDROCK_PROVIDER,
  COHERE_PROVIDER,
  ELEVENLABS_PROVIDER,
  ...GOOGLE_PROVIDERS,
  WORKERS_AI_PROVIDER,
];

type ConfiguredProvider = { readonly id: string; readonly regions: readonly DataLocation[] };

export function buildProviders(
  config: ProviderConfig,
  sandbox: Provider,
): ReadonlyMap<string, Provider> {
  const providers = new Map<string, Provider>();
  for (const builtIn of builtInHere(config)) providers.set(builtIn.id, builtIn.build(config));
  for (const entry of config.providers.filter((one) => isConfigured(one, config))) {
    const provider = providerOfEntry(entry, config);
    if (provider !== null) providers.set(entry.id, provider);
  }
  if (config.sandbox) providers.set(sandbox.id, sandbox);
  return providers;
}

export function listActiveProviders(config: ProviderConfig): readonly ConfiguredProvider[] {
  const active: ConfiguredProvider[] = builtInHere(config).map((builtIn) => {
    return { id: builtIn.id, regions: builtIn.tags(config) };
  });
  for (const entry of config.providers.filter((one) => isConfigured(one, config))) {
    active.push({ id: entry.id, regions: entry.regions });
  }
  if (config.sandbox) active.push({ id: "sandbox", regions: [config.region] });
  return active;
}

/** Returns the configuration problems that must stop the deployment from serving requests. */
export function findProviderProblems(config: ProviderConfig): readonly ConfigProblem[] {
  const profileProblems = config.providers
    .filter((entry) => !PROVIDER_HOST_PROFILES.has(entry.profile))
    .map((entry) => ({
      variable: "PROVIDERS",
      problem: `"${entry.id}" has an unknown profile; choose one of ${[...PROVIDER_HOST_PROFILES.keys()].join(", ")}`,
    }));
  const addressProblems = config.providers
    .filter((entry) => !isWebAddress(entry.base_url))
    .map((entry) => ({
      variable: "PROVIDERS",
      problem: `"${entry.id}" needs a base_url of http or https, without user or password`,
    }));
  return [
    ...profileProblems,
    ...addressProblems,
    ...BUILT_IN_PROVIDERS.flatMap((builtIn) => builtIn.problems(config)),
  ];
}

function builtInHere(config: ProviderConfig): readonly BuiltInProvider[] {
  return BUILT_IN_PROVIDERS.filter(
    (builtIn) =>
      builtIn.isSet(config) &&
      builtIn.tags(config).length > 0 &&
      builtIn.problems(config).length === 0,
  );
}

function providerOfEntry(entry: ProviderEntry, config: ProviderConfig): Provider | null {
  const profile = PROVIDER_HOST_PROFILES.get(entry.profile);
  if (profile === undefined) return null;
  const secret = entry.secret === undefined ? undefined : config.secret(entry.secret);
  return createOpenAiCompatibleProvider({
    id: entry.id,
    baseUrl: entry.base_url,
    profile,
    headers: headersOf(entry, config),
    ...(secret !== undefined && { secret }),
  });
}

function isConfigured(entry: ProviderEntry, config: ProviderConfig): boolean {
  if (!PROVIDER_HOST_PROFILES.has(entry.profile)) return false;
  const ownSecret = entry.secret === undefined ? [] : [entry.secret];
  const inHeaders = Object.values(entry.headers ?? {}).flatMap((value) => secretNamesIn(value));
  return [...ownSecret, ...inHeaders].every((name) => config.secret(name) !== undefined);
}

const SECRET_REFERENCE = /\$([A-Z][A-Z0-9_]*)/g;

function secretNamesIn(value: string): string[] {
  return [...value.matchAll(SECRET_REFERENCE)].map(([, name = ""]) => name);
}

function headersOf(
  { headers = {} }: ProviderEntry,
  config: ProviderConfig,
): Record<string, string> {
  const headersWithSecrets = Object.entries(headers).map(([name, value]): [string, string] => [
    name,
    value.replace(SECRET_REFERENCE, (_, secret: string) => config.secret(secret) ?? ""),
  ]);
  return Object.fromEntries(headersWithSecrets);
}
