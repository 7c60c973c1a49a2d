import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { FaultyDatabase } from "./faulty-database.ts";
import {
  countWrites,
  differences,
  holdOf,
  newWallet,
  pay,
  setClock,
  settle,
  stubOf,
  valueOf,
} from "./wallet-fixture.ts";

afterEach(() => setClock(null));

describe("a wallet's alarm", () => {
  it("starts at the first change, and again if the wallet restarts without an alarm", async () => {
    const { stub, orgId } = await newWallet(100);
    const armed = () =>
      runInDurableObject(stub, (_wallet: Wallet, state) => state.storage.getAlarm());
    expect(await armed()).not.toBeNull();
    await runInDurableObject(stub, (_wallet: Wallet, state) => state.storage.deleteAlarm());
    await evictDurableObject(stub);
    valueOf(await stubOf(orgId).balance());
    expect(await armed()).not.toBeNull();
  });

  it("publishes all earlier changes, and leaves changes made during the publish to the next publish", async () => {
    const { stub, orgId } = await newWallet(100);
    await pay(stub, 10, "a");
    await runInDurableObject(stub, async (wallet: Wallet) => {
      const publishing = wallet.poke();
      const request = holdOf(5, { externalId: "a" });
      const hold = await wallet.hold(request);
      expect(hold.ok).toBe(true);
      valueOf(await settle(wallet, request.id, 5));
      await publishing;
    });
    const database = new FaultyDatabase(orgId);
    expect((await database.rows())["balances"]).toMatchObject([{ credits_micro: 90 }]);
    await evictDurableObject(stub);
    valueOf(await stub.poke());
    expect((await database.rows())["balances"]).toMatchObject([{ credits_micro: 85 }]);
    expect((await database.rows())["end_users"]).toMatchObject([{ daily_spend_micro: 15 }]);
  });

  it("publishes with few written rows, however many requests there were", async () => {
    const { stub } = await newWallet(1000);
    await pay(stub, 1, "u");
    valueOf(await stub.poke());
    const rows = await runInDurableObject(stub, (wallet: Wallet, state) =>
      countWrites(state.storage, async () => {
        for (let i = 0; i < 20; i++) {
          const request = holdOf(1, { externalId: "u" });
          valueOf(await wallet.hold(request));
          valueOf(await settle(wallet, request.id, 1));
        }
        valueOf(await wallet.poke());
      }),
    );
    expect(rows - 40).toBeLessThanOrEqual(10);
  });

  it("starts only once for many changes, and after a publish only if a hold is open", async () => {
    const { stub } = await newWallet(1000);
    valueOf(await stub.poke());
    let clock = Date.now() + 61_000;
    setClock(clock);
    await runInDurableObject(stub, async (wallet: Wallet, state) => {
      await wallet.alarm(); // clears earlier alarms, with nothing to publish
      for (let cycle = 0; cycle < 3; cycle++) {
        const whenChanged = await alarmsSet(state.storage, async () => {
          for (let i = 0; i < 5; i++) valueOf(await wallet.putEndUser(`u${i}`, {}));
        });
        expect(whenChanged).toHaveLength(1);
        clock += 61_000;
        setClock(clock);
        const whenPublished = await alarmsSet(state.storage, () => wallet.alarm());
        expect(
          state.storage.sql.exec("SELECT revision - acknowledged AS n FROM wallet").one(),
        ).toEqual({ n: 0 });
        expect(whenPublished).toEqual([]); // nothing is due: no hold and no row to retain
      }
      valueOf(await wallet.hold(holdOf(1)));
      clock += 61_000;
      setClock(clock);
      const withHold = await alarmsSet(state.storage, () => wallet.alarm());
      expect(withHold).toHaveLength(1);
      expect((withHold[0] ?? 0) - Date.now()).toBeGreaterThan(60_000); // the hold's deadline
    });
  });

  it("delays later changes until the current publish has ended", async () => {
    const { stub } = await newWallet(1000);
    setClock(Date.now() + 61_000);
    await runInDurableObject(stub, async (wallet: Wallet, state) => {
      const set = await alarmsSet(state.storage, async () => {
        const ran = wallet.alarm();
        valueOf(await wallet.putEndUser("u", {}));
        await ran;
      });
      expect(set).toHaveLength(1);
      expect((set[0] ?? 0) - Date.now()).toBeGreaterThan(1000);
    });
  });

  it("publishes holds created after the clock stepped back, and releases them on time", async () => {
    const start = Date.UTC(2031, 6, 2, 12);
    setClock(start);
    const { stub } = await newWallet(100);
    await pay(stub, 1);
    valueOf(await stub.poke());
    setClock(start - 600_000);
    const [open, paid] = [holdOf(40, { externalId: "u" }), holdOf(9)];
    valueOf(await stub.hold(open));
    valueOf(await stub.hold(paid));
    valueOf(await settle(stub, paid.id, 9));
    await evictDurableObject(stub);
    expect(valueOf(await stub.balance())).toEqual({
      creditsMicro: 90,
      heldMicro: 40,
      openHolds: 1,
    });
    setClock(start + 1_201_000);
    await runInDurableObject(stub, (wallet: Wallet) => wallet.alarm());
    expect(valueOf(await stub.balance()).openHolds).toBe(0);
    expect(await differences(stub)).toEqual([]);
  });

  it("loses no change if the wallet stops while D1 runs the publish", async () => {
    const { stub, orgId } = await newWallet(100);
    const request = holdOf(30, { externalId: "u" });
    await pay(stub, 10, "u");
    const database = new FaultyDatabase(orgId);
    await database.install(stub);
    database.fault = "hang";
    const killed = runInDurableObject(stub, async (wallet: Wallet, state) => {
      const publishing = wallet.poke();
      valueOf(await wallet.hold(request));
      valueOf(await settle(wallet, request.id, 25));
      await state.storage.sync();
      state.abort("killed");
      await publishing;
    });
    await expect(killed).rejects.toThrow("killed");
    const next = stubOf(orgId);
    expect(valueOf(await next.balance()).creditsMicro).toBe(65);
    valueOf(await next.poke());
    expect((await database.rows())["balances"]).toMatchObject([{ credits_micro: 65 }]);
    expect((await database.rows())["end_users"]).toMatchObject([{ daily_spend_micro: 35 }]);
    expect(await differences(next)).toEqual([]);
  });
});

/** Returns the times of alarms set while `work` runs, Unix ms. */
async function alarmsSet(
  storage: DurableObjectStorage,
  work: () => Promise<void>,
): Promise<number[]> {
  const times: number[] = [];
  const set = storage.setAlarm.bind(storage);
  const counting: typeof storage.setAlarm = (time, options) => {
    times.push(Number(time));
    return set(time, options);
  };
  Object.defineProperty(storage, "setAlarm", { value: counting, configurable: true });
  try {
    await work();
  } finally {
    delete (storage as { setAlarm?: unknown }).setAlarm;
  }
  return times;
}
