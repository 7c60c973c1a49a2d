import { storedJson } from "../../shared/stored-json.ts";
import { hmacKey, hmacSha256, verifyHmac } from "../../shared/hmac.ts";
import type { PriceRow } from "./price-lists.ts";

/** A list as an isolate read it from the database, and when that reading began (Unix ms). */
export type PriceCopy = { readonly readAt: number; readonly rows: readonly PriceRow[] };

/** Where isolates leave each other what they read. `find`: null where nothing is to be had. Either may throw. */
export type PriceCopies = {
  readonly keep: (list: string, copy: PriceCopy) => Promise<void>;
  readonly find: (list: string) => Promise<PriceCopy | null>;
};

/** The cache of the place where an isolate runs. */
type CopyCache = Pick<Cache, "match" | "put">;

/** A copy begins with its signature, in hex. */
const TAG_DIGITS = 64;

/**
 * Copies in a cache, which others may write to: each is signed by the region's secret, with its region and list, and
 * what is not so signed is none. `keptS`: how long the cache may have one.
 */
export function cachedCopies(
  cache: CopyCache,
  { region, secret, keptS }: Readonly<Record<"region" | "secret", string>> & { keptS: number },
): PriceCopies {
  const addressOf = (list: string): string => `https://prices.invalid/${region}/${list}`;
  const signed = (list: string, body: string): string => `prices:${region}:${list}:${body}`;
  return {
    keep: async (list, copy) => {
      const body = JSON.stringify(copy);
      const tag = await hmacSha256(await hmacKey(secret), signed(list, body));
      const headers = {
        "cache-control": `max-age=${keptS}`,
      };
      await cache.put(addressOf(list), new Response(tag.toHex() + body, { headers }));
    },
    find: async (list) => {
      const found = await cache.match(addressOf(list));
      const text = (await found?.text()) ?? "";
      const [tag, body] = [text.slice(0, TAG_DIGITS), text.slice(TAG_DIGITS)];
      if (!/^[0-9a-f]{64}$/.test(tag)) return null;
      const isOurs = verifyHmac(await hmacKey(secret), Uint8Array.fromHex(tag), signed(list, body));
      return (await isOurs) ? storedJson<PriceCopy>(body) : null;
    },
  };
}
