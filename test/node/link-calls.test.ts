import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Account } from "./support/account.ts";
import {
  callsToEu,
  CHAT,
  EVERY_CALL,
  isRevokedAt,
  makeKey,
  openRemoteAccount,
  PAID,
  revoke,
  statusOf,
} from "./support/peer-keys.ts";
import { startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions } from "./support/two-regions.ts";

const PATH = "/chat/completions";
const RELAXED = { timeout: 100_000, interval: 20 };

let regions: FaultyRegions;
beforeAll(async () => {
  regions = await startFaultyRegions();
});
afterAll(() => regions.stop());
afterEach(() => regions.toEu.set("pass"));

const EVERY = Object.entries(EVERY_CALL);

describe("the connection between regions", () => {
  it("stays unused for a regional key, in both the home region and the other region", async () => {
    const account = await Account.open(() => regions.us);
    const stranger = await Account.open(() => regions.eu);
    const seen = await callsToEu(regions, async () => {
      for (const [name, [path, of]] of EVERY) {
        const status = await statusOf(regions.us, account.key, path, of);
        expect([name, status]).toEqual([name, name === "POST users" ? 201 : 200]);
        expect(await statusOf(regions.us, stranger.key, path, of)).toBe(403);
      }
    });
    expect(seen).toEqual({});
  });

  it("isn't used for a key with a changed prefix, which gets 401", async () => {
    const regional = await Account.open(() => regions.eu);
    const far = await openRemoteAccount(regions);
    const changed = [
      regional.key.replace("svc_sk_eu_", "svc_sk_us_"),
      regional.key.replace("svc_sk_eu_", "svc_sk_gbl_eu_"),
      regional.key.replace("svc_sk_eu_", "svc_sk_gbl_us_"),
      far.key.replace("svc_sk_gbl_eu_", "svc_sk_gbl_us_"),
      far.key.replace("svc_sk_gbl_eu_", "svc_sk_us_"),
      far.key.replace("svc_sk_gbl_eu_", "svc_sk_eu_"),
    ];
    const seen = await callsToEu(regions, async () => {
      for (const key of changed) {
        for (const region of [regions.eu, regions.us]) {
          expect(await statusOf(region, key, PATH, CHAT)).toBe(401);
        }
      }
    });
    expect(seen).toEqual({});
  });

  it("carries one call before the response and one report of the cost afterwards, for a global key", async () => {
    const { key } = await openRemoteAccount(regions);
    expect(await callsToEu(regions, () => statusOf(regions.us, key))).toEqual({
      lookup: 1,
      authorize: 1,
    });
    for (const [name, [path, of]] of EVERY) {
      const seen = await callsToEu(regions, async () => {
        expect(await statusOf(regions.us, key, path, of)).toBeLessThan(300);
      });
      const isForwarded = name === "balance" || name === "POST users";
      expect([name, seen]).toEqual([
        name,
        isForwarded
          ? { forward: 1 }
          : { authorize: 1, ...(PAID.includes(name) && { outcomes: 1 }) },
      ]);
    }
  });

  it("stays unused for a key that has reached its rate limit in the called region", async () => {
    const { key } = await openRemoteAccount(regions, 1);
    expect(await statusOf(regions.us, key)).toBe(200);
    const seen = await callsToEu(regions, async () => {
      for (const [path, of] of Object.values(EVERY_CALL)) {
        expect(await statusOf(regions.us, key, path, of)).toBe(429);
      }
    });
    expect(seen).toEqual({});
    expect(await statusOf(regions.eu, key)).toBe(200); // its limit in the home region is separate
  });

  it("stays unused for a revoked key once the revocation has arrived, even if the key was never used in this region", async () => {
    const { key: owner } = await openRemoteAccount(regions);
    const victims = [await makeKey(regions, owner), await makeKey(regions, owner)];
    for (const victim of victims) {
      expect(await revoke(regions, owner, victim.id)).toBe(200);
      await expect.poll(() => isRevokedAt(regions.us, victim), RELAXED).toBe(true);
    }
    const seen = await callsToEu(regions, async () => {
      for (const { key } of victims) {
        for (const [path, of] of Object.values(EVERY_CALL)) {
          expect(await statusOf(regions.us, key, path, of)).toBe(401);
        }
      }
    });
    expect(seen).toEqual({});
  });
});
