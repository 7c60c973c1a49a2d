import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import type { KeyRegister } from "../../src/index.ts";
import { NO_TERMS } from "../../src/shared/key-terms.ts";
import { findKeyByHash, revokeKey } from "../../src/accounts/keys/keys.store.ts";
import { makeKey, shiftClock, watchedWorld } from "./key-fixture.ts";
import { burst, eventually, registerOf, MINUTE_MS, storedTimes } from "./register-fixture.ts";

const world = watchedWorld();

const kindOf = async (hash: string): Promise<string> => {
  const answer = await registerOf(hash).identify();
  return answer.ok ? "identified" : answer.failure.kind;
};

it("the lookup of a key's owner uses up none of its requests per minute", async () => {
  const { booked } = await makeKey({ rpmLimit: 3, scope: "global" });
  const { keyId, keyHash: hash, orgId, memberId } = booked;
  const known = {
    keyId,
    orgId,
    memberId,
    scope: "global",
    rpmLimit: 3,
    terms: NO_TERMS,
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
  world.book.statements.length = 0;
  await Promise.all([
    kindOf(booked.keyHash),
    kindOf(booked.keyHash),
    registerOf(booked.keyHash).admit(),
  ]);
  expect(world.book.statements.filter((sql) => sql.startsWith("SELECT"))).toHaveLength(1);
});

it("the lookup of a key's owner fails for a revoked key, whatever the database contains", async () => {
  const { booked } = await makeKey();
  await registerOf(booked.keyHash).revoke(1);
  expect(await kindOf(booked.keyHash)).toBe("invalid_api_key");
  const { booked: used } = await makeKey();
  expect(await kindOf(used.keyHash)).toBe("identified");
  await registerOf(used.keyHash).revoke(1);
  expect(await kindOf(used.keyHash)).toBe("invalid_api_key");
});

it("the lookup of a key's owner fails for an unknown key, and stores nothing", async () => {
  const hash = "0".repeat(63) + "7";
  expect(await kindOf(hash)).toBe("invalid_api_key");
  const tables = await runInDurableObject(registerOf(hash), (_register: KeyRegister, state) =>
    state.storage.sql.exec("SELECT name FROM sqlite_master WHERE name NOT GLOB '_cf_*'").toArray(),
  );
  expect(tables).toEqual([]);
});

it("while the database is down, the lookup of a key's owner works only for cached keys, and otherwise returns 503", async () => {
  const { booked } = await makeKey();
  const { booked: known } = await makeKey();
  expect(await kindOf(known.keyHash)).toBe("identified");
  world.book.broken = true;
  expect(await kindOf(booked.keyHash)).toBe("storage_unavailable");
  expect(await kindOf(known.keyHash)).toBe("identified");
});

it("the lookup of a key's owner writes the use once a minute, and then also detects a revocation", async () => {
  const { booked } = await makeKey();
  world.book.statements.length = 0;
  for (let i = 0; i < 5; i++) {
    expect(await kindOf(booked.keyHash)).toBe("identified");
  }
  await eventually(async () => {
    const noted = await findKeyByHash(env.DB, booked.keyHash);
    expect(noted?.lastUsedAt).toBeGreaterThan(0);
  });
  expect(world.book.about(booked.keyHash).filter((sql) => sql.startsWith("UPDATE"))).toHaveLength(
    1,
  );
  await revokeKey(env.DB, { keyId: booked.keyId, orgId: booked.orgId, revokedAt: 5 });
  shiftClock(MINUTE_MS + 1000);
  expect(await kindOf(booked.keyHash)).toBe("identified");
  await eventually(async () => expect(await kindOf(booked.keyHash)).toBe("invalid_api_key"));
});
