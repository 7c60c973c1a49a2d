import { beforeAll, describe, expect, it } from "vitest";
import { chat, errorOf, HELLO, openAccount, send } from "./client.ts";
import {
  mockUpstream,
  UPSTREAM_SECRET,
  upstreamCompletion,
  upstreamError,
  upstreamStream,
} from "./upstream.ts";
import { chunkOf } from "../fixtures/openai-replies.ts";
import { completionOf } from "./response-schemas.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

/** Returns the provider's request for these fields. */
async function sent(fields: Record<string, unknown>): Promise<Record<string, unknown>> {
  const { calls, bindings } = mockUpstream(() => upstreamCompletion());
  await completionOf(await chat(key, { model: "mock/chat", ...fields }, { bindings }));
  expect(calls).toHaveLength(1);
  return { ...calls[0]?.body };
}

describe("a request to the provider", () => {
  it("contains the provider's model name, the messages and always an output cap", async () => {
    const body = await sent({});
    expect(body).toEqual({ model: "up-chat", messages: HELLO, max_tokens: 4096 });
  });

  it.each([
    [{ max_tokens: 5, max_completion_tokens: 9 }, 5],
    [{ max_tokens: 9, max_completion_tokens: 5 }, 5],
    [{ max_tokens: 1e15 }, 4096],
  ])("contains a single output cap, max_tokens, if the client sends %j: %i", async (caps, cap) => {
    const body = await sent(caps);
    expect(body).toMatchObject({ max_tokens: cap });
    expect(body).not.toHaveProperty("max_completion_tokens");
  });

  it.each([
    ["/v1/chat/completions", { messages: HELLO, verbosity: "low" }, "verbosity"],
    ["/v1/chat/completions", { messages: HELLO, "an odd, \nfield": 1 }, "an_odd___field"],
    ["/v1/chat/completions", { messages: HELLO, verbosity: "low", stream: true }, "verbosity"],
    ["/v1/chat/completions", { messages: HELLO, seed: 1, logprobs: false, user: "u" }, null],
    ["/v1/responses", { input: "Hi", text: { verbosity: "low" } }, "text.verbosity"],
  ])(
    "omits unsupported fields, which the response lists in x-dropped: %s %j",
    async (path, fields, dropped) => {
      const isStream = "stream" in fields;
      const { bindings } = mockUpstream(() =>
        isStream ? upstreamStream([chunkOf({ content: "Hi" }, "stop")]) : upstreamCompletion(),
      );
      const body = { model: "mock/chat", ...fields };
      const response = await send(path, { key, body, bindings });
      expect([response.status, response.headers.get("x-dropped")]).toEqual([200, dropped]);
      await response.text();
    },
  );

  it("contains the lowered output cap that the balance covers, also returned in x-granted-max-tokens", async () => {
    const { key: poor } = await openAccount({ credits: 1000 });
    const { calls, bindings } = mockUpstream(() => upstreamCompletion());
    const response = await chat(poor, { model: "mock/chat" }, { bindings });
    expect(response.headers.get("x-granted-max-tokens")).toBe(String(calls[0]?.body["max_tokens"]));
    expect(Number(calls[0]?.body["max_tokens"])).toBeLessThan(500);
  });

  it("contains all client fields that don't affect the cost", async () => {
    const fields = {
      temperature: 0,
      top_p: 0.5,
      n: 2,
      stop: ["a", "b"],
      seed: 4,
      presence_penalty: 1,
      logit_bias: { "50256": -100 },
      response_format: { type: "json_object" },
      tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
      tool_choice: "auto",
      parallel_tool_calls: false,
      reasoning_effort: "low",
    };
    expect(await sent(fields)).toMatchObject(fields);
  });

  it("contains no unknown field, null, end user or URL from the client's request", async () => {
    const { calls, bindings } = mockUpstream(() => upstreamCompletion());
    const dropped = {
      api_base: "https://evil.test",
      base_url: "https://evil.test",
      api_key: "sk-other",
      headers: { "x-evil": "1" },
      extra_body: { model: "dear" },
      user: "my-customer",
      metadata: { a: "b" },
      store: false,
      temperature: null,
      constructor: { prototype: { polluted: 1 } },
      provider: { order: [] },
    };
    const text = { type: "text", text: "hi", cache_control: { type: "ephemeral" } };
    const messages = [{ role: "user", content: [text], name: null, api_key: "sk-other" }];
    await completionOf(await chat(key, { model: "mock/chat", messages, ...dropped }, { bindings }));
    expect(calls[0]?.url).toBe("https://models.upstream.test/v1/chat/completions");
    expect(calls[0]?.body).toEqual({
      model: "up-chat",
      messages: [{ role: "user", content: [{ type: "text", text: "hi" }] }],
      max_tokens: 4096,
    });
    expect(calls[0]?.headers["authorization"]).toBe(`Bearer ${UPSTREAM_SECRET}`);
    expect(Object.keys(calls[0]?.headers ?? {}).toSorted()).toEqual([
      "accept",
      "authorization",
      "content-type",
      "user-agent",
    ]);
  });

  it("omits optional fields that are null in the client's request", async () => {
    const image = { type: "image_url", image_url: { url: "https://a.test/b.png", detail: null } };
    const assistant = { role: "assistant", content: null, tool_calls: null, name: null };
    const body = await sent({ messages: [{ role: "user", content: [image] }, assistant] });
    expect(body["messages"]).toEqual([
      { role: "user", content: [{ ...image, image_url: { url: "https://a.test/b.png" } }] },
      { role: "assistant", content: null },
    ]);
  });

  it("requests usage for every stream, even if the client requests none", async () => {
    const { calls, bindings } = mockUpstream(() => upstreamStream([]));
    await (await chat(key, { model: "mock/chat", stream: true }, { bindings })).text();
    expect(calls[0]?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  it("never reaches a provider for an unknown model, but returns 404", async () => {
    const { calls, bindings } = mockUpstream(() => upstreamCompletion());
    for (const model of ["../x", "http://evil.test/v1", "mock/none", "up-chat"]) {
      expect((await chat(key, { model }, { bindings })).status).toBe(404);
    }
    expect(calls).toEqual([]);
  });
});

describe("an error of the provider", () => {
  it("keeps the provider's message about a context that is too long, because clients match this message", async () => {
    const message = "prompt is too long: 209752 tokens > 200000 maximum";
    const { bindings } = mockUpstream(() => upstreamError(400, { message }));
    const error = await errorOf(await chat(key, { model: "mock/chat" }, { bindings }), 400);
    expect(error.code).toBe("context_length_exceeded");
    expect(error.message).toContain("maximum context length");
  });

  it.each([301, 302, 307])(
    "turns the provider's redirect status %i into a 502, without a second request",
    async (status) => {
      const headers = { location: "https://evil.test/" };
      const { calls, bindings } = mockUpstream(() => new Response(null, { status, headers }));
      const error = await errorOf(await chat(key, { model: "mock/chat" }, { bindings }), 502);
      expect(error.type).toBe("upstream_error");
      expect(new Set(calls.map((call) => call.url)).size).toBe(1);
      expect(calls.map((call) => call.redirect)).toEqual(calls.map(() => "manual"));
    },
  );

  it("becomes a 502 if the JSON response is too large, and the gateway stops reading", async () => {
    let megabytes = 0;
    const body = (): ReadableStream<Uint8Array> =>
      new ReadableStream({
        // Only a byte stream fails like a connection: another kind would fail before it is read.
        type: "bytes",
        pull(controller) {
          megabytes++;
          if (megabytes > 1024) controller.close();
          else controller.enqueue(new Uint8Array(1024 * 1024).fill(32));
        },
      });
    const headers = { "content-type": "application/json" };
    const { bindings } = mockUpstream(() => new Response(body(), { headers }));
    await errorOf(await chat(key, { model: "mock/chat" }, { bindings }), 502);
    expect(megabytes).toBeGreaterThan(20);
    expect(megabytes).toBeLessThan(100);
  });
});
