import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  outboxTarget,
  retryDelayMs,
  allOutboxNames,
  ownOutboxName,
  peerOutboxName,
  peerOutboxNamesOfOrganization,
  revocationsOutboxName,
} from "../../src/regions/outbox-schedule.ts";

it("an outbox's backoff doubles from 1 s to 30 s, minus a random part of up to half", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 1000].map((attempts) => retryDelayMs(attempts, 0))).toEqual([
    1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000,
  ]);
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 10_000 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (attempts, random) => {
        const wait = retryDelayMs(attempts, random);
        expect(Number.isSafeInteger(wait)).toBe(true);
        expect(wait).toBeLessThanOrEqual(retryDelayMs(attempts, 0));
        expect(wait).toBeGreaterThanOrEqual(retryDelayMs(attempts, 0) / 2);
      },
    ),
  );
});

it("a key always uses one of its organization's four outboxes, and all keys together use all 16", () => {
  const used = new Set<string>();
  for (let i = 0; i < 300; i++) {
    const orgId = crypto.randomUUID();
    const ofOrganization = new Set<string>();
    for (let key = 0; key < 40; key++) {
      const owner = { orgId, keyId: crypto.randomUUID() };
      expect(ownOutboxName(owner)).toBe(ownOutboxName({ ...owner }));
      used.add(ownOutboxName(owner));
      ofOrganization.add(peerOutboxName("us", owner));
    }
    expect([...ofOrganization].toSorted()).toEqual(
      [...peerOutboxNamesOfOrganization("us", orgId)].toSorted(),
    );
  }
  expect([...used].toSorted()).toEqual([...allOutboxNames([])].toSorted());
});

it("a region has 16 outboxes for itself and 17 for each other region, one of which is for revocations", () => {
  const names = allOutboxNames(["us", "eu"]);
  expect(names).toHaveLength(16 + 2 * 17);
  expect(new Set(names).size).toBe(names.length);
  const owner = { orgId: crypto.randomUUID(), keyId: crypto.randomUUID() };
  for (const name of [
    peerOutboxName("us", owner),
    peerOutboxName("eu", owner),
    revocationsOutboxName("us"),
  ]) {
    expect(names).toContain(name);
  }
  expect(allOutboxNames(["us"])).not.toContain(peerOutboxName("eu", owner));
  expect(outboxTarget(ownOutboxName(owner))).toEqual({ carries: "outcomes", peer: null });
  expect(outboxTarget(peerOutboxName("us", owner))).toEqual({ carries: "outcomes", peer: "us" });
  expect(outboxTarget(revocationsOutboxName("eu"))).toEqual({ carries: "revocations", peer: "eu" });
  for (const name of ["own", "us", "", "xx/1", "unnamed"]) expect(outboxTarget(name)).toBeNull();
});
