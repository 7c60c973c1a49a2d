import { afterEach, expect, it, vi } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import {
  asked,
  besides,
  burst,
  evict,
  gatedKey,
  inside,
  kindOf,
  MINUTE_MS,
  storedTimes,
  worstMinute,
} from "./key-admissions-fixture.ts";
import { valueOf } from "./wallet-desk.ts";

afterEach(() => shiftClock(null));

it("an admission returns the key's identity and remaining requests per minute", async () => {
  const { booked, hash, stub } = await gatedKey({ rpmLimit: 3 });
  expect(valueOf(await stub.admit(hash))).toEqual({
    keyId: booked.keyId,
    orgId: booked.orgId,
    memberId: booked.memberId,
    scope: "regional",
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
    const key = await gatedKey({ rpmLimit: 60 });
    const trace: number[] = [];
    let admitted = 0;
    for (const offset of offsets) {
      shiftClock(offset);
      admitted += await burst(key, 70);
      trace.push(...(await storedTimes(key)).slice(trace.length));
      await evict(key);
    }
    expect(trace).toHaveLength(admitted);
    expect(worstMinute(trace)).toBe(60);
  },
);

it("a key gets exactly its limit if the wallet is evicted between every two requests", async () => {
  const key = await gatedKey({ rpmLimit: 5 });
  const kinds: string[] = [];
  for (let i = 0; i < 8; i++) {
    kinds.push(await asked(key));
    await evict(key);
  }
  expect(kinds.filter((kind) => kind === "admitted")).toHaveLength(5);
});

it("a key with limit 1,000 gets exactly 1,000 requests from 64 concurrent callers, even after its ring buffer wraps", async () => {
  const key = await gatedKey({ rpmLimit: 1000 });
  const round = async (): Promise<number> => {
    const callers = Array.from({ length: 64 }, async () => {
      let admitted = 0;
      for (let i = 0; i < 17; i++) {
        if ((await key.stub.admit(key.hash)).ok) admitted++;
      }
      return admitted;
    });
    return (await Promise.all(callers)).reduce((sum, admitted) => sum + admitted, 0);
  };
  expect(await round()).toBe(1000);
  await evict(key);
  expect(await burst(key, 20)).toBe(0);
  shiftClock(MINUTE_MS + 20_000);
  expect(await round()).toBe(1000);
  await evict(key);
  expect(await burst(key, 20)).toBe(0);
  expect(await storedTimes(key)).toHaveLength(1000);
});

it("a wallet continues to count correctly after an eviction while a rate limit is half used", async () => {
  const key = await gatedKey({ rpmLimit: 400 });
  const trace: number[] = [];
  for (let minute = 0; minute < 4; minute++) {
    shiftClock(minute * (MINUTE_MS + 15_000));
    const before = new Set(await storedTimes(key));
    expect(await burst(key, 420)).toBe(400);
    trace.push(...(await storedTimes(key)).filter((at) => !before.has(at)));
    await evict(key);
  }
  expect(trace).toHaveLength(1600);
  expect(worstMinute(trace)).toBe(400);
  expect(await storedTimes(key)).toHaveLength(1000);
});

it("a key is admitted after exactly the returned wait, which rejected requests don't extend", async () => {
  const key = await gatedKey({ rpmLimit: 4 });
  const { booked, hash, stub } = key;
  expect(await burst(key, 4)).toBe(4);
  shiftClock(20_000);
  const refused = await stub.admit(hash);
  if (refused.ok || refused.failure.kind !== "rate_limited") throw new Error("not rate limited");
  expect(refused.failure).toMatchObject({ scope: "key", limit: 4, orgId: booked.orgId });
  const seconds = Math.ceil(refused.failure.retryAfterMs / 1000);
  expect(seconds).toBe(40);
  expect(await burst(key, 50)).toBe(0);
  expect(await storedTimes(key)).toHaveLength(4);
  shiftClock(20_000 + seconds * 1000);
  expect(await asked(key)).toBe("admitted");
});

it("a key gets no more requests after the clock steps back 30 s, and continues when it steps forward", async () => {
  const key = await gatedKey({ rpmLimit: 10 });
  shiftClock(MINUTE_MS);
  expect(await burst(key, 6)).toBe(6);
  shiftClock(MINUTE_MS - 30_000);
  expect(await burst(key, 10)).toBe(4);
  await evict(key);
  expect(await burst(key, 10)).toBe(0);
  shiftClock(2 * MINUTE_MS + 1000);
  expect(await burst(key, 20)).toBe(10);
});

it("a wallet counts requests with future times as current after the clock steps back over a minute, and logs it", async () => {
  const alerts = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const key = await gatedKey({ rpmLimit: 10 });
  const other = await besides(key, 2);
  shiftClock(60 * MINUTE_MS);
  expect(await burst(key, 10)).toBe(10);
  expect(await burst(other, 1)).toBe(1);
  shiftClock(null);
  expect(await burst(key, 10)).toBe(0);
  const said = alerts.mock.calls.flat().join();
  expect(said).toContain(`"alert":"clock_stepped_back","key_id":"${key.booked.keyId}"`);
  await evict(key);
  expect(await burst(key, 10)).toBe(0);
  expect(await burst(other, 3)).toBe(1);
  await evict(key);
  shiftClock(MINUTE_MS + 1000);
  expect(await burst(key, 20)).toBe(10);
});

it("a wallet limits two keys of one organization separately, even after an eviction", async () => {
  const one = await gatedKey({ rpmLimit: 3 });
  const two = await besides(one, 4);
  expect(await burst(one, 5)).toBe(3);
  expect(await burst(two, 3)).toBe(3);
  await evict(one);
  expect(await burst(two, 3)).toBe(1);
  expect(await burst(one, 3)).toBe(0);
  expect([await storedTimes(one), await storedTimes(two)].map((times) => times.length)).toEqual([
    3, 4,
  ]);
});

it("a wallet keeps the rate limit of a key that is no longer in memory because of 2,000 other keys", async () => {
  const key = await gatedKey({ rpmLimit: 3 });
  expect(await burst(key, 2)).toBe(2);
  const kinds = await inside(key, async (wallet, sql) => {
    sql.exec(
      `INSERT INTO keys (hash, revoked_at) WITH RECURSIVE n(i) AS
        (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2001) SELECT 'dead ' || i, 1 FROM n`,
    );
    const said = new Set<string>();
    for (let i = 1; i <= 2001; i++) said.add(kindOf(await wallet.admit(`dead ${i}`)));
    return [...said];
  });
  expect(kinds).toEqual(["invalid_api_key"]);
  expect(await burst(key, 5)).toBe(1);
});

it("a wallet admits no request that it can't store", async () => {
  vi.spyOn(console, "error").mockImplementation(() => undefined);
  const key = await gatedKey({ rpmLimit: 2 });
  expect(await burst(key, 1)).toBe(1);
  const failed = inside(key, async (wallet, sql) => {
    sql.exec("ALTER TABLE admissions RENAME TO lost");
    await expect(wallet.admit(key.hash)).rejects.toThrow("no such table");
    sql.exec("ALTER TABLE lost RENAME TO admissions");
  });
  await failed;
  expect(await burst(key, 5)).toBe(1);
});
