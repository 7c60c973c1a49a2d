import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { GENERATION } from "../fixtures/generation-record.ts";
import { now } from "../../src/shared/clock.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import type { HoldRequest, WalletMethods } from "../../src/shared/contracts/wallet.ts";

export type Stub = DurableObjectStub<Wallet>;

/** Shifts the clock of the test and of every object. Null restores it. */
export function setClock(ms: number | null): void {
  const bindings = env as { CLOCK_OFFSET_MS?: string };
  if (ms === null) delete bindings.CLOCK_OFFSET_MS;
  else bindings.CLOCK_OFFSET_MS = String(ms - Date.now());
}

export async function newWallet(balance = 0): Promise<{ stub: Stub; orgId: string }> {
  const orgId = crypto.randomUUID();
  const stub = stubOf(orgId);
  await stub.create(orgId);
  if (balance > 0) await credit(stub, balance);
  return { stub, orgId };
}

export function stubOf(orgId: string): Stub {
  return env.WALLET.getByName(orgId);
}

export function credit(stub: Stub, amount: number, reference: string = crypto.randomUUID()) {
  return stub.credit({ amountMicro: micros(amount), reference });
}

export function newId(): string {
  return mintId("req_", now(env));
}

/** Returns a hold of exactly `amount` by default. */
export function holdOf(amount: number, more: Partial<HoldRequest> = {}): HoldRequest {
  return {
    id: newId(),
    least: micros(amount),
    most: micros(amount),
    sure: more.least ?? micros(amount),
    hasCap: true,
    tokens: { prompt: 1, least: 2, most: 2 },
    model: { sent: "smart", id: "acme/one" },
    externalId: null,
    keyId: "key_test",
    peer: false,
    idempotency: null,
    ...more,
  };
}

export { GENERATION };

export function settle(stub: Pick<WalletMethods, "settle">, id: string, cost: number) {
  return stub.settle({ id, cost: micros(cost), generation: GENERATION });
}

/** Returns a result's value. Fails the test for a rejection. */
export function valueOf<T>(result: { ok: true; value: T } | { ok: false; failure: unknown }): T {
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.failure)}`);
  return result.value;
}

/** Returns a result's failure, or null for a success. */
export function failureOf(
  result: { ok: true; value: unknown } | { ok: false; failure: unknown },
): unknown {
  return result.ok ? null : result.failure;
}

/** Holds and settles one request. */
export async function pay(stub: Stub, cost: number, externalId: string | null = null) {
  const request = holdOf(cost, { externalId });
  valueOf(await stub.hold(request));
  return valueOf(await settle(stub, request.id, cost));
}

/** Recomputes all figures from the rows. Returns the differences. */
export async function differences(stub: Stub) {
  return valueOf(await stub.reconcile()).differences;
}

/** Returns all rows of a query on the wallet's own tables. */
export function rowsOf(stub: Stub, query: string): Promise<Record<string, unknown>[]> {
  return runInDurableObject(stub, (_wallet: Wallet, state) =>
    state.storage.sql.exec(query).toArray(),
  );
}

/** Runs overdue work: expiry, publishing and retention. */
export function runAlarm(stub: Stub): Promise<void> {
  return runInDurableObject(stub, (wallet: Wallet) => wallet.alarm());
}

/** Deletes everything that a wallet has stored, and restarts it. */
export async function deleteWalletStorage(stub: Stub): Promise<void> {
  await runInDurableObject(stub, (_wallet: Wallet, state) => state.storage.deleteAll());
  await evictDurableObject(stub);
}

/** Returns the rows written by all statements while `work` runs. */
export async function countWrites(
  storage: DurableObjectStorage,
  work: () => Promise<void>,
): Promise<number> {
  const { sql } = storage;
  let written = 0;
  const exec = sql.exec.bind(sql);
  const counting: typeof sql.exec = (query, ...bindings) => {
    const cursor = exec(query, ...bindings);
    written += cursor.rowsWritten;
    return cursor as never;
  };
  Object.defineProperty(sql, "exec", { value: counting, configurable: true });
  try {
    await work();
  } finally {
    delete (sql as { exec?: unknown }).exec;
  }
  return written;
}
