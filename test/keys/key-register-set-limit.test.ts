import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import type { KeyRegister } from "../../src/index.ts";
import { makeKey, shiftClock, watchedWorld } from "./key-fixture.ts";
import { burst, eventually, kindOf, registerOf, MINUTE_MS } from "./register-fixture.ts";

/** The database itself, because a test only delays the key object's queries. */
const realBook = env.DB;
const world = watchedWorld();

/** Changes a limit as an operator does: in the database, then in the key object. */
async function change(booked: { keyId: string; keyHash: string }, limit: number): Promise<void> {
  await realBook
    .prepare("UPDATE keys SET rpm_limit = ? WHERE id = ?")
    .bind(limit, booked.keyId)
    .run();
  await registerOf(booked.keyHash).setLimit(limit);
}

/** Returns the limit in the key object's storage, or null without a record. */
function storedLimit(hash: string): Promise<number | null> {
  return runInDurableObject(registerOf(hash), (_register: KeyRegister, { storage }) => {
    const tables = storage.sql.exec("SELECT 1 FROM sqlite_master WHERE name = 'record'").toArray();
    if (tables.length === 0) return null;
    return storage.sql.exec<{ rpm_limit: number }>("SELECT rpm_limit FROM record").one().rpm_limit;
  });
}

it("a key's object stores no limit for a key that was never used here, and reads the limit later", async () => {
  const { booked } = await makeKey({ rpmLimit: 60 });
  await change(booked, 3);
  expect(await storedLimit(booked.keyHash)).toBeNull();
  expect(await burst(booked.keyHash, 5)).toBe(3);
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

it("a key's object ignores an outdated limit in a read that began before the change", async () => {
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
  // A second use is recorded only after the first response was applied.
  shiftClock(2 * MINUTE_MS + 2000);
  world.book.hold();
  await registerOf(booked.keyHash).admit();
  await eventually(() => expect(notes()).toBe(3));
  expect(await burst(booked.keyHash, 5)).toBe(1);
  expect(await storedLimit(booked.keyHash)).toBe(2);
});
