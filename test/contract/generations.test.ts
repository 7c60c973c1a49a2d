import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { holdOf, newId, setClock, settle, stubOf, valueOf } from "../wallet/wallet-fixture.ts";
import {
  bindingsWith,
  chat,
  embed,
  errorOf,
  openAccount,
  send,
  walletsWith,
  addKey,
  addMember,
} from "./client.ts";
import type { Account, Sending } from "./client.ts";
import { completionOf } from "./response-schemas.ts";
import type { ErrorObject } from "./response-schemas.ts";

let account: Account;
/** The ID of a paid request of the owner's key. */
let id: string;
beforeAll(async () => {
  account = await openAccount();
  id = requestId(await chat(account.key));
});
afterEach(() => setClock(null));

const requestId = (response: Response): string => response.headers.get("x-request-id") ?? "";
const read = (named: string, key = account.key, more: Sending = {}): Promise<Response> =>
  send(`/v1/generations/${named}`, { key, ...more });
async function found(named: string, key = account.key): Promise<Record<string, unknown>> {
  const response = await read(named, key);
  expect(response.status).toBe(200);
  return response.json<Record<string, unknown>>();
}

describe("GET /v1/generations/{id}", () => {
  it("returns all fields of a completion's record, but no prompt or output", async () => {
    const response = await chat(account.key, { user: "Zoë", max_tokens: 1 });
    const { usage, model } = await completionOf(response.clone());
    const generation = await found(requestId(response));
    expect(generation).toEqual({
      id: requestId(response),
      tags: {},
      request_id: requestId(response),
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      model,
      provider: "sandbox",
      region: "eu",
      key_id: account.keyId,
      external_id: "Zoë",
      status: "settled",
      held_micro: expect.any(Number),
      absorbed_micro: 0,
      failed_attempts: [],
      skipped: [],
      lines: [
        {
          what: "input",
          tokens: usage.prompt_tokens,
          price: 1_000_000,
          micro: usage.prompt_tokens,
        },
        {
          what: "output",
          tokens: usage.completion_tokens,
          price: 2_000_000,
          micro: 2 * usage.completion_tokens,
        },
      ],
      streamed: false,
      prompt_tokens: usage.prompt_tokens,
      cached_tokens: 0,
      cache_write_tokens: 0,
      completion_tokens: usage.completion_tokens,
      reasoning_tokens: 0,
      cost_micro: Number(response.headers.get("x-cost-micro")),
      price: { input: 1_000_000, cached: 1_000_000, cache_write: 1_000_000, output: 2_000_000 },
      price_from: "2026-01-01T00:00:00.000Z",
      price_list: null,
      first_byte_ms: expect.any(Number),
      duration_ms: expect.any(Number),
      estimated: false,
      finish_reason: "length",
      purpose: null,
      quota_micro: 0,
      asked_model: null,
      door: null,
      client_left_ms: null,
      error: null,
      attempts: [
        {
          route: "sandbox",
          outcome: "served",
          why: null,
          status: null,
          started_ms: 0,
          ended_ms: expect.any(Number),
        },
      ],
    });
    expect(Number(generation["duration_ms"])).toBeGreaterThanOrEqual(
      Number(generation["first_byte_ms"]),
    );
  });

  it("returns null as price date and price list for records from older releases", async () => {
    const wallet = stubOf(account.orgId);
    const hold = holdOf(10, { keyId: account.keyId });
    valueOf(await wallet.hold(hold));
    valueOf(await settle(wallet, hold.id, 10));
    expect(await found(hold.id)).toMatchObject({
      status: "settled",
      cost_micro: 10,
      price: { input: 1, cached: 1, cache_write: 1, output: 2 },
      price_from: null,
      price_list: null,
    });
  });

  it("finds a record by completion ID or request ID", async () => {
    const response = await chat(account.key);
    const completion = await completionOf(response.clone());
    expect(completion.id).toMatch(/^chatcmpl-/);
    expect(await found(completion.id)).toEqual(await found(requestId(response)));
  });

  it("returns a stream's record right after the last event, and an embedding's record without output tokens", async () => {
    const stream = await chat(account.key, { stream: true });
    await stream.text();
    expect(await found(requestId(stream))).toMatchObject({
      streamed: true,
      finish_reason: "stop",
      external_id: null,
    });
    expect(await found(requestId(await embed(account.key)))).toMatchObject({
      model: "sandbox/embed",
      completion_tokens: 0,
      finish_reason: null,
    });
  });

  it("returns the status held for an open request, and voided for a failed request", async () => {
    const open = await chat(account.key, { model: "sandbox/stall", stream: true });
    const reader = open.body?.getReader();
    await reader?.read();
    const record = await found(requestId(open));
    expect(record).toMatchObject({ status: "held", key_id: account.keyId, cost_micro: 0 });
    expect(record).toMatchObject({ model: null, lines: [], duration_ms: null });
    const member = await addMember(account.orgId, "member");
    await errorOf(await read(requestId(open), member.key), 404);
    await reader?.cancel();
    const failed = await chat(account.key, { model: "sandbox/status-500" });
    expect(await found(requestId(failed))).toMatchObject({ status: "voided", cost_micro: 0 });
  });

  it("returns the records of all the member's keys to a member, including revoked keys", async () => {
    const one = await addMember(account.orgId, "member");
    const two = await addKey(account.orgId, one.memberId);
    const own = requestId(await chat(one.key));
    expect((await found(own, one.key))["key_id"]).toBe(one.keyId);
    await env.DB.prepare("UPDATE keys SET revoked_at = 1 WHERE id = ?").bind(one.keyId).run();
    expect((await found(own, two.key))["key_id"]).toBe(one.keyId);
  });
});

