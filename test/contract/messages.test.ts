import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, chat, openAccount, send } from "./client.ts";
import { createKey } from "./key-client.ts";
import { readFoldedMessage, messageOf, messages, anthropicErrorOf } from "./messages-client.ts";
import type { Json } from "./messages-client.ts";
import { mockUpstream, upstreamCompletion, upstreamStream } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const HI = { role: "user", content: "Hello there" };
const VERSION = { "anthropic-version": "2023-06-01" };
const post = (headers: Record<string, string>, bearer?: string): Promise<Response> =>
  messages(bearer, {}, { headers });
const count = (fields: Json): Promise<Response> => {
  const body = { model: "sandbox/echo", messages: [HI], ...fields };
  return send("/v1/messages/count_tokens", { key, body });
};

const words = (many: number): Json[] => [{ role: "user", content: "word ".repeat(many) }];
const tokens = ({ headers }: Response): (string | null)[] =>
  ["limit", "remaining", "reset"].map((of) => headers.get(`anthropic-ratelimit-tokens-${of}`));

describe("POST /v1/messages", () => {
  it("returns a complete message with the request's ID, and charges its usage", async () => {
    const before = await balanceOf(key);
    const response = await messages(key, { system: "Be brief." });
    const message = await messageOf(response);
    expect(message).toEqual({
      id: `msg_${response.headers.get("x-request-id")?.slice(4)}`,
      type: "message",
      role: "assistant",
      model: "sandbox/echo",
      content: [{ type: "text", text: "Hello there" }],
      stop_reason: "end_turn",
      stop_sequence: null,
      stop_details: null,
      container: null,
      diagnostics: null,
      usage: {
        input_tokens: expect.any(Number),
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 0 },
        output_tokens: expect.any(Number),
        output_tokens_details: { thinking_tokens: 0 },
        server_tool_use: null,
        service_tier: "standard",
        inference_geo: null,
        speed: null,
        cost: Number(response.headers.get("x-cost-micro")) / 1_000_000,
        cost_micro: Number(response.headers.get("x-cost-micro")),
      },
    });
    expect(before - (await balanceOf(key))).toBe(Number(response.headers.get("x-cost-micro")));
    expect(response.headers.get("request-id")).toBe(response.headers.get("x-request-id"));
  });

  it("streams the message that a JSON response contains, with input tokens first, and ends after the charge", async () => {
    const whole = await messageOf(await messages(key));
    const before = await balanceOf(key);
    const response = await messages(key, { stream: true });
    const { message, started } = await readFoldedMessage(response);
    expect(message).toEqual({ ...whole, id: message["id"] });
    expect(message["id"]).toBe(`msg_${response.headers.get("x-request-id")?.slice(4)}`);
    expect(started["input_tokens"]).toBeGreaterThan(0);
    expect(started["output_tokens"]).toBe(1);
    const { cost_micro } = message["usage"] as { cost_micro: number };
    expect(before - (await balanceOf(key))).toBe(cost_micro);
  });

  it("accepts ?beta=true and both API versions", async () => {
    const body = { model: "sandbox/echo", max_tokens: 9, messages: [HI] };
    await messageOf(await send("/v1/messages?beta=true", { key, body }));
    for (const version of ["2023-06-01", "2026-10-21", ""]) {
      await messageOf(await messages(key, {}, { headers: { "anthropic-version": version } }));
    }
    const refused = await messages(key, {}, { headers: { "anthropic-version": "2020-01-01" } });
    expect(await anthropicErrorOf(refused)).toMatchObject({
      status: 400,
      type: "invalid_request_error",
    });
    const newer = { headers: { "anthropic-version": "2026-10-21" } };
    expect(await anthropicErrorOf(await messages(key, { temperature: 1 }, newer))).toMatchObject({
      status: 400,
      message: "temperature: Extra inputs are not permitted",
    });
  });

  it("accepts a key in both x-api-key and Authorization, but rejects two different keys", async () => {
    const { key: other } = await openAccount();
    for (const response of [
      await post({ "x-api-key": key }),
      await post({ "x-api-key": key }, key),
      await post({ "x-api-key": "" }, key),
      await post({ "x-api-key": "sk-ant-api03-theirs" }, key),
    ]) {
      await messageOf(response);
    }
    const wrong = key.slice(0, -1);
    for (const [response, message] of [
      [await post({}), "Invalid or missing API key"],
      [await post({ "x-api-key": other }, key), "'Authorization' and 'x-api-key' contain two"],
      [await post({ "x-api-key": wrong }, "sk-ant-theirs"), "Invalid API key in 'x-api-key'"],
      [await post({ "x-api-key": "sk-theirs" }, wrong), "Invalid API key in 'Authorization'"],
    ] as const) {
      expect(await anthropicErrorOf(response)).toMatchObject({
        status: 401,
        type: "authentication_error",
        message: expect.stringContaining(message),
      });
    }
    expect((await send("/v1/balance", { headers: { "x-api-key": key } })).status).toBe(200);
  });

  it("returns the key's requests per minute in Anthropic's headers", async () => {
    const response = await messages(key);
    await response.text();
    const header = (name: string): string =>
      response.headers.get(`anthropic-ratelimit-requests-${name}`) ?? "";
    expect(header("limit")).toBe("1000");
    expect(Number(header("remaining"))).toBeLessThan(1000);
    expect(header("reset")).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  });

  it("returns the key's remaining tokens per minute, in a response and in a 429", async () => {
    const { key: limited } = await createKey(key, { tpm_limit: 1500 });
    const reset = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const response = await messages(limited, { messages: words(500), max_tokens: 600 });
    await messageOf(response);
    expect(tokens(response)).toEqual(["1500", expect.stringMatching(/^\d+$/), reset]);
    const refused = await messages(limited, { messages: words(700), max_tokens: 64 });
    expect(await anthropicErrorOf(refused)).toMatchObject({
      status: 429,
      type: "rate_limit_error",
    });
    expect(tokens(refused)).toEqual(["1500", expect.stringMatching(/^\d+$/), reset]);
    expect(tokens(await messages(key))).toEqual([null, null, null]);
  });

  it("attributes usage to the end user in x-end-user instead of metadata.user_id", async () => {
    const id = `e-${crypto.randomUUID()}`;
    const metadata = { user_id: `t-${crypto.randomUUID()}` };
    await messageOf(await messages(key, { metadata }));
    await messageOf(await messages(key, {}, { headers: { "x-end-user": id } }));
    expect((await send(`/v1/users/${metadata.user_id}`, { key })).status).toBe(404);
    expect((await send(`/v1/users/${id}`, { key })).status).toBe(200);
  });

  it("converts tool calls, tool results and reasoning to and from OpenAI's format", async () => {
    const call = {
      id: "call_1",
      type: "function",
      function: { name: "look", arguments: '{"at":1}' },
    };
    const choice = { index: 0, finish_reason: "tool_calls" };
    const reply = { role: "assistant", content: null, tool_calls: [call] };
    const usage = {
      prompt_tokens: 20,
      completion_tokens: 7,
      prompt_tokens_details: { cached_tokens: 5 },
    };
    const { calls, bindings } = mockUpstream(() =>
      Response.json({ object: "chat.completion", choices: [{ ...choice, message: reply }], usage }),
    );
    const tools = [{ name: "look", input_schema: { type: "object" } }];
    const response = await messages(key, { model: "mock/chat", tools, top_k: 3 }, { bindings });
    expect(response.headers.get("x-dropped")).toBe("top_k");
    const message = await messageOf(response);
    const use = { type: "tool_use", id: "call_1", name: "look", input: { at: 1 } };
    expect(message).toMatchObject({ content: [use], stop_reason: "tool_use" });
    expect(message["usage"]).toMatchObject({ input_tokens: 15, cache_read_input_tokens: 5 });
    const result = { type: "tool_result", tool_use_id: "call_1", content: "seen" };
    await messageOf(
      await messages(
        key,
        {
          model: "mock/chat",
          tools,
          messages: [
            HI,
            { role: "assistant", content: [use] },
            { role: "user", content: [result] },
          ],
        },
        { bindings },
      ),
    );
    expect(calls[1]?.body["messages"]).toEqual([
      HI,
      { role: "assistant", tool_calls: [call] },
      { role: "tool", tool_call_id: "call_1", content: "seen" },
    ]);
  });

  it("drops and reports fields that the other protocol lacks, even nested fields", async () => {
    const { calls, bindings } = mockUpstream(() => upstreamCompletion());
    const cache_control = { type: "ephemeral" };
    const fields = {
      model: "mock/chat",
      messages: [{ role: "user", content: [{ type: "text", text: "Hi", cache_control, odd: 1 }] }],
      tools: [{ name: "look", input_schema: {}, eager_input_streaming: true }],
      thinking: { type: "disabled", display: "omitted" },
      inference_geo: "global",
    };
    const response = await messages(key, fields, { bindings });
    await messageOf(response);
    const named = response.headers.get("x-dropped")?.split(", ").toSorted();
    expect(named).toEqual([
      "cache_control",
      "inference_geo",
      "text.odd",
      "thinking.display",
      "tools.eager_input_streaming",
    ]);
    expect(JSON.stringify(calls[0]?.body)).not.toMatch(/cache|odd|eager|omitted|geo/);
  });

  it("ends a broken stream with an error event, without message_stop", async () => {
    const chunk = { choices: [{ index: 0, delta: { content: "Hel" }, finish_reason: null }] };
    const { bindings } = mockUpstream(() => {
      const whole = upstreamStream([chunk]);
      const text = whole.text().then((sent) => sent.replace("data: [DONE]\n\n", ""));
      return text.then((sent) => new Response(sent, { headers: whole.headers }));
    });
    const response = await messages(key, { model: "mock/chat", stream: true }, { bindings });
    const text = await response.text();
    expect(text).not.toContain("message_stop");
    const last = text.trimEnd().split("\n\n").at(-1) ?? "";
    expect(last).toMatch(/^event: error\ndata: /);
    expect(JSON.parse(last.slice(last.indexOf("{")))).toMatchObject({
      type: "error",
      error: { type: "api_error" },
      request_id: response.headers.get("request-id"),
    });
  });
});

