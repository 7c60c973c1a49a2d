import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { lowestIdAt } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
  credit,
  differences,
  failureOf,
  holdOf,
  newId,
  newWallet,
  rowsOf,
  setClock,
  valueOf,
} from "./wallet-desk.ts";

afterEach(() => setClock(null));

describe("a wallet's hold", () => {
  it("fails with available and required credits if one micro-credit is missing, and succeeds if it fits exactly", async () => {
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
  it("counts once if the call is repeated, and throws without a change if the amount differs", async () => {
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

  it("stays rejected for another region after a top-up, but may be created in the home region", async () => {
    const { stub } = await newWallet(5);
    const [peer, home] = [holdOf(10, { peer: true }), holdOf(10)];
    const first = failureOf(await stub.hold(peer));
    expect(failureOf(await stub.hold(home))).toMatchObject({ kind: "balance_too_low" });
    await credit(stub, 100);
    expect(failureOf(await stub.hold(peer))).toEqual(first);
    expect(valueOf(await stub.hold(home)).granted).toBe(10);
  });

  it("fails as overloaded if its ID is over two minutes off, and throws for an invalid ID", async () => {
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

  it("throws for NaN, a fraction or a negative amount, and isn't stored", async () => {
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
