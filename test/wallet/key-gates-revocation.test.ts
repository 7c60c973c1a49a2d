import { env } from "cloudflare:workers";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { revokeKey } from "../../src/keys/keys.store.ts";
import { revokeKeyEverywhere } from "../../src/keys/revocation.ts";
import { now } from "../../src/lib/clock.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import {
  asked,
  besides,
  burst,
  eventually,
  evict,
  gatedKey,
  kindOf,
  MINUTE_MS,
  registerOf,
  storedKey,
  storedTimes,
  WatchedRegisters,
} from "./key-gates-fixture.ts";
import { failureOf, holdOf, lose, valueOf } from "./wallet-desk.ts";

let registers: WatchedRegisters;

beforeEach(() => {
  registers = new WatchedRegisters();
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => {
  registers.restore();
  shiftClock(null);
  vi.restoreAllMocks();
});

/** What ends a key everywhere, with the real objects; `revoke` is the register's part of it. */
function services(revoke: (hash: string, at: number) => Promise<number>) {
  return {
    db: env.DB,
    limiter: (hash: string) => ({ revoke: (at: number) => revoke(hash, at) }),
    wallet: (orgId: string) => env.WALLET.getByName(orgId),
    peers: [],
    outbox: () => ({ enqueueRevocations: () => Promise.resolve() }),
    now: now(env),
  };
}

it("a revoked key is refused at once, for good, also by an object that starts again", async () => {
  const key = await gatedKey();
  expect(await asked(key)).toBe("admitted");
  valueOf(await key.stub.revokeKey(key.hash, 1000));
  expect(await asked(key)).toBe("invalid_api_key");
  expect(await storedTimes(key)).toEqual([]);
  await evict(key);
  expect(await asked(key)).toBe("invalid_api_key");
  valueOf(await key.stub.revokeKey(key.hash, 2000));
  expect(await storedKey(key)).toMatchObject({ revoked_at: 1000 });
  expect(await asked(key)).toBe("invalid_api_key");
});

it("a key that never came can be revoked, without asking its register", async () => {
  const key = await gatedKey();
  valueOf(await key.stub.revokeKey(key.hash, 5));
  expect(await asked(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await asked(key)).toBe("invalid_api_key");
  expect(registers.calls).toEqual([]);
});

it("a key is dead alone: its organisation's others live on", async () => {
  const key = await gatedKey({ rpmLimit: 3 });
  const other = await besides(key, 3);
  expect([await burst(key, 1), await burst(other, 1)]).toEqual([1, 1]);
  valueOf(await key.stub.revokeKey(key.hash, 5));
  expect(await asked(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await burst(other, 5)).toBe(2);
});

it("a tombstone beats a register's answer that was under way when it came", async () => {
  const key = await gatedKey();
  registers.hold();
  const early = [asked(key), asked(key)];
  await eventually(() => expect(registers.calls).toEqual(["identify"]));
  valueOf(await key.stub.revokeKey(key.hash, now(env)));
  registers.open();
  expect(await Promise.all(early)).toEqual(["invalid_api_key", "invalid_api_key"]);
  expect(await asked(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await asked(key)).toBe("invalid_api_key");
});

it("a tombstone beats a refresh that began before it", async () => {
  const key = await gatedKey();
  expect(await asked(key)).toBe("admitted");
  shiftClock(MINUTE_MS + 1000);
  registers.hold();
  expect(await asked(key)).toBe("admitted");
  await eventually(() => expect(registers.count("refresh")).toBe(1));
  valueOf(await key.stub.revokeKey(key.hash, now(env)));
  registers.open();
  await besides(key).then(asked); // the refresh's answer was taken by then
  expect(await asked(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await asked(key)).toBe("invalid_api_key");
});

it("one key's revocation keeps no other key from being met", async () => {
  const key = await gatedKey();
  const other = await besides(key);
  registers.hold();
  const first = asked(key);
  await eventually(() => expect(registers.calls).toEqual(["identify"]));
  valueOf(await other.stub.revokeKey(other.hash, 1));
  registers.open();
  expect(await first).toBe("admitted");
  expect(registers.count("identify")).toBe(1);
});

it("a revocation that only the book knows ends the key within a minute of use, and for good", async () => {
  const key = await gatedKey();
  const { row } = key;
  expect(await asked(key)).toBe("admitted");
  await revokeKey(env.DB, { id: row.id, orgId: row.org_id, revokedAt: 5 });
  shiftClock(MINUTE_MS + 1000);
  await asked(key);
  await eventually(async () => expect(await asked(key)).toBe("invalid_api_key"));
  await env.DB.prepare("UPDATE keys SET revoked_at = NULL WHERE id = ?").bind(row.id).run();
  expect(await asked(key)).toBe("invalid_api_key");
  await evict(key);
  expect(await asked(key)).toBe("invalid_api_key");
});

it("that revocation is heard although the key's limit was set while its register was asked", async () => {
  const key = await gatedKey();
  const { row, hash, stub } = key;
  expect(await asked(key)).toBe("admitted");
  await revokeKey(env.DB, { id: row.id, orgId: row.org_id, revokedAt: 5 });
  shiftClock(MINUTE_MS + 1000);
  registers.hold();
  expect(await asked(key)).toBe("admitted");
  await eventually(() => expect(registers.count("refresh")).toBe(1));
  valueOf(await stub.setKeyLimit(hash, 7));
  registers.open();
  await eventually(async () => expect(await asked(key)).toBe("invalid_api_key"));
});

it("a wallet that was lost and rebuilt asks the registers again, and admits no revoked key", async () => {
  const key = await gatedKey();
  const dead = await besides(key);
  expect([await asked(key), await asked(dead)]).toEqual(["admitted", "admitted"]);
  const row = { ...dead.row, id: dead.row.id };
  expect(
    await revokeKeyEverywhere(
      services((_, at) => registerOf(dead).revoke(at)),
      row,
    ),
  ).toEqual(expect.objectContaining({ ok: true }));
  valueOf(await key.stub.poke());
  await lose(key.stub);
  expect([await asked(key), await asked(dead)]).toEqual([
    "storage_unavailable",
    "storage_unavailable",
  ]);
  valueOf(await key.stub.rebuild(key.row.org_id));
  registers.calls.length = 0;
  expect([await asked(key), await asked(dead)]).toEqual(["admitted", "invalid_api_key"]);
  expect(registers.count("identify")).toBe(2);
});

it("a wallet that went back in time forgets what it knew of the living with its rebuilding, not their minutes", async () => {
  const key = await gatedKey({ rpmLimit: 3, balance: 10 });
  const { stub, row } = key;
  const dead = await besides(key);
  const buried = await besides(key);
  expect([await burst(key, 2), await burst(dead, 1), await burst(buried, 1)]).toEqual([2, 1, 1]);
  valueOf(await buried.stub.revokeKey(buried.hash, 1)); // of this its register never heard
  await registerOf(dead).revoke(1); // of this the tables from before know nothing
  valueOf(await stub.poke());
  await env.DB.prepare("UPDATE balances SET epoch = 'other' WHERE org_id = ?")
    .bind(row.org_id)
    .run();
  valueOf(await stub.rebuild(row.org_id));
  expect(await asked(dead)).toBe("invalid_api_key");
  expect(await asked(buried)).toBe("invalid_api_key");
  expect(await burst(key, 5)).toBe(1);
  expect(registers.count("identify")).toBe(5);
});

it("no key is met while it is being revoked by a wallet that is just rebuilt", async () => {
  const key = await gatedKey();
  valueOf(await key.stub.poke());
  await lose(key.stub);
  const [begun, may] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const revoking = revokeKeyEverywhere(
    services(async (_, at) => {
      begun.resolve();
      await may.promise;
      return registerOf(key).revoke(at);
    }),
    key.row,
  );
  await begun.promise;
  valueOf(await key.stub.rebuild(key.row.org_id));
  expect(await asked(key)).toBe("admitted");
  may.resolve();
  expect((await revoking).ok).toBe(true);
  expect(await asked(key)).toBe("invalid_api_key");
});

it("whatever the register answers, the wallet has its tombstone, and a repeat completes the rest", async () => {
  const key = await gatedKey();
  expect(await asked(key)).toBe("admitted");
  const deaf = services(() => Promise.reject(new Error("gone")));
  expect(kindOf(await revokeKeyEverywhere(deaf, key.row))).toBe("storage_unavailable");
  expect(await asked(key)).toBe("invalid_api_key");
  expect(
    (
      await revokeKeyEverywhere(
        services((_, at) => registerOf(key).revoke(at)),
        key.row,
      )
    ).ok,
  ).toBe(true);
  expect(kindOf(await registerOf(key).whose())).toBe("invalid_api_key");
});

it("where no wallet is made there is nothing to end, and nobody to admit", async () => {
  const key = await gatedKey();
  await lose(key.stub);
  valueOf(await key.stub.revokeKey(key.hash, 1));
  valueOf(await key.stub.setKeyLimit(key.hash, 1));
  expect(await asked(key)).toBe("storage_unavailable");
  expect(failureOf(await key.stub.admitAndHold(key.hash, holdOf(1)))).toEqual({
    kind: "storage_unavailable",
  });
  expect(registers.calls).toEqual([]);
});
