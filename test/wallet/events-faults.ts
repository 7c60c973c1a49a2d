import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import { abort } from "./fault-world.ts";

/** What goes wrong during one step; `place`: at which call, and at every one after it. */
export type Trouble = {
  readonly kind: "none" | "book" | "wallet" | "killed" | "evicted";
  readonly isAfter: boolean;
  readonly place: number;
  readonly takers: number;
};

type Work<T> = () => Promise<T>;

/** Fails every call from the one at `place` on, before it is done or after. */
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

/** The tests' bindings as a request of a troubled step has them. */
export function troubled(trouble: Trouble): Env {
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

type Methods = { readonly [name: string]: (...given: readonly unknown[]) => Promise<unknown> };

function walletsBehind(trouble: Trouble): Env["WALLET"] {
  const line = new Line(trouble, "wallet");
  const getByName = (name: string): unknown =>
    new Proxy(env.WALLET.getByName(name), {
      get:
        (whole, call) =>
        (...given: unknown[]) =>
          line.pass(async () => (whole as unknown as Methods)[String(call)]?.(...given)),
    });
  return { getByName } as unknown as Env["WALLET"];
}

/** What befalls the wallet while a step is under way: it is killed, put away, and asked to take events over. */
export async function befall(orgId: string, { kind, takers }: Trouble): Promise<void> {
  const stub = env.WALLET.getByName(orgId);
  const takes = Promise.allSettled(Array.from({ length: takers }, () => stub.takeEvents()));
  if (kind === "killed") await abort(stub).catch(() => undefined);
  await takes; // also those that a killed object did not answer
  if (kind === "evicted") await evictDurableObject(stub).catch(() => undefined);
}
