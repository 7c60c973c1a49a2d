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
  it("fails without a change if the balance would exceed 2^53", async () => {
    const { stub } = await newWallet(Number.MAX_SAFE_INTEGER);
    expect(failureOf(await credit(stub, 1))).toMatchObject({ kind: "invalid_request" });
    expect(valueOf(await stub.balance()).creditsMicro).toBe(Number.MAX_SAFE_INTEGER);
    expect(await differences(stub)).toEqual([]);
  });
});
