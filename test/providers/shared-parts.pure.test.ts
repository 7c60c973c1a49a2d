import * as fc from "fast-check";
import { expect, it } from "vitest";
import { ChunkBuilder, toCompletion } from "../../src/models/core/output-part.ts";
import {
  embedInBatches,
  createEmbeddingList,
  getInputTexts,
} from "../../src/models/core/embedding-batches.ts";
import type { EmbeddingsCall, ProviderResult } from "../../src/models/core/provider.ts";
import {
  NINE_CHARACTER_ID_FORMAT,
  AcceptedToolCallIds,
  WORD_CHARACTER_ID_FORMAT,
} from "../../src/models/core/tool-calls.ts";
import { callOf, messageOf } from "./adapter-kit.ts";

it.each([
  ["nine", NINE_CHARACTER_ID_FORMAT],
  ["word", WORD_CHARACTER_ID_FORMAT],
])("tool call IDs (%s) are converted to valid, stable and unique IDs", (_, shape) => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.string(), { maxLength: 40 }), (ids) => {
      const first = new AcceptedToolCallIds(shape);
      const validIds = ids.map((id) => first.idFor(id));
      for (const id of validIds) expect(id).toMatch(shape.pattern);
      expect(new Set(validIds).size).toBe(ids.length);
      expect(ids.map((id) => first.idFor(id))).toEqual(validIds);
      const again = new AcceptedToolCallIds(shape);
      expect(ids.map((id) => again.idFor(id))).toEqual(validIds);
    }),
  );
});

it("a valid tool call ID is kept, even if another ID would be converted to it", () => {
  const mapped = new AcceptedToolCallIds(NINE_CHARACTER_ID_FORMAT).idFor("call_long");
  const ids = new AcceptedToolCallIds(NINE_CHARACTER_ID_FORMAT);
  expect(ids.idFor("abcdefghi")).toBe("abcdefghi");
  expect(ids.idFor(mapped)).toBe(mapped);
  expect(ids.idFor("call_long")).not.toBe(mapped);
});

it("the chunk builder writes the role once and first, complete tool calls, and one finish reason", () => {
  const builder = new ChunkBuilder();
  const events = [
    ...builder.addReasoning("hm"),
    ...builder.addText("a"),
    ...builder.addText(""),
    ...builder.addText("b"),
    ...builder.addTool("x", "f"),
    ...builder.addToolArguments('{"k":'),
    ...builder.addToolArguments("1}"),
    ...builder.addTool("", "g", { extra_content: { e: 1 } }),
    ...builder.finish("stop"),
    ...builder.finish("length"),
  ];
  expect(events[0]).toMatchObject({
    chunk: { choices: [{ index: 0, delta: { role: "assistant", content: "" } }] },
  });
  const message = messageOf(events);
  expect(message).toMatchObject({ content: "ab", reasoning: "hm", finish: "tool_calls" });
  expect(message.tools).toMatchObject([
    { id: "x", name: "f", arguments: '{"k":1}' },
    { name: "g", arguments: "{}", more: { extra_content: { e: 1 } } },
  ]);
  expect(message.tools[1]?.id).toMatch(/^call_[A-Za-z0-9]{24}$/);
  expect(JSON.stringify(events).match(/"finish_reason":"/g)).toHaveLength(1);
});

it("a response with a tool call has finish_reason tool_calls and null content", () => {
  const { body } = toCompletion(
    [
      [
        { kind: "call", id: "x", name: "f", arguments: "" },
        { kind: "finish", reason: "stop" },
      ],
    ],
    null,
  );
  expect(body).toEqual({
    choices: [
      {
        index: 0,
        logprobs: null,
        finish_reason: "tool_calls",
        message: {
          role: "assistant",
          content: null,
          refusal: null,
          tool_calls: [{ id: "x", type: "function", function: { name: "f", arguments: "{}" } }],
        },
      },
    ],
  });
});

const used = (input: number) => ({ input, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 });

it("the parts of an embeddings batch are merged completely and in order, with total usage", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(30), fc.integer({ min: 1, max: 7 }), async (count, size) => {
      const input = Array.from({ length: count + 1 }, (_, at) => `text ${at}`);
      const sizes: number[] = [];
      const send = (part: EmbeddingsCall): Promise<ProviderResult> => {
        const texts = getInputTexts(part);
        sizes.push(texts.length);
        const vectors = texts.map((text) => [Number(text.slice(5))]);
        return Promise.resolve({
          kind: "json",
          ...createEmbeddingList(vectors, used(texts.length)),
        });
      };
      const answer = await embedInBatches(
        callOf({ kind: "embeddings", body: { input } }),
        size,
        send,
      );
      const data = input.map((_, index) => [index]);
      expect(answer).toMatchObject({ kind: "json", body: { data }, usage: used(count + 1) });
      expect(Math.max(...sizes)).toBeLessThanOrEqual(size);
    }),
  );
});

it("an embeddings batch fails if a part fails, has no usage if a part has none, and rejects token IDs", async () => {
  const call = callOf({ kind: "embeddings", body: { input: ["a", "b"] } });
  const ok: ProviderResult = { kind: "json", ...createEmbeddingList([[1]], null) };
  expect(await embedInBatches(call, 1, () => Promise.resolve(ok))).toMatchObject({ usage: null });
  const failure = { kind: "overloaded", reason: "429" } as const;
  let callCount = 0;
  const second = (): Promise<ProviderResult> =>
    Promise.resolve(callCount++ === 0 ? ok : { kind: "failure", failure });
  expect(await embedInBatches(call, 1, second)).toEqual({ kind: "failure", failure });
  const tokens = callOf({ kind: "embeddings", body: { input: [1, 2] } });
  expect(await embedInBatches(tokens, 1, second)).toMatchObject({
    kind: "failure",
    failure: { kind: "refused", param: "input" },
  });
});
