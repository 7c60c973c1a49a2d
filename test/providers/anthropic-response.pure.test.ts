import { expect, it } from "vitest";
import { createAnthropicProvider } from "../../src/models/providers/anthropic.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import {
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
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { answerTo, eventsOf, messageOf, wholeMessageOf } from "./adapter-kit.ts";

const PROVIDER = createAnthropicProvider({
  baseUrl: "https://upstream.test/v1",
  secret: "key",
  geo: null,
});
const SCHEMA = { type: "object", properties: { city: { type: "string" } } };
const FORMAT = { type: "json_schema", json_schema: { name: "x", schema: SCHEMA } };
/** This model lacks schemas, so a tool returns the output. */
const BY_TOOL = { upstreamId: "claude-sonnet-4-20250514", body: { response_format: FORMAT } };

type Call = { readonly upstreamId?: string; readonly body?: JsonObject };

async function whole(reply: RawReply, call: Call = {}) {
  return wholeMessageOf((await answerTo(PROVIDER, call, reply)).answer);
}

async function streamed(reply: RawReply, call: Call = {}) {
  return messageOf(await eventsOf(PROVIDER, call, reply));
}

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
  const block = `{"type":"text","text":"x"}`;
  expect((await whole(messageReply(block, reason))).finish).toBe(finish);
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
  const thinkingDelta = `{"type":"thinking_delta","thinking":"Hm."}`;
  const start = `{"type":"thinking","thinking":"","signature":""}`;
  const again = `{"type":"content_block_stop","index":0}`;
  const blocks = [...blockEvents(0, redacted), again, ...blockEvents(1, start, thinkingDelta)];
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
  const events = await eventsOf(PROVIDER, {}, streamReply(START, ...textEvents(0, "Hi"), delta));
  expect(events.at(-1)).toEqual({ kind: "end" });
  const garbled = await eventsOf(
    PROVIDER,
    {},
    { ...streamReply(START), body: `${anthropicEvent(START)}data: {"type\n\n` },
  );
  expect(garbled.at(-1)).toMatchObject({ kind: "error", failure: { reason: "bad_event" } });
});
