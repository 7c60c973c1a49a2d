import type { HostAddress } from "../../src/models/providers/openai-hosts.ts";

/** The cause of a provider's rejection, and its remedy. */
export type Diagnosis = {
  readonly wrong: "key" | "host" | "region" | "account";
  readonly say: string;
};

const TIMEOUT_MS = 20_000;

/**
 * Finds out whether the key, the host or the region is wrong, from the free list of models at each
 * URL. Returns null if the called URL accepts the key.
 */
export async function diagnose(
  key: string,
  places: readonly HostAddress[],
): Promise<Diagnosis | null> {
  const [called, ...others] = places;
  if (called === undefined) return null;
  const here = await checkKey(called.url, key);
  if (here.kind === "taken") return null;
  const host = hostOf(called.url);
  if (here.kind === "silent") {
    return { wrong: "host", say: `${host} can't be reached: ${here.why}` };
  }
  const right = await rightPlace(key, others, here.belongs);
  if (right !== null) {
    const wrong = called.tag === "global" || right.tag === "global" ? "host" : "region";
    const say = `The key is valid, but not at ${host} (${here.status}). It belongs to ${hostOf(right.url)}.`;
    return { wrong, say: `${say} ${remedyFor(wrong, right)}` };
  }
  if (here.status === 401) {
    return {
      wrong: "key",
      say: "No host of this provider accepts the key (401). Create a new key.",
    };
  }
  const say = `${host} responds with ${here.status}: the account lacks a permission, credit, or access to this region.`;
  return { wrong: "account", say };
}

/** Returns the place that the response names, else the first that accepts the key. */
async function rightPlace(
  key: string,
  others: readonly HostAddress[],
  named: string | null,
): Promise<HostAddress | null> {
  if (named !== null) {
    const known = others.find(({ url }) => hostOf(url) === named);
    return known ?? { tag: "global", url: `https://${named}` };
  }
  for (const place of others) {
    const there = await checkKey(place.url, key);
    if (there.kind === "taken") return place;
  }
  return null;
}

function remedyFor(wrong: "host" | "region", right: HostAddress): string {
  if (wrong === "region") return `Use a key of this region here, and use this key in ${right.tag}.`;
  const usual = right.tag === "global";
  return `See "what to set" in docs/providers.md: ${usual ? "the default host is called unless a setting selects a region's host" : "a region's host is called if its setting is on"}.`;
}

type KeyCheck =
  | { readonly kind: "taken" }
  | { readonly kind: "silent"; readonly why: string }
  /** `belongs` is the host that the response names as the right one. */
  | { readonly kind: "refused"; readonly status: number; readonly belongs: string | null };

async function checkKey(url: string, key: string): Promise<KeyCheck> {
  try {
    const response = await fetch(`${url.replace(/\/+$/, "")}/models`, {
      headers: { authorization: `Bearer ${key}` },
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    if (response.ok) return { kind: "taken" };
    // OpenAI's incorrect_hostname error: "Please make your request to us.api.openai.com".
    const [, belongs = null] = /make your request to ([a-z0-9.-]*[a-z0-9])/i.exec(text) ?? [];
    return { kind: "refused", status: response.status, belongs };
  } catch (error) {
    return { kind: "silent", why: error instanceof Error ? error.message : String(error) };
  }
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}
