import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { revokeKey } from "../../src/accounts/keys/keys.store.ts";
import { revokeKeyEverywhere } from "../../src/accounts/keys/revocation.ts";
import { now } from "../../src/shared/clock.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import {
  admission,
  siblingKey,
  burst,
  eventually,
  evict,
  gatedKey,
  kindOf,
  MINUTE_MS,
  registerOf,
  revocationServices,
  storedKey,
  storedTimes,
  WatchedRegisters,
} from "./key-admissions-fixture.ts";
import { newId, runAlarm, valueOf } from "./wallet-fixture.ts";

const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
let registers: WatchedRegisters;

beforeEach(() => {
  registers = new WatchedRegisters();
});
afterEach(() => {
  registers.restore();
  shiftClock(null);
});

it("a wallet rejects a revoked key immediately and permanently, even after a restart", async () => {
  const key = await gatedKey();
  expect(await admission(key)).toBe("admitted");
  valueOf(await key.stub.revokeKey(key.hash, 1000));
  expect(await admission(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await admission(key)).toBe("invalid_api_key");
  valueOf(await key.stub.revokeKey(key.hash, 2000));
  expect(await storedKey(key)).toMatchObject({ revoked_at: 1000 });
  expect(await admission(key)).toBe("invalid_api_key");
});

it("a wallet deletes a revoked key's admissions after two days, but keeps the revocation", async () => {
  const key = await gatedKey();
  const living = await siblingKey(key);
  expect([await burst(key, 3), await burst(living, 2)]).toEqual([3, 2]);
  valueOf(await key.stub.void(newId())); // due for retention
  valueOf(await key.stub.revokeKey(key.hash, now(env)));
  shiftClock(2 * DAY_MS - HOUR_MS);
  await runAlarm(key.stub);
  expect(await storedTimes(key)).toHaveLength(3);
  shiftClock(2 * DAY_MS + HOUR_MS);
  await runAlarm(key.stub);
  expect(await storedTimes(key)).toEqual([]);
  expect(await storedTimes(living)).toHaveLength(2);
  expect(await admission(key)).toBe("invalid_api_key");
});

it("a wallet revokes an unused key without calling the key's Durable Object", async () => {
  const key = await gatedKey();
  valueOf(await key.stub.revokeKey(key.hash, 5));
  expect(await admission(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await admission(key)).toBe("invalid_api_key");
  expect(registers.count("identify") + registers.count("whose")).toBe(0);
});

it("revoking a key leaves the organization's other keys active", async () => {
  const key = await gatedKey({ rpmLimit: 3 });
  const other = await siblingKey(key, 3);
  expect([await burst(key, 1), await burst(other, 1)]).toEqual([1, 1]);
  valueOf(await key.stub.revokeKey(key.hash, 5));
  expect(await admission(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await burst(other, 5)).toBe(2);
});

it("a wallet rejects a key that is revoked while the wallet waits for the key's Durable Object", async () => {
  const key = await gatedKey();
  registers.hold();
  const early = [admission(key), admission(key)];
  await eventually(() => expect(registers.answeredCalls).toContain("identify"));
  valueOf(await key.stub.revokeKey(key.hash, now(env)));
  registers.open();
  expect(await Promise.all(early)).toEqual(["invalid_api_key", "invalid_api_key"]);
  expect(await admission(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await admission(key)).toBe("invalid_api_key");
});

it("a wallet rejects a key that is revoked while the wallet looks up the key again", async () => {
  const key = await gatedKey();
  expect(await admission(key)).toBe("admitted");
  shiftClock(MINUTE_MS + 1000);
  registers.hold();
  expect(await admission(key)).toBe("admitted");
  await eventually(() => expect(registers.answeredCalls).toContain("whose"));
  valueOf(await key.stub.revokeKey(key.hash, now(env)));
  registers.open();
  await siblingKey(key).then(admission); // the refresh is applied by then
  expect(await admission(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await admission(key)).toBe("invalid_api_key");
});

it("a wallet can admit another key for the first time during a revocation", async () => {
  const key = await gatedKey();
  const other = await siblingKey(key);
  registers.hold();
  const first = admission(key);
  await eventually(() => expect(registers.answeredCalls).toContain("identify"));
  valueOf(await other.stub.revokeKey(other.hash, 1));
  registers.open();
  expect(await first).toBe("admitted");
  expect(registers.count("identify")).toBe(1);
});

it("a wallet detects at the next publish a revocation that only the database contains", async () => {
  const key = await gatedKey();
  const { booked } = key;
  expect(await admission(key)).toBe("admitted");
  await revokeKey(env.DB, { keyId: booked.keyId, orgId: booked.orgId, revokedAt: 5 });
  await admission(key);
  valueOf(await key.stub.poke());
  await eventually(async () => expect(await admission(key)).toBe("invalid_api_key"));
  await env.DB.prepare("UPDATE keys SET revoked_at = NULL WHERE id = ?").bind(booked.keyId).run();
  expect(await admission(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await admission(key)).toBe("invalid_api_key");
});

it("a wallet applies the database's revocation of a key even if the key's limit changes concurrently", async () => {
  const key = await gatedKey();
  const { booked, hash, stub } = key;
  expect(await admission(key)).toBe("admitted");
  await revokeKey(env.DB, { keyId: booked.keyId, orgId: booked.orgId, revokedAt: 5 });
  registers.hold();
  expect(await admission(key)).toBe("admitted");
  valueOf(await stub.poke());
  await eventually(() => expect(registers.answeredCalls).toContain("refresh"));
  valueOf(await stub.setKeyLimit(hash, 7));
  registers.open();
  await eventually(async () => expect(await admission(key)).toBe("invalid_api_key"));
});

it("a wallet revokes a key whatever the key's Durable Object returns, and a retry completes the revocation", async () => {
  const key = await gatedKey();
  expect(await admission(key)).toBe("admitted");
  const deaf = revocationServices(() => Promise.reject(new Error("gone")));
  expect(kindOf(await revokeKeyEverywhere(deaf, key.booked))).toBe("storage_unavailable");
  expect(await admission(key)).toBe("invalid_api_key");
  expect(
    (
      await revokeKeyEverywhere(
        revocationServices((_, at) => registerOf(key).revoke(at)),
        key.booked,
      )
    ).ok,
  ).toBe(true);
  expect(kindOf(await registerOf(key).whose())).toBe("invalid_api_key");
});
