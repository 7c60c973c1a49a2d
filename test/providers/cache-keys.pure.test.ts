import { afterEach, describe, expect, it, vi } from "vitest";
import { openAiCompatible } from "../../src/models/providers/openai-compatible.ts";
import { PROFILES } from "../../src/models/providers/profile.ts";
import { callOf, network } from "./adapter-kit.ts";
import type { Call } from "./adapter-kit.ts";

afterEach(() => vi.restoreAllMocks());

const KEY = "the-clients-own-cache-key";
/** The profiles that send a cache key, and where. */
const PLACES: Readonly<Record<string, string>> = {
  openai: "prompt_cache_key",
  azure: "prompt_cache_key",
  mistral: "prompt_cache_key",
  xai: "x-grok-conv-id",
  fireworks: "x-session-affinity",
};

/** Sends a chat to a provider with this profile. Returns the request as text, and its cache key. */
async function sent(name: string, orgId: string, body: Call["body"] = { prompt_cache_key: KEY }) {
  const profile = PROFILES.get(name);
  if (profile === undefined) throw new Error(`no profile ${name}`);
  const asked = network({ status: 500, headers: {}, body: "{}" });
  const host = { id: name, baseUrl: "http://up.test/v1", profile, secret: "a secret" };
  const customer = { orgId, user: null };
  await openAiCompatible(host).send(callOf({ upstreamId: "m-1", customer, ...(body && { body }) }));
  const headers = asked[0]?.headers ?? new Headers();
  const all = JSON.stringify([...headers]) + String(asked[0]?.text);
  const place = PLACES[name] ?? "prompt_cache_key";
  return { all, slot: asked[0]?.json[place] ?? headers.get(place) };
}

describe("a client's cache key", () => {
  it.each(Object.keys(PLACES))(
    "reaches the provider only as a hash with the organization for %s",
    async (name) => {
      const first = await sent(name, "org-a");
      expect(first.slot).toMatch(/^[\w-]{43}$/);
      expect((await sent(name, "org-a")).slot).toBe(first.slot);
      expect((await sent(name, "org-b")).slot).not.toBe(first.slot);
      expect((await sent(name, "org-a", { prompt_cache_key: "another" })).slot).not.toBe(
        first.slot,
      );
      expect(first.all).not.toMatch(new RegExp(`${KEY}|org-a`));
    },
  );

  it.each([...PROFILES.keys()])("never reaches a provider unchanged: %s", async (name) => {
    expect((await sent(name, "org-a")).all).not.toContain(KEY);
  });

  it.each(Object.keys(PLACES))(
    "doesn't reach the provider if the client sends none: %s",
    async (name) => {
      expect((await sent(name, "org-a", {})).slot ?? null).toBe(null);
    },
  );
});
