import { describe, expect, it } from "vitest";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import { callOf, mockNetwork } from "./adapter-kit.ts";
import type { Call } from "./adapter-kit.ts";

const KEY = "the-clients-own-cache-key";
/** The profiles that send a cache key, with its place in the request. */
const PLACES: Readonly<Record<string, string>> = {
  openai: "prompt_cache_key",
  azure: "prompt_cache_key",
  mistral: "prompt_cache_key",
  xai: "x-grok-conv-id",
  fireworks: "x-session-affinity",
};

/** Some profiles serve no chat. */
const NO_REQUEST: { headers: Headers; json: Record<string, unknown>; text: string } = {
  headers: new Headers(),
  json: {},
  text: "",
};

type RequestOptions = { readonly body?: Call["body"]; readonly user?: string | null };

/** Sends a chat to a provider with this profile. Returns the request as text, and its cache key. */
async function sent(name: string, orgId: string, options: RequestOptions = {}) {
  const { body = { prompt_cache_key: KEY }, user = null } = options;
  const profile = PROVIDER_HOST_PROFILES.get(name);
  if (profile === undefined) throw new Error(`no profile ${name}`);
  const requests = mockNetwork({ status: 500, headers: {}, body: "{}" });
  const host = { id: name, baseUrl: "http://up.test/v1", profile, secret: "a secret" };
  const customer = { orgId, user };
  await createOpenAiCompatibleProvider(host).send(
    callOf({ upstreamId: "m-1", customer, ...(body && { body }) }),
  );
  const { headers, json, text } = requests[0] ?? NO_REQUEST;
  const all = JSON.stringify([...headers]) + text;
  const place = PLACES[name] ?? "prompt_cache_key";
  return { all, slot: json[place] ?? headers.get(place), safety: json["safety_identifier"] };
}

describe("an end user's hash", () => {
  it.each(["openai", "azure"])("differs between organizations for %s", async (name) => {
    const own = async (orgId: string, user: string | null, body: Call["body"] = {}) =>
      (await sent(name, orgId, { body, user })).safety;
    const known = await own("org-a", "ann");
    expect(known).toMatch(/^[\w-]{43}$/);
    expect(await own("org-a", null, { safety_identifier: "ann" })).toBe(known);
    const others = [await own("org-a", "bob"), await own("org-b", "ann"), await own("org-a", null)];
    expect(new Set([known, ...others]).size).toBe(4);
  });

  it.each([...PROVIDER_HOST_PROFILES.keys()])(
    "replaces the end user's name in every request to a provider: %s",
    async (name) => {
      const body = { safety_identifier: "the-name-of-ann", user: "the-name-of-ann" };
      const { all } = await sent(name, "org-a", { body, user: "the-name-of-ann" });
      expect(all).not.toMatch(/the-name-of-ann|org-a/);
    },
  );
});

describe("a client's cache key", () => {
  it.each(Object.keys(PLACES))(
    "reaches the provider only as a hash that differs between organizations: %s",
    async (name) => {
      const first = await sent(name, "org-a");
      expect(first.slot).toMatch(/^[\w-]{43}$/);
      expect((await sent(name, "org-a")).slot).toBe(first.slot);
      expect((await sent(name, "org-b")).slot).not.toBe(first.slot);
      expect((await sent(name, "org-a", { body: { prompt_cache_key: "another" } })).slot).not.toBe(
        first.slot,
      );
      expect(first.all).not.toMatch(new RegExp(`${KEY}|org-a`));
    },
  );

  it.each([...PROVIDER_HOST_PROFILES.keys()])(
    "never reaches a provider as the client sent it: %s",
    async (name) => {
      expect((await sent(name, "org-a")).all).not.toContain(KEY);
    },
  );

  it.each(Object.keys(PLACES))(
    "stays out of the provider's request if the client sent no cache key: %s",
    async (name) => {
      expect((await sent(name, "org-a", { body: {} })).slot ?? null).toBe(null);
    },
  );
});
