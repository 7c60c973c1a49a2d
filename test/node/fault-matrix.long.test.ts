import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  EXPECTED_CALLS,
  FAULTS,
  REQUEST_STEPS,
  EXPECTED_REQUESTS,
} from "../fixtures/fault-matrix.ts";
import type { Account } from "./support/account.ts";
import { delivered, expectAtRest, openRemoteAccount } from "./support/peer-money.ts";
import { callAt } from "./support/peer-traffic.ts";
import {
  GatedUpstream,
  continueFlights,
  resultOf,
  startFlights,
} from "./support/fault-requests.ts";
import type { Flights } from "./support/fault-requests.ts";
import { FAULT_CAUSES } from "./support/fault-causes.ts";
import { ADMIN_TOKEN, startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions, TestRegion } from "./support/two-regions.ts";

const CREDITS = 1_000_000;
const TOP_UP = 1000;

let upstream: GatedUpstream;
let regions: FaultyRegions;
beforeAll(async () => {
  upstream = await GatedUpstream.start();
  regions = await startFaultyRegions({ us: upstream.bindings() });
});
afterAll(async () => {
  await regions.stop();
  await upstream.stop();
});

/**
 * An organization whose owner revokes two keys and whose operator adds credits twice: before and
 * under the fault.
 */
type Calls = {
  readonly account: Account;
  readonly victims: readonly { readonly id: string; readonly key: string }[];
};

async function makeVictims(account: Account): Promise<Calls> {
  const victims = [];
  for (const name of ["before", "under"]) {
    const response = await account.call("/keys", { name, scope: "global" });
    assert.equal(response.status, 201);
    const victim = (await response.json()) as { id: string; key: string };
    assert.equal(await statusOf(regions.us, victim.key), 200); // the US caches it
    victims.push(victim);
  }
  return { account, victims };
}

async function statusOf(region: TestRegion, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}` };
  const response = await fetch(`${region.baseUrl}/models`, { headers });
  await response.body?.cancel();
  return response.status;
}

async function endKey({ account, victims }: Calls, which: 0 | 1): Promise<number> {
  const headers = { authorization: `Bearer ${account.key}` };
  const url = `${regions.eu.baseUrl}/keys/${victims[which]?.id}`;
  return (await fetch(url, { method: "DELETE", headers })).status;
}

async function topUp({ account }: Calls, reference: string): Promise<number> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
  const body = JSON.stringify({ amount_micro: TOP_UP, reference });
  const url = `${regions.eu.adminUrl}/orgs/${account.orgId}/credits`;
  return (await fetch(url, { method: "POST", headers, body })).status;
}

describe.each(FAULTS)("%s", (fault) => {
  let flights: Flights;
  let calls: Calls;
  const under: Partial<Record<"DELETE key" | "top-up" | "home" | "peer", number>> = {};

  beforeAll(async () => {
    calls = await makeVictims(await openRemoteAccount(regions));
    await regions.toUs.set("refuse"); // the other region doesn't know of the first revocation yet
    assert.equal(await endKey(calls, 0), 200);
    assert.equal(await topUp(calls, "before"), 200);
    flights = await startFlights(regions, upstream);
    const { strike, heal } = FAULT_CAUSES[fault];
    await strike(regions);
    await continueFlights(flights, upstream);
    under.home = await statusOf(regions.eu, calls.victims[0]?.key ?? "");
    under.peer = await statusOf(regions.us, calls.victims[0]?.key ?? "");
    under["DELETE key"] = await endKey(calls, 1);
    under["top-up"] = await topUp(calls, "under");
    await heal(regions);
    await Promise.all([delivered(regions.us), delivered(regions.eu)]);
  });

  it.each(REQUEST_STEPS.map((step) => [step, EXPECTED_REQUESTS[step][fault]] as const))(
    `the step %s x the fault ${fault} ends with %o`,
    async (step, expected) => {
      const flight = flights[step];
      const got = resultOf(flight);
      const isLate = expected.mayBeLate === true && got.answer === "503";
      const { answer, paid } = isLate ? ({ answer: "503", paid: "never" } as const) : expected;
      expect(got.answer).toBe(answer);
      await flight.account.resolved();
      const costs = [...(await expectAtRest(flight.account)).values()];
      expect(costs).toHaveLength(paid === "once" ? 1 : 0); // once for each reported cost
      expect(costs).toEqual(got.cost === null ? [] : [got.cost]);
    },
  );

  it(`DELETE key x ${fault} returns ${EXPECTED_CALLS["DELETE key"][fault]}, and the key is rejected immediately at home and later elsewhere`, async () => {
    expect(under["DELETE key"]).toBe(EXPECTED_CALLS["DELETE key"][fault]);
    expect(under.home).toBe(401);
    expect([401, 503]).toContain(under.peer);
    for (const which of [0, 1] as const) {
      expect(await endKey(calls, which)).toBe(200);
      const key = calls.victims[which]?.key ?? "";
      expect([await statusOf(regions.eu, key), await statusOf(regions.us, key)]).toEqual([
        401, 401,
      ]);
    }
    const listed = (await (await callAt(regions.eu, calls.account, "/keys")).json()) as {
      keys: { name: string; revoked: boolean }[];
    };
    const ended = listed.keys.filter(({ revoked }) => revoked).map(({ name }) => name);
    expect(ended.toSorted()).toEqual(["before", "under"]);
  });

  it(`top-up x ${fault} returns ${EXPECTED_CALLS["top-up"][fault]}, and each top-up counts once`, async () => {
    expect(under["top-up"]).toBe(EXPECTED_CALLS["top-up"][fault]);
    expect([await topUp(calls, "before"), await topUp(calls, "under")]).toEqual([200, 200]);
    expect((await expectAtRest(calls.account)).size).toBe(0);
    expect(await calls.account.balance()).toBe(CREDITS + 2 * TOP_UP);
    // only the home region has the balance
    const url = `${regions.us.adminUrl}/orgs/${calls.account.orgId}/credits`;
    const headers = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
    const body = JSON.stringify({ amount_micro: 1, reference: "away" });
    expect((await fetch(url, { method: "POST", headers, body })).status).toBe(404);
  });
});
