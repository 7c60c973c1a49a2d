import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { mintKey } from "../../src/accounts/keys/api-key.ts";
import { findKeyByHash } from "../../src/accounts/keys/keys.store.ts";
import type { KeyRegister } from "../../src/index.ts";
import { now } from "../../src/shared/clock.ts";
import { keySecrets, makeKey, shiftClock, watchedDatabase } from "./key-fixture.ts";
import {
  burst,
  eventually,
  kindOf,
  registerOf,
  MINUTE_MS,
  storedTimes,
  worstMinute,
} from "./register-fixture.ts";

const database = watchedDatabase();

it("a key's Durable Object rejects an unknown key, and stores nothing", async () => {
  const { hash } = await mintKey({ home: "eu", scope: "regional", secrets: keySecrets() });
  expect(kindOf(await registerOf(hash).admit())).toBe("invalid_api_key");
  const tables = await runInDurableObject(registerOf(hash), (_register: KeyRegister, state) =>
    state.storage.sql.exec("SELECT count(*) AS n FROM sqlite_master").one(),
  );
  expect(tables).toEqual({ n: 0 });
});

it("a key's Durable Object admits a key that is added to the database after a first rejection as unknown", async () => {
  const { booked } = await makeKey();
  await env.DB.prepare("DELETE FROM keys WHERE id = ?").bind(booked.keyId).run();
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
  await env.DB.prepare(
    `INSERT INTO keys (id, hash, org_id, member_id, name, prefix, scope, rpm_limit, created_at)
     VALUES (?, ?, ?, ?, 'k', 'p', 'regional', 60, 1)`,
  )
    .bind(booked.keyId, booked.keyHash, booked.orgId, booked.memberId)
    .run();
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("admitted");
});

it("a key's Durable Object queries the database only once, even if the first uses are concurrent", async () => {
  const { booked } = await makeKey({ rpmLimit: 100 });
  database.book.statements.length = 0;
  expect(await burst(booked.keyHash, 50)).toBe(50);
  expect(database.book.statements.filter((sql) => sql.startsWith("SELECT"))).toHaveLength(1);
  await evictDurableObject(registerOf(booked.keyHash));
  expect(await burst(booked.keyHash, 10)).toBe(10);
  expect(database.book.statements.filter((sql) => sql.startsWith("SELECT"))).toHaveLength(1);
});

it("a key's Durable Object applies, within a minute of use, a limit that changed in the database", async () => {
  const { booked } = await makeKey({ rpmLimit: 5 });
  expect(await burst(booked.keyHash, 10)).toBe(5);
  const setLimit = (limit: number): Promise<unknown> =>
    env.DB.prepare("UPDATE keys SET rpm_limit = ? WHERE id = ?").bind(limit, booked.keyId).run();
  const limitIs = (limit: number): Promise<void> =>
    eventually(async () => {
      const answer = await registerOf(booked.keyHash).admit();
      expect(answer.ok ? answer : answer.failure).toMatchObject({ limit });
    });
  await setLimit(8);
  shiftClock(MINUTE_MS + 1000);
  expect((await registerOf(booked.keyHash).admit()).ok).toBe(true);
  await limitIs(8);
  await burst(booked.keyHash, 20);
  expect(worstMinute(await storedTimes(booked.keyHash))).toBe(8);
  await setLimit(2);
  shiftClock(2 * MINUTE_MS + 5000);
  expect((await registerOf(booked.keyHash).admit()).ok).toBe(true);
  await limitIs(2);
  shiftClock(3 * MINUTE_MS + 9000);
  expect(await burst(booked.keyHash, 10)).toBe(2);
});

/** Returns how often the database recorded a use of the key. */
function uses(hash: string): number {
  return database.book.about(hash).filter((sql) => sql.includes("max(coalesce(last_used_at"))
    .length;
}

