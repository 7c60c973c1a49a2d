import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import { NO_USAGE } from "../../src/shared/usage.ts";
import {
  credit,
  differences,
  failureOf,
  GENERATION,
  holdOf,
  newWallet,
  pay,
  setClock,
  settle,
  valueOf,
} from "./wallet-desk.ts";

afterEach(() => setClock(null));

const MINUTE = 60_000;

describe("the outcome of a hold", () => {
  it("releases the rest of the hold if the cost is lower, or the whole hold if the cost is zero", async () => {
    const { stub } = await newWallet(100);
    const [one, two] = [holdOf(100), holdOf(60)];
    valueOf(await stub.hold(one));
    expect(valueOf(await settle(stub, one.id, 40))).toMatchObject({ charged: 40, shortfall: 0 });
    valueOf(await stub.hold(two));
    expect(valueOf(await settle(stub, two.id, 0))).toMatchObject({ charged: 0 });
    expect(valueOf(await stub.balance())).toEqual({ creditsMicro: 60, heldMicro: 0, openHolds: 0 });
  });

  it("charges a cost above the held amount only from available credits, and records the shortfall", async () => {
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

  it("charges at most the hold if it comes from another region, and records the shortfall", async () => {
    const { stub } = await newWallet(100);
    const [one, late] = [holdOf(20), holdOf(30)];
    valueOf(await stub.hold(one));
    const settlement = { id: one.id, cost: micros(90), generation: GENERATION, isCapped: true };
    expect(valueOf(await stub.settle(settlement))).toMatchObject({ charged: 20, shortfall: 70 });
    valueOf(await stub.hold(late));
    setClock(Date.now() + 60 * MINUTE);
    expect(valueOf(await stub.balance())).toMatchObject({ openHolds: 0 });
    const afterwards = { ...settlement, id: late.id };
    expect(valueOf(await stub.settle(afterwards))).toMatchObject({ charged: 30, shortfall: 60 });
    expect(await differences(stub)).toEqual([]);
  });

  it("keeps an absorbed cost in the margin until its day is deleted", async () => {
    const { stub } = await newWallet(100);
    const [one, twice] = [holdOf(20), holdOf(20)];
    const absorbed = {
      ...GENERATION,
      usage: { ...NO_USAGE, input: 10, output: 5 },
      bought: { input: 2_000_000, cached: 0, cacheWrite: 0, output: 4_000_000 },
    };
    for (const { id } of [one, twice]) {
      valueOf(await stub.hold({ ...(id === one.id ? one : twice) }));
      expect(valueOf(await stub.void(id, absorbed))).toEqual({ kind: "voided" });
    }
    valueOf(await stub.void(one.id, absorbed));
    setClock(Date.now() + 5 * 24 * 60 * MINUTE);
    await runDurableObjectAlarm(stub);
    const report = valueOf(
      await stub.costs({
        fromMs: 0,
        beforeMs: Date.now() + 1,
        by: "model",
        model: null,
        price: null,
      }),
    );
    expect(report.data).toMatchObject([
      { requests: 2, chargedMicro: 0, boughtMicro: 80, unknown: 0 },
    ]);
    expect(await differences(stub)).toEqual([]);
    expect(valueOf(await stub.balance())).toMatchObject({ creditsMicro: 100, openHolds: 0 });
  });

  it("writes one ledger row even if delivered five times and after an eviction", async () => {
    const { stub } = await newWallet(100);
    const request = holdOf(30);
    valueOf(await stub.hold(request));
    for (let i = 0; i < 5; i++) {
      expect(valueOf(await settle(stub, request.id, 10 + i))).toMatchObject({ charged: 10 });
      if (i % 2 === 0) await evictDurableObject(stub);
    }
    expect(valueOf(await stub.ledger(0, 10)).rows).toHaveLength(2);
    expect(valueOf(await stub.void(request.id))).toEqual({ kind: "settled", charged: 10 });
  });

  it("charges nothing for an unknown ID, and rejects a hold that arrives after its release", async () => {
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

  it("leaves an expired hold without a charge if it never arrives", async () => {
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

  it("charges an expired hold late, once, from available credits, and ignores a late release", async () => {
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
    expect(valueOf(await stub.request(late.id)).generation).toMatchObject({ costMicro: 30 });
    expect(await differences(stub)).toEqual([]);
  });
});

describe("a credit in a wallet", () => {
  it("counts once per reference with the same response, and is rejected for another amount", async () => {
    const { stub } = await newWallet();
    const first = valueOf(await credit(stub, 100, "payment 1"));
    await pay(stub, 40);
    await evictDurableObject(stub);
    expect(valueOf(await credit(stub, 100, "payment 1"))).toEqual(first);
    expect(failureOf(await credit(stub, 101, "payment 1"))).toMatchObject({ kind: "conflict" });
    expect(valueOf(await stub.balance()).creditsMicro).toBe(60);
    for (const reference of ["", "x".repeat(201)]) {
      expect(failureOf(await credit(stub, 1, reference))).toMatchObject({ param: "reference" });
    }
  });

  it("leaves open holds unchanged, and can't take held credits if negative", async () => {
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

  it("fails without a change if the balance would exceed 2^53", async () => {
    const { stub } = await newWallet(Number.MAX_SAFE_INTEGER);
    expect(failureOf(await credit(stub, 1))).toMatchObject({ kind: "invalid_request" });
    expect(valueOf(await stub.balance()).creditsMicro).toBe(Number.MAX_SAFE_INTEGER);
    expect(await differences(stub)).toEqual([]);
  });
});
