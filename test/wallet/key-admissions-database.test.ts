import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { findKeyByHash, insertKey } from "../../src/accounts/keys/keys.store.ts";
import { now } from "../../src/shared/clock.ts";
import { QUIET_PUBLISH_INTERVAL_MS } from "../../src/money/wallet/object/memory.do.ts";
import { draftKey, makeKey, makeMember, shiftClock, WatchedDatabase } from "../keys/key-fixture.ts";
import {
  admission,
  burst,
  eventually,
  evict,
  gatedKey,
  runInWallet,
  setDatabaseLimit,
  MINUTE_MS,
  registerOf,
  storedKey,
  storedTimes,
  WatchedRegisters,
  worstMinute,
} from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { failureOf, holdOf, rowsOf, runAlarm, stubOf, valueOf } from "./wallet-fixture.ts";

let book: WatchedDatabase;
let registers: WatchedRegisters;

beforeEach(() => {
  book = new WatchedDatabase();
  registers = new WatchedRegisters();
});
afterEach(() => {
  registers.restore();
  book.restore();
  shiftClock(null);
});

/** Returns a valid key that isn't in the database. */
async function neverIssued(): Promise<GatedKey> {
  const member = await makeMember();
  const { booked } = await draftKey(member);
  return { booked, hash: booked.keyHash, stub: stubOf(member.orgId) };
}

it("a wallet rejects a key that was never issued, and stores nothing", async () => {
  const key = await neverIssued();
  expect(await admission(key)).toBe("invalid_api_key");
  expect(failureOf(await key.stub.admitAndHold(key.hash, holdOf(0)))).toEqual({
    kind: "invalid_api_key",
  });
  for (const table of ["keys", "admissions", "requests"]) {
    expect(await rowsOf(key.stub, `SELECT * FROM ${table}`)).toEqual([]);
  }
});

it("a wallet admits a key that it first rejected as unknown, once the database contains the key", async () => {
  const key = await neverIssued();
  expect(await admission(key)).toBe("invalid_api_key");
  await insertKey(env.DB, key.booked, null);
  expect(await admission(key)).toBe("admitted");
});

it("a wallet has no pending work after a rejection, so that the platform can evict the wallet", async () => {
  const key = await neverIssued();
  expect(await admission(key)).toBe("invalid_api_key");
  await evict(key); // waits for open work
  expect(await admission(key)).toBe("invalid_api_key");
});

it("a wallet calls the key's Durable Object only once, even if the first uses are concurrent", async () => {
  const key = await gatedKey({ rpmLimit: 100 });
  expect(await burst(key, 50)).toBe(50);
  expect(registers.count("identify")).toBe(1);
  await evict(key);
  expect(await burst(key, 10)).toBe(10);
  expect(registers.count("identify")).toBe(1);
});

it("a wallet's next publish adopts a limit that changed only in the database", async () => {
  const key = await gatedKey({ rpmLimit: 5 });
  const { stub, hash } = key;
  expect(await burst(key, 10)).toBe(5);
  const limitIs = (limit: number): Promise<void> =>
    eventually(async () => {
      const answer = await stub.admit(hash);
      expect(answer.ok ? answer.value : answer.failure).toMatchObject({ limit });
    });
  await setDatabaseLimit(key, 8);
  valueOf(await stub.poke());
  shiftClock(MINUTE_MS + 1000);
  expect(await admission(key)).toBe("admitted");
  await limitIs(8);
  await burst(key, 20);
  expect(worstMinute(await storedTimes(key))).toBe(8);
  await setDatabaseLimit(key, 2);
  valueOf(await stub.poke());
  shiftClock(2 * MINUTE_MS + 5000);
  expect(await admission(key)).toBe("admitted");
  await limitIs(2);
  await evict(key);
  shiftClock(3 * MINUTE_MS + 9000);
  expect(await burst(key, 10)).toBe(2);
});

