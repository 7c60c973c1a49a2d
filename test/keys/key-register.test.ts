import { runInDurableObject, evictDurableObject } from "cloudflare:test";
import { expect, it, vi } from "vitest";
import type { KeyRegister } from "../../src/index.ts";
import { makeKey, shiftClock, watchedDatabase } from "./key-fixture.ts";
import {
  registerOf,
  MINUTE_MS,
  burst,
  eventually,
  kindOf,
  storedTimes,
} from "./register-fixture.ts";
import { env } from "cloudflare:workers";
import { EMPTY_KEY_TERMS } from "../../src/shared/key-terms.ts";
import { findKeyByHash, revokeKey } from "../../src/accounts/keys/keys.store.ts";
import { now } from "../../src/shared/clock.ts";

it("a key's Durable Object returns the key's identity and remaining requests per minute", async () => {
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

it("a key's Durable Object writes one row per admission", async () => {
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

/** The database itself, because a test only delays the key object's queries. */
const realDatabase = env.DB;

const database = watchedDatabase();

/** Changes a limit as an operator does: in the database, then in the key object. */
async function change(booked: { keyId: string; keyHash: string }, limit: number): Promise<void> {
  await realDatabase
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

it("a key's Durable Object stores no limit for an unused key, and reads the limit when the key is first used", async () => {
  const { booked } = await makeKey({ rpmLimit: 60 });
  await change(booked, 3);
  expect(await storedLimit(booked.keyHash)).toBeNull();
  expect(await burst(booked.keyHash, 5)).toBe(3);
});

it("a key's Durable Object ignores the limit from its first database read if the limit changes during the read", async () => {
  const { booked } = await makeKey({ rpmLimit: 60 });
  database.book.hold();
  database.book.statements.length = 0;
  const first = registerOf(booked.keyHash).admit();
  await eventually(() => expect(database.book.statements).toHaveLength(1));
  await change(booked, 2);
  database.book.open();
  expect(kindOf(await first)).toBe("admitted");
  expect(await burst(booked.keyHash, 5)).toBe(1);
  expect(database.book.statements.filter((sql) => sql.startsWith("SELECT"))).toHaveLength(2);
});

it("a key's Durable Object ignores the limit from a repeated database read if the limit changes during the read", async () => {
  const { booked } = await makeKey({ rpmLimit: 60 });
  await registerOf(booked.keyHash).admit();
  const notes = (): number =>
    database.book.statements.filter((sql) => sql.startsWith("UPDATE")).length;
  await eventually(() => expect(notes()).toBe(1));
  database.book.hold();
  shiftClock(MINUTE_MS + 1000);
  await registerOf(booked.keyHash).admit();
  await eventually(() => expect(notes()).toBe(2));
  await change(booked, 2);
  database.book.open();
  // A second use is recorded only after the first response was applied.
  shiftClock(2 * MINUTE_MS + 2000);
  database.book.hold();
  await registerOf(booked.keyHash).admit();
  await eventually(() => expect(notes()).toBe(3));
  expect(await burst(booked.keyHash, 5)).toBe(1);
  expect(await storedLimit(booked.keyHash)).toBe(2);
});

const lookupOutcome = async (hash: string): Promise<string> => {
  const answer = await registerOf(hash).identify();
  return answer.ok ? "identified" : answer.failure.kind;
};

it("the lookup of a key's owner doesn't count against the key's requests per minute", async () => {
  const { booked } = await makeKey({ rpmLimit: 3, scope: "global" });
  const { keyId, keyHash: hash, orgId, memberId } = booked;
  const known = {
    keyId,
    orgId,
    memberId,
    scope: "global",
    rpmLimit: 3,
    terms: EMPTY_KEY_TERMS,
    secrets: null,
  };
  const answers = await Promise.all(Array.from({ length: 20 }, () => registerOf(hash).identify()));
  for (const answer of answers) expect(answer).toEqual({ ok: true, value: known });
  expect(await storedTimes(hash)).toEqual([]);
  expect(await burst(hash, 5)).toBe(3);
  expect(await registerOf(hash).identify()).toEqual({ ok: true, value: known });
});

it("the lookup of a key's owner queries the database once for concurrent first uses", async () => {
  const { booked } = await makeKey();
  database.book.statements.length = 0;
  await Promise.all([
    lookupOutcome(booked.keyHash),
    lookupOutcome(booked.keyHash),
    registerOf(booked.keyHash).admit(),
  ]);
  expect(database.book.statements.filter((sql) => sql.startsWith("SELECT"))).toHaveLength(1);
});

it("the lookup of a key's owner fails for a revoked key, even if the database has no revocation", async () => {
  const { booked } = await makeKey();
  await registerOf(booked.keyHash).revoke(1);
  expect(await lookupOutcome(booked.keyHash)).toBe("invalid_api_key");
  const { booked: used } = await makeKey();
  expect(await lookupOutcome(used.keyHash)).toBe("identified");
  await registerOf(used.keyHash).revoke(1);
  expect(await lookupOutcome(used.keyHash)).toBe("invalid_api_key");
});

it("the lookup of a key's owner fails for an unknown key, and stores nothing", async () => {
  const hash = "0".repeat(63) + "7";
  expect(await lookupOutcome(hash)).toBe("invalid_api_key");
  const tables = await runInDurableObject(registerOf(hash), (_register: KeyRegister, state) =>
    state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT GLOB '_cf_*'").toArray(),
  );
  expect(tables).toEqual([]);
});

it("the lookup of a key's owner returns 503 for uncached keys while the database is down", async () => {
  const { booked } = await makeKey();
  const { booked: known } = await makeKey();
  expect(await lookupOutcome(known.keyHash)).toBe("identified");
  database.book.broken = true;
  expect(await lookupOutcome(booked.keyHash)).toBe("storage_unavailable");
  expect(await lookupOutcome(known.keyHash)).toBe("identified");
});

it("the lookup of a key's owner records the use once a minute, and detects a revocation", async () => {
  const { booked } = await makeKey();
  database.book.statements.length = 0;
  for (let i = 0; i < 5; i++) {
    expect(await lookupOutcome(booked.keyHash)).toBe("identified");
  }
  await eventually(async () => {
    const noted = await findKeyByHash(env.DB, booked.keyHash);
    expect(noted?.lastUsedAt).toBeGreaterThan(0);
  });
  expect(
    database.book.about(booked.keyHash).filter((sql) => sql.startsWith("UPDATE")),
  ).toHaveLength(1);
  await revokeKey(env.DB, { keyId: booked.keyId, orgId: booked.orgId, revokedAt: 5 });
  shiftClock(MINUTE_MS + 1000);
  expect(await lookupOutcome(booked.keyHash)).toBe("identified");
  await eventually(async () => expect(await lookupOutcome(booked.keyHash)).toBe("invalid_api_key"));
});

it("a key's Durable Object rejects the key once a call to revoke has returned, even after an eviction", async () => {
  const { booked } = await makeKey();
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("admitted");
  expect(await registerOf(booked.keyHash).revoke(1000)).toBe(1000);
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
  await evictDurableObject(registerOf(booked.keyHash));
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
  expect(await registerOf(booked.keyHash).revoke(2000)).toBe(1000);
});

it("a key's Durable Object revokes an unused key without querying the database", async () => {
  const { booked } = await makeKey();
  database.book.statements.length = 0;
  await registerOf(booked.keyHash).revoke(now(env));
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
  expect(database.book.statements).toEqual([]);
});

it("a key's Durable Object rejects a key that is revoked during the first read of the database", async () => {
  const { booked } = await makeKey();
  database.book.hold();
  database.book.statements.length = 0;
  const early = [registerOf(booked.keyHash).admit(), registerOf(booked.keyHash).admit()];
  await eventually(() => expect(database.book.statements).toHaveLength(1));
  await registerOf(booked.keyHash).revoke(now(env));
  database.book.open();
  expect((await Promise.all(early)).map(kindOf)).toEqual(["invalid_api_key", "invalid_api_key"]);
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
});

it("a key's Durable Object rejects a key that is revoked during a later read of the database", async () => {
  const { booked } = await makeKey();
  database.book.hold();
  const first = registerOf(booked.keyHash).admit();
  await eventually(() => expect(database.book.statements.at(-1)).toMatch(/^SELECT/));
  database.book.open();
  database.book.hold();
  expect(kindOf(await first)).toBe("admitted");
  await eventually(() => expect(database.book.statements.at(-1)).toMatch(/^UPDATE/));
  await registerOf(booked.keyHash).revoke(now(env));
  database.book.open();
  await registerOf(booked.keyHash).admit();
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
});

it("a key's Durable Object detects within a minute of use a revocation that only the database contains", async () => {
  const { booked } = await makeKey();
  await registerOf(booked.keyHash).admit();
  await revokeKey(env.DB, { keyId: booked.keyId, orgId: booked.orgId, revokedAt: 5 });
  shiftClock(MINUTE_MS + 1000);
  await registerOf(booked.keyHash).admit();
  await eventually(async () =>
    expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key"),
  );
  await env.DB.prepare("UPDATE keys SET revoked_at = NULL WHERE id = ?").bind(booked.keyId).run();
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
});
