import { baseUrlProblems } from "../built-in.ts";
import type { BuiltIn, HostTag, ProviderConfig } from "../built-in.ts";
import { openAiCompatible } from "./openai-compatible.ts";
import { OPENAI_PROFILE } from "./profile.ts";
import type { Profile } from "./profile.ts";

/** A host that speaks OpenAI's API: where, with which key, in which dialect. */
type Host = {
  readonly id: string;
  /** The secret with its key. `<ID>_BASE_URL` replaces the address, and keeps the promise of its region. */
  readonly secret: string;
  readonly baseUrls: { readonly [Tag in HostTag]?: string };
  readonly profile: Profile;
};

const HOSTS: readonly Host[] = [
  {
    id: "openai",
    secret: "OPENAI_API_KEY",
    baseUrls: {
      eu: "https://eu.api.openai.com/v1",
      us: "https://us.api.openai.com/v1",
    },
    profile: OPENAI_PROFILE,
  },
];

/** The built-in hosts. A region calls its own host where there is one, else the global one. */
export const OPENAI_COMPATIBLE: readonly BuiltIn[] = HOSTS.map(builtIn);

function builtIn({ id, secret, baseUrls, profile }: Host): BuiltIn {
  const baseUrlVariable = `${id.toUpperCase().replaceAll("-", "_")}_BASE_URL`;
  const tagOf = ({ region }: ProviderConfig): HostTag =>
    baseUrls[region] === undefined ? "global" : region;
  return {
    id,
    variables: [secret],
    isSet: (config) => config.secret(secret) !== undefined,
    tags(config) {
      const tag = tagOf(config);
      return baseUrls[tag] === undefined ? [] : [tag];
    },
    problems: (config) => baseUrlProblems(config, baseUrlVariable),
    build(config) {
      const key = config.secret(secret);
      const baseUrl = config.secret(baseUrlVariable) ?? baseUrls[tagOf(config)] ?? "";
      return openAiCompatible({ id, baseUrl, profile, ...(key !== undefined && { secret: key }) });
    },
  };
}
