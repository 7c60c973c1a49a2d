import { describe, expect, it } from "vitest";
import { createAnthropicProvider } from "../../src/models/providers/anthropic.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import {
  ANTHROPIC_CHAT,
  START,
  STOP,
  blockEvents,
  endEvents,
  anthropicEvent,
  messageReply,
  streamReply,
  textEvents,
  toolUseEvents,
} from "../fixtures/anthropic-replies.ts";
import type { RawReply, RawScenario } from "../fixtures/reply-scenarios.ts";
import { answerTo, eventsOf, expectSameHoweverCut, messageOf } from "./adapter-kit.ts";

const PROVIDER = createAnthropicProvider({
  baseUrl: "https://upstream.test/v1",
  secret: "key",
  geo: null,
});
const USAGE = { input: 8, cacheRead: 4, cacheWrite: 0, output: 3, reasoning: 0 };
const SCHEMA = { type: "object", properties: { city: { type: "string" } } };
const FORMAT = { type: "json_schema", json_schema: { name: "x", schema: SCHEMA } };
/** This model lacks schemas, so a tool returns the output. */
const BY_TOOL = { upstreamId: "claude-sonnet-4-20250514", body: { response_format: FORMAT } };

type Call = { readonly upstreamId?: string; readonly body?: JsonObject };
type Message = {
  readonly content: string | null;
  readonly refusal: string | null;
  readonly reasoning_content?: string;
  readonly reasoning_details?: readonly JsonObject[];
  readonly tool_calls?: readonly {
    readonly id: string;
    readonly type: string;
    readonly function: { readonly name: string; readonly arguments: string };
  }[];
};

/** Returns a JSON response in the format of `messageOf`. */
async function whole(reply: RawReply, call: Call = {}) {
  const { answer } = await answerTo(PROVIDER, { upstreamId: "claude-sonnet-5", ...call }, reply);
  if (answer.kind !== "json") throw new Error(`no answer: ${JSON.stringify(answer)}`);
  const [choice] = answer.body["choices"] as [{ message: Message; finish_reason: string }];
  const { content, refusal, ...said } = choice.message;
  return {
    content: content ?? "",
    reasoning: said.reasoning_content ?? "",
    refusal: refusal ?? "",
    details: said.reasoning_details ?? [],
    tools: (said.tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => {
      return { id, name, arguments: JSON.parse(given) as unknown };
    }),
    finish: choice.finish_reason,
    usage: answer.usage,
  };
}

async function streamed(reply: RawReply, call: Call = {}) {
  const events = await eventsOf(PROVIDER, { upstreamId: "claude-sonnet-5", ...call }, reply);
  const { usage, tools, ...said } = messageOf(events);
  const parsed = tools.map(({ id, name, arguments: given }) => {
    return { id, name, arguments: JSON.parse(given) as unknown };
  });
  return { ...said, tools: parsed, usage: usage?.kind === "usage" ? usage.usage : null };
}

const CITIES = [
  { id: expect.stringMatching(/^toolu_01A/), name: "get_weather", arguments: { city: "Paris" } },
  { id: expect.stringMatching(/^toolu_01B/), name: "get_weather", arguments: { city: "Rome" } },
  { id: expect.stringMatching(/^toolu_01C/), name: "get_time", arguments: {} },
];
const THOUGHT = {
  type: "anthropic.thinking",
  thinking: "Let me think.",
  signature: expect.stringMatching(/^EsEC.*=$/),
};
const SAID: Readonly<Record<keyof typeof ANTHROPIC_CHAT, object>> = {
  text: { content: "Hello, 世界!", finish: "stop" },
  tool: { content: "Let me look.", tools: CITIES.slice(0, 1), finish: "tool_calls" },
  tools: { content: "", tools: CITIES, finish: "tool_calls" },
  schema: { content: '{"city":"Paris","days":3}', finish: "stop" },
  reasoning: { content: "42", reasoning: "Let me think.", details: [THOUGHT], finish: "stop" },
  length: { content: "Hel", finish: "length" },
  refusal: {
    content: "",
    refusal: expect.stringMatching(/^This request triggered restrictions/),
    finish: "content_filter",
  },
};
const NOTHING = { reasoning: "", refusal: "", details: [], tools: [], usage: USAGE };