/** Returns how often the database recorded a use of the key. */
function uses({ hash }: GatedKey): number {
  return book.about(hash).filter((sql) => sql.includes("max(coalesce(last_used_at")).length;
}

it("a wallet writes a key's last_used_at at each publish, even after evictions, and never decreases it", async () => {
  const key = await gatedKey({ rpmLimit: 1000 });
  const { booked } = key;
  const lastUsed = async (): Promise<number | null> =>
    (await findKeyByHash(env.DB, booked.keyHash))?.lastUsedAt ?? null;
  const start = now(env);
  await burst(key, 40);
  await eventually(async () => expect(await lastUsed()).toBeGreaterThanOrEqual(start));
  await evict(key);
  shiftClock(50_000);
  await burst(key, 40);
  expect(uses(key)).toBe(1); // when its key object identified it
  shiftClock(QUIET_PUBLISH_INTERVAL_MS + 1000);
  await runAlarm(key.stub);
  expect(await lastUsed()).toBe(Math.max(...(await storedTimes(key))));
  await evict(key);
  await burst(key, 40);
  expect(uses(key)).toBe(2);
  const ahead = now(env) + 10 * MINUTE_MS;
  await env.DB.prepare("UPDATE keys SET last_used_at = ? WHERE id = ?")
    .bind(ahead, booked.keyId)
    .run();
  valueOf(await key.stub.poke());
  expect(uses(key)).toBe(3);
  expect(await lastUsed()).toBe(ahead);
});

/** Returns the key's last use in the database, Unix ms. */
async function bookedUse({ hash }: GatedKey): Promise<number> {
  return (await findKeyByHash(env.DB, hash))?.lastUsedAt ?? 0;
}

/** Returns a key that was used twice. The database lacks the second use. */
async function twiceUsed(): Promise<{ key: GatedKey; usedAt: number }> {
  const key = await gatedKey();
  await admission(key);
  await eventually(async () => expect(await bookedUse(key)).toBeGreaterThan(0));
  shiftClock(MINUTE_MS / 2);
  await admission(key);
  const usedAt = Math.max(...(await storedTimes(key)));
  expect(await bookedUse(key)).toBeLessThan(usedAt);
  return { key, usedAt };
}

/** Runs the overdue work of a quiet wallet without requests. */
async function aWhilePasses(key: GatedKey): Promise<void> {
  shiftClock(QUIET_PUBLISH_INTERVAL_MS + 1000);
  await runAlarm(key.stub);
}

it.each([false, true])(
  "a wallet writes a key's last use within three minutes, even without further requests (evicted meanwhile: %s)",
  async (isEvicted) => {
    const { key, usedAt } = await twiceUsed();
    await eventually(async () => {
      const alarmAt = await runInWallet(key, (_wallet, _sql, state) => state.storage.getAlarm());
      expect(alarmAt ?? Infinity).toBeLessThanOrEqual(Date.now() + QUIET_PUBLISH_INTERVAL_MS);
    });
    if (isEvicted) await evict(key);
    await aWhilePasses(key);
    await eventually(async () => expect(await bookedUse(key)).toBe(usedAt));
    const before = uses(key);
    shiftClock(3 * QUIET_PUBLISH_INTERVAL_MS);
    await runAlarm(key.stub);
    expect(uses(key)).toBe(before); // written only once
  },
);

it("a wallet writes a key's last use even if the key is revoked right afterwards", async () => {
  const { key, usedAt } = await twiceUsed();
  await registerOf(key).revoke(now(env));
  valueOf(await key.stub.revokeKey(key.hash, now(env)));
  await aWhilePasses(key);
  await eventually(async () => expect(await bookedUse(key)).toBe(usedAt));
  expect(await admission(key)).toBe("invalid_api_key");
});

