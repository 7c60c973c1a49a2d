import { runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { expect, it, vi } from "vitest";
import { GROUPED_PARTS_MAX } from "../../src/shared/call-groups.ts";
import { afterTimeout } from "../../src/shared/timers.ts";
import { WalletCallGroups } from "../../src/money/wallet/grouped-wallet.ts";
import type { Settlement, GroupedWalletCall } from "../../src/shared/contracts/wallet.ts";
import { gatedKey } from "./key-admissions-fixture.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { effortFor } from "../effort.ts";
import {
  differences,
  GENERATION,
  holdOf,
  newWallet,
  settle,
  stubOf,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";
import { micros } from "../../src/shared/money.ts";

it("a grouped call to a wallet undoes only the part that throws an exception", async () => {
  const { stub } = await newWallet(100);
  const [first, second] = [holdOf(30), holdOf(50)];
  const broken = { id: first.id, cost: micros(10), generation: null } as unknown as Settlement;
  const answers = await stub.together([
    { call: "hold", args: [first] },
    { call: "settle", args: [broken] },
    { call: "hold", args: [second] },
    { call: "settle", args: [{ id: second.id, cost: micros(40), generation: GENERATION }] },
  ]);
  expect(answers.map(({ kind }) => kind)).toEqual(["answered", "failed", "answered", "answered"]);
  expect(valueOf(await stub.balance())).toEqual({ creditsMicro: 60, heldMicro: 30, openHolds: 1 });
  expect(valueOf(await settle(stub, first.id, 10))).toMatchObject({ kind: "settled", charged: 10 });
  expect(await differences(stub)).toEqual([]);
});

it("a grouped call to a wallet skips a part with an unknown key, so that the other parts don't wait", async () => {
  const { booked, hash, stub } = await gatedKey({ balance: 100 });
  const request = holdOf(20, { keyId: booked.keyId });
  const parts: GroupedWalletCall[] = [
    { call: "admitAndHold", args: [hash, request] },
    { call: "hold", args: [holdOf(10)] },
  ];
  const [unmet, other] = await stub.together(parts);
  expect([unmet?.kind, other?.kind]).toEqual(["apart", "answered"]);
  expect(valueOf(await stub.balance()).heldMicro).toBe(10);
  valueOf(valueOf(await stub.admitAndHold(hash, request)).held);
  const [repeated] = await stub.together(parts);
  expect(repeated).toMatchObject({ answer: { value: { held: { value: { granted: 20 } } } } });
  expect(valueOf(await stub.balance()).heldMicro).toBe(30);
});

it("200 concurrent holds and outcomes need fewer than 150 wallet calls, and each gets the right result", async () => {
  const { stub, orgId } = await newWallet(1_000);
  vi.spyOn(Date, "now").mockReturnValue(Date.now()); // no part waits too long on a slow machine
  const groups = new WalletCallGroups();
  const calls = vi.fn<(parts: number) => void>();
  const counted = {
    hold: (...args: Parameters<typeof stub.hold>) => (calls(1), stub.hold(...args)),
    admitAndHold: (...args: Parameters<typeof stub.admitAndHold>) => (
      calls(1),
      stub.admitAndHold(...args)
    ),
    settle: (...args: Parameters<typeof stub.settle>) => (calls(1), stub.settle(...args)),
    void: (...args: Parameters<typeof stub.void>) => (calls(1), stub.void(...args)),
    together: (parts: readonly GroupedWalletCall[]) => (calls(parts.length), stub.together(parts)),
  };
  const wallet = groups.walletOf(orgId, () => counted, afterTimeout);
  const answers = await Promise.all(
    Array.from({ length: 100 }, async (_, i) => {
      const request = holdOf(10);
      valueOf(await wallet.hold(request));
      if (i % 10 === 0) return valueOf(await wallet.void(request.id));
      const settlement = { id: request.id, cost: micros(i % 9), generation: GENERATION };
      return valueOf(await wallet.settle(settlement));
    }),
  );
  const voided = answers.filter(({ kind }) => kind === "voided");
  const charged = answers.map((answer) => (answer.kind === "settled" ? Number(answer.charged) : 0));
  expect(voided).toHaveLength(10);
  const sum = charged.reduce((total, one) => total + one, 0);
  expect(valueOf(await stub.balance())).toEqual({
    creditsMicro: 1_000 - sum,
    heldMicro: 0,
    openHolds: 0,
  });
  const sizes = calls.mock.calls.map(([parts]) => parts);
  expect(sizes.reduce((total, one) => total + one, 0)).toBe(200);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(GROUPED_PARTS_MAX);
  expect(sizes.length).toBeLessThan(150);
  expect(await differences(stub)).toEqual([]);
});

/**
 * When the object is killed: before the part at this position, or after all of them, with or
 * without storing them.
 */
type Death = number | "decided" | "stored";

/** Sends a group to an object that is killed during it. */
async function dying(stub: Stub, parts: readonly GroupedWalletCall[], death: Death): Promise<void> {
  const killed = runInDurableObject(stub, async (wallet: Wallet, state) => {
    const deadly = parts.map((part, place): GroupedWalletCall => {
      if (place !== death) return part;
      return {
        get call(): GroupedWalletCall["call"] {
          state.abort("killed");
          return part.call;
        },
        args: part.args,
      } as GroupedWalletCall;
    });
    const answers = wallet.together(deadly);
    if (death === "stored") await state.storage.sync();
    if (typeof death === "string") state.abort("killed");
    await answers;
    await state.storage.sync();
  });
  await expect(killed).rejects.toThrow("killed");
}

it("a grouped call to a wallet neither loses nor repeats a part if the wallet restarts between two parts", async () => {
  const sizes = fc.integer({ min: 1, max: 12 });
  const deaths = fc.oneof(fc.nat(11), fc.constantFrom<Death>("decided", "stored"));
  await fc.assert(
    fc.asyncProperty(sizes, deaths, deaths, async (size, first, second) => {
      const { orgId, stub } = await newWallet(1000);
      const requests = Array.from({ length: size }, () => holdOf(10));
      const holds = requests.map((request): GroupedWalletCall => ({
        call: "hold",
        args: [request],
      }));
      const settles = requests.map(({ id }, place): GroupedWalletCall => {
        if (place % 4 === 3) return { call: "void", args: [id] };
        return { call: "settle", args: [{ id, cost: micros(3), generation: GENERATION }] };
      });
      const within = (death: Death): Death => (typeof death === "number" ? death % size : death);
      await dying(stub, holds, within(first));
      for (const answer of await stubOf(orgId).together(holds)) {
        expect(answer).toMatchObject({ answer: { value: { granted: 10 } } });
      }
      await dying(stubOf(orgId), settles, within(second));
      for (const answer of await stubOf(orgId).together(settles)) {
        expect(answer.kind).toBe("answered");
      }
      const charged = settles.filter(({ call }) => call === "settle").length * 3;
      expect(valueOf(await stubOf(orgId).balance())).toEqual({
        creditsMicro: 1000 - charged,
        heldMicro: 0,
        openHolds: 0,
      });
      expect(await differences(stubOf(orgId))).toEqual([]);
    }),
    { numRuns: effortFor(15, 300) },
  );
});
