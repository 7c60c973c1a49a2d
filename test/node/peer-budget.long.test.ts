import path from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Counts } from "../../scripts/workers/counts.ts";
import { Account } from "./support/account.ts";
import { call, CHAT, delivered, openRemoteAccount, statusOf } from "./support/peer-keys.ts";
import { startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions, TestRegion } from "./support/two-regions.ts";

const REQUESTS = 10;
/** Interval at which a home region reads uses of a key in another region. */
const HEARD_MS = 15_000;
/** The gateway with counters around its objects and its database. */
const ENTRY = path.join(import.meta.dirname, "../../scripts/workers/counting.ts");

let regions: FaultyRegions;
beforeAll(async () => {
  regions = await startFaultyRegions({ entry: ENTRY });
});
afterAll(() => regions.stop());

/** Returns a region's counts since the last call. */
async function countsOf(region: TestRegion): Promise<Counts> {
  return (await fetch(`${region.url}__counts`)).json() as Promise<Counts>;
}

/**
 * Returns the counts of these completions in the US for both regions, from the second use of a key
 * on.
 */
async function costOf(
  key: string,
  stream: boolean,
): Promise<{ us: Counts; eu: Counts; tookMs: number }> {
  const startMs = performance.now();
  const chat = async (): Promise<void> => {
    const answer = await call(regions.us, key, "/chat/completions", {
      body: { ...CHAT.body, stream },
    });
    await answer.text();
    expect(answer.status).toBe(200);
  };
  await chat();
  await delivered(regions.us);
  await Promise.all([countsOf(regions.us), countsOf(regions.eu)]);
  for (let i = 0; i < REQUESTS; i++) await chat();
  const us = await countsOf(regions.us); // read now, because checking for delivery counts too
  const healthRequests = await delivered(regions.us);
  const eu = await countsOf(regions.eu);
  const tookMs = performance.now() - startMs;
  return { us, eu: less(eu, healthRequests, await costOfHealth()), tookMs };
}

/**
 * Returns the home region's counts for one health request to the other region, which calls its
 * peer.
 */
async function costOfHealth(): Promise<Counts> {
  expect(await delivered(regions.us)).toBe(1);
  return countsOf(regions.eu);
}

function less(counts: Counts, times: number, each: Counts): Counts {
  const rest = Object.entries(counts).map(([name, count]) => {
    const own = each[name as keyof Counts];
    return [name, typeof count === "number" ? count - times * own : count];
  });
  return Object.fromEntries(rest) as Counts;
}

it.each([false, true])(
  "a global key's request in the other region needs two object calls in each region, and no D1 query (stream %s)",
  async (stream) => {
    const { key } = await openRemoteAccount(regions);
    const { us, eu, tookMs } = await costOf(key, stream);
    expect([us.objectCalls, us.d1Queries]).toEqual([2 * REQUESTS, 0]);
    const registers = eu.objectCalls - 2 * REQUESTS;
    expect(registers).toBeGreaterThanOrEqual(0);
    expect(registers).toBeLessThanOrEqual(Math.floor(tookMs / HEARD_MS));
    expect(eu.d1QueriesBeforeUpstream).toBe(0);
  },
);

it.each([false, true])(
  "a regional key's request needs two object calls, and no call to the other region (stream %s)",
  async (stream) => {
    const { key } = await Account.open(() => regions.us);
    const { us, eu } = await costOf(key, stream);
    expect([us.objectCalls, eu.objectCalls, eu.requests]).toEqual([2 * REQUESTS, 0, 0]);
  },
);

/** Returns the counts of these completions in the home region, from the key's second use on. */
async function countsAtHome(key: string): Promise<Counts> {
  const chat = async (): Promise<void> => {
    expect(await statusOf(regions.us, key, "/chat/completions", CHAT)).toBe(200);
  };
  await chat();
  await countsOf(regions.us);
  for (let i = 0; i < REQUESTS; i++) await chat();
  return countsOf(regions.us);
}

it("a key with a budget and a token limit needs no additional call, and at most one additional row", async () => {
  const { key } = await Account.open(() => regions.us);
  const terms = { budget_dollars: 1, budget_period: "day", tpm_limit: 100_000 };
  const response = await call(regions.us, key, "/keys", { body: { name: "limited", ...terms } });
  const limited = ((await response.json()) as { key: string }).key;
  const plain = await countsAtHome(key);
  const more = await countsAtHome(limited);
  expect([plain.objectCalls, more.objectCalls]).toEqual([2 * REQUESTS, 2 * REQUESTS]);
  expect(more.d1QueriesBeforeUpstream).toBe(0);
  expect(more.objectRowsWritten).toBeLessThanOrEqual(plain.objectRowsWritten + REQUESTS);
});

it("the count of database calls includes the queries of read requests", async () => {
  const { key } = await Account.open(() => regions.us);
  await countsOf(regions.us);
  const answer = await call(regions.us, key, "/keys");
  expect(answer.status).toBe(200);
  await answer.text();
  const { d1Queries, d1RowsRead } = await countsOf(regions.us);
  expect(Math.min(d1Queries, d1RowsRead)).toBeGreaterThan(0);
});
