import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Account } from "./support/account.ts";
import {
  delivered,
  expectAtRest,
  expectGenerations,
  expectKnownCharges,
  openRemoteAccount,
} from "./support/peer-money.ts";
import { send, sendAll } from "./support/peer-traffic.ts";
import type { ClientOutcome } from "./support/peer-traffic.ts";
import { startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions } from "./support/two-regions.ts";
import { recordMeasured } from "../measured.ts";

const REQUESTS = 2000;
const ORGANIZATIONS = 10;
const CALLERS = 12;
/** Draws every fault within the first 30 requests, so that every run has all of them. */
const SEED = 20_261_127;
/** 15% are lost in either direction, 15% duplicated, and 15% overtaken by a later one. */
const ODDS = {
  drop: 0.02,
  "reset-before": 0.06,
  "lose-reply": 0.02,
  "reset-after": 0.05,
  duplicate: 0.15,
  reorder: 0.15,
};

let regions: FaultyRegions;
beforeAll(async () => {
  regions = await startFaultyRegions({ bindings: { DRAIN_S: "1" } });
});
afterAll(() => regions.stop());

/** Returns the number of ledger rows that charge a request again. */
async function repeatedIn(accounts: readonly Account[]): Promise<number> {
  const ledgers = await Promise.all(accounts.map((account) => account.ledger()));
  const paid = ledgers.flat().filter((row) => row.kind === "usage");
  return paid.length - new Set(paid.map((row) => row.generation_id)).size;
}

describe("a connection between regions that loses, duplicates and reorders messages", () => {
  it(`results in one charge per completed request, at the cost that the client saw: ${REQUESTS} requests of ${ORGANIZATIONS} organizations`, async () => {
    const opened = Array.from({ length: ORGANIZATIONS }, () => openRemoteAccount(regions));
    const accounts = await Promise.all(opened);
    await regions.toEu.set({ seed: SEED, odds: ODDS });
    const of = new Map<Account, ClientOutcome[]>(accounts.map((account) => [account, []]));
    const outcomes = await sendAll(REQUESTS, CALLERS, async (n) => {
      const account = accounts[n % ORGANIZATIONS];
      if (account === undefined) throw new Error("no such organization");
      const one = await send(Math.floor(n / ORGANIZATIONS), account, regions.us);
      of.get(account)?.push(one);
      return one;
    });
    await regions.toEu.set("pass");
    await delivered(regions.us);
    const { drawn } = regions.toEu.counts;
    for (const fault of Object.keys(ODDS)) {
      expect(drawn[fault as keyof typeof ODDS], fault).toBeGreaterThan(0);
    }
    let charged = 0;
    recordMeasured({ flights: REQUESTS, doubled: drawn.duplicate, reordered: drawn.reorder });
    recordMeasured({ repeated: await repeatedIn(accounts) });
    for (const [account, ofIts] of of) {
      const charges = await expectAtRest(account);
      expectKnownCharges(charges, ofIts);
      await expectGenerations(account, regions.us, charges);
      charged += charges.size;
    }
    const paying = outcomes.filter(({ fate }) => fate === "paid" || fate === "charged");
    expect(charged).toBe(paying.length);
    expect(paying.length).toBeGreaterThan(REQUESTS * 0.75);
  });
});