const readMissing = async (named: string, key = account.key): Promise<ErrorObject> =>
  errorOf(await read(named, key), 404);

describe("GET /v1/generations/{id} for a missing record", () => {
  let missing: ErrorObject;
  beforeAll(async () => {
    missing = await errorOf(await read(newId()), 404);
  });

  it("returns 404 for the ID of an unpaid request", async () => {
    expect(await readMissing(requestId(await send("/v1/models", { key: account.key })))).toEqual(
      missing,
    );
  });

  it.each([
    "req_short",
    "REQ_0VbbtnxZGhU4ZPPzjn5l243b",
    "chatcmpl-req_0VbbtnxZGhU4ZPPzjn5l243b",
    "req_0VbbtnxZGhU4ZPPzjn5l243%00",
    `req_${"0".repeat(2000)}`,
    "key_0VbbtnxZGhU4ZPPzjn5l243b",
  ])("returns 404 for the ID %s", async (named) => {
    expect(await readMissing(named)).toEqual(missing);
  });

  it("returns 404 after the retention period, without changing usage or balance", async () => {
    const own = await openAccount();
    const start = Date.UTC(2035, 4, 30, 12);
    setClock(start);
    const ids = await Promise.all(
      ["a", null].map(async (user) => requestId(await chat(own.key, { user }))),
    );
    const wallet = env.WALLET.getByName(own.orgId);
    const alarm = () => runInDurableObject(wallet, (object: Wallet) => object.alarm());
    await alarm(); // publishing determines when the first row is old
    const days = "from=2035-05-30&to=2035-06-30";
    const paths = ["day", "model", "key", "user"].map((by) => `/v1/usage?${days}&group_by=${by}`);
    const texts = (): Promise<string[]> =>
      Promise.all([...paths, "/v1/balance"].map(async (path) => (await send(path, own)).text()));
    setClock(start + 29 * 86_400_000);
    const young = requestId(await chat(own.key));
    const before = await texts();
    setClock(start + 31 * 86_400_000);
    await alarm();
    const { rows } = valueOf(await wallet.ledger(0, 10));
    expect(rows.map(({ kind }) => kind)).toEqual(["credit", "rollup", "usage"]);
    expect(await texts()).toEqual(before);
    for (const old of ids) expect((await read(old, own.key)).status).toBe(404);
    expect((await read(young, own.key)).status).toBe(200);
  });
});

function prepareAllButKeys(sql: string): D1PreparedStatement {
  if (sql.includes("WHERE keys.id = ?1")) throw new Error("D1_ERROR: away");
  return env.DB.prepare(sql);
}
const busy = (): Promise<never> =>
  Promise.reject(Object.assign(new Error("busy"), { overloaded: true }));

describe("a rejected GET /v1/generations/{id}", () => {
  it("returns 503 instead of 404 to a member if the database can't return the key's owner", async () => {
    const { key: member } = await addMember(account.orgId, "member");
    await send("/v1/balance", { key: member });
    const bindings = bindingsWith({ DB: { prepare: prepareAllButKeys } });
    const response = await read(id, member, { bindings });
    expect(response.headers.get("retry-after")).toBe("1");
    expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
    expect((await read(id, account.key, { bindings })).status).toBe(200);
  });

  it("returns 503 instead of 404 while the wallet is unavailable", async () => {
    const bindings = walletsWith(() => ({ request: busy }));
    const response = await read(id, account.key, { bindings });
    expect((await errorOf(response, 503)).code).toBe("overloaded");
  });
});
