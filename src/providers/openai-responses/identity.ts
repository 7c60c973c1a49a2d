import { toBase64Url } from "../base64.ts";
import type { JsonObject, ProviderCall } from "../provider.ts";

const HASHES_MAX = 512;

/**
 * Who asks, as OpenAI is told: keyed hashes, so that two customers never share a cache slot or a name there, and
 * nobody's own name leaves us. Nothing without a customer (scripts).
 */
export class Identity {
  readonly #secret: string;
  /** Of those who asked last: a hash costs more than the rest of a request's way out. */
  readonly #hashes = new Map<string, Promise<string>>();
  #key: ReturnType<typeof crypto.subtle.importKey> | null = null;

  /** `secret`: what nobody outside knows; our key at the host. */
  constructor(secret: string) {
    this.#secret = secret;
  }

  /** `safety_identifier` and `prompt_cache_key` for a call whose body asks for this cache key, or for none. */
  async fieldsFor({ customer, upstreamId }: ProviderCall, cacheKey: unknown): Promise<JsonObject> {
    if (customer === undefined) return {};
    const { orgId, user } = customer;
    const slot = typeof cacheKey === "string" ? ["cache", cacheKey] : ["cache of", upstreamId];
    const [safety_identifier, prompt_cache_key] = await Promise.all([
      this.#hash(["user", orgId, user ?? ""]),
      this.#hash([...slot, orgId]),
    ]);
    return { safety_identifier, prompt_cache_key };
  }

  #hash(parts: readonly string[]): Promise<string> {
    const text = JSON.stringify(parts);
    const known = this.#hashes.get(text);
    if (known !== undefined) return known;
    if (this.#hashes.size >= HASHES_MAX) this.#hashes.clear();
    const hash = this.#hashOf(text);
    this.#hashes.set(text, hash);
    return hash;
  }

  async #hashOf(text: string): Promise<string> {
    const encoder = new TextEncoder();
    this.#key ??= crypto.subtle.importKey(
      "raw",
      encoder.encode(`turnpike ${this.#secret}`),
      { name: "HMAC", hash: "SHA-256" },
      false,
      ["sign"],
    );
    const bytes = encoder.encode(text);
    return toBase64Url(new Uint8Array(await crypto.subtle.sign("HMAC", await this.#key, bytes)));
  }
}
