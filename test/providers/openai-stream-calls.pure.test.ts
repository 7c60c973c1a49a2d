import { expect, it } from "vitest";
import { ChatChunkReader } from "../../src/models/protocols/chat/chunks.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { chunkOf } from "../fixtures/openai-replies.ts";

/** Returns the tool calls in the deltas of a stream's chunks. */
function callsOf(...chunks: readonly object[]): readonly JsonObject[] {
  const reader = new ChatChunkReader();
  return chunks
    .flatMap((chunk) => reader.read(JSON.stringify(chunk), "message"))
    .flatMap((event) => (event.kind === "chunk" ? event.chunk.choices : []))
    .flatMap(({ delta }) => delta.tool_calls ?? []);
}

const part = (call: object) => chunkOf({ tool_calls: [call] });
const whole = (name: string) => ({ function: { name, arguments: "{}" } });
const firstDelta = (index: number, name: string) => ({
  index,
  id: expect.any(String) as string,
  type: "function",
  ...whole(name),
});

it.each([{}, { index: null }, { id: "" }])(
  "complete tool calls that arrive one by one without index or ID are kept separate: %j",
  (more) => {
    const calls = [whole("f"), whole("g")].map((call) => part({ ...call, ...more }));
    const rest = part({ function: { arguments: " " } });
    const end = chunkOf({}, "tool_calls");
    expect(callsOf(...calls, rest, end)).toEqual([
      firstDelta(0, "f"),
      firstDelta(1, "g"),
      { index: 1, function: { arguments: " " } },
    ]);
  },
);

it("a tool call's repeated name with the same index starts no new tool call", () => {
  const calls = callsOf(part({ index: 0, ...whole("f") }), part({ index: 0, ...whole("f") }));
  expect(calls).toEqual([firstDelta(0, "f"), { index: 0, function: { arguments: "{}" } }]);
});