describe.each(Object.entries(ANTHROPIC_CHAT) as [keyof typeof ANTHROPIC_CHAT, RawScenario][])(
  "the recorded Anthropic response %s",
  (name, scenario) => {
    it("becomes the same message as JSON and as a stream", async () => {
      const expected = { ...NOTHING, ...SAID[name] };
      expect(await whole(scenario.json)).toEqual(expected);
      expect(await streamed(scenario.stream)).toEqual(expected);
    });

    it("becomes the same message wherever the network splits the response", async () => {
      await expect(
        expectSameHoweverCut(PROVIDER, { upstreamId: "claude-sonnet-5" }, scenario.stream),
      ).resolves.toBeUndefined();
    });
  },
);

it.each([
  ["end_turn", "stop"],
  ["stop_sequence", "stop"],
  ["pause_turn", "stop"],
  ["max_tokens", "length"],
  ["model_context_window_exceeded", "length"],
  ["tool_use", "stop"],
  ["refusal", "content_filter"],
  ["compaction", "stop"],
  ["something_new", "length"],
])("the Anthropic adapter maps stop_reason %s to finish_reason %s", async (reason, finish) => {
  const said = `{"type":"text","text":"x"}`;
  expect((await whole(messageReply(said, reason))).finish).toBe(finish);
  expect(
    (await streamed(streamReply(START, ...textEvents(0, "x"), ...endEvents(reason)))).finish,
  ).toBe(finish);
});

it("the Anthropic adapter returns the schema tool's input as text, and calls of the client's tools as calls", async () => {
  const call = `{"type":"tool_use","id":"t1","name":"json","input":{"city":"Rome"}}`;
  const reply = streamReply(
    START,
    ...toolUseEvents(0, "t1", "json", '{"city":', '"Rome"}'),
    ...endEvents("tool_use"),
  );
  const expected = { content: '{"city":"Rome"}', tools: [], finish: "stop" };
  expect(await whole(messageReply(call, "tool_use"), BY_TOOL)).toMatchObject(expected);
  expect(await streamed(reply, BY_TOOL)).toMatchObject(expected);
  const none = streamReply(START, ...toolUseEvents(0, "t1", "json"), ...endEvents("tool_use"));
  expect(await streamed(none, BY_TOOL)).toMatchObject({ content: "{}", finish: "stop" });
  const tools = [{ type: "function", function: { name: "json" } }];
  const taken = { ...BY_TOOL, body: { ...BY_TOOL.body, tools } };
  expect(await whole(messageReply(call, "tool_use"), taken)).toMatchObject({
    content: "",
    tools: [{ name: "json" }],
    finish: "tool_calls",
  });
});

it("the Anthropic adapter returns redacted thinking in reasoning_details, but not unsigned thinking", async () => {
  const redacted = `{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3"}`;
  const unsigned = `{"type":"thinking","thinking":"Hm.","signature":""}`;
  const expected = {
    reasoning: "Hm.",
    details: [{ type: "anthropic.redacted_thinking", data: "EmwKAhgBEgy3va3" }],
  };
  expect(await whole(messageReply(`${redacted},${unsigned}`, "end_turn"))).toMatchObject(expected);
  const hm = `{"type":"thinking_delta","thinking":"Hm."}`;
  const start = `{"type":"thinking","thinking":"","signature":""}`;
  const again = `{"type":"content_block_stop","index":0}`;
  const blocks = [...blockEvents(0, redacted), again, ...blockEvents(1, start, hm)];
  const reply = streamReply(START, ...blocks, ...endEvents("end_turn"));
  expect(await streamed(reply)).toMatchObject(expected);
});

it("the Anthropic adapter reports success only after a stop reason", async () => {
  const noReason = await eventsOf(PROVIDER, {}, streamReply(START, ...textEvents(0, "Hi"), STOP));
  expect(noReason.at(-1)).toEqual({
    kind: "error",
    failure: { kind: "retry", reason: "no_finish_reason" },
  });
  const [delta = ""] = endEvents("end_turn");
  const unstopped = await eventsOf(PROVIDER, {}, streamReply(START, ...textEvents(0, "Hi"), delta));
  expect(unstopped.at(-1)).toEqual({ kind: "end" });
  const garbled = await eventsOf(
    PROVIDER,
    {},
    { ...streamReply(START), body: `${anthropicEvent(START)}data: {"type\n\n` },
  );
  expect(garbled.at(-1)).toMatchObject({ kind: "error", failure: { reason: "bad_event" } });
});
