import { describe, expect, it } from "vitest";
import { createOpenAiCompatibleProvider } from "../../src/models/providers/openai-compatible.ts";
import { OPENAI_HOST_PROFILE } from "../../src/models/providers/profiles.ts";
import type { JsonObject, ProviderCall, StreamEvent } from "../../src/models/core/provider.ts";
import {
  startEvents,
  callItem,
  ENCRYPTED,
  HELLO,
  itemEvents,
  jsonReply,
  reasoningItem,
  responseObject,
  RESPONSES_CHAT,
  RESPONSES_FAILED,
  scenario,
  streamReply,
  textItem,
  usageOf,
} from "../fixtures/responses-replies.ts";
import { CANARY } from "../fixtures/reply-scenarios.ts";
import {
  answerTo,
  eventsOf,
  expectSameHoweverCut,
  messageOf,
  wholeMessageOf,
} from "./adapter-kit.ts";

const OPENAI = createOpenAiCompatibleProvider({
  id: "openai",
  baseUrl: "https://api.openai.test/v1/",
  profile: OPENAI_HOST_PROFILE,
  secret: CANARY.key,
});

const MODEL = "gpt-6.1-sol";
const call61 = (body: JsonObject = {}, more: Partial<ProviderCall> = {}) => ({
  upstreamId: MODEL,
  ...more,
  body,
});

async function sent(body: JsonObject): Promise<JsonObject> {
  const { requests } = await answerTo(OPENAI, call61(body), RESPONSES_CHAT.text.json);
  if (requests[0] === undefined) throw new Error("nothing was sent");
  return requests[0].json;
}

describe("the OpenAI endpoint chosen for a chat", () => {
  it("equals /responses for models whose tools need this endpoint, and otherwise /chat/completions", async () => {
    const { requests } = await answerTo(OPENAI, call61(), RESPONSES_CHAT.text.json);
    expect(requests[0]?.url).toBe("https://api.openai.test/v1/responses");
    expect(requests[0]?.headers.get("authorization")).toBe(`Bearer ${CANARY.key}`);
    const other = await answerTo(OPENAI, { upstreamId: "gpt-6-sol" }, RESPONSES_CHAT.text.json);
    expect(other.requests[0]?.url).toBe("https://api.openai.test/v1/chat/completions");
  });

  it("accepts native requests for /responses, but not for /messages", () => {
    expect(OPENAI.supportsProtocol?.("responses", "gpt-6-sol")).toBe(true);
    expect(OPENAI.supportsProtocol?.("messages", MODEL)).toBe(false);
  });
});

