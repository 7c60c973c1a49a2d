import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import { revokeKey } from "../../src/accounts/keys/keys.store.ts";
import { now } from "../../src/shared/clock.ts";
import { makeKey, shiftClock, watchedWorld } from "./key-fixture.ts";
import { eventually, kindOf, registerOf, MINUTE_MS } from "./register-fixture.ts";

const world = watchedWorld();

it("a key's object rejects the key from the moment revoke returns, even after an eviction", async () => {
  const { booked } = await makeKey();
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("admitted");
  expect(await registerOf(booked.keyHash).revoke(1000)).toBe(1000);
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
  await evictDurableObject(registerOf(booked.keyHash));
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
  expect(await registerOf(booked.keyHash).revoke(2000)).toBe(1000);
});

it("a key's object revokes a key that was never read, without a query", async () => {
  const { booked } = await makeKey();
  world.book.statements.length = 0;
  await registerOf(booked.keyHash).revoke(now(env));
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
  expect(world.book.statements).toEqual([]);
});

it("a key's object rejects a key that is revoked while the first read of the database is in progress", async () => {
  const { booked } = await makeKey();
  world.book.hold();
  world.book.statements.length = 0;
  const early = [registerOf(booked.keyHash).admit(), registerOf(booked.keyHash).admit()];
  await eventually(() => expect(world.book.statements).toHaveLength(1));
  await registerOf(booked.keyHash).revoke(now(env));
  world.book.open();
  expect((await Promise.all(early)).map(kindOf)).toEqual(["invalid_api_key", "invalid_api_key"]);
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
});

it("a key's object rejects a key that is revoked while the object reads the database again", async () => {
  const { booked } = await makeKey();
  world.book.hold();
  const first = registerOf(booked.keyHash).admit();
  await eventually(() => expect(world.book.statements.at(-1)).toMatch(/^SELECT/));
  world.book.open();
  world.book.hold();
  expect(kindOf(await first)).toBe("admitted");
  await eventually(() => expect(world.book.statements.at(-1)).toMatch(/^UPDATE/));
  await registerOf(booked.keyHash).revoke(now(env));
  world.book.open();
  await registerOf(booked.keyHash).admit();
  expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
});

it("a key's object permanently rejects a key within a minute of use if only the database has its revocation", async () => {
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
