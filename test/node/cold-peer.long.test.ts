import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Account } from "./support/account.ts";
import {
  callsToEu,
  isRevokedAt,
  makeKey,
  openRemoteAccount,
  revoke,
  statusOf,
} from "./support/peer-keys.ts";
import { startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions } from "./support/two-regions.ts";

const CALLERS = 200;
const RELAXED = { timeout: 100_000, interval: 20 };

let regions: FaultyRegions;
beforeAll(async () => {
  regions = await startFaultyRegions();
});
afterAll(() => regions.stop());
afterEach(() => regions.toEu.set("pass"));

const callers = async ({ key }: Account): Promise<Record<number, number>> => {
  const statuses = await Promise.all(
    Array.from({ length: CALLERS }, () => statusOf(regions.us, key)),
  );
  const counts: Record<number, number> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

/**
 * Expects one accepted request and 429 for the others. On a slow machine, the accepted one can be a
 * 503.
 */
function expectOneAdmitted({ 429: refused, ...others }: Record<number, number>): void {
  expect(refused).toBe(CALLERS - 1);
  expect([{ 200: 1 }, { 503: 1 }]).toContainEqual(others);
}

describe("a key with a limit of 1 and concurrent first requests in another region", () => {
  it("gets one admission with one lookup and one authorization at the home region", async () => {
    const account = await openRemoteAccount(regions, 1);
    let counts: Record<number, number> = {};
    const seen = await callsToEu(regions, async () => (counts = await callers(account)));
    expect(Object.keys(seen).toSorted()).toEqual(["authorize", "lookup"]);
    // On a slow machine, the home region can respond late, and the call is retried with the same
    // ID.
    for (const times of Object.values(seen)) expect([1, 2]).toContain(times);
    expectOneAdmitted(counts);
  });

  it.each(["5xx", "drop", "reset-after"] as const)(
    "gets 503 while the home region can't identify the key (%s), and one admission afterwards",
    async (fault) => {
      const account = await openRemoteAccount(regions, 1);
      await regions.toEu.set((operation) => (operation === "lookup" ? fault : "pass"));
      const seen = await callsToEu(regions, async () => {
        expect(await callers(account)).toEqual({ 503: CALLERS });
      });
      expect(Object.keys(seen)).toEqual(["lookup"]);
      // most requests share a lookup and its retry
      expect(seen["lookup"]).toBeLessThan(CALLERS / 4);
      await regions.toEu.set("pass");
      expectOneAdmitted(await callers(account));
    },
  );

  it("gets one admission while the home region is slow, with one call and at most one retry", async () => {
    const account = await openRemoteAccount(regions, 1);
    regions.toEu.delayMs = 700;
    await regions.toEu.set((operation) => (operation === "lookup" ? "delay-reply" : "pass"));
    let counts: Record<number, number> = {};
    const seen = await callsToEu(regions, async () => (counts = await callers(account)));
    expect([1, 2]).toContain(seen["lookup"]);
    // On a slow machine, the home region can respond late, and the call is retried with the same
    // ID.
    expect([1, 2]).toContain(seen["authorize"]);
    expectOneAdmitted(counts);
  });

  it("gets one 503 and uses up the limit if the home region identifies the key but doesn't authorize the request", async () => {
    const account = await openRemoteAccount(regions, 1);
    await regions.toEu.set((operation) => (operation === "authorize" ? "5xx" : "pass"));
    expect(await callers(account)).toEqual({ 503: 1, 429: CALLERS - 1 });
    await regions.toEu.set("pass");
    expect(await callers(account)).toEqual({ 429: CALLERS });
  });
});

it("a key stays revoked even if the revocation happens while the home region's response is in transit", async () => {
  // On a slow machine, the home region can respond before the revocation. The test then tries
  // another key.
  let isOverlapped = false;
  for (let tries = 0; !isOverlapped; tries++) {
    expect(tries).toBeLessThan(40);
    isOverlapped = await revokedDuringCall(300 + (tries % 5) * 300);
  }
});

/**
 * Revokes a key while the home region's response is delayed by `delayMs`. Returns false if the
 * response came first or too late.
 */
async function revokedDuringCall(delayMs: number): Promise<boolean> {
  await regions.toEu.set("pass");
  const { key: owner } = await openRemoteAccount(regions);
  const victim = await makeKey(regions, owner);
  regions.toEu.delayMs = delayMs;
  await regions.toEu.set((operation) => (operation === "lookup" ? "delay-reply" : "pass"));
  const { lookup = 0 } = regions.toEu.counts.operations;
  const { forwarded } = regions.toEu.counts;
  const first = statusOf(regions.us, victim.key);
  await expect.poll(() => regions.toEu.counts.operations["lookup"]).toBeGreaterThan(lookup);
  await expect.poll(() => regions.toEu.counts.forwarded).toBeGreaterThan(forwarded);
  expect(await hasBeenCalled(victim.id)).toBe(true); // home confirmed the key and recorded the use
  const { answered } = regions.toUs.counts;
  expect(await revoke(regions, owner, victim.id)).toBe(200);
  await expect.poll(() => regions.toUs.counts.answered, RELAXED).toBeGreaterThan(answered);
  const isOnItsWay = regions.toEu.underWay === 1;
  const status = await first;
  if (!isOnItsWay || status === 503) return false;
  expect(status).toBe(401);
  expect(await isRevokedAt(regions.us, victim)).toBe(true);
  await regions.toEu.set("refuse");
  expect(await statusOf(regions.us, victim.key)).toBe(401);
  return true;
}

async function hasBeenCalled(id: string): Promise<boolean> {
  const book = await regions.eu.miniflare.getD1Database("DB", "turnpike-eu");
  const used = (): Promise<{ last_used_at: number | null } | null> =>
    book.prepare("SELECT last_used_at FROM keys WHERE id = ?").bind(id).first();
  await expect.poll(async () => (await used())?.last_used_at ?? null, RELAXED).not.toBeNull();
  return true;
}
