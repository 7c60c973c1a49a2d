import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { idFloor } from "../../src/lib/id.ts";
import { micros } from "../../src/lib/money.ts";
import type { Wallet } from "../../src/wallet/wallet.do.ts";
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
  rowsOf,
  setClock,
  settle,
  stubOf,
  valueOf,
} from "./wallet-desk.ts";

afterEach(() => setClock(null));

const MINUTE = 60_000;

describe("a hold", () => {
  it("is granted exactly 100 times of 200 at once when the balance is 100 times its least (1)", async () => {
    const { stub } = await newWallet(1000);
    const answers = await Promise.all(Array.from({ length: 200 }, () => stub.hold(holdOf(10))));
    expect(answers.filter((answer) => answer.ok)).toHaveLength(100);
    expect(valueOf(await stub.balance())).toEqual({
      creditsMicro: 1000,
      heldMicro: 1000,
      openHolds: 100,
    });
    expect(await differences(stub)).toEqual([]);
  });

  it("that one micro is missing for names what is free and what it needs; an exact fit passes (2, 3)", async () => {
    const { stub } = await newWallet(9);
    expect(failureOf(await stub.hold(holdOf(10)))).toEqual({
      kind: "balance_too_low",
      balanceMicro: 9,
      requiredMicro: 10,
      onlyHolds: false,
    });
    expect(await rowsOf(stub, "SELECT * FROM requests")).toEqual([]);
    expect(valueOf(await stub.hold(holdOf(9))).granted).toBe(9);
    expect(failureOf(await stub.hold(holdOf(5)))).toMatchObject({ onlyHolds: true });
    expect(valueOf(await stub.hold(holdOf(0))).granted).toBe(0);
  });

  it("is granted what is affordable between least and most", async () => {
    const { stub } = await newWallet(50);
    expect(valueOf(await stub.hold(holdOf(10, { most: micros(80) }))).granted).toBe(50);
  });

  it("sent twice holds once; with other content it throws and changes nothing (10, 12)", async () => {
    const { stub } = await newWallet(100);
    const request = holdOf(60);
    expect(valueOf(await stub.hold(request)).granted).toBe(60);
    expect(valueOf(await stub.hold(request)).granted).toBe(60);
    await evictDurableObject(stub);
    expect(valueOf(await stub.hold(request)).granted).toBe(60);
    await expect(
      runInDurableObject(stub, (wallet: Wallet) => wallet.hold({ ...request, least: micros(59) })),
    ).rejects.toThrow("other content");
    expect(valueOf(await stub.balance()).heldMicro).toBe(60);
  });

  it("that a peer was refused stays refused after a top-up; at home it may pass (11)", async () => {
    const { stub } = await newWallet(5);
    const [peer, home] = [holdOf(10, { peer: true }), holdOf(10)];
    const first = failureOf(await stub.hold(peer));
    expect(failureOf(await stub.hold(home))).toMatchObject({ kind: "balance_too_low" });
    await credit(stub, 100);
    expect(failureOf(await stub.hold(peer))).toEqual(first);
    expect(valueOf(await stub.hold(home)).granted).toBe(10);
  });

  it("minted over two minutes ago asks for a new id; a malformed id or one from the future is a bug", async () => {
    const { stub } = await newWallet(100);
    const old = `${idFloor("req_", Date.now() - 121_000)}`;
    const ahead = `${idFloor("req_", Date.now() + 125_000)}`;
    const kinds = await Promise.all(
      [old, ahead, "req_1", ""].map(async (id) => failureOf(await stub.hold(holdOf(1, { id })))),
    );
    expect(kinds).toEqual([
      { kind: "overloaded" },
      { kind: "internal" },
      { kind: "internal" },
      { kind: "internal" },
    ]);
  });

  it("of NaN, a fraction or less than nothing throws and stores nothing", async () => {
    const { stub } = await newWallet(100);
    for (const amount of [Number.NaN, 0.5, -1, 2 ** 53]) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other on one object
      await runInDurableObject(stub, async (wallet: Wallet) => {
        const amounts = { least: amount as never, most: amount as never };
        await expect(wallet.hold({ ...holdOf(0), ...amounts })).rejects.toThrow("assertion");
        await expect(
          wallet.settle({ id: newId(), cost: amount as never, generation: {} as never }),
        ).rejects.toThrow("assertion");
      });
    }
    await expect(rowsOf(stub, "UPDATE settings SET alert_threshold = 0.0/0.0")).rejects.toThrow(
      "NOT NULL",
    );
    expect(await differences(stub)).toEqual([]);
  });
});