it("a key's Durable Object updates last_used_at at most once a minute, even across evictions, and never decreases it", async () => {
  const { booked } = await makeKey({ rpmLimit: 1000 });
  const lastUsed = async (): Promise<number | null> =>
    (await findKeyByHash(env.DB, booked.keyHash))?.lastUsedAt ?? null;
  const start = now(env);
  await burst(booked.keyHash, 40);
  await eventually(async () => expect(await lastUsed()).toBeGreaterThanOrEqual(start));
  await evictDurableObject(registerOf(booked.keyHash));
  shiftClock(50_000);
  await burst(booked.keyHash, 40);
  expect(uses(booked.keyHash)).toBe(1);
  shiftClock(MINUTE_MS + 1000);
  await burst(booked.keyHash, 40);
  await eventually(async () => expect(await lastUsed()).toBeGreaterThan(start + MINUTE_MS));
  expect(uses(booked.keyHash)).toBe(2);
  const ahead = now(env) + 10 * MINUTE_MS;
  await env.DB.prepare("UPDATE keys SET last_used_at = ? WHERE id = ?")
    .bind(ahead, booked.keyId)
    .run();
  shiftClock(2 * MINUTE_MS + 5000);
  await burst(booked.keyHash, 1);
  await eventually(() => expect(uses(booked.keyHash)).toBe(3));
  expect(await lastUsed()).toBe(ahead);
});

it("a key's Durable Object records a use that another region reports a minute late, even after an eviction", async () => {
  const { booked } = await makeKey({ scope: "global" });
  const lastUsed = async (): Promise<number> =>
    (await findKeyByHash(env.DB, booked.keyHash))?.lastUsedAt ?? 0;
  await registerOf(booked.keyHash).identify();
  await eventually(async () => expect(await lastUsed()).toBeGreaterThan(0));
  shiftClock(MINUTE_MS / 2);
  const usedAt = now(env);
  await registerOf(booked.keyHash).identify();
  expect(await lastUsed()).toBeLessThan(usedAt);
  const alarmAt = await runInDurableObject(
    registerOf(booked.keyHash),
    (_register: KeyRegister, state) => state.storage.getAlarm(),
  );
  expect(alarmAt).toBeLessThanOrEqual(Date.now() + MINUTE_MS);
  await evictDurableObject(registerOf(booked.keyHash));
  const ring = (): Promise<void> =>
    runInDurableObject(registerOf(booked.keyHash), (register: KeyRegister) => register.alarm());
  await ring();
  await eventually(async () => expect(await lastUsed()).toBeGreaterThanOrEqual(usedAt));
  const before = uses(booked.keyHash);
  await ring();
  expect(uses(booked.keyHash)).toBe(before);
});

it("a key's Durable Object admits a request before the database records the use", async () => {
  const { booked } = await makeKey();
  await registerOf(booked.keyHash).admit();
  shiftClock(MINUTE_MS + 1000);
  database.book.hold();
  expect(await burst(booked.keyHash, 5)).toBe(5);
  database.book.open();
});

it("a key's Durable Object detects within a minute of use that the key was deleted from the database", async () => {
  const { booked } = await makeKey();
  await registerOf(booked.keyHash).admit();
  await env.DB.prepare("DELETE FROM keys WHERE id = ?").bind(booked.keyId).run();
  shiftClock(MINUTE_MS + 1000);
  await registerOf(booked.keyHash).admit();
  await eventually(async () =>
    expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key"),
  );
});

it("a key's Durable Object returns 503 instead of 401 for a first use while the database is down", async () => {
  const { booked } = await makeKey();
  database.book.broken = true;
  const answers = await Promise.all([
    registerOf(booked.keyHash).admit(),
    registerOf(booked.keyHash).admit(),
  ]);
  expect(answers.map(kindOf)).toEqual(["storage_unavailable", "storage_unavailable"]);
  database.book.broken = false;
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("admitted");
});

it("a key's Durable Object admits a known key while the database is down, even if the use can't be recorded", async () => {
  const { booked } = await makeKey({ rpmLimit: 10 });
  await registerOf(booked.keyHash).admit();
  database.book.broken = true;
  shiftClock(MINUTE_MS + 1000);
  expect(await burst(booked.keyHash, 20)).toBe(10);
});

it("a key's Durable Object returns 503 while its storage fails, and admits no request that it can't store", async () => {
  const { booked } = await makeKey({ rpmLimit: 2 });
  await registerOf(booked.keyHash).admit();
  await runInDurableObject(registerOf(booked.keyHash), (_register: KeyRegister, state) => {
    state.storage.sql.exec("ALTER TABLE admissions RENAME TO lost");
  });
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("storage_unavailable");
  await runInDurableObject(registerOf(booked.keyHash), (_register: KeyRegister, state) => {
    state.storage.sql.exec("ALTER TABLE lost RENAME TO admissions");
  });
  expect(await burst(booked.keyHash, 5)).toBe(1);
});
