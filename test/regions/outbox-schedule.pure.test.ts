import * as fc from "fast-check";
import { expect, it } from "vitest";
import { backoffMs, OWN_SHARDS, ownShard, shardOf } from "../../src/regions/outbox-schedule.ts";

it("backoff doubles from 1 s to 30 s and takes off at most half at random", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 1000].map((attempts) => backoffMs(attempts, 0))).toEqual([
    1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000,
  ]);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (attempts, random) => {
        const wait = backoffMs(attempts, random);
        expect(Number.isSafeInteger(wait)).toBe(true);
        expect(wait).toBeLessThanOrEqual(backoffMs(attempts, 0));
        expect(wait).toBeGreaterThanOrEqual(backoffMs(attempts, 0) / 2);
      },
    ),
  );
});

it("an organisation always has the same one of 16 shards, and all are used", () => {
  const used = new Set<string>();
  for (let i = 0; i < 1000; i++) {
    const orgId = crypto.randomUUID();
    expect(shardOf(orgId)).toBe(shardOf(orgId));
    used.add(ownShard(orgId));
  }
  expect([...used].toSorted()).toEqual([...OWN_SHARDS].toSorted());
});