describe("an outcome", () => {
  it("below the hold frees the rest at once; of zero it frees all (4, 5)", async () => {
    const { stub } = await newWallet(100);
    const [one, two] = [holdOf(100), holdOf(60)];
    valueOf(await stub.hold(one));
    expect(valueOf(await settle(stub, one.id, 40))).toMatchObject({ charged: 40, shortfall: 0 });
    valueOf(await stub.hold(two));
    expect(valueOf(await settle(stub, two.id, 0))).toMatchObject({ charged: 0 });
    expect(valueOf(await stub.balance())).toEqual({ creditsMicro: 60, heldMicro: 0, openHolds: 0 });
  });

  it("over the hold takes what is free and no more; the rest is a shortfall row (6)", async () => {
    const { stub } = await newWallet(100);
    const [one, other] = [holdOf(20), holdOf(50)];
    valueOf(await stub.hold(one));
    valueOf(await stub.hold(other));
    expect(valueOf(await settle(stub, one.id, 90))).toMatchObject({ charged: 50, shortfall: 40 });
    expect(valueOf(await stub.balance())).toEqual({
      creditsMicro: 50,
      heldMicro: 50,
      openHolds: 1,
    });
    const { rows } = valueOf(await stub.ledger(0, 10));
    expect(rows.map((row) => [row.seq, row.kind, row.amountMicro, row.absorbedMicro])).toEqual([
      [1, "credit", 100, 0],
      [2, "usage", -50, 0],
      [3, "shortfall", 0, 40],
    ]);
    expect(valueOf(await settle(stub, one.id, 90))).toMatchObject({ charged: 50, shortfall: 40 });
  });

  it("delivered five times, also after an eviction, is one ledger row (7)", async () => {
    const { stub } = await newWallet(100);
    const request = holdOf(30);
    valueOf(await stub.hold(request));
    for (let i = 0; i < 5; i++) {
      // oxlint-disable-next-line no-await-in-loop -- one after the other is what is tested
      expect(valueOf(await settle(stub, request.id, 10 + i))).toMatchObject({ charged: 10 });
      // oxlint-disable-next-line no-await-in-loop
      if (i % 2 === 0) await evictDurableObject(stub);
    }
    expect(valueOf(await stub.ledger(0, 10)).rows).toHaveLength(2);
    expect(valueOf(await stub.void(request.id))).toEqual({ kind: "settled", charged: 10 });
  });

  it("for an unknown id charges nothing; a void before its hold keeps the hold out (8, 9)", async () => {
    const { stub } = await newWallet(100);
    const request = holdOf(30);
    expect(valueOf(await settle(stub, request.id, 10))).toEqual({ kind: "unknown" });
    expect(valueOf(await stub.void(request.id))).toEqual({ kind: "voided" });
    expect(failureOf(await stub.hold(request))).toEqual({ kind: "overloaded" });
    expect(valueOf(await settle(stub, request.id, 10))).toEqual({ kind: "voided" });
    expect(valueOf(await stub.balance())).toEqual({
      creditsMicro: 100,
      heldMicro: 0,
      openHolds: 0,
    });
  });

  it("never comes: the hold expires, counts for nothing without any alarm, charges nothing (13)", async () => {
    const { stub } = await newWallet(100);
    const start = Date.now();
    const [home, peer] = [holdOf(60), holdOf(40, { peer: true })];
    valueOf(await stub.hold(home));
    valueOf(await stub.hold(peer));
    setClock(start + 20 * MINUTE + 5000);
    expect(valueOf(await stub.hold(holdOf(60))).granted).toBe(60);
    expect(valueOf(await stub.balance())).toEqual({
      creditsMicro: 100,
      heldMicro: 100,
      openHolds: 2,
    });
    const { rows } = valueOf(await stub.ledger(0, 10));
    expect(rows.at(-1)).toMatchObject({ kind: "expire", amountMicro: 0, generationId: home.id });
  });

  it("that comes late is charged from what is free, once; a late void changes nothing (14, 15)", async () => {
    const { stub } = await newWallet(100);
    const start = Date.now();
    const [late, gone] = [holdOf(60), holdOf(10)];
    valueOf(await stub.hold(late));
    valueOf(await stub.hold(gone));
    setClock(start + 21 * MINUTE);
    valueOf(await stub.hold(holdOf(70)));
    expect(valueOf(await settle(stub, late.id, 40))).toMatchObject({ charged: 30, shortfall: 10 });
    expect(valueOf(await stub.void(gone.id))).toEqual({ kind: "voided" });
    expect(valueOf(await settle(stub, gone.id, 5))).toEqual({ kind: "voided" });
    await evictDurableObject(stub);
    expect(valueOf(await settle(stub, late.id, 40))).toMatchObject({ charged: 30, shortfall: 10 });
    expect(valueOf(await stub.balance())).toMatchObject({ creditsMicro: 70, heldMicro: 70 });
    expect(valueOf(await stub.generation(late.id))).toMatchObject({ costMicro: 30 });
    expect(await differences(stub)).toEqual([]);
  });
});