describe("a conversation that moves between endpoints", () => {
  it("continues a conversation from chat completions to messages and back", async () => {
    const { bindings } = mockUpstream(() => upstreamCompletion());
    const message = await messageOf(await messages(key, { model: "mock/chat" }, { bindings }));
    const [block] = message["content"] as Json[];
    const turns = [HI, { role: "assistant", content: block?.["text"] }, HI];
    expect((await chat(key, { model: "mock/chat", messages: turns }, { bindings })).status).toBe(
      200,
    );
    await messageOf(await messages(key, { model: "mock/chat", messages: turns }, { bindings }));
  });
});

describe("POST /v1/messages/count_tokens", () => {
  it("counts tokens free of charge and without an output cap, slightly higher than the billed count", async () => {
    const before = await balanceOf(key);
    const { input_tokens: shortCount } = await (await count({})).json<{ input_tokens: number }>();
    const text = "The quick brown fox jumps over the lazy dog. ".repeat(40);
    const long = [{ role: "user", content: text }];
    const { input_tokens: longCount } = await (
      await count({ messages: long })
    ).json<{ input_tokens: number }>();
    expect(shortCount).toBeGreaterThan(0);
    expect(await balanceOf(key)).toBe(before);
    const billed = await messageOf(await messages(key, { messages: long }));
    const { input_tokens: counted } = billed["usage"] as { input_tokens: number };
    expect(longCount).toBeGreaterThanOrEqual(counted);
    const tools = [{ name: "look", input_schema: { type: "object" } }];
    const { input_tokens: withTools } = await (
      await count({ tools })
    ).json<{ input_tokens: number }>();
    expect(withTools).toBeGreaterThan(shortCount);
  });

  it("returns Anthropic's error format for an unknown model, missing messages, a missing key and a wrong method", async () => {
    expect(await anthropicErrorOf(await count({ model: "nobody" }))).toMatchObject({ status: 404 });
    expect(await anthropicErrorOf(await count({ messages: undefined }))).toMatchObject({
      status: 400,
      param: "messages",
    });
    const path = "/v1/messages/count_tokens";
    expect(await anthropicErrorOf(await send(path, { body: {} }))).toMatchObject({ status: 401 });
    expect(await anthropicErrorOf(await send(path, { key }))).toMatchObject({ status: 405 });
  });
});

