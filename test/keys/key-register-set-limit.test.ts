import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import type { KeyRegister } from "../../src/index.ts";
import { makeKey, shiftClock, watchedWorld } from "./key-fixture.ts";
import {
  burst,
  eventually,
  kindOf,
  registerOf,
  MINUTE_MS,
  storedTimes,
  worstMinute,
} from "./register-fixture.ts";

/** The book itself: what a test holds back are the register's questions. */
const realBook = env.DB;
const world = watchedWorld();

/** What an operator's change does: the book first, then the register. */
async function change(booked: { keyId: string; keyHash: string }, limit: number): Promise<void> {
  await realBook
    .prepare("UPDATE keys SET rpm_limit = ? WHERE id = ?")
    .bind(limit, booked.keyId)
    .run();
  await registerOf(booked.keyHash).setLimit(limit);
}

/** The limit that the register's storage has; null without a record. */
function storedLimit(hash: string): Promise<number | null> {
  return runInDurableObject(registerOf(hash), (_register: KeyRegister, { storage }) => {
    const tables = storage.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'record'").toArray();
    if (tables.length === 0) return null;
    return storage.sql.exec<{ rpm_limit: number }>("SELECT rpm_limit FROM record").one().rpm_limit;
  });
}

it("a key gets at most 10 requests in 60 s once its limit is lowered from 60 to 10", async () => {
  const { booked } = await makeKey({ rpmLimit: 60 });
  for (const second of [0, 10, 20, 30]) {
    shiftClock(second * 1000);
    expect(await burst(booked.keyHash, 10)).toBe(10);
  }
  const before = (await storedTimes(booked.keyHash)).length;
  await change(booked, 10);
  // the last ten were at 30 s: they leave the window at 90 s, and from there it is 10 a minute
  const admitted: number[] = [];
  for (let second = 31; second <= 211; second += 5) {
    shiftClock(second * 1000);
    admitted.push(await burst(booked.keyHash, 4));
  }
  const after = (await storedTimes(booked.keyHash)).slice(before);
  expect(after.length).toBe(admitted.reduce((sum, count) => sum + count, 0));
  expect(worstMinute(after)).toBe(10);
  expect(worstMinute((await storedTimes(booked.keyHash)).slice(before - 10))).toBe(10);
  expect(admitted.slice(0, 11)).toEqual(Array.from({ length: 11 }, () => 0));
});

it("a key gets the additional requests of a raised limit immediately", async () => {
  const { booked } = await makeKey({ rpmLimit: 5 });
  expect(await burst(booked.keyHash, 8)).toBe(5);
  await change(booked, 12);
  expect(await burst(booked.keyHash, 20)).toBe(7);
  expect(worstMinute(await storedTimes(booked.keyHash))).toBe(12);
});

it("a key's object keeps a changed limit across an eviction", async () => {
  const { booked } = await makeKey({ rpmLimit: 60 });
  await burst(booked.keyHash, 1);
  await change(booked, 2);
  await evictDurableObject(registerOf(booked.keyHash));
  expect(await burst(booked.keyHash, 5)).toBe(1);
});

it("a key's object stores no limit for a key that was never used here, and reads the limit later", async () => {
  const { booked } = await makeKey({ rpmLimit: 60 });
  await change(booked, 3);
  expect(await storedLimit(booked.keyHash)).toBeNull();
  expect(await burst(booked.keyHash, 5)).toBe(3);
});

it("a revoked key stays revoked if its limit changes", async () => {
  const { booked } = await makeKey();
  await registerOf(booked.keyHash).revoke(5);
  await registerOf(booked.keyHash).setLimit(7);
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
});

it("a key's object ignores an outdated limit in a first read that began before the change", async () => {
  const { booked } = await makeKey({ rpmLimit: 60 });
  world.book.hold();
  world.book.statements.length = 0;
  const first = registerOf(booked.keyHash).admit();
  await eventually(() => expect(world.book.statements).toHaveLength(1));
  await change(booked, 2);
  world.book.open();
  expect(kindOf(await first)).toBe("admitted");
  expect(await burst(booked.keyHash, 5)).toBe(1);
  expect(world.book.statements.filter((sql) => sql.startsWith("SELECT"))).toHaveLength(2);
});

it("a key's object ignores an outdated limit that it was reading again before the change", async () => {
  const { booked } = await makeKey({ rpmLimit: 60 });
  await registerOf(booked.keyHash).admit();
  const notes = (): number =>
    world.book.statements.filter((sql) => sql.startsWith("UPDATE")).length;
  await eventually(() => expect(notes()).toBe(1));
  world.book.hold();
  shiftClock(MINUTE_MS + 1000);
  await registerOf(booked.keyHash).admit();
  await eventually(() => expect(notes()).toBe(2));
  await change(booked, 2);
  world.book.open();
  // a second use is noted only after the first one's answer was taken
  shiftClock(2 * MINUTE_MS + 2000);
  world.book.hold();
  await registerOf(booked.keyHash).admit();
  await eventually(() => expect(notes()).toBe(3));
  expect(await burst(booked.keyHash, 5)).toBe(1);
  expect(await storedLimit(booked.keyHash)).toBe(2);
});