it("a wallet retries a failed write of a key's last use at the next publish, even after an eviction", async () => {
  const { key, usedAt } = await twiceUsed();
  book.broken = true;
  registers.fault = {}; // no other object records it
  await aWhilePasses(key);
  await evict(key);
  book.broken = false;
  expect(await bookedUse(key)).toBeLessThan(usedAt);
  shiftClock(3 * QUIET_PUBLISH_INTERVAL_MS);
  await runAlarm(key.stub); // finds it
  shiftClock(4 * QUIET_PUBLISH_INTERVAL_MS);
  await runAlarm(key.stub);
  expect(await bookedUse(key)).toBe(usedAt);
});

it("a wallet admits requests immediately while the database and the key's Durable Object are slow", async () => {
  const key = await gatedKey();
  await admission(key);
  shiftClock(MINUTE_MS + 1000);
  book.hold();
  registers.hold();
  expect(await burst(key, 5)).toBe(5);
  expect(registers.count("whose")).toBe(1);
});

it("a wallet detects at the next publish that a key was deleted from the database", async () => {
  const key = await gatedKey({ rpmLimit: 4 });
  expect(await burst(key, 1)).toBe(1);
  shiftClock(MINUTE_MS + 1000);
  await env.DB.prepare("DELETE FROM keys WHERE id = ?").bind(key.booked.keyId).run();
  await admission(key);
  valueOf(await key.stub.poke());
  await eventually(async () => expect(await admission(key)).toBe("invalid_api_key"));
  await insertKey(env.DB, key.booked, null);
  expect(await burst(key, 9)).toBeLessThanOrEqual(3); // its limit per minute is kept
  expect(worstMinute(await storedTimes(key))).toBe(4);
});

it.each([
  ["unavailable", {}, "storage_unavailable"],
  ["overloaded", { overloaded: true }, "overloaded"],
])(
  "a wallet returns 503 instead of 401 for a key's first use while the key's Durable Object is %s, and then recovers",
  async (_, fault, kind) => {
    const key = await gatedKey({ balance: 10 });
    registers.fault = fault;
    expect(await Promise.all([admission(key), admission(key)])).toEqual([kind, kind]);
    expect(failureOf(await key.stub.admitAndHold(key.hash, holdOf(1)))).toEqual({ kind });
    expect(await storedKey(key)).toBeNull();
    expect(valueOf(await key.stub.balance()).openHolds).toBe(0);
    registers.fault = null;
    expect(await admission(key)).toBe("admitted");
  },
);

it("a wallet returns 503 instead of 401 for a key's first use while the database is down", async () => {
  const key = await gatedKey();
  book.broken = true;
  expect(await admission(key)).toBe("storage_unavailable");
  book.broken = false;
  expect(await admission(key)).toBe("admitted");
});

it.each(["database", "key's Durable Object"])(
  "a wallet admits a known key while the %s is unavailable, even after an eviction",
  async (what) => {
    const key = await gatedKey({ rpmLimit: 10 });
    await admission(key);
    if (what === "database") book.broken = true;
    else registers.fault = {};
    shiftClock(MINUTE_MS + 1000);
    expect(await burst(key, 20)).toBe(10);
    await eventually(() => expect(registers.count("whose")).toBe(1));
    await evict(key);
    expect(await burst(key, 5)).toBe(0);
    shiftClock(2 * MINUTE_MS + 2000);
    expect(await burst(key, 20)).toBe(10);
  },
);

it("a wallet admits no key of another organization, and stores nothing about the key", async () => {
  const [key, { booked: foreign }] = [await gatedKey({ balance: 10 }), await makeKey()];
  await runInWallet(key, async (wallet) => {
    await expect(wallet.admit(foreign.keyHash)).rejects.toThrow("its own organization's wallet");
    await expect(wallet.admitAndHold(foreign.keyHash, holdOf(1))).rejects.toThrow("its own");
  });
  expect(await rowsOf(key.stub, "SELECT * FROM keys")).toEqual([]);
  expect(await rowsOf(key.stub, "SELECT * FROM requests")).toEqual([]);
  expect(await admission(key)).toBe("admitted");
});
