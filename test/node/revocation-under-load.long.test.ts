import assert from "node:assert/strict";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Account } from "./support/account.ts";
import {
  chat,
  finalStatus,
  isRevokedAt,
  keysInUse,
  openRemoteAccount,
  revoke,
  statusOf,
} from "./support/peer-keys.ts";
import type { GlobalKey } from "./support/peer-keys.ts";
import { figure } from "./support/figure.ts";
import { startFaultyRegions } from "./support/two-regions.ts";
import type { FaultyRegions, TestRegion } from "./support/two-regions.ts";
import { recordMeasured } from "../measured.ts";

const KEYS = process.env["CI"] === undefined ? 1000 : 250;
/** Keys that an owner creates and revokes within its key's limit per minute. */
const KEYS_OF_ONE = 100;
const CALLERS = 4;
const RELAXED = { timeout: 100_000, interval: 1 };

let regions: FaultyRegions;
beforeAll(async () => {
  regions = await startFaultyRegions();
});
afterAll(() => regions.stop());

type Seen = { readonly status: number; readonly isAfter: boolean; readonly where: string };

/** Statuses of requests that weren't admitted: revoked, or unknown on a slow machine. */
const REFUSED: ReadonlySet<number> = new Set([401, 503]);

/** Uses all keys in turn, including revoked ones, until it is stopped. */
function load(keys: readonly GlobalKey[], dead: ReadonlySet<GlobalKey>) {
  const seen: Seen[] = [];
  const control = { isOver: false };
  let next = 0;
  const caller = async (region: TestRegion, isChat: boolean): Promise<void> => {
    while (!control.isOver) {
      // every other call uses the key that is revoked next or was revoked last
      const at = next++ % 2 === 0 ? Math.max(0, dead.size - (next % 4)) : next;
      const key = keys[at % keys.length];
      assert.ok(key !== undefined);
      const isAfter = dead.has(key);
      const status = await (isChat ? chat(region, key) : statusOf(region, key.key));
      seen.push({ status, isAfter, where: region.name });
    }
  };
  const callers = Array.from({ length: CALLERS }, (_, i) => [
    caller(regions.us, i % 2 === 0),
    caller(regions.eu, i % 2 === 0),
  ]).flat();
  const stop = async (): Promise<readonly Seen[]> => {
    control.isOver = true;
    await Promise.all(callers);
    return seen;
  };
  return { stop };
}

/** Returns the time from DELETE's response until the US's key object has the revocation. */
async function arrival(key: GlobalKey): Promise<number> {
  const answeredMs = performance.now();
  await expect.poll(() => isRevokedAt(regions.us, key), RELAXED).toBe(true);
  return performance.now() - answeredMs;
}

it(`revoked keys get no request admitted in either region once DELETE has returned: ${KEYS} keys`, async () => {
  const keys: (GlobalKey & { readonly owner: Account })[] = [];
  while (keys.length < KEYS) {
    const owner = await openRemoteAccount(regions);
    const created = await keysInUse(regions, owner, Math.min(KEYS_OF_ONE, KEYS - keys.length));
    for (const key of created) keys.push({ ...key, owner });
  }
  const dead = new Set<GlobalKey>();
  const { stop } = load(keys, dead);
  const arrivals: Promise<number>[] = [];
  for (const key of keys) {
    expect(await finalStatus(() => revoke(regions, key.owner.key, key.id))).toBe(200);
    dead.add(key);
    arrivals.push(arrival(key));
    for (const region of [regions.us, regions.eu]) {
      expect(await finalStatus(() => chat(region, key))).toBe(401);
    }
  }
  const tookMs = (await Promise.all(arrivals)).toSorted((one, other) => one - other);
  const seen = await stop();
  const at = (share: number): number => Math.round(tookMs[Math.ceil(share * KEYS) - 1] ?? 0);
  const figures = `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`;
  figure(`tombstone in the peer after DELETE's answer, ${KEYS} keys: ${figures}`);
  const admitted = seen.filter(({ isAfter, status }) => isAfter && !REFUSED.has(status));
  recordMeasured({ keys: KEYS, asked: seen.filter((one) => one.isAfter).length });
  recordMeasured({ admitted: admitted.length, p50: at(0.5), p99: at(0.99), max: at(1) });
  expect(admitted).toEqual([]);
  expect(seen.filter(({ status }) => status !== 200 && !REFUSED.has(status))).toEqual([]);
  for (const where of ["eu", "us"]) {
    const here = seen.filter((one) => one.where === where);
    expect(here.filter(({ isAfter }) => isAfter).length).toBeGreaterThan(KEYS / 4);
    expect(here.filter(({ status }) => status === 200).length).toBeGreaterThan(KEYS / 4);
  }
  for (const owner of new Set(keys.map((key) => key.owner))) {
    await owner.resolved();
    expect(await owner.differences()).toEqual([]);
  }
});
