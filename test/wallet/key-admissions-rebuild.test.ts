import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { revokeKeyEverywhere } from "../../src/accounts/keys/revocation.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import {
  admission,
  siblingKey,
  burst,
  gatedKey,
  registerOf,
  revocationServices,
  WatchedRegisters,
} from "./key-admissions-fixture.ts";
import { failureOf, holdOf, deleteWalletStorage, valueOf } from "./wallet-fixture.ts";

let registers: WatchedRegisters;

beforeEach(() => {
  registers = new WatchedRegisters();
});
afterEach(() => {
  registers.restore();
  shiftClock(null);
});

it("a rebuilt wallet calls the keys' Durable Objects again, and admits no revoked key", async () => {
  const key = await gatedKey();
  const dead = await siblingKey(key);
  expect([await admission(key), await admission(dead)]).toEqual(["admitted", "admitted"]);
  expect(
    await revokeKeyEverywhere(
      revocationServices((_, at) => registerOf(dead).revoke(at)),
      dead.booked,
    ),
  ).toEqual(expect.objectContaining({ ok: true }));
  valueOf(await key.stub.poke());
  await deleteWalletStorage(key.stub);
  expect([await admission(key), await admission(dead)]).toEqual([
    "storage_unavailable",
    "storage_unavailable",
  ]);
  valueOf(await key.stub.rebuild(key.booked.orgId));
  registers.calls.length = 0;
  expect([await admission(key), await admission(dead)]).toEqual(["admitted", "invalid_api_key"]);
  expect(registers.count("identify")).toBe(2);
});

it("the rebuild of an outdated wallet keeps rate limits and revocations, and looks up keys again", async () => {
  const key = await gatedKey({ rpmLimit: 3, balance: 10 });
  const { stub, booked } = key;
  const dead = await siblingKey(key);
  const buried = await siblingKey(key);
  expect([await burst(key, 2), await burst(dead, 1), await burst(buried, 1)]).toEqual([2, 1, 1]);
  valueOf(await buried.stub.revokeKey(buried.hash, 1)); // its key object was never notified
  await registerOf(dead).revoke(1); // earlier tables lack this
  valueOf(await stub.poke());
  await env.DB.prepare("UPDATE balances SET epoch = 'other' WHERE org_id = ?")
    .bind(booked.orgId)
    .run();
  valueOf(await stub.rebuild(booked.orgId));
  expect(await admission(dead)).toBe("invalid_api_key");
  expect(await admission(buried)).toBe("invalid_api_key");
  expect(await burst(key, 5)).toBe(1);
  expect(registers.count("identify")).toBe(5);
});

it("a wallet admits no key that is revoked during the wallet's rebuild", async () => {
  const key = await gatedKey();
  valueOf(await key.stub.poke());
  await deleteWalletStorage(key.stub);
  const [started, may] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const revoking = revokeKeyEverywhere(
    revocationServices(async (_, at) => {
      started.resolve();
      await may.promise;
      return registerOf(key).revoke(at);
    }),
    key.booked,
  );
  await started.promise;
  valueOf(await key.stub.rebuild(key.booked.orgId));
  expect(await admission(key)).toBe("admitted");
  may.resolve();
  expect((await revoking).ok).toBe(true);
  expect(await admission(key)).toBe("invalid_api_key");
});

it("a lost wallet remains lost even after a revocation or an admission", async () => {
  const key = await gatedKey();
  await deleteWalletStorage(key.stub);
  valueOf(await key.stub.revokeKey(key.hash, 1));
  valueOf(await key.stub.setKeyLimit(key.hash, 1));
  expect(await admission(key)).toBe("storage_unavailable");
  expect(failureOf(await key.stub.admitAndHold(key.hash, holdOf(1)))).toEqual({
    kind: "storage_unavailable",
  });
  expect(registers.count("identify") + registers.count("whose")).toBe(0);
});
