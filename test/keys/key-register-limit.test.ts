import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, expect, it, vi } from "vitest";
import { insertKey } from "../../src/accounts/keys/keys.store.ts";
import type { KeyRegister } from "../../src/index.ts";
import { draftKey, makeKey, shiftClock } from "./key-fixture.ts";
import {
  burst,
  kindOf,
  registerOf,
  MINUTE_MS,
  storedTimes,
  worstMinute,
} from "./register-fixture.ts";

afterEach(() => shiftClock(null));

it("a key's object returns the key's identity and remaining requests per minute", async () => {
  const { booked } = await makeKey({ rpmLimit: 3, scope: "global" });
  expect(await registerOf(booked.keyHash).admit()).toEqual({
    ok: true,
    keyId: booked.keyId,
    orgId: booked.orgId,
    memberId: booked.memberId,
    scope: "global",
    limit: 3,
    remaining: 2,
    resetMs: MINUTE_MS,
  });
});

it.each([
  ["a flood", [0, 1000, 30_000, 59_000, 60_500, 61_000, 119_000, 121_500]],
  ["bursts at the edges of minutes", [59_000, 60_200, 119_000, 120_200, 179_000, 180_200]],
  ["burst, idle, burst", [0, 15_000, 30_000, 45_000, 60_500, 75_000]],
])(
  "a key with limit 60 gets at most 60 requests in any 60 s under %s, with evictions",
  async (_name, offsets) => {
    const { booked } = await makeKey({ rpmLimit: 60 });
    const trace: number[] = [];
    let admitted = 0;
    for (const offset of offsets) {
      shiftClock(offset);
      admitted += await burst(booked.keyHash, 70);
      trace.push(...(await storedTimes(booked.keyHash)).slice(trace.length));
      await evictDurableObject(registerOf(booked.keyHash));
    }
    expect(trace).toHaveLength(admitted);
    expect(worstMinute(trace)).toBe(60);
  },
);

it("a key gets exactly its limit if its object is evicted between every two requests", async () => {
  const { booked } = await makeKey({ rpmLimit: 5 });
  const kinds: string[] = [];
  for (let i = 0; i < 8; i++) {
    kinds.push(kindOf(await registerOf(booked.keyHash).admit()));
    await evictDurableObject(registerOf(booked.keyHash));
  }
  expect(kinds.filter((kind) => kind === "admitted")).toHaveLength(5);
});

it("a key with limit 1,000 gets exactly 1,000 requests from 64 concurrent callers, even after its ring buffer wraps", async () => {
  const { booked } = await makeKey({ rpmLimit: 1000 });
  const round = async (): Promise<number> => {
    const register = registerOf(booked.keyHash);
    const callers = Array.from({ length: 64 }, async () => {
      let admitted = 0;
      for (let i = 0; i < 17; i++) {
        if ((await register.admit()).ok) admitted++;
      }
      return admitted;
    });
    return (await Promise.all(callers)).reduce((sum, admitted) => sum + admitted, 0);
  };
  expect(await round()).toBe(1000);
  await evictDurableObject(registerOf(booked.keyHash));
  expect(await burst(booked.keyHash, 20)).toBe(0);
  shiftClock(MINUTE_MS + 20_000);
  expect(await round()).toBe(1000);
  expect(await storedTimes(booked.keyHash)).toHaveLength(1000);
});

it("a key is admitted after exactly the returned wait, which rejected requests don't extend", async () => {
  const { booked } = await makeKey({ rpmLimit: 4 });
  expect(await burst(booked.keyHash, 4)).toBe(4);
  shiftClock(20_000);
  const refused = await registerOf(booked.keyHash).admit();
  if (refused.ok || refused.failure.kind !== "rate_limited") throw new Error("not rate limited");
  expect(refused.failure).toMatchObject({ scope: "key", limit: 4 });
  const seconds = Math.ceil(refused.failure.retryAfterMs / 1000);
  expect(seconds).toBe(40);
  expect(await burst(booked.keyHash, 50)).toBe(0);
  expect(await storedTimes(booked.keyHash)).toHaveLength(4);
  shiftClock(20_000 + seconds * 1000);
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("admitted");
});

it("a key gets no more requests after the clock steps back 30 s, and continues when it steps forward", async () => {
  const { booked } = await makeKey({ rpmLimit: 10 });
  shiftClock(MINUTE_MS);
  expect(await burst(booked.keyHash, 6)).toBe(6);
  shiftClock(MINUTE_MS - 30_000);
  expect(await burst(booked.keyHash, 10)).toBe(4);
  await evictDurableObject(registerOf(booked.keyHash));
  expect(await burst(booked.keyHash, 10)).toBe(0);
  shiftClock(2 * MINUTE_MS + 1000);
  expect(await burst(booked.keyHash, 20)).toBe(10);
});

it("a key's object counts requests with future times as current after the clock steps back over a minute, and logs it", async () => {
  const alerts = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const { booked } = await makeKey({ rpmLimit: 10 });
  shiftClock(60 * MINUTE_MS);
  expect(await burst(booked.keyHash, 10)).toBe(10);
  shiftClock(null);
  expect(await burst(booked.keyHash, 10)).toBe(0);
  expect(alerts.mock.calls.flat().join()).toContain('"alert":"clock_stepped_back"');
  await evictDurableObject(registerOf(booked.keyHash));
  expect(await burst(booked.keyHash, 10)).toBe(0);
  await evictDurableObject(registerOf(booked.keyHash));
  shiftClock(MINUTE_MS + 1000);
  expect(await burst(booked.keyHash, 20)).toBe(10);
});

it("a key's object writes one row per admission", async () => {
  const { booked } = await makeKey();
  await registerOf(booked.keyHash).admit();
  const written = await runInDurableObject(
    registerOf(booked.keyHash),
    async (register: KeyRegister, state) => {
      const exec = vi.spyOn(state.storage.sql, "exec");
      await register.admit();
      return exec.mock.results.map((result) => Number(Reflect.get(result.value, "rowsWritten")));
    },
  );
  expect(written).toEqual([1]);
});

it("two keys of one organization have separate limits", async () => {
  const one = await makeKey({ rpmLimit: 3 });
  const two = await draftKey({ id: one.booked.memberId, orgId: one.booked.orgId }, { rpmLimit: 3 });
  await insertKey(env.DB, two.booked, null);
  expect(await burst(one.booked.keyHash, 5)).toBe(3);
  expect(await burst(two.booked.keyHash, 5)).toBe(3);
});