describe("a credit", () => {
  it("of the same reference counts once and answers as the first time; another amount is a conflict (32)", async () => {
    const { stub } = await newWallet();
    const first = valueOf(await credit(stub, 100, "payment 1"));
    await pay(stub, 40);
    await evictDurableObject(stub);
    expect(valueOf(await credit(stub, 100, "payment 1"))).toEqual(first);
    expect(failureOf(await credit(stub, 101, "payment 1"))).toMatchObject({ kind: "conflict" });
    expect(valueOf(await stub.balance()).creditsMicro).toBe(60);
    for (const reference of ["", "x".repeat(201)]) {
      // oxlint-disable-next-line no-await-in-loop -- two calls
      expect(failureOf(await credit(stub, 1, reference))).toMatchObject({ param: "reference" });
    }
  });

  it("leaves 50 open holds as they are; a correction never takes what they hold (33)", async () => {
    const { stub } = await newWallet(50);
    await Promise.all(Array.from({ length: 50 }, () => stub.hold(holdOf(1))));
    expect(valueOf(await credit(stub, 10))).toEqual({
      creditsMicro: 60,
      heldMicro: 50,
      openHolds: 50,
    });
    expect(failureOf(await credit(stub, -11))).toMatchObject({ kind: "conflict" });
    expect(valueOf(await credit(stub, -10)).creditsMicro).toBe(50);
  });

  it("past 2^53 is refused and changes nothing (36)", async () => {
    const { stub } = await newWallet(Number.MAX_SAFE_INTEGER);
    expect(failureOf(await credit(stub, 1))).toMatchObject({ kind: "invalid_request" });
    expect(valueOf(await stub.balance()).creditsMicro).toBe(Number.MAX_SAFE_INTEGER);
    expect(await differences(stub)).toEqual([]);
  });
});

describe("a wallet", () => {
  it("that was never made answers storage_unavailable and writes nothing", async () => {
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

  it("is made once, and given up only while nothing was recorded", async () => {
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

  it("at zero still answers every read, and refuses to spend (37)", async () => {
    const { stub } = await newWallet();
    expect(failureOf(await stub.hold(holdOf(1)))).toMatchObject({ kind: "balance_too_low" });
    expect(valueOf(await stub.usage("2026-01-01", "2036-12-31", "day")).data).toEqual([]);
    expect(valueOf(await stub.alerts(10, 0)).total).toBe(0);
    expect(valueOf(await stub.readSettings()).defaultAlertThreshold).toBe(0.8);
  });

  it("that is suspended refuses holds and nothing else", async () => {
    const { stub } = await newWallet(100);
    const request = holdOf(10);
    valueOf(await stub.hold(request));
    valueOf(await stub.configure({ suspended: true }));
    expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "organization_suspended" });
    expect(valueOf(await stub.hold(request)).granted).toBe(10);
    expect(valueOf(await settle(stub, request.id, 4))).toMatchObject({ charged: 4 });
    valueOf(await stub.configure({ suspended: false }));
    expect(valueOf(await stub.hold(holdOf(1))).granted).toBe(1);
  });

  it("whose transaction fails half-way is as if it had not begun", async () => {
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

  it("keeps to the organisation's rpm limit to the request, across evictions and a limit set later", async () => {
    const { stub } = await newWallet(1000);
    const start = Date.now() + MINUTE;
    setClock(start);
    for (let i = 0; i < 3; i++) {
      // oxlint-disable-next-line no-await-in-loop -- in order
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

  it("shows a generation, and usage by day, model, key and user that sum to what was charged", async () => {
    const { stub } = await newWallet(1000);
    await pay(stub, 30, "u");
    const request = holdOf(20);
    valueOf(await stub.hold(request));
    valueOf(await settle(stub, request.id, 20));
    valueOf(await stub.poke());
    await pay(stub, 5, "u");
    const today = new Date().toISOString().slice(0, 10);
    expect(valueOf(await stub.usage(today, today, "day")).data).toEqual([
      { group: today, requests: 3, promptTokens: 12, completionTokens: 15, costMicro: 55 },
    ]);
    const byUser = valueOf(await stub.usage(today, today, "user"));
    expect(byUser.data.map((one) => [one.group, one.requests, one.costMicro])).toEqual([
      [null, 1, 20],
      ["u", 2, 35],
    ]);
    expect(valueOf(await stub.usage(today, today, "model")).total.costMicro).toBe(55);
    expect(valueOf(await stub.usage(today, today, "key")).data[0]?.group).toBe("key_test");
    expect(valueOf(await stub.generation(request.id))).toMatchObject({
      id: request.id,
      costMicro: 20,
      model: "sandbox/echo",
      usage: { output: 5 },
    });
    expect(failureOf(await stub.generation(newId()))).toMatchObject({ kind: "not_found" });
  });

  it("writes two rows per request, also with an end user", async () => {
    const { stub } = await newWallet(100_000);
    await pay(stub, 1, "u");
    const rows = await runInDurableObject(stub, async (wallet: Wallet, state) => {
      const counted = await countWrites(state.storage, async () => {
        for (let i = 0; i < 50; i++) {
          const request = holdOf(1, { externalId: i % 2 === 0 ? "u" : null });
          // oxlint-disable-next-line no-await-in-loop -- one after the other
          valueOf(await wallet.hold(request));
          // oxlint-disable-next-line no-await-in-loop
          valueOf(await wallet.settle({ id: request.id, cost: micros(1), generation: GENERATION }));
        }
      });
      return counted;
    });
    expect(rows).toBe(100);
  });
});
