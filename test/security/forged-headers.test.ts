import { beforeAll, describe, expect, it, vi } from "vitest";
import { admin, balanceOf, bindingsWith, chat, openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import type { Mock } from "vitest";
import { mockUpstream, upstreamCompletion } from "../contract/upstream.ts";

let account: Account;
let other: Account;
beforeAll(async () => {
  [account, other] = await Promise.all([openAccount(), openAccount()]);
});

/**
 * Headers that proxies, platforms and frameworks trust, each with the value that a forger would
 * choose.
 */
const forged = (): Readonly<Record<string, string>> => ({
  "x-forwarded-for": "127.0.0.1",
  "x-forwarded-host": "us.turnpike.example.com",
  "x-forwarded-proto": "http",
  "x-forwarded-prefix": "/admin/v1",
  "x-forwarded-uri": "/admin/v1/orgs",
  forwarded: "for=127.0.0.1;host=us.turnpike.example.com;proto=http",
  "x-real-ip": "127.0.0.1",
  "cf-connecting-ip": "127.0.0.1",
  "cf-ray": "0",
  "cf-worker": "turnpike.example.com",
  "cf-access-authenticated-user-email": "owner@example.com",
  "true-client-ip": "127.0.0.1",
  "x-original-url": "/admin/v1/orgs",
  "x-rewrite-url": "/admin/v1/orgs",
  "x-http-method-override": "DELETE",
  "x-http-method": "DELETE",
  "x-method-override": "DELETE",
  "x-request-id": "req_theirs",
  "x-org-id": other.orgId,
  "x-user-id": other.memberId,
  "openai-organization": other.orgId,
  "openai-project": "theirs",
  "x-role": "owner",
  "x-admin": "true",
  "x-internal": "1",
  "x-region": "us",
  "x-cost-micro": "0",
  "x-ratelimit-remaining-requests": "1000000",
  "api-key": other.key,
  "proxy-authorization": `Bearer ${other.key}`,
  "x-authorization": `Bearer ${other.key}`,
  cookie: `authorization=Bearer ${other.key}`,
  signature: "turnpike=:AAAA:",
  "signature-input": "turnpike=()",
});

/** Returns a response without the parts that differ between requests. */
async function comparable(response: Response): Promise<unknown> {
  const headers = [...response.headers].filter(
    ([name]) => !/^((x-)?request-id|x-ratelimit-(remaining|reset)-requests)$/.test(name),
  );
  const body = await response.text();
  const id = response.headers.get("x-request-id")?.slice("req_".length) ?? "none";
  return { status: response.status, headers, body: body.replaceAll(id, "ID") };
}

describe("a request header of a proxy, a platform or another gateway", () => {
  it.each<[method: string, path: string, body: object | null]>([
    ["GET", "/v1/models", null],
    ["GET", "/v1/balance", null],
    ["GET", "/v1/users", null],
    ["GET", "/v1/none", null],
    ["POST", "/v1/users", { external_id: "somebody" }],
    ["POST", "/v1/users", { external_id: "" }],
    ["POST", "/v1/embeddings", { model: "sandbox/embed", input: "a" }],
    ["PUT", "/v1/keys", {}],
    ["GET", "/v1/orgs/OTHER", null],
    ["GET", "/admin/v1/orgs", null],
    ["GET", "/internal/v1/lookup", null],
    ["GET", "/healthz", null],
  ])("doesn't change the response to %s %s", async (method, path, body) => {
    const sendWith = (headers: Readonly<Record<string, string>>): Promise<Response> => {
      const target = path.replace("OTHER", other.orgId);
      return send(target, { method, key: account.key, headers, ...(body && { body }) });
    };
    await (await sendWith({})).text(); // the first request creates the end user
    const plain = await comparable(await sendWith({}));
    expect(await comparable(await sendWith(forged()))).toEqual(plain);
  });

  it.each(["/v1/models", "/v1/keys", "/admin/v1/orgs"])(
    "doesn't affect the 401 for a request without a key: %s",
    async (path) => {
      const plain = await comparable(await send(path));
      expect(await comparable(await send(path, { headers: forged() }))).toEqual(plain);
      expect(plain).toHaveProperty("status", 401);
    },
  );

  it("never reaches a provider, and doesn't affect which organization pays", async () => {
    const { calls, bindings } = mockUpstream(() => upstreamCompletion());
    const before = [await balanceOf(account.key), await balanceOf(other.key)];
    const sent = await chat(account.key, { model: "mock/chat" }, { bindings, headers: forged() });
    expect(sent.status).toBe(200);
    const names = Object.keys(calls[0]?.headers ?? {}).toSorted();
    expect(names).toEqual(["accept", "authorization", "content-type", "user-agent"]);
    const after = [await balanceOf(account.key), await balanceOf(other.key)];
    expect(after).toEqual([(before[0] ?? 0) - 20, before[1]]);
  });
});

/** Returns namespaces that count the named objects and contain none. */
const objects = (): { readonly lookup: Mock<() => never>; readonly bindings: Env } => {
  const lookup = vi.fn<() => never>(() => {
    throw new Error("no object may be looked up");
  });
  const none = { getByName: lookup, get: lookup, idFromName: lookup, jurisdiction: () => none };
  return { lookup, bindings: bindingsWith({ KEY_REGISTER: none, WALLET: none }) };
};
/** Returns a key of the same format with an invalid checksum. */
const forgedKey = (key: string): string => key.slice(0, -1) + (key.endsWith("a") ? "b" : "a");
const PATHS = ["/v1/models", "/v1/keys", "/v1/balance", "/v1/none"];

describe("the x-api-key header", () => {
  it.each(PATHS)(
    "causes a 401 without a Durable Object call if it contains another service's key: %s",
    async (path) => {
      for (const forgery of [
        forgedKey(other.key),
        "sk-ant-theirs",
        "svc_",
        " ",
        "",
        "null",
        "a".repeat(32),
      ]) {
        // The model list uses Anthropic's format for requests like those of Anthropic's clients.
        const isTheirs = path === "/v1/models" && forgery.trim() !== "";
        const version = { "anthropic-version": isTheirs ? "2023-06-01" : "" };
        const plain = await comparable(await send(path, { headers: version }));
        expect(plain).toHaveProperty("status", 401);
        const { lookup, bindings } = objects();
        const headers = { "x-api-key": forgery };
        expect([forgery, await comparable(await send(path, { headers, bindings }))]).toEqual([
          forgery,
          plain,
        ]);
        expect(lookup).not.toHaveBeenCalled();
      }
    },
  );

  it("causes a 401 next to a Bearer token with a different key of the gateway", async () => {
    for (const path of PATHS) {
      const one = { key: account.key, headers: { "x-api-key": "svc_" } };
      const plain = await comparable(await send(path, one));
      expect(plain).toMatchObject({ status: 401, body: expect.stringContaining("two different") });
      for (const second of [other.key, forgedKey(account.key)]) {
        const { lookup, bindings } = objects();
        const headers = { "x-api-key": second };
        const sent = await send(path, { key: account.key, headers, bindings });
        expect(await comparable(sent)).toEqual(plain);
        expect(lookup).not.toHaveBeenCalled();
      }
    }
  });

  it("authenticates a key of the gateway, even next to another service's Bearer token", async () => {
    for (const authorization of [undefined, "Bearer sk-theirs", `Basic ${btoa("a:b")}`]) {
      const headers = {
        "x-api-key": other.key,
        ...(authorization !== undefined && { authorization }),
      };
      const answer = await send(`/v1/orgs/${other.orgId}`, { headers });
      expect(answer.status).toBe(200);
      const { lookup, bindings } = objects();
      expect((await send("/v1/balance", { headers, bindings })).status).toBe(503);
      expect(lookup).toHaveBeenCalled();
    }
  });

  it.each(["/v1/balance", "/v1/users", "/v1/none", "/v1/orgs/OTHER"])(
    "changes nothing next to a valid Bearer token if it is empty or from another service: %s",
    async (path) => {
      const target = path.replace("OTHER", other.orgId);
      const plain = await comparable(await send(target, { key: account.key }));
      for (const foreign of ["sk-ant-theirs", "", account.key]) {
        const headers = { "x-api-key": foreign };
        expect(await comparable(await send(target, { key: account.key, headers }))).toEqual(plain);
      }
    },
  );

  it("never reaches a provider, and charges the key's organization", async () => {
    const { calls, bindings } = mockUpstream(() => upstreamCompletion());
    const before = [await balanceOf(account.key), await balanceOf(other.key)];
    const body = { model: "mock/chat", messages: [{ role: "user", content: "Hi" }] };
    const headers = { "x-api-key": other.key, authorization: "Bearer sk-theirs" };
    const sent = await send("/v1/chat/completions", { body, bindings, headers });
    expect(sent.status).toBe(200);
    const names = Object.keys(calls[0]?.headers ?? {}).toSorted();
    expect(names).toEqual(["accept", "authorization", "content-type", "user-agent"]);
    expect(JSON.stringify(calls[0]?.headers)).not.toMatch(/svc_|sk-theirs/);
    const [mine, theirs] = [await balanceOf(account.key), await balanceOf(other.key)];
    expect([mine, theirs < (before[1] ?? 0)]).toEqual([before[0], true]);
  });

  it("neither grants nor blocks access to operator endpoints", async () => {
    const token = "a".repeat(32);
    for (const secret of [token, account.key]) {
      const headers = { "x-api-key": secret };
      expect((await send("/admin/v1/orgs", { headers })).status).toBe(401);
      expect((await send("/admin/v1/orgs", { key: account.key, headers })).status).toBe(401);
      expect((await send("/admin/v1/orgs", { key: token, headers })).status).toBe(200);
    }
  });
});

describe("a key or operator token in the wrong place", () => {
  it.each<[string, (secret: string) => Parameters<typeof send>]>([
    ["in the query", (secret) => [`?key=${secret}&api_key=${secret}&access_token=${secret}`]],
    ["in a cookie", (secret) => ["", { headers: { cookie: `key=${secret}; token=${secret}` } }]],
    [
      "in the api-key header",
      (secret) => ["", { headers: { "api-key": secret, "x-key": secret } }],
    ],
    [
      "as a Basic user",
      (secret) => ["", { headers: { authorization: `Basic ${btoa(`${secret}:`)}` } }],
    ],
    ["as a Basic password", (s) => ["", { headers: { authorization: `Basic ${btoa(`:${s}`)}` } }]],
    ["in Proxy-Authorization", (s) => ["", { headers: { "proxy-authorization": `Bearer ${s}` } }]],
    [
      "after another scheme in Authorization",
      (s) => ["", { headers: { authorization: `Token ${s}` } }],
    ],
    [
      "after two schemes in Authorization",
      (s) => ["", { headers: { authorization: `Bearer Bearer ${s}` } }],
    ],
    ["in the body", (secret) => ["", { method: "POST", body: { key: secret, api_key: secret } }]],
  ])("results in a 401 if sent %s", async (_, put) => {
    for (const [path, secret] of [
      ["/v1/keys", account.key],
      ["/v1/chat/completions", account.key],
      ["/admin/v1/orgs", "a".repeat(32)],
    ] as const) {
      const [suffix, sending] = put(secret);
      expect((await send(path + suffix, sending)).status).toBe(401);
    }
  });

  it("grants no access: neither operator access for a key nor customer access for an operator token", async () => {
    expect((await send("/admin/v1/orgs", { key: account.key })).status).toBe(401);
    expect((await send("/v1/keys", { key: "a".repeat(32) })).status).toBe(401);
    expect((await admin("GET", "/orgs")).status).toBe(200);
  });
});

const models = (headers: Readonly<Record<string, string>>): Promise<Response> =>
  send("/v1/models?callback=alert", { key: account.key, headers });

describe("a request whose headers ask for another representation of the response", () => {
  it.each<readonly [string, Readonly<Record<string, string>>]>([
    ["a range", { range: "bytes=0-9" }],
    ["a cached copy", { "if-none-match": "*", "if-modified-since": new Date().toUTCString() }],
    ["a condition", { "if-match": '"theirs"', "if-unmodified-since": new Date(0).toUTCString() }],
    ["another type", { accept: "text/html, application/xml;q=0.9" }],
    ["JSONP", { accept: "application/javascript" }],
    ["another language", { "accept-language": "../../etc/passwd" }],
    [
      "a websocket upgrade",
      { upgrade: "websocket", connection: "Upgrade", "sec-websocket-version": "13" },
    ],
    ["HTTP/2", { upgrade: "h2c", connection: "Upgrade, HTTP2-Settings", "http2-settings": "AA" }],
    ["hop-by-hop", { connection: "close, authorization, x-request-id", te: "trailers" }],
  ])("gets the usual response despite headers for %s", async (_, headers) => {
    const plain = await comparable(await models({}));
    expect(plain).toHaveProperty("status", 200);
    expect(await comparable(await models(headers))).toEqual(plain);
  });
});
