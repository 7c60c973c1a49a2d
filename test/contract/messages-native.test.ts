import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, openAccount, send } from "./client.ts";
import { parseEvents } from "../protocols/messages/fold.ts";
import {
  ANTHROPIC_SECRET,
  foldMessage,
  readFoldedMessage,
  messageOf,
  messages,
  mockAnthropic,
  anthropicErrorOf,
} from "./messages-client.ts";
import type { Json } from "./messages-client.ts";
import { upstreamCompletion } from "./upstream.ts";

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

const USAGE = {
  input_tokens: 100,
  cache_creation_input_tokens: 40,
  cache_read_input_tokens: 60,
  cache_creation: { ephemeral_5m_input_tokens: 40, ephemeral_1h_input_tokens: 0 },
  output_tokens: 10,
  service_tier: "standard",
};
const THOUGHT = { type: "thinking", thinking: "Hm.", signature: "c2lnbmF0dXJl" };
const TEXT = {
  type: "text",
  text: "Well.",
  citations: [
    {
      type: "char_location",
      cited_text: "x",
      document_index: 0,
      document_title: null,
      file_id: null,
      start_char_index: 0,
      end_char_index: 1,
    },
  ],
};
const MESSAGE = {
  id: "msg_theirs",
  type: "message",
  role: "assistant",
  model: "claude-theirs-2026",
  content: [THOUGHT, TEXT],
  stop_reason: "stop_sequence",
  stop_sequence: "END",
  stop_details: null,
  usage: USAGE,
};
/** 100 tokens at 1, 40 at 1.25, 60 at 0.1 and 10 at 5 micro-credits */
const COST = 100 + 50 + 6 + 50;

const answer = (): Response =>
  Response.json(MESSAGE, {
    headers: {
      "anthropic-organization-id": "ours",
      "anthropic-ratelimit-requests-limit": "7",
      "anthropic-ratelimit-input-tokens-limit": "7",
      "request-id": "req_theirs",
      "set-cookie": "a=b",
    },
  });

