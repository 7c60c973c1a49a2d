import { findBaseUrlProblems } from "../core/built-in.ts";
import type { BuiltInProvider, DataLocation, ProviderConfig } from "../core/built-in.ts";
import { createOpenAiCompatibleProvider } from "./openai-compatible.ts";
import { HOST_PROFILE_BY_ID } from "./profiles.ts";

type Host = {
  /**
   * The provider ID. The variable `<ID>_BASE_URL` overrides the address. The new address must be
   * within the same domain to keep the region's guarantee.
   */
  readonly id: string;
  /** The profile's name. The secret `<PROFILE>_API_KEY` contains the API key. */
  readonly profile: keyof typeof HOST_PROFILE_BY_ID;
  readonly baseUrls: { readonly [Tag in DataLocation]?: string };
  /**
   * The variable that must be `on` to call the provider's host in this region. That host requires a
   * separate plan.
   */
  readonly regionalHostVariable?: string;
  readonly otherKeys?: { readonly prefix: string; readonly baseUrl: string };
};

const globalUrl = (url: string): Host["baseUrls"] => ({ global: url });

const HOSTS: readonly Host[] = [
  {
    id: "openai",
    profile: "openai",
    baseUrls: {
      global: "https://api.openai.com/v1",
      eu: "https://eu.api.openai.com/v1",
      us: "https://us.api.openai.com/v1",
    },
    // The regional hosts accept only keys of a project with data residency. The global host rejects
    // these keys.
    regionalHostVariable: "OPENAI_RESIDENCY",
  },
  // The regional hosts accept all keys of an account (docs.mistral.ai, regional inference).
  {
    id: "mistral",
    profile: "mistral",
    baseUrls: { eu: "https://api.eu.mistral.ai/v1", us: "https://api.us.mistral.ai/v1" },
  },
  { id: "groq", profile: "groq", baseUrls: globalUrl("https://api.groq.com/openai/v1") },
  // DeepSeek's host is in China and guarantees no region.
  { id: "deepseek", profile: "deepseek", baseUrls: globalUrl("https://api.deepseek.com") },
  { id: "together", profile: "together", baseUrls: globalUrl("https://api.together.xyz/v1") },
  {
    id: "fireworks",
    profile: "fireworks",
    baseUrls: globalUrl("https://api.fireworks.ai/inference/v1"),
  },
  { id: "xai", profile: "xai", baseUrls: globalUrl("https://api.x.ai/v1") },
  { id: "xai-us", profile: "xai", baseUrls: { us: "https://us.api.x.ai/v1" } },
  { id: "cerebras", profile: "cerebras", baseUrls: globalUrl("https://api.cerebras.ai/v1") },
  {
    id: "openrouter",
    profile: "openrouter",
    baseUrls: { global: "https://openrouter.ai/api/v1", eu: "https://eu.openrouter.ai/api/v1" },
    regionalHostVariable: "OPENROUTER_EU",
  },
  {
    id: "voyage",
    profile: "voyage",
    baseUrls: globalUrl("https://api.voyageai.com/v1"),
    otherKeys: { prefix: "al-", baseUrl: "https://ai.mongodb.com/v1" },
  },
  { id: "jina", profile: "jina", baseUrls: globalUrl("https://api.jina.ai/v1") },
];

/**
 * The built-in providers. Each region prefers a provider's host in that region to its global host.
 */
export const OPENAI_COMPATIBLE_PROVIDERS: readonly BuiltInProvider[] = HOSTS.map(builtIn);

function builtIn(host: Host): BuiltInProvider {
  const { id, baseUrls } = host;
  const secret = `${variablePart(host.profile)}_API_KEY`;
  const baseUrlVariable = `${variablePart(id)}_BASE_URL`;
  return {
    id,
    variables: [secret],
    isSet: (config) => config.secret(secret) !== undefined,
    tags(config) {
      const tag = tagOf(host, config);
      return baseUrls[tag] === undefined ? [] : [tag];
    },
    problems(config) {
      const tag = tagOf(host, config);
      return findBaseUrlProblems(
        config,
        baseUrlVariable,
        tag === "global" ? undefined : baseUrls[tag],
      );
    },
    build(config) {
      const key = config.secret(secret) ?? "";
      const baseUrl = config.secret(baseUrlVariable) ?? addressOf(host, config, key);
      return createOpenAiCompatibleProvider({
        id,
        baseUrl,
        profile: HOST_PROFILE_BY_ID[host.profile],
        secret: key,
      });
    },
  };
}

function tagOf({ baseUrls, regionalHostVariable }: Host, config: ProviderConfig): DataLocation {
  const hasRegionalHost =
    baseUrls[config.region] !== undefined &&
    (regionalHostVariable === undefined || config.secret(regionalHostVariable) === "on");
  return hasRegionalHost ? config.region : "global";
}

function addressOf(host: Host, config: ProviderConfig, key: string): string {
  const { otherKeys } = host;
  if (otherKeys !== undefined && key.startsWith(otherKeys.prefix)) return otherKeys.baseUrl;
  return host.baseUrls[tagOf(host, config)] ?? "";
}

/** A provider's address, and the location that the address guarantees. */
export type HostAddress = { readonly tag: DataLocation; readonly url: string };

/**
 * Returns a provider's key and the addresses that may accept it: the address in use, then the
 * company's other addresses. If `<ID>_BASE_URL` is set, returns only that address.
 */
export function listHostAddresses(
  id: string,
  config: ProviderConfig,
): { readonly key: string; readonly places: readonly HostAddress[] } | null {
  const host = HOSTS.find((candidate) => candidate.id === id);
  if (host === undefined) return null;
  const tag = tagOf(host, config);
  const key = config.secret(`${variablePart(host.profile)}_API_KEY`) ?? "";
  const override = config.secret(`${variablePart(id)}_BASE_URL`);
  if (override !== undefined) return { key, places: [{ tag, url: override }] };
  const addressInUse = addressOf(host, config, key);
  if (addressInUse === "") return null;
  const sameCompany = HOSTS.filter(({ profile }) => profile === host.profile);
  const companyAddresses = sameCompany.flatMap(
    ({ baseUrls }) => Object.entries(baseUrls) as [DataLocation, string][],
  );
  const others = companyAddresses
    .filter(([, url]) => url !== addressInUse)
    .map(([otherTag, url]) => ({ tag: otherTag, url }));
  return { key, places: [{ tag, url: addressInUse }, ...others] };
}

function variablePart(id: string): string {
  return id.toUpperCase().replaceAll("-", "_");
}
