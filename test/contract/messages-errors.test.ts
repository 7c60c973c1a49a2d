import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, openAccount, send } from "./client.ts";
import { messageOf, messages, anthropicErrorOf } from "./messages-client.ts";
import type { Json } from "./messages-client.ts";
import { mockUpstream, upstreamCompletion } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const chatTool = (name: string): Json => ({ type: "function", function: { name } });

describe("a failed POST /v1/messages", () => {
  it("returns Anthropic's error format, with the gateway's code and amounts in details", async () => {
    const { key: poor } = await openAccount({ credits: 0 });
    const response = await messages(poor);
    expect(response.headers.get("x-should-retry")).toBe("false");
    const refusal = await anthropicErrorOf(response);
    expect(refusal).toMatchObject({
      status: 402,
      type: "billing_error",
      code: "insufficient_balance",
      // Claude Code matches this text, suggests adding credits, and stops.
      message: expect.stringMatching(
        /^Insufficient credits\. Your credit balance is too low: this request needs at least \d+/,
      ),
    });
    expect(refusal.details).toMatchObject({ balance_micro: 0, required_micro: expect.any(Number) });
    expect(await anthropicErrorOf(await messages(key, { model: "nobody/knows" }))).toMatchObject({
      status: 404,
      type: "not_found_error",
      message: "model: nobody/knows",
    });
    expect(await anthropicErrorOf(await send("/v1/messages", { key }))).toMatchObject({
      status: 405,
    });
    expect(
      await anthropicErrorOf(await send("/v1/messages/batches", { key, body: {} })),
    ).toMatchObject({
      status: 404,
      type: "not_found_error",
    });
    const { key: slow } = await openAccount({ rpmLimit: 1 });
    await messageOf(await messages(slow));
    const limited = await messages(slow);
    expect(limited.headers.get("retry-after")).toMatch(/^\d+$/);
    expect(await anthropicErrorOf(limited)).toMatchObject({
      status: 429,
      type: "rate_limit_error",
    });
  });

  it.each<[string, Json]>([
    ["max_tokens", { max_tokens: undefined }],
    [
      "messages[0].content[0].source",
      {
        messages: [
          {
            role: "user",
            content: [
              {
                type: "document",
                source: { type: "base64", media_type: "application/pdf", data: "AAAA" },
              },
            ],
          },
        ],
      },
    ],
    ["max_tokens", { max_tokens: 0 }],
    ["speed", { speed: "fast" }],
    ["messages[0].role", { messages: [{ role: "tool", content: "x" }] }],
    ["messages", { messages: [] }],
    ["model", { model: 7 }],
    ["inference_geo", { inference_geo: "us" }],
    ["tools[0].name", { tools: [{ name: "a b", input_schema: {} }] }],
  ])(
    "returns 400 with the param for a missing or invalid %s, and holds nothing",
    async (param, fields) => {
      const before = await balanceOf(key);
      expect(await anthropicErrorOf(await messages(key, fields))).toMatchObject({
        status: 400,
        type: "invalid_request_error",
        param,
      });
      expect(await balanceOf(key)).toBe(before);
    },
  );

  it("rejects the beta field 'thread' with the error that SDKs expect, even if other fields are invalid", async () => {
    const fields = { thread: { type: "create" }, max_tokens: "many" };
    const path = "/v1/messages/count_tokens";
    const body = { model: "sandbox/echo", messages: [], ...fields };
    for (const refused of [await messages(key, fields), await send(path, { key, body })]) {
      const { status, details } = await anthropicErrorOf(refused);
      expect([status, details]).toEqual([
        400,
        {
          error_code: "thread_unsupported_request",
          param: "thread",
          unsupported: ["thread"],
        },
      ]);
    }
  });

  it("rejects a tool choice with an unknown tool at all endpoints, without calling a provider", async () => {
    const { calls, bindings } = mockUpstream(() => upstreamCompletion());
    const conversation = [{ role: "user", content: "Hi" }];
    const bodies: readonly (readonly [string, Json])[] = [
      [
        "messages",
        {
          max_tokens: 9,
          messages: conversation,
          tools: [{ name: "a", input_schema: {} }],
          tool_choice: { type: "tool", name: "b" },
        },
      ],
      [
        "chat/completions",
        { messages: conversation, tools: [chatTool("a")], tool_choice: chatTool("b") },
      ],
      [
        "responses",
        {
          input: conversation,
          tools: [{ type: "function", name: "a" }],
          tool_choice: { type: "function", name: "b" },
        },
      ],
    ];
    for (const [endpoint, fields] of bodies) {
      const body = { model: "mock/chat", ...fields };
      const response = await send(`/v1/${endpoint}`, { key, body, bindings });
      const { error } = await response.json<{ error: { param?: string; details?: Json } }>();
      const { param = error.details?.["param"] } = error;
      expect([endpoint, response.status, param]).toEqual([endpoint, 400, "tool_choice"]);
    }
    expect(calls).toEqual([]);
  });

  it("rejects an embeddings model", async () => {
    expect((await messages(key, { model: "sandbox/embed" })).status).toBeGreaterThanOrEqual(400);
  });

  it.each([
    [
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 150000 tokens.",
      "prompt is too long: 150000 tokens > 128000 maximum",
    ],
    [
      "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
      "prompt is too long: 1200000 tokens > 1048576 maximum",
    ],
    [
      "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens",
      "prompt is too long: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4000 `inputs` tokens",
    ],
    [
      "input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000",
      "input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000",
    ],
  ])(
    "reports a too long context with the message that makes clients shorten the context: %s",
    async (providerMessage, message) => {
      const { bindings } = mockUpstream(() =>
        Response.json({ error: { message: providerMessage } }, { status: 400 }),
      );
      const refusal = await anthropicErrorOf(
        await messages(key, { model: "mock/chat" }, { bindings }),
      );
      expect(refusal).toMatchObject({
        status: 400,
        code: "context_length_exceeded",
        message,
      });
    },
  );

  it("returns no body for HEAD / without a key, which clients use as a connection check", async () => {
    const response = await send("/", { method: "HEAD" });
    expect(response.status).toBeLessThan(500);
    expect(await response.text()).toBe("");
  });

  it("returns 413 if the provider rejects the body as too large, and 400 if the prompt is too long", async () => {
    const providerMessages = ["Request too large.", "prompt is too long: 9 tokens > 8 maximum"];
    const { bindings } = mockUpstream(() =>
      Response.json({ error: { message: providerMessages.shift() } }, { status: 413 }),
    );
    const fields = { model: "mock/chat" };
    expect(await anthropicErrorOf(await messages(key, fields, { bindings }))).toMatchObject({
      status: 413,
      type: "request_too_large",
    });
    expect(await anthropicErrorOf(await messages(key, fields, { bindings }))).toMatchObject({
      status: 400,
      type: "invalid_request_error",
    });
  });

  it("returns 502 if the provider returns 401", async () => {
    const { bindings } = mockUpstream(() =>
      Response.json({ error: { message: "bad key" } }, { status: 401 }),
    );
    const refusal = await anthropicErrorOf(
      await messages(key, { model: "mock/chat" }, { bindings }),
    );
    expect(refusal).toMatchObject({ status: 502, type: "api_error" });
  });
});
