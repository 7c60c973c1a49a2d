import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { abort } from "./fault-fixture.ts";

/**
 * A fault during one step. It starts at the call number `place` and stays. `taking` affects the
 * wallet's own database calls that store events.
 */
export type Trouble = {
  readonly kind: "none" | "book" | "wallet" | "taking" | "killed" | "evicted";
  readonly isAfter: boolean;
  readonly place: number;
  readonly takers: number;
};

type Work<T> = () => Promise<T>;

/** Fails every call from number `place` on, before or after it is done. */
class Line {
  #calls = 0;
  readonly #trouble: Trouble;
  readonly #kind: Trouble["kind"];

  constructor(trouble: Trouble, kind: Trouble["kind"]) {
    this.#trouble = trouble;
    this.#kind = kind;
  }

  async pass<T>(work: Work<T>): Promise<T> {
    const { kind, place, isAfter } = this.#trouble;
    const fails = kind === this.#kind && this.#calls++ >= place;
    if (fails && !isAfter) throw new Error("nobody is there");
    const answer = await work();
    if (fails) throw new Error("the answer was lost");
    return answer;
  }
}

/** Returns the tests' bindings with the fault. */
export function bindingsWithTrouble(trouble: Trouble): Env {
  return { ...env, DB: bookBehind(new Line(trouble, "book")), WALLET: walletsBehind(trouble) };
}

const REAL = Symbol("the statement itself");
type Statement = D1PreparedStatement & { readonly [REAL]?: D1PreparedStatement };

function bookBehind(line: Line): D1Database {
  const wrap = (statement: D1PreparedStatement): unknown => ({
    [REAL]: statement,
    bind: (...values: unknown[]) => wrap(statement.bind(...values)),
    all: () => line.pass(() => statement.all()),
    run: () => line.pass(() => statement.run()),
    first: () => line.pass(() => statement.first()),
  });
  const batch = (all: Statement[]) =>
    line.pass(() => env.DB.batch(all.map((one) => one[REAL] ?? one)));
  return {
    prepare: (sql: string) => wrap(env.DB.prepare(sql)),
    batch,
  } as unknown as D1Database;
}

type Methods = { readonly [name: string]: (...args: readonly unknown[]) => Promise<unknown> };

function walletsBehind(trouble: Trouble): Env["WALLET"] {
  const line = new Line(trouble, "wallet");
  const getByName = (name: string): unknown =>
    new Proxy(env.WALLET.getByName(name), {
      get:
        (whole, call) =>
        (...args: unknown[]) =>
          line.pass(async () => (whole as unknown as Methods)[String(call)]?.(...args)),
    });
  return { getByName } as unknown as Env["WALLET"];
}

/** Runs a step while the wallet is killed, evicted and called to store events. */
export async function runDuringTrouble(
  orgId: string,
  trouble: Trouble,
  step: Work<unknown>,
): Promise<void> {
  const { kind, takers } = trouble;
  if (kind === "taking") await breakTaking(orgId, trouble);
  const done = step().catch(() => undefined);
  const takes = takeAtOnce(orgId, takers);
  if (kind === "killed") await abort(walletOf(orgId)).catch(() => undefined);
  await takes; // also those that a killed object didn't answer
  await done;
  if (kind === "taking") await takeAtOnce(orgId, takers + 1);
  if (kind === "taking" || kind === "evicted") {
    await evictDurableObject(walletOf(orgId)).catch(() => undefined);
  }
}

const walletOf = (orgId: string) => env.WALLET.getByName(orgId);

function takeAtOnce(orgId: string, takers: number): Promise<unknown> {
  const wallet = walletOf(orgId);
  return Promise.allSettled(Array.from({ length: takers }, () => wallet.takeEvents()));
}

/** Breaks the wallet's database calls until the object is evicted. */
function breakTaking(orgId: string, trouble: Trouble): Promise<void> {
  return runInDurableObject(walletOf(orgId), (wallet: Wallet) => {
    const { env: own } = wallet as unknown as { env: Env };
    const value = Object.create(own, { DB: { value: bookBehind(new Line(trouble, "taking")) } });
    Object.defineProperty(wallet, "env", { value, configurable: true, writable: true });
  });
}
