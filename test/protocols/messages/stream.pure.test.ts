import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toClientMessage } from "../../../src/models/protocols/messages/client-answer.ts";
import type { Chunk, Delta } from "../../../src/models/core/chunk.ts";
import { MessagesBlockWriter } from "../../../src/models/protocols/messages/client-stream.ts";
import { readReturnedThoughts } from "../../../src/models/protocols/messages/client-convert.ts";
import { parseEvents, foldBlocks } from "./fold.ts";

type Json = Record<string, unknown>;
type Call = { id: string; name: string; arguments: string; extra: Json | null };
type Answer = {
  reasoning: string;
  details: Json[];
  text: string;
  refusal: string;
  calls: Call[];
  finish: string;
};

const detail = fc.oneof(
  fc.record({ type: fc.constant("reasoning.encrypted"), data: fc.string({ minLength: 1 }) }),
  fc.record({ type: fc.constant("google.thought"), signature: fc.base64String({ minLength: 4 }) }),
);
const argumentsText = fc
  .dictionary(fc.string(), fc.oneof(fc.string(), fc.integer(), fc.constant(null)))
  .map((value) => JSON.stringify(value));
const answers: fc.Arbitrary<Answer> = fc.record({
  reasoning: fc.string(),
  details: fc.array(detail, { maxLength: 3 }),
  text: fc.string({ unit: "binary" }),
  refusal: fc.oneof(fc.constant(""), fc.string()),
  calls: fc
    .array(
      fc.record({
        name: fc.constantFrom("look", "write"),
        arguments: fc.oneof(fc.constant(""), argumentsText),
        extra: fc.option(fc.record({ google: fc.string() })),
      }),
      { maxLength: 4 },
    )
    .map((calls) => calls.map((call, at) => ({ ...call, id: `call_${at}` }))),
  finish: fc.constantFrom("stop", "length", "tool_calls", "content_filter"),
});

/** Returns the response as a chat completion. */
function completion({ reasoning, details, text, refusal, calls, finish }: Answer): Json {
  return {
    choices: [
      {
        finish_reason: finish,
        message: {
          role: "assistant",
          content: text === "" ? null : text,
          refusal: refusal === "" ? null : refusal,
          reasoning_content: reasoning,
          reasoning_details: details,
          tool_calls: calls.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: call.arguments },
            ...(call.extra !== null && { extra_content: call.extra }),
          })),
        },
      },
    ],
  };
}

const chunkOf = (delta: Delta, finish: string | null = null): Chunk => ({
  choices: [{ index: 0, delta, finish_reason: finish }],
});

/** Splits a text at about every third character. */
function pieces(text: string): string[] {
  return text.match(/[\s\S]{1,3}/gu) ?? [];
}

/** Returns the same response in chunks. With `interleaved`, pieces of calls alternate. */
function streamed(answer: Answer, interleaved: boolean) {
  const writer = new MessagesBlockWriter(new Map());
  const write = (chunks: readonly Chunk[]): string =>
    chunks.map((chunk) => writer.chunk(chunk)).join("");
  let out = write([
    chunkOf({ role: "assistant", content: "" }),
    ...pieces(answer.reasoning).map((piece) => chunkOf({ reasoning_content: piece })),
    ...(answer.details.length > 0 ? [chunkOf({ reasoning_details: answer.details })] : []),
  ]);
  for (const [at, piece] of pieces(answer.text).entries()) {
    const chunk = chunkOf({ content: piece });
    out += at % 2 === 0 ? writer.chunk(chunk) : writer.text(JSON.stringify(piece));
  }
  if (answer.refusal !== "") out += write([chunkOf({ refusal: answer.refusal })]);
  const calls = answer.calls.map(callChunks);
  out += write(interleaved ? alternating(calls) : calls.flat());
  out += write([chunkOf({}, answer.finish)]);
  const { text, stop } = writer.end();
  return { events: parseEvents(out + text), stop };
}

/** Returns the start of a call, then its arguments in pieces. */
function callChunks(call: Call, index: number): Chunk[] {
  const firstDelta = { index, id: call.id, function: { name: call.name, arguments: "" } };
  const extra = call.extra === null ? {} : { extra_content: call.extra };
  return [
    chunkOf({ tool_calls: [{ ...firstDelta, ...extra }] }),
    ...pieces(call.arguments).map((piece) =>
      chunkOf({ tool_calls: [{ index, function: { arguments: piece } }] }),
    ),
  ];
}

/** Takes one item of each list in turn. */
function alternating(lists: readonly (readonly Chunk[])[]): Chunk[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, at) =>
    lists.flatMap((list) => list.slice(at, at + 1)),
  ).flat();
}

/** Joins neighboring thoughts, which a stream can split differently. */
function essence(content: readonly Json[]): Json {
  const isThought = ({ type }: Json): boolean =>
    type === "thinking" || type === "redacted_thinking";
  const thoughts = readReturnedThoughts(content.filter(isThought));
  return {
    details: thoughts.details,
    reasoning: thoughts.reasoning,
    extras: Object.fromEntries(thoughts.extras),
    rest: content.filter((block) => !isThought(block)),
  };
}

describe("a Messages stream", () => {
  test("contains blocks that add up to the JSON response, whatever the output and the order of tool calls", () => {
    fc.assert(
      fc.property(answers, fc.boolean(), (answer, interleaved) => {
        const { events, stop } = streamed(answer, interleaved);
        const message = toClientMessage(completion(answer), new Map());
        const content = foldBlocks(events);
        expect(essence(content)).toEqual(essence([...message.content]));
        const { content: _, ...ending } = message;
        expect(stop).toEqual(ending);
      }),
    );
  });

  test("contains the signature of Claude's thinking once, before the end of the block", () => {
    const writer = new MessagesBlockWriter(new Map());
    const thought = { type: "anthropic.thinking", thinking: "First, look.", signature: "c2ln" };
    let out = writer.chunk(chunkOf({ reasoning_content: "First, " }));
    out += writer.chunk(chunkOf({ reasoning_content: "look." }));
    out += writer.chunk(chunkOf({ reasoning_details: [thought] }));
    out += writer.chunk(chunkOf({ content: "Done." }));
    out += writer.end().text;
    expect(foldBlocks(parseEvents(out))).toEqual([
      { type: "thinking", thinking: "First, look.", signature: "c2ln" },
      { type: "text", text: "Done." },
    ]);
  });

  test("contains each piece of text immediately, in a separate event", () => {
    const writer = new MessagesBlockWriter(new Map());
    expect(parseEvents(writer.text('"a"')).map(({ name }) => name)).toEqual([
      "content_block_start",
      "content_block_delta",
    ]);
    expect(parseEvents(writer.text('"\\u00e9"'))).toEqual([
      {
        name: "content_block_delta",
        data: { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "é" } },
      },
    ]);
  });

  test("closes its blocks even if the output stops inside a tool call's arguments", () => {
    const writer = new MessagesBlockWriter(new Map());
    let out = writer.chunk(
      chunkOf({
        tool_calls: [{ index: 0, id: "a", function: { name: "look", arguments: '{"q":"x' } }],
      }),
    );
    out += writer.chunk(chunkOf({}, "length"));
    const { text, stop } = writer.end();
    const names = parseEvents(out + text).map(({ name }) => name);
    expect(names).toEqual(["content_block_start", "content_block_delta", "content_block_stop"]);
    expect(stop.stop_reason).toBe("max_tokens");
  });
});
