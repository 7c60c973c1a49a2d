import { PriceListCache } from "../../src/models/catalog/price-list-cache.ts";
import type { PriceCopies } from "../../src/models/catalog/price-list-cache.ts";
import type { NumericConfigVariables } from "../../src/shared/config/config.ts";

export const LEAD_S = 3600;
export const LEAD_MS = LEAD_S * 1000;

/**
 * Returns one isolate's price lists, with a database that can be unavailable and a clock that the
 * test sets.
 */
export function priceListFixture(copies: PriceCopies | null = null) {
  const state = { now: 1_000_000_000, isAway: false, percent: 1, reads: 0 };
  const waiting: Promise<unknown>[] = [];
  const reader = {
    now: () => state.now,
    read: async (list: string) => {
      state.reads++;
      if (state.isAway) throw new Error("D1 is away");
      return [{ item: "*", from: 0, says: { percent: list === "default" ? state.percent : 7 } }];
    },
    waitUntil: (work: Promise<unknown>) => void waiting.push(work),
    copies,
  };
  const numbers = { PRICE_LEAD_S: LEAD_S } as NumericConfigVariables;
  const book = new PriceListCache({ numbers });
  const read = async (own: string | null = null) => {
    const lists = await book.listsOf(own, reader);
    await Promise.all(waiting);
    return lists;
  };
  return { state, read };
}