describe("a chat request sent to OpenAI's /responses", () => {
  it("contains the conversation as items, with reasoning before its calls and results next to their calls", async () => {
    const thought = { type: "openai.reasoning", summary: [], encrypted_content: ENCRYPTED };
    const body = await sent({
      messages: [
        { role: "developer", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "text", text: "Look" },
            { type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } },
          ],
        },
        {
          role: "assistant",
          content: "Looking.",
          reasoning_details: [thought, { type: "anthropic.thinking", signature: "x" }],
          tool_calls: [
            { id: "call_1", type: "function", function: { name: "look", arguments: "" } },
            { id: "call_2", type: "custom", custom: { name: "patch", input: "*** Begin" } },
          ],
        },
        { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "seen" }] },
        { role: "tool", tool_call_id: "call_2", content: "done" },
      ],
    });
    expect(body["input"]).toEqual([
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Be brief." }] },
      {
        type: "message",
        role: "user",
        content: [
          { type: "input_text", text: "Look" },
          { type: "input_image", image_url: "https://example.com/a.png", detail: "low" },
        ],
      },
      { type: "reasoning", summary: [], encrypted_content: ENCRYPTED },
      {
        type: "message",
        role: "assistant",
        content: [{ type: "output_text", text: "Looking." }],
      },
      { type: "function_call", call_id: "call_1", name: "look", arguments: "{}" },
      { type: "custom_tool_call", call_id: "call_2", name: "patch", input: "*** Begin" },
      { type: "function_call_output", call_id: "call_1", output: "seen" },
      { type: "custom_tool_call_output", call_id: "call_2", output: "done" },
    ]);
  });

  it("contains the tools as a flat list, not strict by default, and the tool choice", async () => {
    const grammar = { definition: "start: x", syntax: "lark" };
    const tools = [
      { type: "function", function: { name: "f", description: "F", strict: true } },
      { type: "function", function: { name: "g", parameters: { type: "object" } } },
      { type: "custom", custom: { name: "c", format: { type: "grammar", grammar } } },
    ];
    const named = { type: "function", function: { name: "g" } };
    const body = await sent({ tools, tool_choice: named, parallel_tool_calls: false });
    expect(body).toMatchObject({
      tools: [
        { type: "function", name: "f", description: "F", strict: true },
        { type: "function", name: "g", parameters: { type: "object" }, strict: false },
        { type: "custom", name: "c", format: { type: "grammar", ...grammar } },
      ],
      tool_choice: { type: "function", name: "g" },
      parallel_tool_calls: false,
    });
    const allowed_tools = { mode: "required", tools: [named] };
    const some = await sent({ tools, tool_choice: { type: "allowed_tools", allowed_tools } });
    expect(some["tool_choice"]).toEqual({
      type: "allowed_tools",
      mode: "required",
      tools: [{ type: "function", name: "g" }],
    });
  });

  it("contains store: false and only known fields, and requests encrypted reasoning", async () => {
    const body = await sent({
      temperature: 0.5,
      seed: 1,
      user: "someone",
      reasoning_effort: "minimal",
      verbosity: "low",
      response_format: {
        type: "json_schema",
        json_schema: { name: "s", schema: {}, strict: true },
      },
      unknown: 1,
    });
    const { input: _, ...rest } = body;
    expect(rest).toEqual({
      model: MODEL,
      max_output_tokens: 256,
      store: false,
      include: ["reasoning.encrypted_content"],
      service_tier: "default",
      reasoning: { effort: "low" },
      text: {
        format: { type: "json_schema", name: "s", schema: {}, strict: true },
        verbosity: "low",
      },
    });
    expect(await sent({ temperature: 0.5, reasoning_effort: "none" })).toMatchObject({
      temperature: 0.5,
    });
  });

  it.each([[["x"]], ["x"]])(
    "omits and reports stop %j unless the stop sequence is blank",
    async (stop) => {
      const named: string[] = [];
      const onDropped = (fields: readonly string[]): void => void named.push(...fields);
      for (const stopValue of [stop, [stop].flat().map(() => " ")]) {
        const { answer, requests } = await answerTo(
          OPENAI,
          call61({ stop: stopValue }, { onDropped }),
          RESPONSES_CHAT.text.json,
        );
        expect(answer.kind).toBe("json");
        expect(requests[0]?.json).not.toHaveProperty("stop");
      }
      expect(named).toEqual(["stop"]);
    },
  );

  it.each([
    ["functions", { functions: [{ name: "f" }] }],
    ["n", { n: 2 }],
  ])("is rejected before sending for %s", async (param, body) => {
    const { answer, requests } = await answerTo(OPENAI, call61(body), RESPONSES_CHAT.text.json);
    expect(answer).toMatchObject({ kind: "failure", failure: { kind: "refused", param } });
    expect(requests).toEqual([]);
  });

  it("fails if the output cap is below 16", async () => {
    const { answer } = await answerTo(OPENAI, call61({}, { cap: 15 }), RESPONSES_CHAT.text.json);
    expect(answer).toMatchObject({ failure: { kind: "refused", param: "max_tokens" } });
  });
});

