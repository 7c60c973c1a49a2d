import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
  credit,
  differences,
  failureOf,
  holdOf,
  deleteWalletStorage,
  newWallet,
  pay,
  runAlarm,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

afterEach(() => setClock(null));

type StoredWallet = { readonly stub: Stub; readonly orgId: string };

/** Creates a wallet and its first database row, as for a new organization. */
async function newInDatabase(): Promise<StoredWallet> {
  const wallet = await newWallet();
  const { epoch } = await wallet.stub.create(wallet.orgId);
  await env.DB.prepare("INSERT INTO balances VALUES (?, ?, 0, 0, 0)")
    .bind(wallet.orgId, epoch)
    .run();
  return wallet;
}

const update = (sql: string, orgId: string, ...values: readonly unknown[]) =>
  env.DB.prepare(`UPDATE ${sql} WHERE org_id = ?`)
    .bind(...values, orgId)
    .run();
const balanceOf = async (stub: Stub) => valueOf(await stub.balance()).creditsMicro;

describe("the rebuild of a healthy wallet", () => {
  it("fails before the wallet's first publish, even if the wallet has credits", async () => {
    const { stub, orgId } = await newInDatabase();
    await credit(stub, 100);
    expect(failureOf(await stub.rebuild(orgId))).toMatchObject({ kind: "conflict" });
    expect(await balanceOf(stub)).toBe(100);
  });

  it("fails if the wallet is ahead of the database", async () => {
    const { stub, orgId } = await newInDatabase();
    await credit(stub, 100);
    valueOf(await stub.poke());
    await pay(stub, 30);
    expect(failureOf(await stub.rebuild(orgId))).toMatchObject({ kind: "conflict" });
    expect(await balanceOf(stub)).toBe(70);
  });

  it("fails if someone corrected the database by hand after a conflict", async () => {
    const { stub, orgId } = await newInDatabase();
    await credit(stub, 100);
    const request = holdOf(10);
    valueOf(await stub.hold(request));
    valueOf(await stub.poke());
    await update("balances SET epoch = 'other'", orgId);
    valueOf(await settle(stub, request.id, 10));
    valueOf(await stub.poke());
    expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
    const { epoch } = await stub.create(orgId);
    await update("balances SET epoch = ?", orgId, epoch);
    expect(failureOf(await stub.rebuild(orgId))).toMatchObject({ kind: "conflict" });
    expect(await balanceOf(stub)).toBe(90);
    valueOf(await stub.poke());
    expect(valueOf(await stub.hold(holdOf(1))).granted).toBe(1);
  });
});

describe("the rebuild of a lost wallet", () => {
  it("creates an empty wallet if nothing was published", async () => {
    const { stub, orgId } = await newInDatabase();
    await deleteWalletStorage(stub);
    expect(valueOf(await stub.rebuild(orgId)).creditsMicro).toBe(0);
    expect(failureOf(await stub.rebuild(orgId))).toMatchObject({ kind: "conflict" });
    await credit(stub, 5);
    valueOf(await stub.poke());
    expect(await differences(stub)).toEqual([]);
  });

  it("restores the operator's suspension, limit and prices", async () => {
    const { stub, orgId } = await newInDatabase();
    await credit(stub, 100);
    valueOf(await stub.poke());
    await env.DB.prepare(
      `INSERT INTO organizations (id, name, slug, region, status, rpm_limit, price_list, created_at)
      VALUES (?1, 'x', substr(?1, 1, 32), 'eu', 'suspended', 7, 'own', 0)`,
    )
      .bind(orgId)
      .run();
    await deleteWalletStorage(stub);
    valueOf(await stub.rebuild(orgId));
    expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "organization_suspended" });
    const set = { rpmLimit: 7, suspended: true, closed: false, priceList: "own" };
    expect(valueOf(await stub.configure({}))).toEqual(set);
  });

  it("fails if the database doesn't contain the wallet", async () => {
    const { stub, orgId } = await newWallet();
    await deleteWalletStorage(stub);
    expect(failureOf(await stub.rebuild(orgId))).toMatchObject({ kind: "not_found" });
    expect(failureOf(await stub.balance())).toEqual({ kind: "storage_unavailable" });
  });
});

it("a wallet that is restored to an earlier time never overwrites newer database rows", async () => {
  const { stub, orgId } = await newInDatabase();
  await credit(stub, 100);
  valueOf(await stub.poke());
  await update("balances SET seq = seq + 3, credits_micro = 60", orgId);
  await credit(stub, 1);
  for (let i = 0; i < 8; i++) valueOf(await stub.poke());
  await runInDurableObject(stub, (_wallet: Wallet, state) => {
    // retention's checkpoints also count, without a publish
    state.storage.sql.exec("UPDATE wallet SET revision = revision + 9");
  });
  await evictDurableObject(stub);
  valueOf(await stub.poke());
  expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
  expect(valueOf(await stub.rebuild(orgId)).creditsMicro).toBe(60);
  valueOf(await stub.poke());
  expect(await differences(stub)).toEqual([]);
});

