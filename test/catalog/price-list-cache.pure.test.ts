import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import {
  PRICE_READ_INTERVAL_MS,
  PRICE_AGE_MARGIN_MS,
} from "../../src/models/catalog/price-list-cache.ts";
import { effortFor } from "../effort.ts";
import { LEAD_MS, priceListFixture } from "./price-list-fixture.ts";

it("a request returns prices_unavailable if the database is down and no price list was ever read", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const { state, read } = priceListFixture();
  state.isAway = true;
  expect(await read()).toEqual({ ok: false, failure: { kind: "prices_unavailable" } });
  state.isAway = false;
  // For one second, no request waits for an unavailable database.
  expect(await read()).toEqual({ ok: false, failure: { kind: "prices_unavailable" } });
  expect(state.reads).toBe(1);
  state.now += 1000;
  expect((await read()).ok).toBe(true);
});

it("the region's price list stays in memory, no matter how many organizations have price lists", async () => {
  const { state, read } = priceListFixture();
  for (let i = 0; i < 1001; i++) await read(`list-${i}`);
  state.reads = 0;
  for (let i = 0; i < 10; i++) await read(`list-${i + 500}`);
  expect(state.reads).toBe(0);
});

it("a price list is used for at most PRICE_LEAD_S during a database outage", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const { state, read } = priceListFixture();
  await read();
  state.isAway = true;
  for (
    const lastMs = state.now + LEAD_MS - PRICE_AGE_MARGIN_MS;
    state.now < lastMs;
    state.now += 60_000
  ) {
    expect((await read()).ok).toBe(true);
  }
  expect(await read()).toEqual({ ok: false, failure: { kind: "prices_unavailable" } });
  state.isAway = false;
  state.now += 1000;
  expect((await read()).ok).toBe(true);
});

it("a price list in use is refreshed every two minutes, only once for concurrent requests", async () => {
  const { state, read } = priceListFixture();
  await read();
  for (let i = 0; i < 100; i++) await read();
  expect(state.reads).toBe(1);
  state.now += PRICE_READ_INTERVAL_MS;
  state.percent = 2;
  const [list] = await Promise.all([read(), read(), read()]);
  expect(state.reads).toBe(2);
  const priceIn = (lists: typeof list) =>
    lists.ok ? lists.value[0]?.items.get("*")?.[0]?.says : null;
  expect([priceIn(list), priceIn(await read())]).toEqual([{ percent: 1 }, { percent: 2 }]);
});

it("a request pays only prices that were read within PRICE_LEAD_S, even if the database or the clock fails", async () => {
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const step = fc.record({
    ms: fc.oneof(fc.nat(200_000), fc.nat(LEAD_MS), fc.integer({ min: -100_000, max: 0 })),
    isAway: fc.boolean(),
    own: fc.constantFrom(null, "mine"),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const { state, read } = priceListFixture();
      let awayAt = Number.NEGATIVE_INFINITY;
      for (const { ms, isAway, own } of steps) {
        state.now += ms;
        state.isAway = isAway;
        if (isAway) awayAt = Math.max(awayAt, state.now);
        state.percent = state.now; // the percentage stays unchanged until the next read
        const lists = await read(own);
        expect(lists.ok || state.now - awayAt < 1000).toBe(true);
        if (!lists.ok) continue;
        const readAt = lists.value.at(-1)?.items.get("*")?.[0]?.says.percent ?? 0;
        expect(state.now - readAt).toBeLessThan(LEAD_MS);
        expect(readAt).toBeLessThanOrEqual(state.now);
        expect(lists.value.map(({ name }) => name)).toEqual(
          own === null ? ["default"] : [own, "default"],
        );
      }
    }),
    { numRuns: effortFor(300, 30_000) },
  );
});
