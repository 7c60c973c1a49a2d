import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { rowsOf } from "../wallet/wallet-fixture.ts";
import { ADMIN_TOKEN, admin, chat, embed, openAccount, send } from "./client.ts";
import { mockUpstream, UPSTREAM_SECRET, upstreamError, upstreamStream } from "./upstream.ts";
import type { UpstreamCall } from "./upstream.ts";

const PROMPT = "prompt-canary-7f3a91";
const USER = "user-canary-5b20c4";
const HOST = "models.upstream.test";
const messages = [{ role: "user", content: PROMPT }];
const firstChunk = {
  id: "x",
  choices: [{ index: 0, delta: { content: "a" }, finish_reason: null }],
};

/** All log lines, and all responses except status lines. */
let log: string[] = [];
beforeEach(() => {
  log = [];
  for (const method of ["log", "warn", "error", "info", "debug"] as const) {
    vi.spyOn(console, method).mockImplementation((...line: unknown[]) => {
      log.push(line.map(String).join(" "));
    });
  }
});

const seen = async (response: Response): Promise<string> =>
  `${JSON.stringify([...response.headers])}\n${await response.text()}`;

/** Returns the response of a provider that quotes everything it received. */
const leakyMessage = (call: UpstreamCall): string =>
  `Incorrect API key ${UPSTREAM_SECRET} (${call.headers["authorization"]}) at https://${HOST}/v1, ` +
  `org-abcdef123456, 10.1.2.3:8080; Error: stack\n    at handler (/srv/app.js:10:3)`;

/**
 * The same text about the client's request. A 400 that starts with text about our key would be our
 * own error.
 */
const leakyRejection = (call: UpstreamCall): string =>
  `Your request is refused. ${leakyMessage(call)}`;

const ANSWERS: readonly (readonly [string, number, (call: UpstreamCall) => Response])[] = [
  ...[401, 402, 403, 404, 408, 418, 429, 500, 503, 529].map((status) => {
    const answer = (call: UpstreamCall) => upstreamError(status, { message: leakyMessage(call) });
    return [`a ${status}`, [429, 503, 529].includes(status) ? 503 : 502, answer] as const;
  }),
  [
    "a 400",
    400,
    (call) => upstreamError(400, { message: leakyRejection(call), param: UPSTREAM_SECRET }),
  ],
  ["a 422 code", 422, (call) => upstreamError(422, { message: "no", code: leakyMessage(call) })],
  [
    "a rejection in a 200",
    400,
    (call) => {
      const type = "invalid_request_error";
      return Response.json({
        error: { message: leakyRejection(call), param: UPSTREAM_SECRET, type },
      });
    },
  ],
  [
    "a rejection as an event",
    400,
    (call) => {
      const errorBody = { error: { message: leakyRejection(call), code: 400 } };
      return call.body["stream"] === true ? upstreamStream([errorBody]) : Response.json(errorBody);
    },
  ],
  ["HTML", 502, (call) => new Response(`<h1>${leakyMessage(call)}</h1>`)],
  ["an error in a 200", 502, (call) => Response.json({ error: { message: leakyMessage(call) } })],
  [
    "a redirect",
    502,
    () =>
      new Response(null, { status: 302, headers: { location: `https://x/?k=${UPSTREAM_SECRET}` } }),
  ],
  [
    "a thrown error",
    502,
    (call) => {
      throw new TypeError(leakyMessage(call));
    },
  ],
];

describe("a provider's response", () => {
  it.each(ANSWERS)("reveals no secret to clients or the log: %s", async (_, status, answer) => {
    const { key } = await openAccount();
    for (const stream of [false, true]) {
      const { bindings, calls } = mockUpstream(answer);
      const fields = { model: "mock/chat", messages, user: USER, stream };
      const response = await chat(key, fields, { bindings });
      expect(calls.length).toBeGreaterThan(0);
      expect(response.status).toBe(status === 422 ? 400 : status);
      const text = await seen(response);
      for (const canary of [UPSTREAM_SECRET, key, HOST, "org-abcdef", "10.1.2.3", "app.js"]) {
        expect(text).not.toContain(canary);
      }
      vi.mocked(fetch).mockRestore();
    }
    const logged = log.join("\n");
    for (const canary of [UPSTREAM_SECRET, key, key.slice(-12), PROMPT, USER, HOST, "org-abc"]) {
      expect(logged).not.toContain(canary);
    }
  });

  it.each([
    ["first", []],
    ["in mid-stream", [firstChunk]],
  ])("reveals no secret to clients in an error event that is sent %s", async (_, before) => {
    const { key } = await openAccount();
    const { bindings } = mockUpstream((call) =>
      upstreamStream([
        ...before,
        { error: { message: leakyMessage(call), code: UPSTREAM_SECRET } },
      ]),
    );
    const fields = { model: "mock/chat", messages, stream: true };
    const text = (await seen(await chat(key, fields, { bindings }))) + log.join("\n");
    for (const canary of [UPSTREAM_SECRET, key, HOST, "org-abcdef", "app.js"]) {
      expect(text).not.toContain(canary);
    }
  });

  it("reaches clients without the provider's headers and extra fields", async () => {
    const { key } = await openAccount();
    const choice = {
      index: 0,
      message: { role: "assistant", content: "ok" },
      finish_reason: "stop",
    };
    const headers = { "x-request-id": "theirs", "set-cookie": "a=b", server: HOST, via: HOST };
    const { bindings } = mockUpstream(() =>
      Response.json({ choices: [choice], debug: UPSTREAM_SECRET, host: HOST }, { headers }),
    );
    const text = await seen(await chat(key, { model: "mock/chat" }, { bindings }));
    for (const canary of [UPSTREAM_SECRET, HOST, "theirs", "set-cookie"]) {
      expect(text).not.toContain(canary);
    }
  });
});