describe("a chat response from OpenAI's /responses", () => {
  it.each(Object.entries(RESPONSES_CHAT))(
    "contains the same content as a stream and as JSON, however the stream is split: %s",
    async (_, { json: whole, stream: streamed }) => {
      await expectSameHoweverCut(OPENAI, call61(), streamed);
      const { answer } = await answerTo(OPENAI, call61(), whole);
      expect(messageOf(await eventsOf(OPENAI, call61(), streamed))).toEqual(wholeMessageOf(answer));
    },
  );

  it("contains usage with cached and reasoning tokens", async () => {
    const { answer } = await answerTo(OPENAI, call61(), RESPONSES_CHAT.reasoning.json);
    expect(answer).toMatchObject({
      usage: { input: 8, cacheRead: 4, cacheWrite: 0, output: 3, reasoning: 2 },
    });
  });

  it("contains encrypted reasoning, which the next request returns to OpenAI", async () => {
    const { details } = messageOf(
      await eventsOf(OPENAI, call61(), RESPONSES_CHAT.reasoning.stream),
    );
    const next = { role: "assistant", content: "42", reasoning_details: details };
    const body = await sent({ messages: [next, { role: "user", content: "And?" }] });
    expect((body["input"] as JsonObject[])[0]).toMatchObject({
      type: "reasoning",
      summary: [{ type: "summary_text", text: "Let me think." }],
      encrypted_content: ENCRYPTED,
    });
  });

  it("contains a custom tool call's text input, streamed or not", async () => {
    const toolCall = callItem("call_9", "patch", ["*** Be", "gin"]);
    const custom = (item: object) =>
      JSON.parse(
        JSON.stringify(item)
          .replaceAll('"function_call"', '"custom_tool_call"')
          .replaceAll("function_call_arguments", "custom_tool_call_input")
          .replaceAll('"arguments"', '"input"'),
      ) as typeof toolCall;
    const { json: whole, stream: streamed } = scenario([custom(toolCall)]);
    const { answer } = await answerTo(OPENAI, call61(), whole);
    const called = { id: "call_9", type: "custom", custom: { name: "patch", input: "*** Begin" } };
    expect(answer).toMatchObject({ body: { choices: [{ message: { tool_calls: [called] } }] } });
    const events = await eventsOf(OPENAI, call61(), streamed);
    const deltas = events.flatMap((event) => (event.kind === "chunk" ? event.chunk.choices : []));
    const inputs = deltas.flatMap(({ delta }) => delta.tool_calls ?? []);
    expect(inputs.map(({ custom: one }) => one?.input).join("")).toBe("*** Begin");
  });

  it("contains a call's arguments even if they arrive only at the end of the call", async () => {
    const { begun, whole } = callItem("call_1", "f", ['{"a":1}']);
    const events = [
      ...startEvents(),
      ...itemEvents({ begun, whole, between: [] }, 0),
      { type: "response.completed", response: responseObject([whole]) },
    ];
    const { tools } = messageOf(await eventsOf(OPENAI, call61(), streamReply(events)));
    expect(tools).toMatchObject([{ name: "f", arguments: '{"a":1}' }]);
  });

  it("ends only with a terminal event, and ignores later events", async () => {
    const open = await eventsOf(OPENAI, call61(), RESPONSES_FAILED.cut);
    expect(open.some((event) => event.kind === "end")).toBe(false);
    const done = streamReply([...startEvents(), ...itemEvents(textItem(HELLO), 0)]);
    const marked = { ...done, body: `${String(done.body)}data: [DONE]\n\n` };
    const afterMarker = await eventsOf(OPENAI, call61(), marked);
    expect(afterMarker.some((event) => event.kind === "end")).toBe(false);
  });

  it.each([
    ["rate_limit_exceeded", "overloaded"],
    ["server_is_overloaded", "overloaded"],
    ["server_error", "retry"],
    ["invalid_prompt", "refused"],
    ["context_length_exceeded", "refused"],
  ])("becomes, for the error %s, the failure %s without our secrets", async (code, kind) => {
    const error = { code, message: `It failed for ${CANARY.key}` };
    const whole = jsonReply(responseObject([], { status: "failed", error, usage: null }));
    const { answer } = await answerTo(OPENAI, call61(), whole);
    expect(answer).toMatchObject({ kind: "failure", failure: { kind } });
    expect(JSON.stringify(answer)).not.toContain(CANARY.key);
  });
});

