import { runInDurableObject } from "cloudflare:test";
import { expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
  countWrites,
  failureOf,
  holdOf,
  newId,
  newWallet,
  settle,
  valueOf,
} from "./wallet-fixture.ts";

/** Fails every statement while `work` runs. */
async function withBrokenStorage<T>(
  storage: DurableObjectStorage,
  work: () => Promise<T>,
): Promise<T> {
  Object.defineProperty(storage.sql, "exec", { value: fail, configurable: true });
  try {
    return await work();
  } finally {
    delete (storage.sql as { exec?: unknown }).exec;
  }
}

it("a wallet returns 503 after a failed transaction until it can reload the stored state", async () => {
  const { stub } = await newWallet(1000);
  const request = holdOf(600);
  await runInDurableObject(stub, async (wallet: Wallet, state) => {
    valueOf(await wallet.hold(request));
    // After an exception, memory that differs from the tables must not be used.
    state.storage.sql.exec("UPDATE requests SET expires_at = 1 WHERE id = ?", request.id);
    await withBrokenStorage(state.storage, async () => {
      await expect(settle(wallet, request.id, 600)).rejects.toThrow("disk I/O error");
      const answers = [
        await wallet.balance(),
        await wallet.hold(holdOf(1)),
        await wallet.void(newId()),
        await wallet.poke(),
        await wallet.reconcile(),
      ];
      for (const answer of answers) {
        expect(failureOf(answer)).toEqual({ kind: "storage_unavailable" });
      }
      await expect(wallet.discard()).rejects.toThrow("disk I/O error");
      await expect(wallet.create("other")).rejects.toThrow("disk I/O error");
      // sets its own next alarm, because the platform drops an alarm after several exceptions
      await wallet.alarm();
      expect(await state.storage.getAlarm()).toBeGreaterThan(Date.now());
    });
    expect(valueOf(await wallet.balance())).toEqual({
      creditsMicro: 1000,
      heldMicro: 0,
      openHolds: 0,
    });
    expect(valueOf(await settle(wallet, request.id, 600))).toMatchObject({ charged: 600 });
    expect(valueOf(await wallet.reconcile()).differences).toEqual([]);
  });
});

it.each<[name: string, read: (wallet: Wallet) => Promise<{ ok: boolean }>]>([
  ["balance", (wallet) => wallet.balance()],
  ["settings", (wallet) => wallet.readSettings()],
  ["end user", (wallet) => wallet.readEndUser("u")],
  ["list of end users", (wallet) => wallet.listEndUsers(10, 0)],
  ["usage", (wallet) => wallet.usage("2026-01-01", "2026-12-31", "day")],
  ["ledger", (wallet) => wallet.ledger(0, 10)],
  ["alerts", (wallet) => wallet.alerts(10, 0)],
  ["request", (wallet) => wallet.request(newId())],
])("a wallet reads the %s from storage each time and writes nothing", async (_name, read) => {
  const { stub } = await newWallet(100);
  valueOf(await stub.poke());
  await runInDurableObject(stub, async (wallet: Wallet, state) => {
    const written = await countWrites(state.storage, async () => {
      await read(wallet);
    });
    expect(written).toBe(0);
    await withBrokenStorage(state.storage, () =>
      expect(read(wallet)).rejects.toThrow("disk I/O error"),
    );
  });
});

function fail(): never {
  throw new Error("disk I/O error");
}
