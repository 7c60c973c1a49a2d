import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { lowestIdAt } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { NO_USAGE } from "../../src/shared/usage.ts";
import {
  credit,
  differences,
  failureOf,
  GENERATION,
  holdOf,
  newId,
  newWallet,
  pay,
  rowsOf,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";

afterEach(() => setClock(null));

describe("a wallet's hold", () => {
  it("fails with the available and required credits if one micro-credit is missing, and succeeds if the credits fit exactly", async () => {
    const { stub } = await newWallet(9);
    expect(failureOf(await stub.hold(holdOf(10)))).toEqual({
      kind: "balance_too_low",
      balanceMicro: 9,
      heldMicro: 0,
      requiredMicro: 10,
      onlyHolds: false,
    });
    expect(await rowsOf(stub, "SELECT * FROM requests")).toEqual([]);
    expect(valueOf(await stub.hold(holdOf(9))).granted).toBe(9);
    expect(failureOf(await stub.hold(holdOf(5)))).toEqual({
      kind: "balance_too_low",
      balanceMicro: 9,
      heldMicro: 9,
      requiredMicro: 5,
      onlyHolds: true,
    });
    expect(valueOf(await stub.hold(holdOf(0))).granted).toBe(0);
  });

  it("counts once for repeated calls, and throws if a repeated call has a different amount", async () => {
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

  it("stays rejected for another region's retry after a top-up, but not for the home region's retry", async () => {
    const { stub } = await newWallet(5);
    const [peer, home] = [holdOf(10, { peer: true }), holdOf(10)];
    const first = failureOf(await stub.hold(peer));
    expect(failureOf(await stub.hold(home))).toMatchObject({ kind: "balance_too_low" });
    await credit(stub, 100);
    expect(failureOf(await stub.hold(peer))).toEqual(first);
    expect(valueOf(await stub.hold(home)).granted).toBe(10);
  });

  it("fails as overloaded if the time in the hold's ID is more than two minutes off", async () => {
    const { stub } = await newWallet(100);
    const old = lowestIdAt("req_", Date.now() - 121_000);
    const ahead = lowestIdAt("req_", Date.now() + 125_000);
    const kinds = await Promise.all(
      [old, ahead, "req_1", ""].map(async (id) => failureOf(await stub.hold(holdOf(1, { id })))),
    );
    expect(kinds).toEqual([
      { kind: "overloaded" },
      { kind: "overloaded" },
      { kind: "internal" },
      { kind: "internal" },
    ]);
  });

  it("throws for a NaN, fractional or negative amount, and stores nothing", async () => {
    const { stub } = await newWallet(100);
    for (const amount of [Number.NaN, 0.5, -1, 2 ** 53]) {
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

const MINUTE = 60_000;

describe("the outcome of a hold", () => {
  it("charges costs above the held amount only from available credits, and records the shortfall", async () => {
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

  it("charges at most the held amount if another region reports the outcome, and records the shortfall", async () => {
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

  it("adds an absorbed cost to the margin report only once", async () => {
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

  it("may never arrive, and then the hold expires without a charge", async () => {
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
  it("counts once per reference, returns the same response to a repeat, and rejects a different amount", async () => {
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
