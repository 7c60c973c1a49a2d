import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { mintId } from "../../src/lib/id.ts";
import { micros } from "../../src/lib/money.ts";
import type { Generation } from "../../src/lib/generation.ts";
import { now } from "../../src/lib/clock.ts";
import type { Wallet } from "../../src/wallet/wallet.do.ts";
import type { HoldRequest, WalletCalls } from "../../src/wallet/wallet-contract.ts";

export type Stub = DurableObjectStub<Wallet>;

/** Shifts the clock of the test and of every object; `null` restores it. */
export function setClock(ms: number | null): void {
  const bindings = env as { CLOCK_OFFSET_MS?: string };
  if (ms === null) delete bindings.CLOCK_OFFSET_MS;
  else bindings.CLOCK_OFFSET_MS = String(ms - Date.now());
}

/** A new organisation's wallet with a balance. */
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

/** A hold of exactly `amount` unless told otherwise. */
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

export const GENERATION: Generation = {
  model: "sandbox/echo",
  provider: "sandbox",
  region: "eu",
  keyId: "key_test",
  externalId: null,
  streamed: false,
  usage: { input: 3, cacheRead: 1, cacheWrite: 0, output: 5, reasoning: 2 },
  price: { input: 1, cached: 1, cacheWrite: 1, output: 2 },
  firstByteMs: 1,
  durationMs: 2,
  estimated: false,
  finishReason: "stop",
};

export function settle(stub: Pick<WalletCalls, "settle">, id: string, cost: number) {
  return stub.settle({ id, cost: micros(cost), generation: GENERATION });
}

/** An answer's value; a refusal fails the test with what it was. */
export function valueOf<T>(result: { ok: true; value: T } | { ok: false; failure: unknown }): T {
  if (!result.ok) throw new Error(`refused: ${JSON.stringify(result.failure)}`);
  return result.value;
}

/** A refusal's failure, or null for an answer. */
export function failureOf(
  result: { ok: true; value: unknown } | { ok: false; failure: unknown },
): unknown {
  return result.ok ? null : result.failure;
}

/** Holds and settles one request at once. */
export async function pay(stub: Stub, cost: number, externalId: string | null = null) {
  const request = holdOf(cost, { externalId });
  valueOf(await stub.hold(request));
  return valueOf(await settle(stub, request.id, cost));
}

/** Every figure computed again from the rows; the differences. */
export async function differences(stub: Stub) {
  return valueOf(await stub.reconcile()).differences;
}

/** All rows of a query against the wallet's own tables. */
export function rowsOf(stub: Stub, query: string): Promise<Record<string, unknown>[]> {
  return runInDurableObject(stub, (_wallet: Wallet, state) =>
    state.storage.sql.exec(query).toArray(),
  );
}

/** What is due: expiry, publishing, retention. */
export function runAlarm(stub: Stub): Promise<void> {
  return runInDurableObject(stub, (wallet: Wallet) => wallet.alarm());
}

/** Everything that a wallet has stored is gone, and it begins anew. */
export async function lose(stub: Stub): Promise<void> {
  await runInDurableObject(stub, (_wallet: Wallet, state) => state.storage.deleteAll());
  await evictDurableObject(stub);
}

/** Rows written by every statement while `work` runs. */
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

/** Takes a wallet's tables back to what an older program left, for one that then moves them on. */
export function backToVersion(sql: SqlStorage, version: 1 | 2 | 5): void {
  sql.exec(
    `UPDATE requests SET key_id = (SELECT text FROM names WHERE number = key),
      end_user_id = (SELECT end_users.id FROM end_users WHERE number = end_user),
      model = (SELECT text ->> '$.model' FROM names WHERE number = sold);
    UPDATE requests SET detail = json_set((SELECT text FROM names WHERE number = sold),
      '$.keyId', key_id, '$.externalId', external_id, '$.streamed', json(iif(detail ->> 0, 'true', 'false')),
      '$.usage', json_object('input', prompt_tokens - (detail ->> 1) - (detail ->> 2), 'cacheRead', detail ->> 1,
        'cacheWrite', detail ->> 2, 'output', completion_tokens, 'reasoning', detail ->> 3),
      '$.firstByteMs', detail ->> 4, '$.durationMs', detail ->> 5,
      '$.estimated', json(iif(detail ->> 6, 'true', 'false')), '$.finishReason', detail ->> 7)
    WHERE state = 'settled';
    ALTER TABLE requests DROP COLUMN key; ALTER TABLE requests DROP COLUMN end_user;
    DROP TABLE events; DROP TABLE event_log;
    DROP TABLE sessions; ALTER TABLE requests DROP COLUMN session;
    ALTER TABLE keys DROP COLUMN secrets;
    ALTER TABLE keys DROP COLUMN terms; ALTER TABLE requests DROP COLUMN tokens; DROP TABLE key_budgets;
    ALTER TABLE requests DROP COLUMN sold; ALTER TABLE requests DROP COLUMN named; DROP TABLE names;
    DROP INDEX end_users_by_departure; DROP INDEX end_users_by_account;
    ALTER TABLE totals DROP COLUMN cached;
    ALTER TABLE end_users DROP COLUMN departed; ALTER TABLE end_users DROP COLUMN account;
    UPDATE schema_version SET version = 5`,
  );
  if (version === 5) return;
  sql.exec(
    `DROP TABLE keys; DROP TABLE admissions; DROP INDEX alerts_by_time; DROP TABLE idempotency_keys;
    UPDATE schema_version SET version = 2`,
  );
  if (version === 2) return;
  sql.exec(
    `ALTER TABLE requests DROP COLUMN period_day; ALTER TABLE checkpoints DROP COLUMN newest;
    UPDATE schema_version SET version = 1`,
  );
}