function streamed(...events: Json[]): Response {
  const text = events.map(
    (event) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`,
  );
  return new Response(text.join(""), { headers: SSE });
}

/** Returns the same stream, whose last event arrives after the rest was read. */
function streamWithLateEnd(last: Json, ...events: Json[]): Response {
  const parts = [streamed(...events), streamed(last)];
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const part = parts.shift();
        if (part === undefined) controller.close();
        else controller.enqueue(new Uint8Array(await part.arrayBuffer()));
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: SSE });
}

/** Returns the first blocks, and the rest once `resumed` resolves. */
function streamPausedUntil(resumed: Promise<void>): Response {
  const parts = [streamed(START, ...BLOCKS.slice(0, 3)), streamed(...BLOCKS.slice(3), ...END)];
  let at = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (at === 1) await resumed;
        const part = parts[at++];
        if (part === undefined) controller.close();
        else controller.enqueue(new Uint8Array(await part.arrayBuffer()));
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: SSE });
}

/** Reads a body completely. Calls `then` once the text has arrived. */
async function readUntil(response: Response, word: string, then: () => void): Promise<string> {
  let text = "";
  let isThere = false;
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk;
    if (isThere || !text.includes(word)) continue;
    isThere = true;
    then();
  }
  return text;
}

async function counted(response: Response): Promise<number> {
  const { input_tokens: tokens } = await response.json<{ input_tokens: number }>();
  return tokens;
}

const SSE = { "content-type": "text/event-stream" };

const START = {
  type: "message_start",
  message: { ...MESSAGE, content: [], usage: { ...USAGE, output_tokens: 1 } },
};
const BLOCKS: Json[] = [
  {
    type: "content_block_start",
    index: 0,
    content_block: { ...THOUGHT, thinking: "", signature: "" },
  },
  { type: "ping" },
  { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm." } },
  {
    type: "content_block_delta",
    index: 0,
    delta: { type: "signature_delta", signature: THOUGHT.signature },
  },
  { type: "content_block_stop", index: 0 },
  { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
  { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Well." } },
  { type: "content_block_stop", index: 1 },
];
const END: Json[] = [
  {
    type: "message_delta",
    delta: { stop_reason: "end_turn", stop_sequence: null },
    usage: { output_tokens: 10 },
  },
  { type: "message_stop" },
];

describe("POST /v1/messages at Anthropic", () => {
  it("forwards content blocks, cache_control and betas, but sets model name, output cap and service tier", async () => {
    const { calls, bindings } = mockAnthropic(answer);
    const system = [
      { type: "text", text: "x-anthropic-billing-header: cc_version=2;" },
      { type: "text", text: "You code.", cache_control: { type: "ephemeral" } },
    ];
    const fields = {
      model: "mock/claude",
      system,
      service_tier: "auto",
      metadata: { user_id: "someone" },
      thinking: { type: "enabled", budget_tokens: 1024 },
      max_tokens: 2048,
      temperature: 0.5,
      stop_sequences: ["END"],
    };
    const headers = { "anthropic-beta": "interleaved-thinking-2025-05-14, fast-mode-2026-02-01" };
    await messageOf(await messages(key, fields, { bindings, headers }));
    const [call] = calls;
    expect(call?.url).toBe("https://api.anthropic.com/v1/messages");
    expect(call?.headers["x-api-key"]).toBe(ANTHROPIC_SECRET);
    expect(call?.headers["anthropic-beta"]).toBe("interleaved-thinking-2025-05-14");
    expect(call?.body).toEqual({
      model: "claude-sonnet-4-5",
      max_tokens: 2048,
      messages: [{ role: "user", content: "Hello there" }],
      system,
      thinking: fields.thinking,
      stop_sequences: ["END"],
      service_tier: "standard_only",
    });
  });

  it("returns Anthropic's message with a new ID and model name, and charges the exact usage", async () => {
    const { bindings } = mockAnthropic(answer);
    const before = await balanceOf(key);
    const response = await messages(key, { model: "mock/claude" }, { bindings });
    for (const [name, value] of response.headers) {
      expect([name, value]).not.toContain("7");
      expect(name).not.toMatch(/organization-id|set-cookie/);
    }
    expect(response.headers.get("request-id")).toBe(response.headers.get("x-request-id"));
    expect(await messageOf(response)).toEqual({
      ...MESSAGE,
      id: `msg_${response.headers.get("x-request-id")?.slice(4)}`,
      model: "mock/claude",
      container: null,
      diagnostics: null,
      usage: {
        ...USAGE,
        output_tokens_details: { thinking_tokens: 0 },
        server_tool_use: null,
        inference_geo: null,
        speed: null,
        cost: COST / 1_000_000,
        cost_micro: COST,
      },
    });
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("forwards stream events, and sends the last event only after the charge", async () => {
    const { calls, bindings } = mockAnthropic(() => streamed(START, ...BLOCKS, ...END));
    const before = await balanceOf(key);
    const { message, started } = await readFoldedMessage(
      await messages(key, { model: "mock/claude", stream: true }, { bindings }),
    );
    expect(calls[0]?.body["stream"]).toBe(true);
    expect(message["content"]).toEqual([THOUGHT, { type: "text", text: "Well." }]);
    expect(message).toMatchObject({ model: "mock/claude", stop_reason: "end_turn" });
    expect(started).toMatchObject({
      output_tokens_details: null, // no thinking was requested yet
      input_tokens: 100,
      cache_read_input_tokens: 60,
      output_tokens: 1,
    });
    expect(message["usage"]).toMatchObject({ output_tokens: 10, cost_micro: COST });
    expect(before - (await balanceOf(key))).toBe(COST);
  });

  it("converts the request for the next route if Anthropic reports an overload before any output", async () => {
    const { calls, bindings } = mockAnthropic(({ url }) =>
      url.includes("anthropic")
        ? streamed(START, {
            type: "error",
            error: { type: "overloaded_error", message: "Overloaded" },
          })
        : upstreamCompletion(),
    );
    const fields = { model: "mock/both", top_k: 3 };
    const response = await messages(key, fields, { bindings });
    expect(await messageOf(response)).toMatchObject({ content: [{ type: "text", text: "hi" }] });
    expect(response.headers.get("x-dropped")).toBe("top_k");
    expect(calls.map(({ url }) => new URL(url).host)).toEqual([
      "api.anthropic.com",
      "models.upstream.test",
    ]);
  });

  it("ends a stream that fails after the first block with an error event, and charges the output", async () => {
    const broken = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    const { bindings } = mockAnthropic(() => streamWithLateEnd(broken, START, ...BLOCKS));
    const response = await messages(key, { model: "mock/claude", stream: true }, { bindings });
    const text = await response.text();
    expect(text).toContain("event: error");
    expect(text).not.toContain("message_stop");
  });

  it("forwards max_tokens 0, which fills the prompt cache, and charges only the input", async () => {
    const emptyMessage = {
      ...MESSAGE,
      content: [],
      stop_reason: "max_tokens",
      usage: { ...USAGE, output_tokens: 0 },
    };
    const { calls, bindings } = mockAnthropic(() => Response.json(emptyMessage));
    const before = await balanceOf(key);
    const message = await messageOf(
      await messages(key, { model: "mock/claude", max_tokens: 0 }, { bindings }),
    );
    expect(calls[0]?.body["max_tokens"]).toBe(0);
    expect(message).toMatchObject({ content: [], stop_reason: "max_tokens" });
    expect(before - (await balanceOf(key))).toBe(COST - 50);
  });

  it("calls only Anthropic for features that only Anthropic supports, even if another route exists", async () => {
    const pdf = { type: "base64", media_type: "application/pdf", data: "JVBERi0=" };
    const history = [{ role: "user", content: [{ type: "document", source: pdf }] }];
    const { calls, bindings } = mockAnthropic(({ url }) =>
      url.includes("anthropic") ? Response.json({}, { status: 529 }) : upstreamCompletion(),
    );
    const response = await messages(key, { model: "mock/both", messages: history }, { bindings });
    expect(await anthropicErrorOf(response)).toMatchObject({
      status: 529,
      type: "overloaded_error",
    });
    expect(calls.every(({ url }) => url.includes("anthropic"))).toBe(true);
    expect(calls[0]?.body["messages"]).toEqual(history);
  });

  it("returns the message of Anthropic's 400 errors, because clients match this message", async () => {
    const words = "messages.1.content.0: Invalid `signature` in `thinking` block";
    const { bindings } = mockAnthropic(() =>
      Response.json(
        { type: "error", error: { type: "invalid_request_error", message: words } },
        { status: 400 },
      ),
    );
    const refusal = await anthropicErrorOf(
      await messages(key, { model: "mock/claude" }, { bindings }),
    );
    expect(refusal).toMatchObject({ status: 400, type: "invalid_request_error", message: words });
  });

  it("holds and charges twice the input price for a one-hour cache write, also in streams", async () => {
    const cacheCreation = { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 30 };
    const usage = { ...USAGE, cache_creation: cacheCreation };
    const { bindings } = mockAnthropic(({ body }) =>
      body["stream"] === true
        ? streamed({ ...START, message: { ...START.message, usage } }, ...BLOCKS, ...END)
        : Response.json({ ...MESSAGE, usage }),
    );
    const system = [
      { type: "text", text: "You code.", cache_control: { type: "ephemeral", ttl: "1h" } },
    ];
    // 10 tokens written at 1.25 and 30 at twice 1, instead of 40 at 1.25
    const cost = COST - 50 + 13 + 60;
    for (const stream of [false, true]) {
      const before = await balanceOf(key);
      const response = await messages(key, { model: "mock/claude", system, stream }, { bindings });
      const message = stream
        ? (await readFoldedMessage(response)).message
        : await messageOf(response);
      expect(message["usage"]).toMatchObject({ cache_creation: cacheCreation, cost_micro: cost });
      expect(before - (await balanceOf(key))).toBe(cost);
    }
    const plain = [{ type: "text", text: "You code." }];
    const [dear, cheap] = await Promise.all(
      [system, plain].map(async (prompt) => {
        const { key: poor } = await openAccount({ credits: 1 });
        const refused = await messages(
          poor,
          { model: "mock/claude", system: prompt },
          { bindings },
        );
        return Number((await anthropicErrorOf(refused)).details["required_micro"]);
      }),
    );
    expect(dear).toBeGreaterThan(Number(cheap));
  });

  it("counts tokens through Anthropic's API, and returns an estimate if this API fails", async () => {
    const { calls, bindings } = mockAnthropic(() => Response.json({ input_tokens: 1234 }));
    const body = {
      model: "mock/claude",
      messages: [{ role: "user", content: "Hi" }],
      max_tokens: 5,
    };
    const path = "/v1/messages/count_tokens";
    expect(await counted(await send(path, { key, body, bindings }))).toBe(1234);
    expect(calls[0]?.url).toBe("https://api.anthropic.com/v1/messages/count_tokens");
    expect(calls[0]?.body).toEqual({ model: "claude-sonnet-4-5", messages: body.messages });
    const { bindings: broken } = mockAnthropic(() => Response.json({}, { status: 500 }));
    expect(await counted(await send(path, { key, body, bindings: broken }))).toBeGreaterThan(0);
  });

  it("sends pings while Anthropic sends nothing", async () => {
    const pinged = Promise.withResolvers<void>();
    const { bindings } = mockAnthropic(() => streamPausedUntil(pinged.promise));
    const options = { bindings: { ...bindings, KEEP_ALIVE_MS: "10" } };
    const response = await messages(key, { model: "mock/claude", stream: true }, options);
    const text = await readUntil(response, "event: ping\n", () => {
      pinged.resolve();
    });
    expect(text.indexOf("event: ping\n")).toBeLessThan(text.indexOf("signature_delta"));
    const events = parseEvents(text).filter(({ name }) => name !== "ping");
    expect(foldMessage(events).message).toMatchObject({ stop_reason: "end_turn" });
  });

  it("drops sampling parameters that the model rejects, and lists these parameters in x-dropped", async () => {
    const { calls, bindings } = mockAnthropic(answer);
    const fields = { model: "mock/claude", temperature: 0.5, top_p: 0.9, top_k: 4 };
    const one = await messages(key, fields, { bindings });
    expect(one.headers.get("x-dropped")).toBe("top_p"); // one of the two fields
    const thinking = { type: "enabled", budget_tokens: 1024 };
    const none = await messages(key, { ...fields, thinking, max_tokens: 2048 }, { bindings });
    expect(none.headers.get("x-dropped")).toBe("temperature, top_p, top_k");
    const newest = await messages(key, { ...fields, model: "mock/newest" }, { bindings });
    expect(newest.headers.get("x-dropped")).toBe("temperature, top_p, top_k");
    const params = calls.map(({ body }) => [body["temperature"], body["top_p"], body["top_k"]]);
    const nothing = [undefined, undefined, undefined];
    expect(params).toEqual([[0.5, undefined, 4], nothing, nothing]);
    const plain = await messages(key, { model: "mock/newest" }, { bindings });
    expect(plain.headers.has("x-dropped")).toBe(false);
  });
});
