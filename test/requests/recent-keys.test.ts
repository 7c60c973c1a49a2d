import { env } from "cloudflare:workers";
import {
  createExecutionContext,
  runInDurableObject,
  waitOnExecutionContext,
} from "cloudflare:test";
import { beforeEach, expect, it } from "vitest";
import { app } from "../../src/app.ts";
import { openAccount } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import type { Wallet } from "../../src/index.ts";
import type { WalletMethods } from "../../src/shared/contracts/wallet.ts";
import { contentLengthHeader } from "../fixtures/content-length.ts";

const HELLO = JSON.stringify({
  model: "sandbox/echo",
  messages: [{ role: "user", content: "one two three" }],
});

type Held = Awaited<ReturnType<WalletMethods["admitAndHold"]>>;

/** One isolate's bindings. Records every call to an object, such as "WALLET admit". */
class Isolate {
  readonly calls: string[] = [];
  /** Changes a response of `admitAndHold` before the isolate receives it. */
  changeAnswer = (answer: Held): unknown => answer;
  readonly #env: Env = Object.create(env, {
    KEY_REGISTER: { value: this.#recordCalls("KEY_REGISTER") },
    WALLET: { value: this.#recordCalls("WALLET") },
    REGION_METRICS: { value: this.#recordCalls("REGION_METRICS") },
  }) as Env;

  /**
   * Returns a completion's status and the key's remaining requests after all work has ended.
   * `calls` has its calls.
   */
  async send(key: string, body: BodyInit = HELLO, more: Record<string, string> = {}) {
    this.calls.length = 0;
    const context = createExecutionContext();
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const request = new Request("https://eu.test/v1/chat/completions", {
      method: "POST",
      headers: { ...headers, ...contentLengthHeader(body), ...more },
      body,
    });
    const response = await app.fetch(request, this.#env, context);
    await response.arrayBuffer();
    await waitOnExecutionContext(context);
    const remaining = response.headers.get("x-ratelimit-remaining-requests");
    return { status: response.status, remaining };
  }

  #recordCalls(name: "KEY_REGISTER" | "WALLET" | "REGION_METRICS") {
    const getByName = (id: string) =>
      new Proxy(env[name].getByName(id), {
        get: (stub, method) => {
          const call: unknown = Reflect.get(stub, method);
          if (typeof call !== "function") return call;
          return (...args: unknown[]): unknown => {
            this.calls.push(`${name} ${String(method)}`);
            const answer: unknown = Reflect.apply(call, stub, args);
            return method === "admitAndHold"
              ? (answer as Promise<Held>).then(this.changeAnswer)
              : answer;
          };
        },
      });
    return { getByName };
  }
}

let isolate: Isolate;
let account: Account;

beforeEach(async () => {
  isolate = new Isolate();
  account = await openAccount({ rpmLimit: 4 });
});

/** Calls of the last request, except those that transfer counts. */
/**
 * Returns the calls of requests themselves, without those that transfer counts, however many there
 * were.
 */
const calls = (): string[] =>
  isolate.calls.filter((call) => !/^REGION_METRICS|noteFailed$/.test(call));

async function revoke(): Promise<void> {
  const row = await env.DB.prepare("SELECT hash FROM keys WHERE id = ?")
    .bind(account.keyId)
    .first<{ hash: string }>();
  await env.KEY_REGISTER.getByName(row?.hash ?? "").revoke(1);
  await env.WALLET.getByName(account.orgId).revokeKey(row?.hash ?? "", 1);
}

it("a recently used key needs only one call, which admits the request and places the hold", async () => {
  expect(await isolate.send(account.key)).toEqual({ status: 200, remaining: "3" });
  expect(calls()).toEqual(["KEY_REGISTER whose", "WALLET admit", "WALLET hold", "WALLET settle"]);
  expect(await isolate.send(account.key)).toEqual({ status: 200, remaining: "2" });
  expect(calls()).toEqual(["WALLET admitAndHold", "WALLET settle"]);
});

it("a Worker accepts the response of a wallet that still runs an earlier version", async () => {
  await isolate.send(account.key);
  isolate.changeAnswer = (answer) => {
    if (!answer.ok) return answer;
    const { admitted, held } = answer.value;
    const who = { keyId: account.keyId, orgId: account.orgId, memberId: "m", scope: "regional" };
    return { ok: true, value: { admitted: { ...who, ...admitted }, held } };
  };
  expect(await isolate.send(account.key)).toEqual({ status: 200, remaining: "2" });
  expect(calls()).toEqual(["WALLET admitAndHold", "WALLET settle"]);
});

it("a key revoked after its last use gets 401 after one call, without a hold", async () => {
  await isolate.send(account.key);
  await revoke();
  await isolate.send("forged"); // its count is transferred later
  expect(await isolate.send(account.key)).toEqual({ status: 401, remaining: null });
  expect(calls()).toEqual(["WALLET admitAndHold"]);
});

it("a key rejected as revoked gets 401 in later requests, before any call and before the body is read", async () => {
  await isolate.send(account.key);
  await revoke();
  await isolate.send(account.key);
  const never = new ReadableStream({ pull: () => new Promise(() => undefined) });
  const slow = await isolate.send(account.key, never, { "content-length": "100" });
  expect(slow).toMatchObject({ status: 401 });
  expect(calls()).toEqual([]);
});

it("a revoked key gets 401 even for an invalid body, and later requests with the key make no call", async () => {
  await isolate.send(account.key);
  await revoke();
  expect(await isolate.send(account.key, "{")).toMatchObject({ status: 401 });
  expect(calls()).toEqual(["WALLET admit"]);
  expect(await isolate.send(account.key)).toMatchObject({ status: 401 });
  expect(calls()).toEqual([]);
});

it("an invalid request counts against the rate limit, and returns 429 beyond the limit", async () => {
  await isolate.send(account.key);
  const wrong = [
    ["{", {}],
    ['{"model":"no such one","messages":[]}', {}],
    [HELLO, { "idempotency-key": "x".repeat(300) }],
  ] as const;
  const answers = [];
  for (const [body, headers] of wrong) answers.push(await isolate.send(account.key, body, headers));
  expect(answers.map(({ remaining }) => remaining)).toEqual(["2", "1", "0"]);
  for (const { status } of answers) expect([400, 404]).toContain(status);
  expect(calls()).toEqual(["WALLET admit"]);
  expect(await isolate.send(account.key, "{")).toMatchObject({ status: 429 });
});

it("a request whose body is large or of unknown size is admitted before the hold", async () => {
  await isolate.send(account.key);
  const large = JSON.stringify({
    ...(JSON.parse(HELLO) as object),
    user: "u",
    padding: "x".repeat(70_000),
  });
  await isolate.send(account.key, large);
  expect(calls()[0]).toBe("WALLET admit");
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  void writer.write(new TextEncoder().encode(HELLO)).then(() => writer.close());
  expect(await isolate.send(account.key, readable)).toMatchObject({ status: 200 });
  expect(calls()).toEqual(["WALLET admit", "WALLET hold", "WALLET settle"]);
});

/** Returns the number of admissions in the account's wallet. */
function admissions(): Promise<number> {
  return runInDurableObject(env.WALLET.getByName(account.orgId), (_wallet: Wallet, { storage }) => {
    return storage.sql.exec<{ n: number }>("SELECT count(*) AS n FROM admissions").one().n;
  });
}

it("a key that is revoked while a slow body arrives gets 401 without a hold", async () => {
  await isolate.send(account.key);
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const answer = isolate.send(account.key, readable);
  await expect.poll(admissions).toBe(2);
  void writer.write(new TextEncoder().encode(HELLO.slice(0, 10)));
  await revoke();
  void writer.write(new TextEncoder().encode(HELLO.slice(10))).then(() => writer.close());
  expect(await answer).toMatchObject({ status: 401 });
  expect(calls()).toEqual(["WALLET admit", "WALLET hold"]);
  const balance = await env.WALLET.getByName(account.orgId).balance();
  expect(balance).toMatchObject({ value: { openHolds: 0 } });
});
