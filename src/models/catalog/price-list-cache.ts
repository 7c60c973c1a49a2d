import type { Config } from "../../shared/config/config.ts";
import { refuse, success } from "../../shared/failure.ts";
import type { Result } from "../../shared/failure.ts";
import { logWarning, reasonOf } from "../../shared/log.ts";
import { within } from "../../shared/timers.ts";
import type { PriceCopies, PriceCopy } from "./price-copies.ts";
import { priceListOf, REGION_LIST } from "./price-lists.ts";
import type { PriceList, PriceLists, PriceRow } from "./price-lists.ts";
import { evictOldest } from "../../shared/evict-oldest.ts";

/** A list is read again when it is used and was read so long ago. */
export const READ_EVERY_MS = 120_000;
/** After an attempt that failed the next one waits so long. */
const RETRY_MS = 15_000;
/**
 * So much younger than the lead time is a list that is sold by: for clocks that differ, and for a row that the database
 * took late.
 */
export const SPARE_MS = 60_000;
const READ_TIMEOUT_MS = 2000;
const COPY_TIMEOUT_MS = 500;
/** Who needs a list that could not be read is refused at once for so long. */
const MISSED_MS = 1000;
const LISTS_MAX = 1000;
const ORGANIZATIONS_MAX = 10_000;

/** How a list is read, and what a request lends to it. */
type Reader = {
  readonly now: () => number;
  /** Throws when the database does. */
  readonly read: (list: string, nowMs: number) => Promise<readonly PriceRow[]>;
  /** What other isolates have read, for when the database does not answer; null: there is none to be had. */
  readonly copies: PriceCopies | null;
  readonly waitUntil: (work: Promise<unknown>) => void;
};

/** `readAt`: when the reading began. `triedAt`: the newest attempt, whatever came of it. */
type Reading = { readonly list: PriceList; readonly readAt: number; triedAt: number };

/**
 * The price lists as an isolate knows them: each is read when it is first needed, then now and then while it is used,
 * after the answer. What begins is posted a lead time ahead, so a reading that is younger than that lacks nothing
 * which is in force; nothing is sold by one that is older.
 */
export class PriceListCache {
  readonly #sellableMs: number;
  readonly #readings = new Map<string, Reading>();
  /** When a list could not be read, Unix ms; by its name. */
  readonly #missed = new Map<string, number>();
  /** The organizations with a list of their own, as their wallets said last. */
  readonly #own = new Map<string, string>();

  constructor({ numbers }: Pick<Config, "numbers">) {
    this.#sellableMs = numbers.PRICE_LEAD_S * 1000 - SPARE_MS;
  }

  /** The name of an organization's own list as it was heard last; null: it has none, as far as is known. */
  ownOf(orgId: string): string | null {
    return this.#own.get(orgId) ?? null;
  }

  /** Hears which list an organization's wallet goes by. */
  heard(orgId: string, list: string | null): void {
    if (list === null) {
      this.#own.delete(orgId);
      return;
    }
    evictOldest(this.#own, ORGANIZATIONS_MAX);
    this.#own.set(orgId, list);
  }

  /** The lists of who has this one of its own, or none. Failure: prices_unavailable. */
  async listsOf(own: string | null, reader: Reader): Promise<Result<PriceLists>> {
    const names = own === null || own === REGION_LIST ? [REGION_LIST] : [own, REGION_LIST];
    const lists = await Promise.all(names.map((name) => this.#listOf(name, reader)));
    const [list, region] = lists;
    if (list === null || list === undefined || region === null) {
      return refuse({ kind: "prices_unavailable" });
    }
    return success(region === undefined ? [list] : [list, region]);
  }

  async #listOf(name: string, reader: Reader): Promise<PriceList | null> {
    const fresh = this.#fresh(name, reader);
    if (fresh !== null) return fresh;
    const sinceMs = reader.now() - (this.#missed.get(name) ?? Number.NEGATIVE_INFINITY);
    return sinceMs >= 0 && sinceMs < MISSED_MS ? null : this.#read(name, reader);
  }

  /** A list that may be sold by; has it read again, where that is due. */
  #fresh(name: string, reader: Reader): PriceList | null {
    const known = this.#readings.get(name);
    if (known === undefined) return null;
    const nowMs = reader.now();
    const ageMs = nowMs - known.readAt;
    if (ageMs < 0 || ageMs >= this.#sellableMs) return null;
    const isDue = ageMs >= READ_EVERY_MS && nowMs - known.triedAt >= RETRY_MS;
    if (isDue || nowMs < known.triedAt) {
      known.triedAt = nowMs;
      reader.waitUntil(this.#read(name, reader));
    }
    return known.list;
  }

  /** Each request reads for itself: it may not wait for another's promise. Null, and told, where that fails. */
  async #read(name: string, reader: Reader): Promise<PriceList | null> {
    const { now, read } = reader;
    const readAt = now();
    try {
      const rows = await within(read(name, readAt), READ_TIMEOUT_MS);
      const list = priceListOf(name, rows);
      keep(this.#readings, name, { list, readAt, triedAt: readAt });
      this.#missed.delete(name);
      leaveCopy(name, { readAt, rows }, reader);
      return list;
    } catch (error) {
      const copied = await this.#copied(name, reader);
      if (copied !== null) return copied;
      const known = this.#readings.get(name);
      const ageS = known === undefined ? null : Math.round((readAt - known.readAt) / 1000);
      keep(this.#missed, name, now());
      logWarning("prices_unreadable", { list: name, age_s: ageS, reason: reasonOf(error) });
      return null;
    }
  }

  /** While the database does not answer: what another isolate read of late, where that is newer than what is known. */
  async #copied(name: string, { copies, now }: Reader): Promise<PriceList | null> {
    const found = copies === null ? null : within(copies.find(name), COPY_TIMEOUT_MS);
    const copy = await (found?.catch(() => null) ?? null);
    const nowMs = now();
    const known = this.#readings.get(name)?.readAt ?? Number.NEGATIVE_INFINITY;
    if (copy === null || copy.readAt <= known) return null;
    const { readAt, rows } = copy;
    if (readAt > nowMs || nowMs - readAt >= this.#sellableMs) return null;
    const list = priceListOf(name, rows);
    keep(this.#readings, name, { list, readAt, triedAt: nowMs });
    this.#missed.delete(name);
    logWarning("prices_copied", { list: name, age_s: Math.round((nowMs - readAt) / 1000) });
    return list;
  }
}

/** After the answer; one that is not left is missed by nobody while the database answers. */
function leaveCopy(name: string, copy: PriceCopy, { copies, waitUntil }: Reader): void {
  if (copies !== null) waitUntil(copies.keep(name, copy).catch(() => undefined));
}

/** Keeps it as the newest of at most `LISTS_MAX`; the region's own list never goes. */
function keep<T>(known: Map<string, T>, name: string, value: T): void {
  known.delete(name);
  const oldest =
    known.size < LISTS_MAX ? undefined : [...known.keys()].find((one) => one !== REGION_LIST);
  if (oldest !== undefined) known.delete(oldest);
  known.set(name, value);
}
