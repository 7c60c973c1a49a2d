import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { insertKey } from "../../src/accounts/keys/keys.store.ts";
import type { Failure } from "../../src/shared/failure.ts";
import * as wallets from "../wallet/key-admissions-fixture.ts";
import { draftKey, makeKey, shiftClock } from "./key-fixture.ts";
import * as registers from "./register-fixture.ts";
import { MINUTE_MS, worstMinute } from "./register-fixture.ts";
import { sendToWorker, openOrganization } from "../fixtures/worker-app.ts";

/** A key whose requests one object counts. */
type Key = {
  readonly admit: () => Promise<
    { readonly ok: true } | { readonly ok: false; readonly failure: Failure }
  >;
  /** Returns how many of `count` concurrent requests are admitted. The others are over the limit. */
  readonly burst: (count: number) => Promise<number>;
  readonly evict: () => Promise<void>;
  /** Returns the stored times of admissions, oldest first. */
  readonly times: () => Promise<number[]>;
  readonly setLimit: (limit: number) => Promise<void>;
  readonly revoke: () => Promise<unknown>;
  /** Returns another key of the same organization. */
  readonly sibling: (rpmLimit: number) => Promise<Key>;
};

function keyOfWallet(key: wallets.GatedKey): Key {
  return {
    admit: () => key.stub.admit(key.hash),
    burst: (count) => wallets.burst(key, count),
    evict: () => wallets.evict(key),
    times: () => wallets.storedTimes(key),
    setLimit: (limit) => wallets.setLimit(key, limit),
    revoke: () => key.stub.revokeKey(key.hash, 5),
    sibling: async (rpmLimit) => keyOfWallet(await wallets.siblingKey(key, rpmLimit)),
  };
}

function keyOfRegister({ booked }: Awaited<ReturnType<typeof makeKey>>): Key {
  const { keyId, keyHash, memberId, orgId } = booked;
  const register = registers.registerOf(keyHash);
  return {
    admit: () => register.admit(),
    burst: (count) => registers.burst(keyHash, count),
    evict: () => evictDurableObject(register),
    times: () => registers.storedTimes(keyHash),
    setLimit: async (limit) => {
      const update = env.DB.prepare("UPDATE keys SET rpm_limit = ? WHERE id = ?");
      await update.bind(limit, keyId).run();
      await register.setLimit(limit);
    },
    revoke: () => register.revoke(5),
    sibling: async (rpmLimit) => {
      const draft = await draftKey({ id: memberId, orgId }, { rpmLimit });
      await insertKey(env.DB, draft.booked, null);
      return keyOfRegister(draft);
    },
  };
}

/** The two objects that count a key's requests: at home and in other regions. */
const OBJECTS: Readonly<Record<string, (rpmLimit: number) => Promise<Key>>> = {
  "a wallet": async (rpmLimit) => keyOfWallet(await wallets.gatedKey({ rpmLimit })),
  "a key's Durable Object": async (rpmLimit) => keyOfRegister(await makeKey({ rpmLimit })),
};

afterEach(() => {
  shiftClock(null);
  vi.restoreAllMocks();
});

