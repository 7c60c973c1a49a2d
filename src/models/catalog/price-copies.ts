import { parseStoredJson } from "../../shared/stored-json.ts";
import { importHmacKey, hmacSha256, verifyHmac } from "../../shared/hmac.ts";
import type { PriceRow } from "./price-lists.ts";

export type PriceCopy = { readonly readAt: number; readonly rows: readonly PriceRow[] };

export type PriceCopies = {
  readonly store: (list: string, copy: PriceCopy) => Promise<void>;
  readonly find: (list: string) => Promise<PriceCopy | null>;
};

type CopyCache = Pick<Cache, "match" | "put">;

const TAG_DIGITS = 64;

/**
 * Stores copies in a cache to which others can write. Ignores copies without a valid signature by
 * the region's secret.
 */
export function signedPriceCopies(
  cache: CopyCache,
  { region, secret, keptS }: Readonly<Record<"region" | "secret", string>> & { keptS: number },
): PriceCopies {
  const urlOf = (list: string): string => `https://prices.invalid/${region}/${list}`;
  const signedText = (list: string, body: string): string => `prices:${region}:${list}:${body}`;
  return {
    store: async (list, copy) => {
      const body = JSON.stringify(copy);
      const tag = await hmacSha256(await importHmacKey(secret), signedText(list, body));
      const headers = {
        "cache-control": `max-age=${keptS}`,
      };
      await cache.put(urlOf(list), new Response(tag.toHex() + body, { headers }));
    },
    find: async (list) => {
      const found = await cache.match(urlOf(list));
      const text = (await found?.text()) ?? "";
      const [tag, body] = [text.slice(0, TAG_DIGITS), text.slice(TAG_DIGITS)];
      if (!/^[0-9a-f]{64}$/.test(tag)) return null;
      const isOurs = verifyHmac(
        await importHmacKey(secret),
        Uint8Array.fromHex(tag),
        signedText(list, body),
      );
      return (await isOurs) ? parseStoredJson<PriceCopy>(body) : null;
    },
  };
}
