import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  outboxTarget,
  backoffMs,
  outboxNames,
  ownShard,
  peerShard,
  peerShards,
  revocationsShard,
} from "../../src/regions/outbox-schedule.ts";

it("the backoff of an outbox doubles from 1 s to 30 s, minus at most half at random", () => {
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

it("a key belongs to one fixed outbox of its organization's four, and all 16 are used", () => {
  const used = new Set<string>();
  for (let i = 0; i < 300; i++) {
    const orgId = crypto.randomUUID();
    const ofOrganization = new Set<string>();
    for (let key = 0; key < 40; key++) {
      const owner = { orgId, keyId: crypto.randomUUID() };
      expect(ownShard(owner)).toBe(ownShard({ ...owner }));
      used.add(ownShard(owner));
      ofOrganization.add(peerShard("us", owner));
    }
    expect([...ofOrganization].toSorted()).toEqual([...peerShards("us", orgId)].toSorted());
  }
  expect([...used].toSorted()).toEqual([...outboxNames([])].toSorted());
});

it("each other region has 16 outboxes for outcomes and one for revocations", () => {
  const names = outboxNames(["us", "eu"]);
  expect(names).toHaveLength(16 + 2 * 17);
  expect(new Set(names).size).toBe(names.length);
  const owner = { orgId: crypto.randomUUID(), keyId: crypto.randomUUID() };
  for (const name of [peerShard("us", owner), peerShard("eu", owner), revocationsShard("us")]) {
    expect(names).toContain(name);
  }
  expect(outboxNames(["us"])).not.toContain(peerShard("eu", owner));
  expect(outboxTarget(ownShard(owner))).toEqual({ carries: "outcomes", peer: null });
  expect(outboxTarget(peerShard("us", owner))).toEqual({ carries: "outcomes", peer: "us" });
  expect(outboxTarget(revocationsShard("eu"))).toEqual({ carries: "revocations", peer: "eu" });
  for (const name of ["own", "us", "", "xx/1", "unnamed"]) expect(outboxTarget(name)).toBeNull();
});
