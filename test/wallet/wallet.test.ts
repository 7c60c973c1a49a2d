import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
  GENERATION,
  countWrites,
  credit,
  differences,
  failureOf,
  holdOf,
  newId,
  newWallet,
  pay,
  setClock,
  settle,
  stubOf,
  valueOf,
} from "./wallet-fixture.ts";

afterEach(() => setClock(null));

const MINUTE = 60_000;

describe("a wallet's Durable Object", () => {
  it("returns storage_unavailable and writes nothing if the wallet was never created", async () => {
    const stub = stubOf(crypto.randomUUID());
    const answers = await Promise.all([
      stub.hold(holdOf(1)),
      stub.void(newId()),
      settle(stub, newId(), 1),
      credit(stub, 5),
      stub.balance(),
      stub.putEndUser("u", {}),
      stub.poke(),
      stub.reconcile(),
      stub.ledger(0, 1),
    ]);
    for (const answer of answers) {
      expect(failureOf(answer)).toEqual({ kind: "storage_unavailable" });
    }
    await runInDurableObject(stub, (_wallet: Wallet, state) => {
      expect(state.storage.sql.exec("SELECT name FROM sqlite_master").toArray()).toEqual([]);
    });
  });

  it("can be created only once, and discarded only while empty", async () => {
    const { stub, orgId } = await newWallet();
    const { epoch } = await stub.create(orgId);
    expect(await stub.create(orgId)).toEqual({ epoch });
    expect(await stub.discard()).toBe(true);
    expect(failureOf(await stub.balance())).toEqual({ kind: "storage_unavailable" });
    expect((await stub.create(orgId)).epoch).not.toBe(epoch);
    await credit(stub, 5);
    expect(await stub.discard()).toBe(false);
    expect(valueOf(await stub.balance()).creditsMicro).toBe(5);
  });

  it("returns zero for every read and rejects holds while new", async () => {
    const { stub } = await newWallet();
    expect(failureOf(await stub.hold(holdOf(1)))).toMatchObject({ kind: "balance_too_low" });
    expect(valueOf(await stub.usage("2026-01-01", "2036-12-31", "day")).data).toEqual([]);
    expect(valueOf(await stub.alerts(10, 0)).total).toBe(0);
    expect(valueOf(await stub.readSettings()).defaultAlertThreshold).toBe(0.8);
  });

  it("rejects only holds and changes by the organization during a suspension", async () => {
    const { stub } = await newWallet(100);
    const request = holdOf(10, { externalId: "u" });
    valueOf(await stub.hold(request));
    valueOf(await stub.configure({ suspended: true }));
    expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "organization_suspended" });
    expect(valueOf(await stub.hold(request)).granted).toBe(10);
    const changes = [
      await stub.putEndUser("new", {}),
      await stub.patchEndUser("u", { dailyQuotaMicro: null }),
      await stub.deleteEndUser("u"),
      await stub.patchSettings({ defaultAlertThreshold: 0 }),
    ];
    expect(new Set(changes.map((change) => JSON.stringify(failureOf(change))))).toEqual(
      new Set(['{"kind":"organization_suspended"}']),
    );
    expect(valueOf(await settle(stub, request.id, 4))).toMatchObject({ charged: 4 });
    await evictDurableObject(stub);
    expect(valueOf(await stub.listEndUsers(10, 0))).toMatchObject({
      endUsers: [{ externalId: "u", dailySpendMicro: 4 }],
      total: 1,
    });
    expect(valueOf(await stub.readSettings()).defaultAlertThreshold).toBe(0.8);
    valueOf(await credit(stub, 1));
    valueOf(await stub.configure({ suspended: false }));
    expect(valueOf(await stub.hold(holdOf(1))).granted).toBe(1);
  });

  it("stays unchanged if a transaction fails halfway", async () => {
    const { stub } = await newWallet(100);
    const request = holdOf(50);
    valueOf(await stub.hold(request));
    await runInDurableObject(stub, async (wallet: Wallet, state) => {
      state.storage.sql.exec(
        "CREATE TRIGGER fault BEFORE INSERT ON entries BEGIN SELECT raise(abort, 'fault'); END",
      );
      await expect(
        wallet.settle({ id: request.id, cost: micros(120), generation: GENERATION }),
      ).rejects.toThrow("fault");
      state.storage.sql.exec("DROP TRIGGER fault");
    });
    expect(valueOf(await stub.balance())).toEqual({
      creditsMicro: 100,
      heldMicro: 50,
      openHolds: 1,
    });
    expect(valueOf(await settle(stub, request.id, 120))).toMatchObject({ charged: 100 });
    expect(await differences(stub)).toEqual([]);
  });

  it("enforces the organization's rpm limit exactly, across evictions and limit changes", async () => {
    const { stub } = await newWallet(1000);
    const start = Date.now() + MINUTE;
    setClock(start);
    for (let i = 0; i < 3; i++) {
      valueOf(await stub.hold(holdOf(1)));
    }
    valueOf(await stub.configure({ rpmLimit: 5 }));
    const answers = await Promise.all(Array.from({ length: 10 }, () => stub.hold(holdOf(1))));
    expect(answers.filter((answer) => answer.ok)).toHaveLength(2);
    await evictDurableObject(stub);
    setClock(start + 50_000);
    const refusal = await stub.hold(holdOf(1));
    expect(failureOf(refusal)).toMatchObject({
      kind: "rate_limited",
      scope: "organization",
      limit: 5,
    });
    setClock(start + 61_000);
    expect(valueOf(await stub.hold(holdOf(1))).granted).toBe(1);
  });

  it("returns a request's record, and usage by day, model, key and user that sums to the charges", async () => {
    setClock(Date.UTC(2031, 4, 14, 12)); // no midnight passes
    const { stub } = await newWallet(1000);
    await pay(stub, 30, "u");
    const request = holdOf(20);
    valueOf(await stub.hold(request));
    valueOf(await settle(stub, request.id, 20));
    valueOf(await stub.poke());
    await pay(stub, 5, "u");
    const today = "2031-05-14";
    expect(valueOf(await stub.usage(today, today, "day")).data).toEqual([
      {
        group: today,
        requests: 3,
        promptTokens: 12,
        cachedTokens: 3,
        completionTokens: 15,
        costMicro: 55,
      },
    ]);
    const byUser = valueOf(await stub.usage(today, today, "user"));
    expect(byUser.data.map((one) => [one.group, one.requests, one.costMicro])).toEqual([
      [null, 1, 20],
      ["u", 2, 35],
    ]);
    expect(valueOf(await stub.usage(today, today, "model")).total.costMicro).toBe(55);
    expect(valueOf(await stub.usage(today, today, "key")).data[0]?.group).toBe("key_test");
    expect(valueOf(await stub.request(request.id)).generation).toMatchObject({
      id: request.id,
      costMicro: 20,
      model: "sandbox/echo",
      usage: { output: 5 },
    });
    expect(failureOf(await stub.request(newId()))).toMatchObject({ kind: "not_found" });
  });

  it("writes two rows per request, even with an end user", async () => {
    const { stub } = await newWallet(100_000);
    await pay(stub, 1, "u");
    const rows = await runInDurableObject(stub, async (wallet: Wallet, state) => {
      const counted = await countWrites(state.storage, async () => {
        for (let i = 0; i < 50; i++) {
          const request = holdOf(1, { externalId: i % 2 === 0 ? "u" : null });
          valueOf(await wallet.hold(request));
          valueOf(await wallet.settle({ id: request.id, cost: micros(1), generation: GENERATION }));
        }
      });
      return counted;
    });
    expect(rows).toBe(100);
  });
});
