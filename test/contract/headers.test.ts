import { beforeAll, describe, expect, it } from "vitest";
import { mintedAt } from "../../src/shared/id.ts";
import { ADMIN_TOKEN, bindingsWith, HELLO, openAccount, send } from "./client.ts";
import type { Account, Sending } from "./client.ts";

let account: Account;
let poor: Account;
beforeAll(async () => {
  [account, poor] = await Promise.all([openAccount(), openAccount({ credits: 1 })]);
});

type Kind = {
  readonly status: number;
  readonly path: string;
  readonly sending?: Sending;
  /** Whose key is sent; without one the request is nobody's. */
  readonly who?: "rich" | "poor";
};
const chatBody = { model: "sandbox/echo", messages: HELLO };
const CHAT = "/v1/chat/completions";

/** One of every kind of answer. */
const KINDS: Readonly<Record<string, Kind>> = {
  "a list": { status: 200, path: "/v1/models", who: "rich" },
  "a balance": { status: 200, path: "/v1/balance", who: "rich" },
  HEAD: { status: 200, path: "/v1/models", who: "rich", sending: { method: "HEAD" } },
  "a completion": { status: 200, path: CHAT, who: "rich", sending: { body: chatBody } },
  "a stream": {
    status: 200,
    path: CHAT,
    who: "rich",
    sending: { body: { ...chatBody, stream: true } },
  },
  embeddings: {
    status: 200,
    path: "/v1/embeddings",
    who: "rich",
    sending: { body: { model: "sandbox/embed", input: "a" } },
  },
  "a wrong field": { status: 400, path: CHAT, who: "rich", sending: { body: {} } },
  "a malformed path": { status: 400, path: "/v1/models/%zz" },
  "no key": { status: 401, path: "/v1/models" },
  "no credits": { status: 402, path: CHAT, who: "poor", sending: { body: chatBody } },
  "an unknown model": { status: 404, path: "/v1/models/none", who: "rich" },
  "an unknown path": { status: 404, path: "/v1/none", who: "rich" },
  "a path of nobody's": { status: 404, path: "/none" },
  "another method": { status: 405, path: CHAT, who: "rich" },
  "another type": {
    status: 415,
    path: CHAT,
    who: "rich",
    sending: { body: "x", headers: { "content-type": "text/plain" } },
  },
  "a broken upstream": {
    status: 502,
    path: CHAT,
    who: "rich",
    sending: { body: { ...chatBody, model: "sandbox/status-500" } },
  },
  "a busy upstream": {
    status: 503,
    path: CHAT,
    who: "rich",
    sending: { body: { ...chatBody, model: "sandbox/status-503" } },
  },
  "a stream that breaks": {
    status: 200,
    path: CHAT,
    who: "rich",
    sending: { body: { ...chatBody, model: "sandbox/error-mid", stream: true } },
  },
  health: { status: 200, path: "/healthz" },
  "an operator's answer": { status: 200, path: "/admin/v1/health", sending: { key: ADMIN_TOKEN } },
  "an operator's refusal": { status: 404, path: "/admin/v1/x", sending: { key: ADMIN_TOKEN } },
};
const NAMES = Object.keys(KINDS);

async function ask(name: string, headers: Record<string, string> = {}): Promise<Response> {
  const kind = KINDS[name];
  if (kind === undefined) throw new Error(name);
  const owner = kind.who === "poor" ? poor : account;
  const given = kind.sending ?? {};
  const key = kind.who === undefined ? given.key : owner.key;
  const response = await send(kind.path, {
    ...given,
    key,
    headers: { ...given.headers, ...headers },
  });
  expect([name, response.status]).toEqual([name, kind.status]);
  await response.clone().text();
  return response;
}

describe("every response", () => {
  it.each(NAMES)("contains a new request ID from the gateway: %s", async (name) => {
    const theirs = { "x-request-id": "req_theirs" };
    const [one, two] = [await ask(name, theirs), await ask(name, theirs)];
    const ids = [one, two].map((response) => response.headers.get("x-request-id") ?? "");
    for (const id of ids) expect(mintedAt(id, "req_")).not.toBeNull();
    expect(new Set(ids).size).toBe(2);
  });

  it.each(NAMES)(
    "contains nosniff and no-store, but no server header or cookie: %s",
    async (name) => {
      const { headers } = await ask(name);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
      expect(headers.get("cache-control")).toBe(isStream ? "no-cache, no-transform" : "no-store");
      for (const header of ["server", "set-cookie", "x-powered-by"]) {
        expect([header, headers.get(header)]).toEqual([header, null]);
      }
    },
  );

  it.each(NAMES)("contains JSON or an event stream: %s", async (name) => {
    const type = (await ask(name)).headers.get("content-type") ?? "";
    expect(type).toMatch(/^(application\/json|text\/event-stream; charset=utf-8)$/);
  });
});

