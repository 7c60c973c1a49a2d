import { runInDurableObject } from "cloudflare:test";
import { expect } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import type { Fault } from "../fixtures/fault-matrix.ts";
import { FaultyDatabase } from "./faulty-database.ts";
import { differences, newWallet, pay } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

/** A row of the fault matrix. Each cell returns the differences in the end. */
export type FaultMatrixRow = Readonly<Record<Fault, () => Promise<readonly unknown[]>>>;

/**
 * Creates a wallet of 1000 micro-credits, 10 of them spent, with a database that tests can break.
 */
export async function newFaultyWallet() {
  const { stub, orgId } = await newWallet(1000);
  await pay(stub, 10, "u");
  const database = new FaultyDatabase(orgId);
  await database.install(stub);
  return { stub, orgId, database };
}

/** Checks the balance in the database. Returns the wallet's differences. */
export async function differencesWithDatabase(
  { database, stub }: { readonly database: FaultyDatabase; readonly stub: Stub },
  balance: number,
): Promise<readonly unknown[]> {
  const { balances, end_users: users } = await database.rows();
  expect(balances).toMatchObject([{ credits_micro: balance }]);
  expect(users).toMatchObject([{ external_id: "u", daily_spend_micro: 1000 - balance }]);
  return differences(stub);
}

/** Aborts the object, which keeps its stored data. */
export async function abort(stub: Stub): Promise<void> {
  const died = runInDurableObject(stub, async (_wallet: Wallet, state) => {
    await state.storage.sync();
    state.abort("killed");
  });
  await expect(died).rejects.toThrow("killed");
}
