import { expect, it } from "vitest";
import {
  PRICE_AGE_MARGIN_MS,
  createSignedPriceCopies,
} from "../../src/models/catalog/price-list-cache.ts";
import type { PriceCopies } from "../../src/models/catalog/price-list-cache.ts";
import { LEAD_MS, LEAD_S, priceListFixture } from "./price-list-fixture.ts";

/**
 * A cache, and a function that copies a price list into it as another isolate with this region and
 * secret.
 */
function place() {
  const kept = new Map<string, Response>();
  const cache = {
    match: async (at: RequestInfo | URL) => kept.get(new Request(at).url)?.clone(),
    put: async (at: RequestInfo | URL, response: Response) =>
      void kept.set(new Request(at).url, response),
  };
  const of = (region = "eu", secret = "secret") =>
    createSignedPriceCopies(cache, { region, secret, keptS: LEAD_S });
  return { kept, of };
}

it("an isolate uses another isolate's copy of a price list during a database outage, until the copy expires", async () => {
  const { of } = place();
  const first = priceListFixture(of());
  first.state.percent = 9;
  await first.read("mine");
  const second = priceListFixture(of());
  second.state.isAway = true;
  second.state.now += LEAD_MS / 2;
  const lists = await second.read("mine");
  const percents = lists.ok
    ? lists.value.map(({ items }) => items.get("*")?.[0]?.says.percent)
    : [];
  expect(percents).toEqual([7, 9]);
  const { reads } = second.state;
  await second.read("mine");
  expect(second.state.reads).toBe(reads);
  second.state.now += LEAD_MS / 2 - PRICE_AGE_MARGIN_MS;
  expect(await second.read("mine")).toEqual({ ok: false, failure: { kind: "prices_unavailable" } });
  const early = priceListFixture(of());
  early.state.isAway = true;
  early.state.now -= 1;
  expect((await early.read()).ok).toBe(false);
});

/** Reports whether an isolate that starts during a database outage sells by its cached copies. */
async function away(copies: PriceCopies): Promise<boolean> {
  const { state, read } = priceListFixture(copies);
  state.isAway = true;
  return (await read()).ok;
}

it("an isolate accepts another isolate's copy of a price list only if the region and the secret match", async () => {
  const { kept, of } = place();
  await priceListFixture(of()).read("mine");
  expect(await away(of())).toBe(true);
  expect(await away(of("us"))).toBe(false);
  expect(await away(of("eu", "another"))).toBe(false);
  const [mine, region] = ["mine", "default"].map((list) => `https://prices.invalid/eu/${list}`);
  const other = kept.get(mine ?? "");
  if (other !== undefined) kept.set(region ?? "", other.clone());
  expect(await away(of())).toBe(false);
  const hangs: PriceCopies = { store: async () => undefined, find: () => new Promise(() => {}) };
  expect(await away(hangs)).toBe(false);
});