describe("GET /v1/models for Anthropic clients", () => {
  type Page = { data: Json[]; has_more: boolean; first_id: string | null; last_id: string | null };
  const list = async (query: string, headers: Record<string, string> = VERSION): Promise<Page> => {
    const response = await send(`/v1/models${query}`, { key, headers });
    expect(response.status).toBe(200);
    return response.json<Page>();
  };

  it("returns every chat model exactly once across pages, forwards and backwards", async () => {
    const whole = await list("?limit=1000");
    expect(whole.has_more).toBe(false);
    const ids = whole.data.map(({ id }) => id);
    expect(ids).toContain("sandbox/echo");
    expect(ids).not.toContain("sandbox/embed");
    const forwards: unknown[] = [];
    for (let after: string | null = ""; after !== null;) {
      const page: Page = await list(`?limit=3${after === "" ? "" : `&after_id=${after}`}`);
      expect(page.first_id).toBe(page.data[0]?.["id"]);
      forwards.push(...page.data.map(({ id }) => id));
      after = page.has_more ? page.last_id : null;
    }
    expect(forwards).toEqual(ids);
    const before = await list(`?limit=3&before_id=${String(ids.at(-1))}`);
    expect(before.data.map(({ id }) => id)).toEqual(ids.slice(-4, -1));
    expect(before.has_more).toBe(ids.length > 4);
  });

  it.each([
    [
      "another service's x-api-key with our Bearer token",
      () => ({ "x-api-key": "sk-ant-theirs" }),
      "list",
    ],
    ["the same key in both headers", () => ({ "x-api-key": key }), "list"],
    [
      "our x-api-key with another service's Bearer token",
      () => ({ "x-api-key": key, authorization: "Bearer sk-theirs" }),
      undefined,
    ],
    ["an Anthropic version with our Bearer token", () => VERSION, undefined],
  ])(
    "chooses the API format of the model list by the request's headers: %s",
    async (_, headers, object) => {
      const requestHeaders = headers();
      const response = await send("/v1/models", {
        ...("authorization" in requestHeaders ? {} : { key }),
        headers: requestHeaders,
      });
      const body = await response.json<{ object?: string }>();
      expect([response.status, body.object]).toEqual([200, object]);
    },
  );

  it("returns a model's name, date and context window, even if only x-api-key is sent", async () => {
    const listed = await send("/v1/models?limit=1", { headers: { "x-api-key": key } });
    const [first] = (await listed.json<Page>()).data;
    expect(first).toEqual({
      type: "model",
      id: expect.any(String),
      display_name: expect.any(String),
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      lifecycle: "active",
      line: null,
      max_input_tokens: expect.any(Number),
      max_tokens: expect.any(Number),
      deprecated_at: null,
      retires_at: null,
      capabilities: null,
    });
    const one = await send("/v1/models/sandbox/echo", { key, headers: VERSION });
    expect(await one.json()).toMatchObject({
      type: "model",
      id: "sandbox/echo",
      display_name: "echo",
    });
  });

  it.each([
    ["/v1/models?limit=0", 400],
    ["/v1/models?limit=1001", 400],
    ["/v1/models?limit=x", 400],
    ["/v1/models/nobody/knows", 404],
    ["/v1/v1/models", 404],
  ])(
    "returns for %s the status %s in Anthropic's error format, and 401 without a key",
    async (path, status) => {
      expect(await anthropicErrorOf(await send(path, { key, headers: VERSION }))).toMatchObject({
        status,
      });
      expect(await anthropicErrorOf(await send(path, { headers: VERSION }))).toMatchObject({
        status: 401,
      });
    },
  );

  it("explains in the error that the path contains /v1 twice", async () => {
    const body = { model: "sandbox/echo", max_tokens: 9, messages: [HI] };
    const refused = await anthropicErrorOf(await send("/v1/v1/messages", { key, body }));
    expect(refused).toMatchObject({ status: 404, type: "not_found_error" });
    expect(refused.message).toContain("adds /v1 to the base URL");
  });
});
