import { importHmacKey, hmacSha256 } from "../../shared/hmac.ts";
import type { HmacKey } from "../../shared/hmac.ts";
import { toBase64Url } from "../core/base64.ts";
import type { Customer } from "../core/provider.ts";

const HASHES_MAX = 512;

/**
 * Computes the customer IDs that providers get. They are hashes that include the organization,
 * because organizations must not share a provider's cache.
 */
export class CustomerHashes {
  readonly #secret: string;
  /** Computing a hash takes most of the time of sending a request. */
  readonly #hashes = new Map<string, Promise<string>>();
  #key: Promise<HmacKey> | null = null;

  constructor(secret: string | undefined) {
    this.#secret = secret ?? "";
  }

  hashUser({ orgId, user }: Customer): Promise<string> {
    return this.#hash(["user", orgId, user ?? ""]);
  }

  hashCacheKey({ orgId }: Customer, cacheKey: string): Promise<string> {
    return this.#hash(["cache", cacheKey, orgId]);
  }

  /** Returns the default cache key of an organization and model. */
  hashModelCacheKey({ orgId }: Customer, upstreamId: string): Promise<string> {
    return this.#hash(["cache of", upstreamId, orgId]);
  }

  #hash(parts: readonly string[]): Promise<string> {
    const text = JSON.stringify(parts);
    const cached = this.#hashes.get(text);
    if (cached !== undefined) return cached;
    if (this.#hashes.size >= HASHES_MAX) this.#hashes.clear();
    const hash = this.#computeHash(text);
    this.#hashes.set(text, hash);
    return hash;
  }

  async #computeHash(text: string): Promise<string> {
    this.#key ??= importHmacKey(`turnpike ${this.#secret}`);
    return toBase64Url(await hmacSha256(await this.#key, text));
  }
}