describe("a response to an authenticated request", () => {
  it.each(NAMES.filter((name) => KINDS[name]?.who !== undefined))(
    "contains headers with the organization and the key's requests per minute: %s",
    async (name) => {
      const { headers } = await ask(name);
      const owner = KINDS[name]?.who === "poor" ? poor : account;
      expect(headers.get("openai-organization")).toBe(owner.orgId);
      expect(headers.get("x-ratelimit-limit-requests")).toBe("1000");
      expect(headers.get("x-ratelimit-remaining-requests")).toMatch(/^\d+$/);
      expect(headers.get("x-ratelimit-reset-requests")).toMatch(/^(\d+m)?\d{1,2}s$/);
    },
  );

  it("reports one request less per minute after each request, whatever its outcome", async () => {
    const { key } = await openAccount({ rpmLimit: 5 });
    const left: (string | null)[] = [];
    const paths = ["/v1/models", "/v1/none", "/v1/models/none", CHAT, "/v1/balance"];
    for (const path of paths) {
      const { headers } = await send(path, { key });
      left.push(headers.get("x-ratelimit-remaining-requests"));
    }
    expect(left).toEqual(["4", "3", "2", "1", "0"]);
    for (let i = 0; i < 3; i++) expect((await send("/v1/models", { key })).status).toBe(429);
  });

  it.each(NAMES.filter((name) => KINDS[name]?.who === undefined))(
    "contains no organization or limit if the request isn't authenticated: %s",
    async (name) => {
      const { headers } = await ask(name);
      expect(headers.has("openai-organization")).toBe(false);
      expect(headers.has("x-ratelimit-limit-requests")).toBe(false);
    },
  );
});

describe("cross-origin access", () => {
  const ORIGIN = { origin: "https://app.test" };

  it.each(NAMES)("works from any origin under /v1 only, without credentials: %s", async (name) => {
    const { headers } = await ask(name, ORIGIN);
    const isOurs = KINDS[name]?.path.startsWith("/v1") === true;
    expect(headers.get("access-control-allow-origin")).toBe(isOurs ? "*" : null);
    expect(headers.has("access-control-allow-credentials")).toBe(false);
    const exposed = headers.get("access-control-expose-headers")?.split(", ") ?? [];
    const needed = "x-request-id retry-after retry-after-ms x-should-retry x-cost-micro".split(" ");
    expect(needed.every((header) => exposed.includes(header))).toBe(isOurs);
  });

  it.each([
    [CHAT, "x-ratelimit-remaining-tokens"],
    ["/v1/messages", "anthropic-ratelimit-requests-remaining"],
  ])("can read all response headers of %s, including %s", async (path, told) => {
    const maker = await openAccount();
    const made = await send("/v1/keys", {
      key: maker.key,
      body: { name: "page", scope: "regional", tpm_limit: 5000 },
    });
    expect(made.status).toBe(201);
    const { key } = await made.json<{ key: string }>();
    const body = { ...chatBody, max_tokens: 10 };
    const { headers, status } = await send(path, { key, body, headers: ORIGIN });
    const ours = [...headers.keys()].filter((name) =>
      /^(?:x-(?!content-type-options)|retry-|openai-|anthropic-|request-id)/.test(name),
    );
    expect([status, ours.includes(told)]).toEqual([200, true]);
    const exposed = headers.get("access-control-expose-headers")?.split(", ") ?? [];
    expect(ours.filter((name) => !exposed.includes(name))).toEqual([]);
  });

  it("gets every requested header in a preflight without a key", async () => {
    const asked =
      "authorization, content-type, x-stainless-lang, x-stainless-retry-count, x-stainless-helper-method";
    for (const path of [CHAT, "/v1/models/sandbox/echo", "/v1/keys", "/v1/none"]) {
      const response = await send(path, {
        method: "OPTIONS",
        headers: {
          ...ORIGIN,
          "access-control-request-method": "POST",
          "access-control-request-headers": asked,
        },
      });
      expect([response.status, await response.text()]).toEqual([204, ""]);
      expect(response.headers.get("access-control-allow-headers")).toBe(asked);
      expect(response.headers.get("access-control-allow-origin")).toBe("*");
      expect(response.headers.get("access-control-allow-methods")).toContain("DELETE");
      expect(response.headers.has("access-control-allow-credentials")).toBe(false);
    }
  });

  it("fails in a preflight for operators' paths", async () => {
    const response = await send("/admin/v1/orgs", { method: "OPTIONS", headers: ORIGIN });
    expect(response.status).toBe(401);
    expect(response.headers.has("access-control-allow-methods")).toBe(false);
  });

  it("can read the error of a misconfigured region", async () => {
    const bindings = bindingsWith({ ADMIN_TOKEN: "" });
    const response = await send("/v1/models", { headers: ORIGIN, bindings });
    expect(response.status).toBe(503);
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
  });
});
