import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Account } from "./support/account.ts";
import { sumOf } from "./support/account.ts";
import { call, openRemoteAccount, statusOf } from "./support/peer-keys.ts";
import {
  AFFORDABLE,
  REQUESTS,
  sendMany,
  ECHO,
  FLOOD_BINDINGS,
  flood,
  openChat,
  STALL,
  waitUntilRunning,
} from "./support/flood.ts";
import type { RawConnection } from "./support/raw-request.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TestRegion } from "./support/two-regions.ts";

/** The gateway with a test entry that aborts objects during their calls. */
const FAULTY = path.join(import.meta.dirname, "../workers/faulty.ts");
const BUSY_MS = 50;

let regions: Awaited<ReturnType<typeof startTwoRegions>>;
beforeAll(async () => {
  regions = await startTwoRegions({ bindings: FLOOD_BINDINGS, entry: FAULTY });
});
afterAll(() => regions.stop());

type Limited = { readonly id: string; readonly key: string };

async function limited(owner: Account, budget_dollars: number): Promise<Limited> {
  const body = { name: "limited", scope: "global", rpm_limit: 1000, budget_dollars };
  const response = await call(regions.eu, owner.key, "/keys", { body });
  expect(response.status).toBe(201);
  return (await response.json()) as Limited;
}

/** Returns the maximum cost of a request from its rejection. */
async function worstCase(owner: Account, body: object): Promise<number> {
  const { key } = await limited(owner, 0);
  const response = await call(regions.eu, key, "/chat/completions", { body });
  const { error } = (await response.json()) as { error: { required_micro: number } };
  return error.required_micro;
}

/** Rotates a key whose old secret stays valid. Retries while the region is busy. */
async function rotated(region: TestRegion, owner: Account, { id }: Limited): Promise<Limited> {
  const headers = { "idempotency-key": crypto.randomUUID() };
  const body = { overlap_seconds: 600 };
  for (;;) {
    const response = await call(region, owner.key, `/keys/${id}/rotate`, { body, headers });
    if (response.status === 201) return (await response.json()) as Limited;
    expect(response.status).toBe(503);
    await response.text();
    await sleep(BUSY_MS);
  }
}

/** Aborts every object of a region with its running calls. */
async function abortAll({ url }: TestRegion): Promise<number> {
  const body = JSON.stringify({ from: 0, each: 1 });
  const response = await fetch(`${url}__soak/abort`, { method: "POST", body });
  return ((await response.json()) as { aborted: number }).aborted;
}

/** Spends the rest with charged responses, alternating between secrets, until each is rejected. */
async function spendRest(region: TestRegion, keys: readonly string[], body: object): Promise<void> {
  for (const key of keys) {
    for (;;) {
      const response = await call(region, key, "/chat/completions", { body });
      const text = await response.text();
      if (text.includes("key_budget_exceeded")) break;
      expect(response.status, text).toBe(200);
    }
  }
}

const PLACES = [
  ["home", "eu", "JSON", false],
  ["home", "eu", "streams", true],
  ["a peer", "us", "JSON", false],
  ["a peer", "us", "streams", true],
] as const;

describe.each(PLACES)(
  "a key with 200 concurrent requests and a budget for 20 requests at maximum cost, at %s: %s %s",
  (_name, where, _kind, stream) => {
    /** Creates an organization with a key that has this budget, and uses the key in the region. */
    async function openBudgetedKey() {
      const owner = await openRemoteAccount(regions);
      const body = { ...STALL, stream };
      const each = await worstCase(owner, body);
      const micros = AFFORDABLE * each;
      const one = await limited(owner, micros / 1e6);
      const met = { body: { ...ECHO, max_tokens: 0 } };
      expect(await statusOf(regions[where], one.key, "/chat/completions", met)).toBe(400);
      const open = (key: string): Promise<RawConnection> => openChat(regions[where], key, body);
      return { owner, one, each, micros, open };
    }

    /** Checks that the grants equal the budget, and that spending ends exactly there. */
    async function isExact(
      { owner, each, micros }: Awaited<ReturnType<typeof openBudgetedKey>>,
      { granted, refused }: Awaited<ReturnType<typeof flood>>,
      keys: readonly string[],
    ): Promise<void> {
      expect(granted).toHaveLength(AFFORDABLE);
      expect(refused.length).toBeGreaterThanOrEqual(REQUESTS - AFFORDABLE);
      for (const answer of refused) {
        expect(answer).toMatchObject({
          status: 402,
          error: { code: "key_budget_exceeded", budget_micro: micros, required_micro: each },
        });
      }
      expect(await owner.fullBalance()).toMatchObject({
        held_micro: micros,
        open_holds: AFFORDABLE,
      });
      await Promise.all(granted.map((connection) => connection.reset()));
      await owner.resolved();
      await spendRest(regions[where], keys, { ...ECHO, stream });
      await owner.resolved();
      const spent = -sumOf((await owner.ledger()).filter(({ kind }) => kind === "usage"));
      expect(spent).toBeGreaterThan(0);
      expect(spent).toBeLessThanOrEqual(micros);
      for (const key of keys) {
        const own = await (await call(regions[where], key, "/key")).json();
        expect((own as { spent_dollars: number }).spent_dollars).toBeCloseTo(spent / 1e6, 9);
      }
      expect(await owner.differences()).toEqual([]);
    }

    it("gets exactly 20 admissions even if the key is rotated during the requests", async () => {
      const setup = await openBudgetedKey();
      const { owner, one, open } = setup;
      let fresh = "";
      let turn = 0;
      const first = async (): Promise<RawConnection[]> => {
        const older = sendMany(() => open(one.key), REQUESTS / 2);
        ({ key: fresh } = await rotated(regions[where], owner, one));
        const newer = sendMany(() => open(fresh), REQUESTS / 2);
        return [...(await older), ...(await newer)];
      };
      const seen = await flood(owner, () => open(turn++ % 2 === 0 ? one.key : fresh), first);
      expect(fresh).not.toBe(one.key);
      await isExact(setup, seen, [fresh, one.key]);
    });

    it("gets exactly 20 admissions even if the key's object and the wallet are aborted during the requests", async () => {
      const setup = await openBudgetedKey();
      const { owner, one, open } = setup;
      const first = async (): Promise<RawConnection[]> => {
        const all = sendMany(() => open(one.key));
        expect(await abortAll(regions.eu)).toBeGreaterThan(1); // the key object and the wallet
        await waitUntilRunning(owner);
        await Promise.all([abortAll(regions.eu), abortAll(regions.us)]);
        return all;
      };
      await isExact(setup, await flood(owner, () => open(one.key), first), [one.key]);
    });
  },
);
