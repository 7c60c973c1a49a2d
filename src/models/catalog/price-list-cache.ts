import { parseStoredJson } from "../../shared/stored-json.ts";
import { importHmacKey, hmacSha256, verifyHmac } from "../../shared/hmac.ts";
import type { PriceRow, PriceList, PriceLists } from "./price-lists.ts";
import type { Config } from "../../shared/config/config.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { logWarning, errorMessageOf } from "../../shared/log.ts";
import { withTimeout } from "../../shared/timers.ts";
import { createPriceList, REGION_PRICE_LIST } from "./price-lists.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";

type PriceCopy = { readonly readAt: number; readonly rows: readonly PriceRow[] };

/** A store of price-list copies outside D1. */
export type PriceCopies = {
  readonly store: (list: string, copy: PriceCopy) => Promise<void>;
  readonly find: (list: string) => Promise<PriceCopy | null>;
};

const TAG_DIGITS = 64;

/**
 * Stores signed price lists in a cache that others can write to. Ignores copies without a valid
 * signature of this region.
 */
export function createSignedPriceCopies(
  cache: Pick<Cache, "match" | "put">,
  { region, secret, keptS }: Readonly<Record<"region" | "secret", string>> & { keptS: number },
): PriceCopies {
  const urlOf = (list: string): string => `https://prices.invalid/${region}/${list}`;
  const signedText = (list: string, body: string): string => `prices:${region}:${list}:${body}`;
  return {
    store: async (list, copy) => {
      const body = JSON.stringify(copy);
      const tag = await hmacSha256(await importHmacKey(secret), signedText(list, body));
      const headers = { "cache-control": `max-age=${keptS}` };
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

export const PRICE_READ_INTERVAL_MS = 120_000;
const RETRY_MS = 15_000;
/**
 * A cached price list expires this many ms before the lead time. Covers clock differences and late
 * writes to D1.
 */
export const PRICE_AGE_MARGIN_MS = 60_000;
const READ_TIMEOUT_MS = 2000;
const COPY_TIMEOUT_MS = 500;
const FAILURE_PAUSE_MS = 1000;
const LISTS_MAX = 1000;
const ORGANIZATIONS_MAX = 10_000;

type Reader = {
  readonly now: () => number;
  readonly read: (list: string, nowMs: number) => Promise<readonly PriceRow[]>;
  readonly copies: PriceCopies | null;
  readonly waitUntil: (work: Promise<unknown>) => void;
};

type CachedList = { readonly list: PriceList; readonly readAt: number; triedAt: number };

/**
 * This isolate's cached price lists, refreshed in the background. A new price is stored one lead time
 * (PRICE_LEAD_S) before it applies. A copy older than the lead time could be wrong, so the cache
 * never uses it.
 */
export class PriceListCache {
  readonly #ageMaxMs: number;
  readonly #readings = new Map<string, CachedList>();
  readonly #failedAt = new Map<string, number>();
  readonly #listNames = new Map<string, string>();

  constructor({ numbers }: Pick<Config, "numbers">) {
    this.#ageMaxMs = numbers.PRICE_LEAD_S * 1000 - PRICE_AGE_MARGIN_MS;
  }

  listNameOf(orgId: string): string | null {
    return this.#listNames.get(orgId) ?? null;
  }

  setListName(orgId: string, list: string | null): void {
    if (list === null) {
      this.#listNames.delete(orgId);
      return;
    }
    evictOldest(this.#listNames, ORGANIZATIONS_MAX);
    this.#listNames.set(orgId, list);
  }

  /**
   * Returns the price lists, or `prices_unavailable`. `own` is the name of the organization's own
   * list.
   */
  async listsOf(own: string | null, reader: Reader): Promise<Result<PriceLists>> {
    const names =
      own === null || own === REGION_PRICE_LIST ? [REGION_PRICE_LIST] : [own, REGION_PRICE_LIST];
    const lists = await Promise.all(names.map((name) => this.#listOf(name, reader)));
    const [list, region] = lists;
    if (list === null || list === undefined || region === null) {
      return refuse({ kind: "prices_unavailable" });
    }
    return success(region === undefined ? [list] : [list, region]);
  }

  async #listOf(name: string, reader: Reader): Promise<PriceList | null> {
    const fresh = this.#freshList(name, reader);
    if (fresh !== null) return fresh;
    const sinceMs = reader.now() - (this.#failedAt.get(name) ?? Number.NEGATIVE_INFINITY);
    return sinceMs >= 0 && sinceMs < FAILURE_PAUSE_MS ? null : this.#read(name, reader);
  }

  #freshList(name: string, reader: Reader): PriceList | null {
    const known = this.#readings.get(name);
    if (known === undefined) return null;
    const nowMs = reader.now();
    const ageMs = nowMs - known.readAt;
    if (ageMs < 0 || ageMs >= this.#ageMaxMs) return null;
    const isDue = ageMs >= PRICE_READ_INTERVAL_MS && nowMs - known.triedAt >= RETRY_MS;
    if (isDue || nowMs < known.triedAt) {
      known.triedAt = nowMs;
      reader.waitUntil(this.#read(name, reader));
    }
    return known.list;
  }

  /**
   * Reads a list, or returns null on failure. Each request reads the list separately, because
   * requests can't await each other's promises.
   */
  async #read(name: string, reader: Reader): Promise<PriceList | null> {
    const { now, read } = reader;
    const readAt = now();
    try {
      const rows = await withTimeout(read(name, readAt), READ_TIMEOUT_MS);
      const list = createPriceList(name, rows);
      storeRecent(this.#readings, name, { list, readAt, triedAt: readAt });
      this.#failedAt.delete(name);
      storeCopy(name, { readAt, rows }, reader);
      return list;
    } catch (error) {
      const copied = await this.#readCopy(name, reader);
      if (copied !== null) return copied;
      const known = this.#readings.get(name);
      const ageS = known === undefined ? null : Math.round((readAt - known.readAt) / 1000);
      storeRecent(this.#failedAt, name, now());
      logWarning("prices_unreadable", { list: name, age_s: ageS, reason: errorMessageOf(error) });
      return null;
    }
  }

  async #readCopy(name: string, { copies, now }: Reader): Promise<PriceList | null> {
    const found = copies === null ? null : withTimeout(copies.find(name), COPY_TIMEOUT_MS);
    const copy = await (found?.catch(() => null) ?? null);
    const nowMs = now();
    const known = this.#readings.get(name)?.readAt ?? Number.NEGATIVE_INFINITY;
    if (copy === null || copy.readAt <= known) return null;
    const { readAt, rows } = copy;
    if (readAt > nowMs || nowMs - readAt >= this.#ageMaxMs) return null;
    const list = createPriceList(name, rows);
    storeRecent(this.#readings, name, { list, readAt, triedAt: nowMs });
    this.#failedAt.delete(name);
    logWarning("prices_copied", { list: name, age_s: Math.round((nowMs - readAt) / 1000) });
    return list;
  }
}

function storeCopy(name: string, copy: PriceCopy, { copies, waitUntil }: Reader): void {
  if (copies !== null) waitUntil(copies.store(name, copy).catch(() => undefined));
}

function storeRecent<T>(known: Map<string, T>, name: string, value: T): void {
  known.delete(name);
  const oldest =
    known.size < LISTS_MAX ? undefined : [...known.keys()].find((one) => one !== REGION_PRICE_LIST);
  if (oldest !== undefined) known.delete(oldest);
  known.set(name, value);
}
