import { beforeAll, describe, expect, it, vi } from "vitest";
import { balanceOf, chat, errorOf, eventsOf, openAccount } from "./client.ts";
import { mockUpstream } from "./upstream.ts";
import { chunksOf, errorBody, textOf } from "./response-schemas.ts";
import type { Chunk } from "./response-schemas.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const start = (fields: Record<string, unknown> = {}, headers = {}): Promise<Response> =>
  chat(key, { stream: true, ...fields }, { headers });
const stream = async (fields: Record<string, unknown> = {}): Promise<Chunk[]> =>
  chunksOf(await eventsOf(await start(fields)));
const WITH_USAGE = { stream_options: { include_usage: true } };
const finishes = (chunks: readonly Chunk[]) =>
  chunks.flatMap((one) => one.choices).filter((choice) => choice.finish_reason !== null);

describe("a stream of POST /v1/chat/completions", () => {
  it("contains server-sent events, even for Accept: application/json", async () => {
    const response = await start({}, { accept: "application/json" });
    expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(response.headers.get("cache-control")).toContain("no-cache");
    await response.text();
  });

  it("matches OpenAI's schema in every chunk, with constant id, created and model", async () => {
    const chunks = await stream({ model: "smart" });
    const identities = chunks.map(({ id, created, model }) => `${id} ${created} ${model}`);
    expect(new Set(identities).size).toBe(1);
    expect(chunks[0]?.model).toBe("sandbox/echo");
    expect(textOf(chunks)).toBe("Hello there");
  });

  it("uses the request ID as ID of all chunks", async () => {
    const [one, two] = [await start(), await start()];
    const [first] = chunksOf(await eventsOf(one));
    const [second] = chunksOf(await eventsOf(two));
    expect(first?.id.slice("chatcmpl-".length)).toBe(one.headers.get("x-request-id")?.slice(4));
    expect(first?.id).not.toBe(second?.id);
  });

  it("sends the role only in the first chunk, and the finish reason only in the last chunk", async () => {
    const chunks = await stream();
    const deltas = chunks.map((one) => one.choices[0]?.delta);
    expect(deltas[0]).toMatchObject({ role: "assistant", content: "" });
    expect(deltas.slice(1).some((delta) => delta !== undefined && "role" in delta)).toBe(false);
    expect(chunks.at(-1)?.choices).toEqual([
      { index: 0, delta: {}, logprobs: null, finish_reason: "stop" },
    ]);
    expect(finishes(chunks)).toHaveLength(1);
  });

  it("ends only once, with [DONE] and a blank line", async () => {
    const text = await (await start()).text();
    expect(text.endsWith("\n\ndata: [DONE]\n\n")).toBe(true);
    expect(text.split("[DONE]")).toHaveLength(2);
    expect(text).not.toMatch(/^(?!data: |$)/m);
  });

  it("omits usage from every chunk without include_usage", async () => {
    for (const stream_options of [undefined, null, {}, { include_usage: false }]) {
      const chunks = await stream({ stream_options });
      expect(chunks.some((one) => "usage" in one)).toBe(false);
    }
  });

  it("ends with a usage chunk without choices if include_usage is set; all earlier chunks have null as usage", async () => {
    const chunks = await stream(WITH_USAGE);
    expect(chunks.at(-1)?.choices).toEqual([]);
    expect(chunks.at(-1)?.usage).toBeTypeOf("object");
    expect(chunks.slice(0, -1).every((one) => one.usage === null)).toBe(true);
  });

  it("reports usage.cost_micro, which equals tokens times prices and the change in balance", async () => {
    const before = await balanceOf(key);
    const chunks = await stream(WITH_USAGE);
    const usage = chunks.at(-1)?.usage;
    expect(usage?.cost_micro).toBe(
      (usage?.prompt_tokens ?? NaN) + 2 * (usage?.completion_tokens ?? NaN),
    );
    expect(before - (await balanceOf(key))).toBe(usage?.cost_micro);
  });

  it("costs as much as a JSON response to the same request", async () => {
    const before = await balanceOf(key);
    await stream();
    const between = await balanceOf(key);
    const json = await chat(key);
    expect(before - between).toBe(Number(json.headers.get("x-cost-micro")));
  });

  it("delivers the first bytes before the model generates the last bytes", async () => {
    const response = await start({ model: "sandbox/stall" });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    const { value } = (await reader?.read()) ?? {};
    expect(value).toMatch(/^data: \{.*"role":"assistant"/);
    await reader?.cancel();
  });

  it("sends a comment instead of data while the model is silent", async () => {
    const encoder = new TextEncoder();
    const silence = Promise.withResolvers<void>();
    const events = [{ content: "a" }, { content: "b", finish: "stop" }].map(
      ({ content, finish = null }) =>
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`,
    );
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(encoder.encode(events[0]));
        await silence.promise;
        controller.enqueue(encoder.encode(`${events[1] ?? ""}data: [DONE]\n\n`));
        controller.close();
      },
    });
    const headers = { "content-type": "text/event-stream" };
    const upstream = mockUpstream(() => new Response(body, { headers }));
    const bindings = { ...upstream.bindings, KEEP_ALIVE_MS: "10" };
    const response = await chat(key, { model: "mock/chat", stream: true }, { bindings });
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const read = await reader?.read();
      if (read === undefined || read.done) break;
      text += read.value;
      if (text.includes("\n\n:")) silence.resolve();
    }
    vi.restoreAllMocks();
    expect(text.split("\n\n").find((event) => event.startsWith(":"))).toBe(": keep-alive");
    const data = text.replaceAll(": keep-alive\n\n", "").slice(0, -2).split("\n\n");
    const chunks = chunksOf(data.map((event) => event.slice("data: ".length)));
    expect(textOf(chunks)).toBe("ab");
  });

  it("sends a role and a finish reason for each of n choices", async () => {
    const chunks = await stream({ n: 2 });
    for (const index of [0, 1]) {
      const own = chunks.flatMap((one) => one.choices).filter((one) => one.index === index);
      expect(own.filter((choice) => choice.delta.role !== undefined)).toHaveLength(1);
      expect(own.filter((choice) => choice.finish_reason !== null)).toHaveLength(1);
      expect(textOf(chunks, index)).toBe("Hello there");
    }
  });

  it("supports max_tokens, stop, logprobs and JSON schemas like a JSON response", async () => {
    const messages = [{ role: "user", content: "one two three four five" }];
    const cut = await stream({ messages, max_tokens: 2 });
    expect(finishes(cut)[0]?.finish_reason).toBe("length");
    expect(textOf(cut)).toBe("one two");
    expect(textOf(await stream({ messages, stop: [" three"] }))).toBe("one two");
    const chunks = await stream({ messages, logprobs: true, top_logprobs: 1 });
    const tokens = chunks.flatMap((one) => one.choices[0]?.logprobs?.content ?? []);
    expect(tokens.map((one) => one.token).join("")).toBe(messages[0]?.content);
    const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] };
    const response_format = { type: "json_schema", json_schema: { name: "one", schema } };
    const json: unknown = JSON.parse(textOf(await stream({ messages, response_format })));
    expect(json).toEqual({ a: expect.any(Number) });
  });

  it("joins characters that were split between network packets", async () => {
    const chunks = await stream({ model: "sandbox/split-utf8" });
    expect(textOf(chunks)).toBe("Grüße, 世界 🌍 Hello there");
  });

  it("contains no text from any of 49 concurrent streams", async () => {
    const texts = await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        const messages = [{ role: "user", content: `stream number ${i}` }];
        return textOf(await stream({ messages }));
      }),
    );
    expect(texts).toEqual(texts.map((_, i) => `stream number ${i}`));
  });

  it.each(["sandbox/error-mid", "sandbox/cut"])(
    "ends with an error event for the model %s, without [DONE] and without a charge",
    async (model) => {
      const before = await balanceOf(key);
      const events = await eventsOf(await start({ model, ...WITH_USAGE }));
      expect(events).not.toContain("[DONE]");
      const { error } = errorBody.parse(JSON.parse(events.at(-1) ?? ""));
      expect(error).toMatchObject({ type: "upstream_error", param: null, code: null });
      expect(events.filter((event) => event.includes('"error"'))).toHaveLength(1);
      expect(await balanceOf(key)).toBe(before);
    },
  );

  it("reports an estimated charge in the usage chunk if the provider reports no usage", async () => {
    const before = await balanceOf(key);
    const chunks = await stream({ model: "sandbox/no-usage", ...WITH_USAGE });
    const cost = chunks.at(-1)?.usage?.cost_micro;
    expect(cost).toBeGreaterThan(0);
    expect(before - (await balanceOf(key))).toBe(cost);
  });
});

describe("a rejected stream of POST /v1/chat/completions", () => {
  it.each([
    ["sandbox/error-first", 502, "upstream_error", null],
    ["sandbox/status-500", 502, "upstream_error", null],
    ["sandbox/html", 502, "upstream_error", null],
    ["sandbox/echo-key-401", 502, "upstream_error", null],
    ["sandbox/status-429", 503, "api_error", "upstream_overloaded"],
    ["no/such", 404, "invalid_request_error", "model_not_found"],
  ])("returns a JSON error for %s with the status %i", async (model, status, type, code) => {
    const error = await errorOf(await start({ model }), status);
    expect(error).toMatchObject({ type, code });
  });

  it("returns 402 as JSON if the balance is insufficient", async () => {
    const { key: poor } = await openAccount({ credits: 10 });
    const error = await errorOf(await chat(poor, { stream: true }), 402);
    expect(error).toMatchObject({ type: "insufficient_balance", balance_micro: 10 });
  });
});