describe.each(Object.entries(OBJECTS))("a key's rate limit, counted by %s", (_, open) => {
  it.each([
    ["a flood", [0, 1000, 30_000, 59_000, 60_500, 61_000, 119_000, 121_500]],
    ["bursts at the edges of minutes", [59_000, 60_200, 119_000, 120_200, 179_000, 180_200]],
    ["burst, idle, burst", [0, 15_000, 30_000, 45_000, 60_500, 75_000]],
  ])(
    "never admits more than the limit in any 60 s under %s, with evictions",
    async (_name, offsets) => {
      const key = await open(60);
      const trace: number[] = [];
      let admitted = 0;
      for (const offset of offsets) {
        shiftClock(offset);
        admitted += await key.burst(70);
        trace.push(...(await key.times()).slice(trace.length));
        await key.evict();
      }
      expect(trace).toHaveLength(admitted);
      expect(worstMinute(trace)).toBe(60);
    },
  );

  it("admits exactly the limit even if the object is evicted after every request", async () => {
    const key = await open(5);
    let admitted = 0;
    for (let i = 0; i < 8; i++) {
      admitted += Number((await key.admit()).ok);
      await key.evict();
    }
    expect(admitted).toBe(5);
  });

  it("admits exactly 1,000 requests of 64 concurrent callers, even after the ring buffer wraps around", async () => {
    const key = await open(1000);
    const round = async (): Promise<number> => {
      const callers = Array.from({ length: 64 }, async () => {
        let admitted = 0;
        for (let i = 0; i < 17; i++) admitted += Number((await key.admit()).ok);
        return admitted;
      });
      return (await Promise.all(callers)).reduce((sum, admitted) => sum + admitted, 0);
    };
    for (const offset of [0, MINUTE_MS + 20_000]) {
      shiftClock(offset);
      expect(await round()).toBe(1000);
      await key.evict();
      expect(await key.burst(20)).toBe(0);
    }
    expect(await key.times()).toHaveLength(1000);
  });

  it("admits the next request after exactly the returned wait, even if requests are rejected meanwhile", async () => {
    const key = await open(4);
    expect(await key.burst(4)).toBe(4);
    shiftClock(20_000);
    const refused = await key.admit();
    if (refused.ok || refused.failure.kind !== "rate_limited") throw new Error("not rate limited");
    expect(refused.failure).toMatchObject({ scope: "key", limit: 4 });
    const seconds = Math.ceil(refused.failure.retryAfterMs / 1000);
    expect(seconds).toBe(40);
    expect(await key.burst(50)).toBe(0);
    expect(await key.times()).toHaveLength(4);
    shiftClock(20_000 + seconds * 1000);
    expect((await key.admit()).ok).toBe(true);
  });

  it("counts earlier requests for a full minute even if the clock steps back 30 s", async () => {
    const key = await open(10);
    shiftClock(MINUTE_MS);
    expect(await key.burst(6)).toBe(6);
    shiftClock(MINUTE_MS - 30_000);
    expect(await key.burst(10)).toBe(4);
    await key.evict();
    expect(await key.burst(10)).toBe(0);
    shiftClock(2 * MINUTE_MS + 1000);
    expect(await key.burst(20)).toBe(10);
  });

  it("admits no request for a minute, and raises an alert, if the clock steps back by over a minute", async () => {
    const alerts = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const key = await open(10);
    const other = await key.sibling(2);
    shiftClock(60 * MINUTE_MS);
    expect([await key.burst(10), await other.burst(1)]).toEqual([10, 1]);
    shiftClock(null);
    expect(await key.burst(10)).toBe(0);
    expect(alerts.mock.calls.flat().join()).toContain('"alert":"clock_stepped_back"');
    await key.evict();
    expect([await key.burst(10), await other.burst(3)]).toEqual([0, 1]);
    await key.evict();
    shiftClock(MINUTE_MS + 1000);
    expect(await key.burst(20)).toBe(10);
  });

  it("doesn't count one key's requests against another key, even after an eviction", async () => {
    const one = await open(3);
    const two = await one.sibling(4);
    expect([await one.burst(5), await two.burst(3)]).toEqual([3, 3]);
    await one.evict();
    expect([await two.burst(3), await one.burst(3)]).toEqual([1, 0]);
    expect([(await one.times()).length, (await two.times()).length]).toEqual([3, 4]);
  });

  it("admits no more than a lowered limit in any 60 s after the change", async () => {
    const key = await open(60);
    for (const second of [0, 10, 20, 30]) {
      shiftClock(second * 1000);
      expect(await key.burst(10)).toBe(10);
    }
    const before = (await key.times()).length;
    await key.setLimit(10);
    // The last ten requests leave the window at 90 s.
    const admitted: number[] = [];
    for (let second = 31; second <= 211; second += 5) {
      shiftClock(second * 1000);
      admitted.push(await key.burst(4));
    }
    const after = (await key.times()).slice(before);
    expect(after.length).toBe(admitted.reduce((sum, count) => sum + count, 0));
    expect(worstMinute(after)).toBe(10);
    expect(worstMinute((await key.times()).slice(before - 10))).toBe(10);
    expect(admitted.slice(0, 11)).toEqual(Array.from({ length: 11 }, () => 0));
  });

  it("admits requests up to a raised limit immediately", async () => {
    const key = await open(5);
    expect(await key.burst(8)).toBe(5);
    await key.setLimit(12);
    expect(await key.burst(20)).toBe(7);
    expect(worstMinute(await key.times())).toBe(12);
  });

  it("applies a changed limit after an eviction, without affecting other keys", async () => {
    const key = await open(60);
    const other = await key.sibling(4);
    expect([await key.burst(1), await other.burst(1)]).toEqual([1, 1]);
    await key.setLimit(2);
    await key.evict();
    expect([await key.burst(5), await other.burst(5)]).toEqual([1, 3]);
  });

  it("admits no request after the key's revocation even if the limit changes, for used and unused keys", async () => {
    const key = await open(60);
    const unused = await key.sibling(60);
    expect((await key.admit()).ok).toBe(true);
    for (const one of [key, unused]) {
      await one.revoke();
      await one.setLimit(7);
      expect(await one.admit()).toMatchObject({ failure: { kind: "invalid_api_key" } });
    }
  });
});

afterEach(() => shiftClock(null));

/** Returns the seconds in a 429, after checking that body and header agree. */
async function retryAfter(response: Response): Promise<number> {
  expect(response.status).toBe(429);
  const { error } = await response.json<{ error: { type: string; retry_after: number } }>();
  expect(error.type).toBe("rate_limit_exceeded");
  expect(response.headers.get("retry-after")).toBe(String(error.retry_after));
  expect(Number.isInteger(error.retry_after)).toBe(true);
  return error.retry_after;
}

it("a rate-limited key is admitted after exactly retry_after, and not a second earlier", async () => {
  const { key } = await openOrganization({ rpmLimit: 2 });
  await sendToWorker("/v1/models", { key });
  shiftClock(10_000);
  await sendToWorker("/v1/models", { key });
  const seconds = await retryAfter(await sendToWorker("/v1/models", { key }));
  expect(seconds).toBeGreaterThan(0);
  expect(seconds).toBeLessThanOrEqual(50);
  shiftClock(10_000 + (seconds - 1) * 1000);
  await retryAfter(await sendToWorker("/v1/models", { key }));
  shiftClock(10_000 + seconds * 1000);
  expect((await sendToWorker("/v1/models", { key })).status).toBe(200);
  await retryAfter(await sendToWorker("/v1/models", { key }));
});
