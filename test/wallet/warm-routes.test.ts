import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import type { WarmRoute } from "../../src/shared/generation.ts";
import type { WalletMethods } from "../../src/shared/contracts/wallet.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
  countWrites,
  GENERATION,
  holdOf,
  newWallet,
  rowsOf,
  setClock,
  valueOf,
} from "./wallet-fixture.ts";

afterEach(() => setClock(null));

const START = Date.UTC(2031, 4, 5, 12);
const warm = (affinity: string, seconds = 300): WarmRoute => {
  return { affinity, route: "beta:chat", seconds };
};

type RouteOptions = { readonly affinity?: string; readonly moved?: WarmRoute };

/** Holds and settles a request. Returns the route in the hold. */
async function pay(
  wallet: Pick<WalletMethods, "hold" | "settle">,
  { affinity, moved }: RouteOptions,
) {
  const request = holdOf(10, affinity === undefined ? {} : { affinity });
  const { warmRoute } = valueOf(await wallet.hold(request));
  const generation = { ...GENERATION, ...(moved !== undefined && { warm: moved }) };
  valueOf(await wallet.settle({ id: request.id, cost: micros(10), generation }));
  return warmRoute;
}

describe("a wallet's record of a conversation's provider route", () => {
  it("selects a provider until that provider's prompt cache expires, even after a restart", async () => {
    setClock(START);
    const { stub } = await newWallet(1000);
    expect(await pay(stub, { affinity: "one" })).toBeUndefined();
    await pay(stub, { affinity: "one", moved: warm("one") });
    await evictDurableObject(stub);
    setClock(START + 299_000);
    expect(await pay(stub, { affinity: "one" })).toBe("beta:chat");
    expect(await pay(stub, { affinity: "two" })).toBeUndefined();
    expect(await pay(stub, {})).toBeUndefined();
    await evictDurableObject(stub);
    setClock(START + 598_000);
    expect(await pay(stub, { affinity: "one" })).toBe("beta:chat"); // each use extends it
    setClock(START + 900_000);
    expect(await pay(stub, { affinity: "one" })).toBeUndefined();
  });

  it("needs a row only if the route of the conversation changed", async () => {
    const { stub } = await newWallet(10_000);
    await runInDurableObject(stub, async (wallet: Wallet, { storage }) => {
      const rowsFor = (route: RouteOptions) =>
        countWrites(storage, async () => void (await pay(wallet, route)));
      await pay(wallet, { affinity: "first" });
      const plain = await rowsFor({});
      expect(await rowsFor({ affinity: "one" })).toBe(plain);
      expect(await rowsFor({ affinity: "one", moved: warm("one") })).toBe(plain + 1);
      expect(await rowsFor({ affinity: "one" })).toBe(plain);
      expect(await rowsFor({ affinity: "two" })).toBe(plain);
    });
  });

  it("exists only for the 1,000 most recently used conversations", async () => {
    setClock(START);
    const { stub } = await newWallet(1_000_000);
    await runInDurableObject(stub, async (wallet: Wallet) => {
      for (let i = 0; i < 1000; i++) await pay(wallet, { moved: warm(`${i}`) });
      expect(await pay(wallet, { affinity: "0" })).toBe("beta:chat");
      await pay(wallet, { moved: warm("new") });
      expect(await pay(wallet, { affinity: "1" })).toBeUndefined();
      expect(await pay(wallet, { affinity: "0" })).toBe("beta:chat");
    });
    expect(await rowsOf(stub, "SELECT count(*) AS n FROM warm_routes")).toEqual([{ n: 1000 }]);
  });
});