const nativeEvents = (events: readonly StreamEvent[]) =>
  events.flatMap((event) => (event.kind === "native" ? [event] : []));

describe("a Responses request forwarded to OpenAI", () => {
  const native = {
    body: { model: "x", input: "Hi", store: true, max_output_tokens: 9, truncation: "auto" },
    headers: {},
  };
  const nativeCall = { ...call61(), native };

  it("contains the client's body with the gateway's model name, cap and store: false", async () => {
    const { requests } = await answerTo(OPENAI, nativeCall, RESPONSES_CHAT.text.json);
    expect(requests[0]?.json).toEqual({
      model: MODEL,
      input: "Hi",
      truncation: "auto",
      store: false,
      stream: false,
      max_output_tokens: 256,
      include: ["reasoning.encrypted_content"],
      service_tier: "default",
    });
  });

  it("returns the response unchanged, with usage, text and finish reason", async () => {
    const { answer } = await answerTo(OPENAI, nativeCall, RESPONSES_CHAT.tool.json);
    expect(answer).toMatchObject({
      kind: "json",
      body: { object: "response", model: "gpt-6.1-sol-2026-09-29" },
      usage: { input: 8, cacheRead: 4, output: 3 },
      native: { finish: "stop", text: 'Let me look.get_weather{"city":"Paris"}' },
    });
  });

  it.each(Object.entries(RESPONSES_CHAT))(
    "returns every event in order, however the events are split: %s",
    async (_, { stream: streamed }) => {
      await expectSameHoweverCut(OPENAI, nativeCall, streamed);
      const events = await eventsOf(OPENAI, nativeCall, streamed);
      // An event that repeats the previous one with another text is sent alone.
      const outputEvents = events.filter(({ kind }) => kind === "native" || kind === "text");
      const numbers = outputEvents.map((event, at) =>
        event.kind === "native" ? event.event["sequence_number"] : at,
      );
      expect(numbers).toEqual(numbers.map((__, at) => at));
      expect(events.slice(-2).map(({ kind }) => kind)).toEqual(["usage", "end"]);
    },
  );

  it.each([
    ["natively", nativeCall],
    ["converted", call61()],
  ])("reports reasoning while a reasoning item is open: %s", async (_, call) => {
    const kinds = (await eventsOf(OPENAI, call, RESPONSES_CHAT.reasoning.stream)).map(
      ({ kind }) => kind,
    );
    const last = kinds.lastIndexOf("thinking");
    // one for the item's start, and one for each event of its summary
    expect(kinds.filter((kind) => kind === "thinking")).toHaveLength(6);
    expect(kinds.slice(last + 1, -2)).not.toEqual([]);
  });

  it("returns only the error of a stream that fails before its first content", async () => {
    const events = await eventsOf(OPENAI, nativeCall, RESPONSES_FAILED.errorFirst);
    expect(events.map(({ kind }) => kind)).toEqual(["error"]);
  });

  it("counts the text of reasoning, message and tool calls", async () => {
    const { stream: streamed } = scenario([
      reasoningItem(["Let me ", "think."]),
      textItem(["42"]),
      callItem("c", "f", ["{}"]),
    ]);
    const texts = nativeEvents(await eventsOf(OPENAI, nativeCall, streamed)).map(
      (event) => event.text,
    );
    expect(texts.join("")).toBe("Let me think.42f{}");
  });

  it("reports the usage of a failure that the request itself caused", async () => {
    const events = await eventsOf(OPENAI, nativeCall, RESPONSES_FAILED.provoked.stream);
    expect(events.slice(-2)).toMatchObject([
      { kind: "usage", usage: { input: 8, output: 3 } },
      { kind: "error", failure: { kind: "refused" } },
    ]);
    expect(usageOf()).toMatchObject({ total_tokens: 15 });
  });
});
