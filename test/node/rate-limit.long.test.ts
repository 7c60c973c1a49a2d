import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
import { mostWithin } from "../keys/rate-limiters.ts";
import { recordMeasured } from "../measured.ts";
import { Account } from "./support/account.ts";
import { startTwoRegions } from "./support/two-regions.ts";
import type { TwoRegions } from "./support/two-regions.ts";

const LIMIT = 60;
const EVICTIONS = 4;
/** Longer than a minute, so that slots of the first burst become free and are used again. */
const PRESSED_MS = 66_000;
const EVERY_MS = 100;

let regions: TwoRegions;
beforeAll(async () => {
  regions = await startTwoRegions();
});
afterAll(() => regions.stop());

/** Reports whether the key's limit admits a request. */
async function admitted(account: Account): Promise<boolean> {
  const response = await account.call("/models");
  await response.body?.cancel();
  expect([200, 429]).toContain(response.status);
  return response.status === 200;
}

/** Evicts every wallet of the region, including those of other tests. */
async function evictWallets({ eu }: TwoRegions): Promise<void> {
  for (const id of await eu.miniflare.listDurableObjectIds("Wallet", "turnpike-eu")) {
    await eu.miniflare
      .unsafeEvictDurableObject("turnpike-eu", "Wallet", { id })
      .catch((error: unknown) => {
        if (!String(error).includes("not currently running")) throw error;
      });
  }
}

it(`a key under constant load for ${PRESSED_MS / 1000} s gets at most ${LIMIT} admissions in any 60 s`, async () => {
  const account = await Account.open(() => regions.eu, { credits: 0, rpmLimit: LIMIT });
  const admissions: { from: number; to: number }[] = [];
  let requestCount = 0;
  const press = async (): Promise<void> => {
    requestCount++;
    const from = performance.now();
    if (await admitted(account)) admissions.push({ from, to: performance.now() });
  };
  const began = performance.now();
  const calls = Array.from({ length: LIMIT }, press);
  while (performance.now() - began < PRESSED_MS) {
    await sleep(EVERY_MS);
    calls.push(press());
  }
  await Promise.all(calls);
  const most = mostWithin(admissions);
  recordMeasured({ limit: LIMIT, most, admitted: admissions.length, asked: requestCount });
  expect(most).toBe(LIMIT);
  expect(admissions.length).toBeGreaterThan(LIMIT);
});

it(`a key gets ${LIMIT} admissions in total if its wallet is evicted after each of ${EVICTIONS} floods`, async () => {
  const account = await Account.open(() => regions.eu, { credits: 0, rpmLimit: LIMIT });
  let inAll = 0;
  for (let life = 0; life <= EVICTIONS; life++) {
    if (life > 0) await evictWallets(regions);
    const flood = await Promise.all(Array.from({ length: LIMIT }, () => admitted(account)));
    inAll += flood.filter(Boolean).length;
  }
  recordMeasured({
    evictions: EVICTIONS,
    offered: (EVICTIONS + 1) * LIMIT,
    evictedAdmitted: inAll,
  });
  expect(inAll).toBe(LIMIT);
});
