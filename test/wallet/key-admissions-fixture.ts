import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { expect } from "vitest";
import { draftKey, draftedHashes, makeKey } from "../keys/key-fixture.ts";
import type { KeyRegister } from "../../src/index.ts";
import { insertKey } from "../../src/accounts/keys/keys.store.ts";
import type { StoredKey } from "../../src/accounts/keys/stored-key.ts";
import { now } from "../../src/shared/clock.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { Result } from "../../src/shared/failure.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { credit, rowsOf, stubOf, valueOf } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";
import type { KeyServices } from "../../src/accounts/keys/revocation.ts";
import type { KeyRegisterMethods } from "../../src/shared/contracts/register.ts";
import { objectsOf } from "../../src/shared/contracts/objects.ts";

export { eventually, MINUTE_MS, worstMinute } from "../keys/register-fixture.ts";

/** An active key in the database, and its organization's wallet. */
export type GatedKey = { readonly booked: StoredKey; readonly hash: string; readonly stub: Stub };

/** Creates a key of a new organization whose wallet hasn't cached it. */
export async function gatedKey(options: { rpmLimit?: number; balance?: number } = {}) {
  const { booked } = await makeKey(options);
  const stub = stubOf(booked.orgId);
  if (options.balance !== undefined) await credit(stub, options.balance);
  return { booked, hash: booked.keyHash, stub } satisfies GatedKey;
}

/** Creates another key of the same organization. */
export async function siblingKey({ booked, stub }: GatedKey, rpmLimit = 60): Promise<GatedKey> {
  const draft = await draftKey({ id: booked.memberId, orgId: booked.orgId }, { rpmLimit });
  await insertKey(env.DB, draft.booked, null);
  return { booked: draft.booked, hash: draft.booked.keyHash, stub };
}

/**
 * Returns how many of `count` concurrent requests are admitted. The others must be over the limit.
 */
export async function burst({ hash, stub }: GatedKey, count: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: count }, () => stub.admit(hash)));
  const kinds = new Set(answers.map(kindOf));
  kinds.delete("admitted");
  kinds.delete("rate_limited");
  expect([...kinds]).toEqual([]);
  return answers.filter((answer) => answer.ok).length;
}

/** Returns `admitted` or the kind of failure. */
export function kindOf(answer: Result<unknown>): string {
  return answer.ok ? "admitted" : answer.failure.kind;
}

/** Returns the result of one more request with the key. */
export async function admission({ hash, stub }: GatedKey): Promise<string> {
  return kindOf(await stub.admit(hash));
}

/** Returns the key's stored admissions, oldest first. */
export async function storedTimes({ hash, stub }: GatedKey): Promise<number[]> {
  const rows = await rowsOf(
    stub,
    `SELECT at FROM admissions WHERE key = (SELECT number FROM keys WHERE hash = '${hash}') ORDER BY at`,
  );
  return rows.map(({ at }) => Number(at));
}

/** Returns the wallet's row of a key, or null. */
export async function storedKey({ hash, stub }: GatedKey) {
  const [row] = await rowsOf(stub, `SELECT * FROM keys WHERE hash = '${hash}'`);
  return row ?? null;
}

/** Returns the used slots of the key's minute, and the wallet's holds. */
export async function statusOf(key: GatedKey) {
  const { openHolds, heldMicro } = valueOf(await key.stub.balance());
  return { admitted: (await storedTimes(key)).length, openHolds, held: heldMicro };
}

export async function evict({ stub }: GatedKey): Promise<void> {
  await evictDurableObject(stub);
}

/** Runs something inside the wallet's object. */
export function runInWallet<T>(
  { stub }: GatedKey,
  work: (wallet: Wallet, sql: SqlStorage, state: DurableObjectState) => T | Promise<T>,
): Promise<T> {
  return runInDurableObject(stub, (wallet: Wallet, state) =>
    work(wallet, state.storage.sql, state),
  );
}

/** Changes the limit only in the database, as an operator can with D1's console. */
export function setDatabaseLimit({ booked }: GatedKey, limit: number): Promise<unknown> {
  return realDatabase
    .prepare("UPDATE keys SET rpm_limit = ? WHERE id = ?")
    .bind(limit, booked.keyId)
    .run();
}

/** Changes the limit as an operator does: in the database, the key object and the wallet. */
export async function setLimit(key: GatedKey, limit: number): Promise<void> {
  await setDatabaseLimit(key, limit);
  await registerOf(key).setLimit(limit);
  await key.stub.setKeyLimit(key.hash, limit);
}

const realDatabase = env.DB;
const realRegisters = env.KEY_REGISTER;

/** Returns the real key object. */
export function registerOf({ hash }: GatedKey): DurableObjectStub<KeyRegister> {
  return realRegisters.getByName(hash);
}

type Call = (...args: readonly unknown[]) => Promise<unknown>;

/**
 * Wraps key objects for wallets. Counts calls for keys drafted from now on, and can delay or fail
 * responses. Earlier tests' wallets reach the real objects in alarms. Restore the real ones
 * afterwards.
 */
export class WatchedRegisters {
  readonly calls: string[] = [];
  /** Calls that key objects have answered, even if the wallet hasn't received the response. */
  readonly answeredCalls: string[] = [];
  /** Thrown by every call if set. */
  fault: object | null = null;
  #open: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;

  constructor() {
    draftedHashes.clear();
    env.KEY_REGISTER = new Proxy(realRegisters, {
      get: (target, property) => {
        if (property === "getByName") {
          return (hash: string) =>
            draftedHashes.has(hash) ? this.#stub(hash) : target.getByName(hash);
        }
        const value: unknown = Reflect.get(target, property);
        return typeof value === "function" && property !== "constructor"
          ? (value.bind(target) as unknown)
          : value;
      },
    });
  }

  /** Delays responses until `open` is called. */
  hold(): void {
    this.#open = new Promise((resolve) => {
      this.#release = resolve;
    });
  }

  open(): void {
    this.#release();
    this.#open = Promise.resolve();
  }

  /** Returns the number of calls of a method. */
  count(method: string): number {
    return this.calls.filter((call) => call === method).length;
  }

  restore(): void {
    this.open();
    env.KEY_REGISTER = realRegisters;
  }

  #stub(hash: string): Record<string, Call> {
    const stub = realRegisters.getByName(hash) as unknown as Record<string, Call>;
    const methods = ["whose", "identify", "refresh"];
    return Object.fromEntries(methods.map((name) => [name, this.#watched(stub, name)]));
  }

  #watched(stub: Record<string, Call>, method: string): Call {
    return async (...args) => {
      this.calls.push(method);
      if (this.fault !== null) throw Object.assign(new Error("gone"), this.fault);
      const gate = this.#open;
      const answer = await stub[method]?.(...args);
      this.answeredCalls.push(method);
      await gate;
      return answer;
    };
  }
}

/**
 * Services that revoke a key everywhere with the real objects. `revoke` is the key object's part.
 */
export function revocationServices(
  revoke: (hash: string, at: number) => Promise<number>,
): KeyServices {
  const register = (hash: string): Partial<KeyRegisterMethods> => ({
    revoke: (at) => revoke(hash, at),
    tellBook: () => Promise.resolve(),
  });
  return {
    ...objectsOf(env),
    db: env.DB,
    region: "eu",
    register: (hash) => register(hash) as KeyRegisterMethods,
    peers: [],
    keySecrets: [],
    now: now(env),
    actor: SYSTEM_ACTOR,
  };
}