it.each(["the database has an equal ID", "the database has another ID"])(
  "a rebuilt wallet keeps the end users of open holds: %s",
  async (which) => {
    const { stub, orgId } = await newInDatabase();
    await credit(stub, 1000);
    await pay(stub, 10, "ann");
    valueOf(await stub.poke());
    const request = holdOf(70, { externalId: "ann" });
    valueOf(await stub.hold(request));
    await update("balances SET epoch = 'other'", orgId);
    const hasAnotherId = which === "the database has another ID";
    if (hasAnotherId) await update("end_users SET id = 'usr_of_the_book'", orgId);
    valueOf(await stub.poke()); // detects another wallet's database rows
    valueOf(await stub.rebuild(orgId));
    valueOf(await settle(stub, request.id, 60));
    const { monthlySpendMicro } = valueOf(await stub.readEndUser("ann"));
    expect(monthlySpendMicro).toBe(70);
    await evictDurableObject(stub);
    expect(valueOf(await stub.readEndUser("ann")).monthlySpendMicro).toBe(70);
    expect(await differences(stub)).toEqual([]);
  },
);

it("a wallet that contradicts the database publishes nothing and deletes no usage", async () => {
  const start = Date.UTC(2038, 1, 1, 12);
  setClock(start);
  const { stub, orgId } = await newInDatabase();
  await credit(stub, 100);
  const request = holdOf(10, { externalId: "u" });
  valueOf(await stub.hold(request));
  await update("balances SET epoch = 'other'", orgId);
  valueOf(await stub.poke());
  valueOf(await settle(stub, request.id, 7));
  setClock(start + 31 * 86_400_000);
  await runAlarm(stub);
  await evictDurableObject(stub);
  const { rows } = valueOf(await stub.ledger(0, 10));
  expect(rows.map(({ kind }) => kind)).toEqual(["credit", "rollup"]);
  const { data } = valueOf(await stub.usage("2038-02-01", "2038-02-01", "user"));
  expect(data).toMatchObject([{ group: "u", requests: 1, costMicro: 7 }]);
  expect(await balanceOf(stub)).toBe(93);
});

describe("the rebuild of a lost wallet with many end users", () => {
  const USERS = 12_000;

  /**
   * Creates database rows of an organization whose wallet is lost, with an end user and an alert.
   */
  async function lostWithMany(): Promise<StoredWallet> {
    const { stub, orgId } = await newInDatabase();
    await credit(stub, 500);
    await pay(stub, 20, "first");
    valueOf(await stub.poke());
    const rows = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${USERS})`;
    await env.DB.batch([
      env.DB.prepare(
        `INSERT INTO end_users SELECT ?, printf('%036d', i), 'customer-' || i, NULL, NULL, 0.8, '2031-01', i,
          '2031-01-01', i, i, 1 FROM (${rows} SELECT i FROM n)`,
      ).bind(orgId),
      env.DB.prepare(
        `INSERT INTO alerts SELECT ?, 'alert_' || printf('%024d', i), 'user_daily', 'customer-' || i,
          '2031-01-01', 0.8, 10, 9, i FROM (${rows} SELECT i FROM n)`,
      ).bind(orgId),
    ]);
    await deleteWalletStorage(stub);
    return { stub, orgId };
  }

  it("restores all end users and alerts even if called twice concurrently", async () => {
    const { stub, orgId } = await lostWithMany();
    const [first, again] = await runInDurableObject(stub, (wallet: Wallet) =>
      Promise.all([wallet.rebuild(orgId), wallet.rebuild(orgId)]),
    );
    expect(valueOf(first).creditsMicro).toBe(480);
    expect(again).toEqual(first);
    expect(valueOf(await stub.listEndUsers(1, 0)).total).toBe(USERS + 1);
    expect(valueOf(await stub.readEndUser(`customer-${USERS}`)).createdAt).toBe(USERS);
    expect(valueOf(await stub.alerts(1, 0)).total).toBe(USERS);
    expect(valueOf(await stub.readEndUser("first")).monthlySpendMicro).toBe(20);
    await evictDurableObject(stub);
    expect(await balanceOf(stub)).toBe(480);
    expect(await differences(stub)).toEqual([]);
  });

  it("returns 503 until all end users are restored, and fails for an invalid row", async () => {
    const { stub, orgId } = await lostWithMany();
    await update("end_users SET monthly_spend_micro = -monthly_spend_micro - 1", orgId);
    await runInDurableObject(stub, async (wallet: Wallet) => {
      await expect(wallet.rebuild(orgId)).rejects.toThrow("CHECK constraint failed");
      expect(failureOf(await wallet.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
    });
    await evictDurableObject(stub);
    expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
    await update("end_users SET monthly_spend_micro = -monthly_spend_micro - 1", orgId);
    expect(valueOf(await stub.rebuild(orgId)).creditsMicro).toBe(480);
  });
});
