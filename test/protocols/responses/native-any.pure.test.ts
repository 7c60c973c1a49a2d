import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ResponsesNativeReader } from "../../../src/models/protocols/responses/host-stream.ts";
import type { JsonObject, StreamEvent } from "../../../src/models/core/provider.ts";
import {
  startEvents,
  callItem,
  itemEvents,
  reasoningItem,
  responseObject,
  textItem,
} from "../../fixtures/responses-replies.ts";
import { eventsOf, followResponse } from "./follow.ts";
import { response as responseSchema } from "./sdk-schemas.ts";
import { requestOf, BODY, HEAD, RECEIPT } from "./stream-kit.ts";

/** Returns the endpoint's own stream and response for OpenAI's events, after a route's reader. */
const native = (body: object) => {
  const reply = requestOf(body).native?.reply;
  if (reply === undefined) throw new Error("not native");
  return reply;
};

function startStream(events: readonly object[]) {
  const reply = native({ ...BODY, stream: true });
  if (reply.kind !== "stream") throw new Error("not a stream");
  const writer = reply.stream(HEAD);
  const reader = new ResponsesNativeReader();
  let text = writer.begin(null);
  for (const [at, event] of events.entries()) {
    const data = JSON.stringify({ sequence_number: at, ...event });
    for (const one of reader.read(data, "")) text += write(one);
  }
  return { writer, text };

  function write(event: StreamEvent): string {
    if (event.kind === "native") return writer.native?.(event.event) ?? "";
    return event.kind === "text" ? writer.text(event.index, event.json) : "";
  }
}

const words = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("", 'a"\\\n\u2028', "😀é"));
const pieces = fc.array(words, { maxLength: 5 });
const item = fc.oneof(
  pieces.map((text) => textItem(text)),
  pieces.map((text) => reasoningItem(text)),
  fc
    .tuple(fc.uuid(), fc.constantFrom("plain", "files__read", "unknown"))
    .map(([id, name]) => callItem(id, name, ['{"a', '":', "1}"])),
);

it("a Responses stream from OpenAI adds up to the equivalent JSON response", () => {
  fc.assert(
    fc.property(fc.array(item, { minLength: 1, maxLength: 5 }), (items) => {
      const whole = responseObject(items.map((one) => one.whole));
      const events = [
        ...startEvents(),
        ...items.flatMap(itemEvents),
        { type: "response.completed", response: whole },
      ];
      const { writer, text } = startStream(events);
      const streamed = followResponse(eventsOf(text + writer.end(RECEIPT))).response;
      const reply = native(BODY);
      if (reply.kind !== "json") throw new Error("not JSON");
      const json = responseSchema.parse(reply.json(whole as JsonObject, RECEIPT));
      expect(streamed).toEqual(json);
    }),
  );
});

it("a tool call in a Responses stream is complete once OpenAI ends the call, even if the stream is cut later", () => {
  const whole = itemEvents(callItem("c1", "plain", ["{}"]), 0);
  const { writer, text } = startStream([
    ...startEvents(),
    ...whole,
    ...itemEvents(callItem("c2", "plain", ['{"a":']), 1).slice(0, 2),
  ]);
  expect(text).toContain("response.output_item.done");
  const cut = writer.end({ ...RECEIPT, finishReason: "length" });
  const { response: ended, done } = followResponse(eventsOf(text + cut));
  expect(done.map((one) => one?.status ?? null)).toEqual(["completed", null]);
  expect(ended.output).toMatchObject([{ arguments: "{}" }, { status: "incomplete" }]);
});

it("a Responses stream has numbered events of the SDK's types, whatever OpenAI sends, and never throws", () => {
  const index = fc.option(fc.nat(3), { nil: undefined });
  const types = fc.constantFrom(
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.annotation.added",
    "response.refusal.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.web_search_call.searching",
  );
  const raw = fc.record(
    {
      type: fc.constantFrom(
        "message",
        "function_call",
        "custom_tool_call",
        "reasoning",
        "web_search_call",
      ),
      status: fc.constantFrom("completed", "incomplete"),
      name: fc.constantFrom("plain", "files__write"),
      call_id: fc.constantFrom("c1", "c2"),
      arguments: words,
      input: words,
      content: fc.jsonValue(),
      summary: fc.jsonValue(),
      encrypted_content: fc.option(words),
    },
    { requiredKeys: ["type", "name", "call_id"] },
  );
  const event = fc.record(
    {
      type: types,
      output_index: index,
      item: raw,
      delta: words,
      logprobs: fc.jsonValue(),
      annotation: fc.jsonValue(),
    },
    { requiredKeys: ["type", "item"] },
  );
  const finish = fc.constantFrom("stop", "length", "content_filter");
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 14 }),
      finish,
      fc.boolean(),
      (events, finishReason, fails) => {
        const { writer, text } = startStream(events);
        const rest = fails
          ? writer.fail({ kind: "upstream_error" }, null)
          : writer.end({ ...RECEIPT, finishReason });
        const list = eventsOf(text + rest);
        expect(list.map((one) => one.sequence_number)).toEqual(list.map((_, at) => at));
      },
    ),
  );
});