describe("a secret of a customer or of the gateway", () => {
  it("never reaches the log: key, prompt, end user, path and query", async () => {
    const { key } = await openAccount();
    const forged = `svc_sk_eu_live_a${"CANARY".repeat(7).slice(0, 39)}`;
    const answers = [
      await chat(key, { messages, user: USER }),
      await chat(key, { messages, user: USER, stream: true }),
      await chat(key, { messages, temperature: PROMPT }),
      await chat(key, { messages, model: PROMPT }),
      await chat(key, { messages, model: "sandbox/echo-key-401" }),
      await embed(key, { input: PROMPT, user: USER }),
      await send(`/v1/models/${PROMPT}?key=${key}`, { key }),
      await send(`/v1/${PROMPT}?key=${key}`, { key }),
      await send("/v1/chat/completions", { key, body: `{"messages":"${PROMPT}` }),
      await send("/v1/models", { key: forged }),
      await send("/v1/models", { headers: { authorization: key } }),
      await send("/admin/v1/orgs", { key }),
      await admin("GET", `/orgs/${PROMPT}`),
    ];
    const texts = await Promise.all(answers.map(seen));
    for (const secret of [
      key,
      forged,
      ADMIN_TOKEN,
      "sk-canary",
      env.KEY_SECRETS,
      env.PEER_OUT_US,
      env.PEER_IN_US,
    ]) {
      expect(texts.filter((text) => text.includes(secret))).toEqual([]);
    }
    const logged = log.join("\n");
    expect(logged).toContain('"event":"request"');
    for (const canary of [key, key.slice(-12), PROMPT, USER, "CANARY", ADMIN_TOKEN, "sk-canary"]) {
      expect(logged).not.toContain(canary);
    }
  });

  it("never reaches the database: key and prompt", async () => {
    const { key, orgId } = await openAccount();
    await chat(key, { messages });
    await env.WALLET.getByName(orgId).poke();
    const { results: tables } = await env.DB.prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB '_cf_*'",
    ).all<{ name: string }>();
    expect(tables.length).toBeGreaterThan(5);
    for (const { name } of tables) {
      const { results } = await env.DB.prepare(`SELECT * FROM "${name}"`).all();
      const dump = JSON.stringify(results);
      for (const canary of [key, key.slice(-24), PROMPT]) expect(dump).not.toContain(canary);
    }
  });

  it("never reaches clients in internal errors, which return 500 without details", async () => {
    const { key } = await openAccount();
    const broken = { getByName: () => undefined };
    const bindings = { ...env, WALLET: broken } as unknown as Env;
    const response = await send("/v1/balance", { key, bindings });
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.status).toBeGreaterThanOrEqual(500);
    expect(await response.text()).not.toMatch(/TypeError|undefined|\.ts|at /);
  });
});

it("the wallet and the log contain no Idempotency-Key, prompt, output or API key", async () => {
  const { key, orgId } = await openAccount();
  const headers = { "Idempotency-Key": "idempotency-canary-91c2" };
  const response = await chat(key, { messages }, { headers });
  expect(await response.text()).toContain(PROMPT);
  const repeat = await seen(await chat(key, { messages }, { headers }));
  const wallet = env.WALLET.getByName(orgId);
  const tables = await rowsOf(
    wallet,
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf\\_%' ESCAPE '\\'",
  );
  const names = tables.map((table) => String(table["name"]));
  expect(names).toContain("idempotency_keys");
  const rows = await Promise.all(names.map((name) => rowsOf(wallet, `SELECT * FROM "${name}"`)));
  const stored = JSON.stringify(rows);
  expect(stored).toContain(response.headers.get("x-request-id"));
  const places = [stored, repeat, log.join("\n")];
  for (const place of places) {
    for (const secret of [PROMPT, key, "idempotency-canary"]) expect(place).not.toContain(secret);
  }
});
