import { beforeEach, describe, expect, it } from "vitest";
import { addKey, addMember, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { separateIsolate } from "./metrics-client.ts";
import {
  brokenStream,
  mockUpstream,
  UPSTREAM_SECRET,
  UPSTREAM_VARS,
  upstreamError,
  USAGE,
} from "./upstream.ts";
import { chunkOf } from "../fixtures/openai-replies.ts";
import { sendAsPeer } from "./peer-client.ts";
import { mintId } from "../../src/shared/id.ts";

type Found = {
  readonly id: string;
  readonly status: string;
  readonly error: { readonly code: string; readonly status: number } | null;
};
const idOf = (response: Response): string => response.headers.get("x-request-id") ?? "";

async function found(id: string, key: string): Promise<Found> {
  const response = await send(`/v1/generations/${id}`, { key });
  expect(response.status).toBe(200);
  const one = await response.json<Found>();
  const list = await send("/v1/generations", { key });
  const { generations } = await list.json<{ generations: Found[] }>();
  expect(generations.find((other) => other.id === id)).toEqual(one);
  return one;
}

/** Returns the stored record of one request to a provider with this response. */
async function storedRecord(answer: () => Response | Promise<Response>, fields: object = {}) {
  const { key } = await openAccount();
  mockUpstream(answer);
  const { ask } = separateIsolate(undefined, UPSTREAM_VARS);
  const messages = [{ role: "user", content: "the-prompt-canary" }];
  const response = await ask("/v1/chat/completions", key, {
    model: "mock/chat",
    messages,
    ...fields,
  });
  const read = await ask(`/v1/generations/${idOf(response)}`, key);
  expect(read.status).toBe(200);
  return read.json();
}

describe("the stored record of a rejected request", () => {
  let account: Account;
  beforeEach(async () => {
    account = await openAccount();
  });

  it.each([
    [{ messages: "x" }, 400, "invalid_request", null],
    [{ model: "nope/none" }, 404, "model_not_found", "nope/none"],
    [{ model: "tell me of canaries" }, 404, "model_not_found", null],
  ])(
    "can be found by the request ID in the error, for a body with %j",
    async (body, status, code, model) => {
      const response = await chat(account.key, body);
      expect(response.status).toBe(status);
      const id = idOf(response);
      const one = await found(id, account.key);
      expect(one).toMatchObject({
        id,
        status: "refused",
        key_id: account.keyId,
        cost_micro: 0,
        asked_model: model,
        door: "/v1/chat/completions",
        error: { code, status },
        attempts: [],
      });
      expect(JSON.stringify(one)).not.toContain("canaries");
    },
  );

  it("exists after a 402 and after a request for a model that the key doesn't allow", async () => {
    const poor = await openAccount({ credits: 0 });
    const refused = await chat(poor.key);
    const { message } = await errorOf(refused, 402);
    expect(await found(idOf(refused), poor.key)).toMatchObject({
      status: "refused",
      model: "sandbox/echo",
      error: { code: "insufficient_balance", status: 402, message },
    });
  });

  it("appears to a member only for the member's own keys, even in lists and counts", async () => {
    const member = await addMember(account.orgId, "member");
    const own = idOf(await chat(member.key, { model: "nope/own" }));
    const other = idOf(await chat(account.key, { model: "nope/other" }));
    expect(await found(own, member.key)).toMatchObject({ asked_model: "nope/own" });
    expect((await send(`/v1/generations/${other}`, { key: member.key })).status).toBe(404);
    for (const [key, total] of [
      [member.key, 1],
      [account.key, 2],
    ]) {
      const errors = await send("/v1/errors", { key: String(key) });
      expect(await errors.json()).toMatchObject({ total });
    }
  });

  it("omits the name of a deleted end user", async () => {
    const name = `user-${crypto.randomUUID()}`;
    await send("/v1/users", { key: account.key, body: { external_id: name } });
    const id = idOf(await chat(account.key, { model: "nope/none", user: name }));
    expect(await found(id, account.key)).toMatchObject({ external_id: name });
    const path = `/v1/users/${name}`;
    expect((await send(path, { method: "DELETE", key: account.key })).status).toBe(200);
    expect(JSON.stringify(await found(id, account.key))).not.toContain(name);
  });

  it("exists after a request with a revoked key, but not with a forged key", async () => {
    const second = await addKey(account.orgId, account.memberId);
    await chat(second.key);
    const ended = await send(`/v1/keys/${second.keyId}`, { method: "DELETE", key: account.key });
    expect(ended.status).toBe(200);
    const forged = `${account.key.slice(0, -1)}${account.key.endsWith("a") ? "b" : "a"}`;
    for (const key of [second.key, second.key, forged]) {
      expect((await chat(key)).status).toBe(401);
    }
    const errors = await send("/v1/errors?group_by=key", { key: account.key });
    expect(await errors.json()).toMatchObject({
      total: 2,
      data: [{ group: second.keyId, count: 2 }],
    });
  });
});

describe("the list of provider calls in a failed request's record", () => {
  it.each([
    [429, "upstream_overloaded", "overloaded", 429],
    [500, "upstream_error", "500", 500],
    [401, "upstream_error", "unavailable", null],
  ] as const)("contains the provider's status: %i", async (status, code, why, shown) => {
    const one = await storedRecord(() =>
      upstreamError(status, { message: `no: ${UPSTREAM_SECRET}` }),
    );
    expect(one).toMatchObject({ status: "voided", cost_micro: 0, model: "mock/chat" });
    expect(one).toMatchObject({ error: { code } });
    const { attempts } = one as { attempts: readonly Record<string, unknown>[] };
    expect(attempts.at(-1)).toMatchObject({ outcome: "failed", status: shown });
    expect(attempts.at(-1)?.["route"]).toBe("mock:up-chat");
    expect(String(attempts.at(-1)?.["why"])).toContain(why);
    expect(JSON.stringify(one)).not.toMatch(/canary|no: /);
  });

  it("contains the gateway's message, not the provider's message, for a 400", async () => {
    const one = await storedRecord(() =>
      upstreamError(400, { message: "you said the-prompt-canary" }),
    );
    expect(one).toMatchObject({
      status: "voided",
      error: { status: 400, message: "The model's provider rejected this request." },
    });
    expect(JSON.stringify(one)).not.toContain("canary");
  });

  it("contains only the last 16 calls", async () => {
    const { key } = await openAccount();
    mockUpstream(() => upstreamError(500, { message: "down" }));
    const ids = Array.from({ length: 7 }, (_, n) => `mock/${n}`);
    const models = ids.map((id) => ({
      id,
      kind: "chat",
      context: 8192,
      price: { input: 1, output: 1 },
      routes: ["a", "b", "c"].map((route) => ({ provider: "mock", upstream_id: id + route })),
    }));
    const { ask } = separateIsolate(undefined, {
      ...UPSTREAM_VARS,
      MODELS: JSON.stringify(models),
    });
    const body = { models: ids, messages: [{ role: "user", content: "hi" }] };
    const response = await ask("/v1/chat/completions", key, body);
    const read = await ask(`/v1/generations/${idOf(response)}`, key);
    const { attempts } = await read.json<{ attempts: readonly { route: string }[] }>();
    expect(attempts).toHaveLength(16);
    expect(attempts.at(-1)?.route).toBe("mock:mock/6c");
  });

  it("contains a failed stream with the response status 200", async () => {
    const error = { error: { message: "gone", code: 502 } };
    const events = [chunkOf({ content: "Hi" }, null), error];
    const one = await storedRecord(() => brokenStream(events), { stream: true });
    expect(one).toMatchObject({ streamed: true, error: { code: "upstream_error", status: 200 } });
    expect(one).toMatchObject({ attempts: [{ route: "mock:up-chat", status: 502 }] });
  });
});

describe("the list of provider calls of a failed but charged request", () => {
  it("contains the charged call once, with the status failed", async () => {
    const message = { role: "assistant", content: "hi" };
    const choices = [{ index: 0, message, finish_reason: "error" }];
    const one = await storedRecord(() => Response.json({ choices, usage: USAGE }));
    expect(one).toMatchObject({ status: "settled", error: { status: 502 } });
    const { attempts, cost_micro: cost } = one as { attempts: object[]; cost_micro: number };
    expect(cost).toBeGreaterThan(0);
    expect(attempts).toMatchObject([{ route: "mock:up-chat", outcome: "failed" }]);
  });

  it.each([
    [null, "stopped"],
    [5, "left"],
  ])(
    "contains, for a disconnect at %s ms, the ended call with the outcome %s",
    async (leftMs, outcome) => {
      const { orgId, key, keyId } = await openAccount();
      const id = idOf(await chat(key));
      const error = { code: "paused", message: "Paused.", status: 403, param: null };
      const request = { ...STORED, id, at: Date.now(), keyId, error, clientLeftMs: leftMs };
      const batch = { requests: [request], counts: [] };
      expect((await sendAsPeer("failures", { org_id: orgId, batch })).status).toBe(200);
      expect(await found(id, key)).toMatchObject({
        attempts: [{ route: "sandbox", outcome, why: null, started_ms: 0 }],
      });
    },
  );

  it("contains the charged call first, then the uncharged call that a disconnect ended", async () => {
    const { orgId, key, keyId } = await openAccount();
    const id = idOf(await chat(key));
    const error = { code: "client_left", message: "gone", status: 499, param: null };
    const times = { startedMs: 1, endedMs: 2 };
    const attempts = [
      { route: "sandbox:echo", why: "http_502", status: 502, ...times },
      { route: "next:m", why: "left", ...times, lost: { model: "next/m", cost: 7 } },
    ];
    const request = { ...STORED, id, at: Date.now(), keyId, error, clientLeftMs: 5, attempts };
    const batch = { requests: [request], counts: [] };
    expect((await sendAsPeer("failures", { org_id: orgId, batch })).status).toBe(200);
    const one = await found(id, key);
    expect(one).toMatchObject({
      attempts: [
        { route: "sandbox:echo", outcome: "failed", why: "http_502", status: 502 },
        { route: "next:m", outcome: "left", why: null, status: null },
      ],
    });
    expect(JSON.stringify(one)).not.toContain("lost");
  });
});

const STORED = {
  externalId: null,
  askedModel: null,
  model: null,
  door: "/v1/x",
  streamed: null,
  durationMs: 1,
  clientLeftMs: null,
  attempts: [],
};

describe("the count or list of failed requests", () => {
  it("includes every failed request, by error code and status", async () => {
    const { key, keyId } = await openAccount();
    await chat(key);
    for (let n = 0; n < 3; n++) await chat(key, { model: "nope/none" });
    await chat(key, { messages: 1 });
    const errors = await (await send("/v1/errors", { key })).json();
    expect(errors).toMatchObject({
      total: 4,
      data: [
        { group: "model_not_found", status: 404, count: 3 },
        { group: "invalid_request", status: 400, count: 1 },
      ],
    });
    const hours = await (await send("/v1/errors?group_by=hour,code", { key })).json();
    expect(hours).toMatchObject({ total: 4 });
    const ids = async (query: string): Promise<number> => {
      const list = await send(`/v1/generations?${query}`, { key });
      return (await list.json<{ generations: object[] }>()).generations.length;
    };
    expect(await ids("status=error")).toBe(4);
    expect(await ids("status=settled")).toBe(1);
    expect(await ids("code=model_not_found")).toBe(3);
    expect(await ids("code=model_not_found,invalid_request")).toBe(4);
    expect(await ids("model=nope/none,sandbox/echo")).toBe(4);
    expect(await ids("provider=sandbox")).toBe(1);
    expect(await ids(`key_id=${keyId}&status=refused&limit=2`)).toBe(2);
    expect((await send("/v1/generations?status=gone", { key })).status).toBe(400);
  });

  it("includes charged requests that ended with an error", async () => {
    const { orgId, key, keyId } = await openAccount();
    const served = idOf(await chat(key));
    const stopped = idOf(await chat(key));
    const refused = idOf(await chat(key, { model: "nope/none" }));
    const error = { code: "client_left", message: "gone", status: 499, param: null };
    const request = { ...STORED, id: stopped, at: Date.now(), keyId, error };
    const batch = { requests: [request], counts: [] };
    expect((await sendAsPeer("failures", { org_id: orgId, batch })).status).toBe(200);
    const ids = async (status: string): Promise<string[]> => {
      const list = await send(`/v1/generations?status=${status}`, { key });
      return (await list.json<{ generations: Found[] }>()).generations.map(({ id }) => id);
    };
    expect(await ids("failed")).toEqual([refused, stopped]);
    expect(await ids("succeeded")).toEqual([served]);
    expect(await ids("error")).toEqual([refused]);
    expect(await ids("settled")).toEqual([stopped, served]);
  });

  it("includes each key's newest 100 failed requests, however many requests other keys have", async () => {
    const { orgId, key, keyId } = await openAccount();
    const error = { code: "model_not_found", message: "no", status: 404, param: "model" };
    const failures = Array.from({ length: 150 }, (_, n) => ({
      id: mintId("req_", Date.now() - 200_000 + n * 1000),
      at: Date.now(),
      keyId,
      error,
      ...STORED,
    }));
    const sendFailures = (requests: readonly object[]) =>
      sendAsPeer("failures", { org_id: orgId, batch: { requests, counts: [] } });
    for (const from of [0, 50]) {
      expect((await sendFailures(failures.slice(from, from + 100))).body).toEqual({ ok: true });
    }
    expect((await sendFailures(failures)).status).toBe(400);
    expect((await send(`/v1/generations/${failures[49]?.id ?? ""}`, { key })).status).toBe(404);
    expect((await send(`/v1/generations/${failures[50]?.id ?? ""}`, { key })).status).toBe(200);
  });

  it("can be grouped by model, provider and end user, and includes the start time of complete data", async () => {
    const { orgId, key, keyId } = await openAccount();
    await chat(key, { model: "nope/none", user: "ann" });
    await chat(key, { model: "nope/none", user: "bob" });
    await chat(key, { model: "nope/other", user: "ann" });
    const read = async (query: string) => {
      const response = await send(`/v1/errors?${query}`, { key });
      return response.json<{ data: object[]; total: number; complete_from: string }>();
    };
    const midnight = `${new Date().toISOString().slice(0, 10)}T00:00:00.000Z`;
    expect(await read("group_by=model")).toMatchObject({
      data: [
        { group: "nope/none", count: 2 },
        { group: "nope/other", count: 1 },
      ],
      total: 3,
      complete_from: midnight,
    });
    expect(await read("group_by=provider")).toMatchObject({ data: [{ group: null, count: 3 }] });
    expect(await read("group_by=user&model=nope/none")).toMatchObject({ total: 2 });
    expect(await read("group_by=model&external_id=ann")).toMatchObject({ total: 2 });
    const hour = Math.floor(Date.now() / 3_600_000) * 3_600_000;
    const lastId = mintId("req_", Date.now());
    const more = { hour, keyId, code: "x", status: 400, count: 5, lastAt: Date.now(), lastId };
    await sendAsPeer("failures", { org_id: orgId, batch: { requests: [], counts: [more] } });
    // This hour is incomplete and has not ended.
    const lacking = await read("group_by=model");
    expect(lacking.total).toBe(3);
    expect(Date.parse(lacking.complete_from)).toBeGreaterThan(hour);
    expect(Date.parse(lacking.complete_from)).toBeLessThanOrEqual(Date.now());
    const refused = await send("/v1/errors?group_by=code&model=nope/none", { key });
    expect((await errorOf(refused, 400)).param).toBe("model");
  });
});
