import { describe, expect, it } from "vitest";
import type { FrameReader } from "../../src/models/core/frame-reader.ts";
import type { StreamEvent } from "../../src/models/core/provider.ts";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import { MessagesStreamReader } from "../../src/models/protocols/messages/host-messages-reader.ts";

function argumentsIn(events: readonly StreamEvent[]): string {
  return events
    .flatMap((event) => (event.kind === "chunk" ? event.chunk.choices : []))
    .flatMap(({ delta }) => delta.tool_calls ?? [])
    .map((call) => call.function?.arguments ?? "")
    .join("");
}

const read = (reader: FrameReader, frames: readonly { readonly type?: string }[]) =>
  frames.flatMap((frame) => reader.read(JSON.stringify(frame), frame.type ?? "message"));

const call = { index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "" } };
const chat = (finish: string) =>
  read(new ChatChunkReader(), [
    { choices: [{ index: 0, delta: { role: "assistant", tool_calls: [call] } }] },
    { choices: [{ index: 0, delta: {}, finish_reason: finish }] },
  ] as object[]);
const claude = (input: object, stop: string) =>
  read(new MessagesStreamReader(null, ""), [
    { type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } },
    {
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "toolu_1", name: "f", input },
    },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: stop }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ] as { type: string }[]);

describe("a streamed tool call without argument deltas", () => {
  it("gets the arguments {} if the response is complete", () => {
    expect([chat("tool_calls"), claude({}, "tool_use")].map(argumentsIn)).toEqual(["{}", "{}"]);
  });

  it("loses its arguments if the token limit truncates the call", () => {
    const cut = [chat("length"), chat("MAX_TOKENS"), claude({}, "max_tokens")];
    expect(cut.map(argumentsIn)).toEqual(["", "", ""]);
  });

  it("gets the complete input from the start of the call's block", () => {
    expect(JSON.parse(argumentsIn(claude({ a: "x" }, "tool_use")))).toEqual({ a: "x" });
  });

  it("ends with finish_reason length for length, max_tokens and MAX_TOKENS", () => {
    for (const finish of ["length", "max_tokens", "MAX_TOKENS"]) {
      expect(JSON.stringify(chat(finish))).toContain('"finish_reason":"length"');
    }
  });
});
