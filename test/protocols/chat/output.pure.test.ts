import * as fc from "fast-check";
import { expect, it } from "vitest";
import * as z from "zod/mini";
import type { JsonObject } from "../../../src/models/core/provider.ts";
import { readChatCompletion } from "../../../src/models/protocols/chat/answer.ts";
import { ChatChunkReader } from "../../../src/models/protocols/chat/chunks.ts";

const text = z.optional(z.string());
const called = z.strictObject({ name: text, arguments: text });
const call = z.strictObject({
  index: z.optional(z.int()),
  id: text,
  type: z.optional(z.enum(["function", "custom"])),
  function: z.optional(called),
  custom: z.optional(z.strictObject({ name: text, input: text })),
});

const messageSchema = z.strictObject({
  role: z.optional(z.literal("assistant")),
  content: z.optional(z.nullable(z.string())),
  refusal: z.optional(z.nullable(z.string())),
  reasoning_content: text,
  annotations: z.optional(z.array(z.unknown())),
  tool_calls: z.optional(z.array(call)),
  function_call: z.optional(called),
});

const choice = {
  index: z.int(),
  logprobs: z.nullable(z.record(z.string(), z.unknown())),
  finish_reason: z.nullable(
    z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]),
  ),
};
const chunk = z.looseObject({
  choices: z.array(z.strictObject({ ...choice, delta: messageSchema })),
});
const completion = z.looseObject({
  choices: z.array(z.strictObject({ ...choice, message: messageSchema })),
});

/** Objects with these fields, whose values are usually valid and sometimes anything. */
const fields = (names: readonly string[], right: fc.Arbitrary<unknown>): fc.Arbitrary<JsonObject> =>
  fc.dictionary(fc.constantFrom(...names), fc.oneof(fc.jsonValue(), right));

const words = fc.string();
const toolCall = fields(
  ["index", "id", "function", "custom"],
  fc.oneof(fc.nat(2), words, fields(["name", "arguments", "input"], words)),
);
const message = fields(
  [
    "role",
    "content",
    "refusal",
    "reasoning_content",
    "reasoning",
    "annotations",
    "tool_calls",
    "function_call",
  ],
  fc.oneof(words, fc.array(toolCall, { maxLength: 3 }), fields(["name", "arguments"], words)),
);
const choices = (field: string) =>
  fc
    .array(
      fc.tuple(
        fields(["index", "finish_reason", "logprobs"], fc.oneof(fc.nat(2), fc.constant("stop"))),
        message,
      ),
      { maxLength: 3 },
    )
    .map((list) => list.map(([others, one]) => ({ ...others, [field]: one })));

it("the chunks of a chat stream match the gateway's schema, whatever the provider streams", () => {
  fc.assert(
    fc.property(fc.array(choices("delta"), { maxLength: 5 }), (payloads) => {
      const reader = new ChatChunkReader();
      const events = payloads.flatMap((one) =>
        reader.read(JSON.stringify({ choices: one }), "message"),
      );
      const chunks = events.flatMap((event) => (event.kind === "chunk" ? [event.chunk] : []));
      expect(() => z.array(chunk).parse(chunks)).not.toThrow();
    }),
  );
});

it("a chat completion matches the gateway's schema, whatever the provider returns", () => {
  fc.assert(
    fc.property(choices("message"), (input) => {
      const answer = readChatCompletion(
        JSON.parse(JSON.stringify({ choices: input })) as JsonObject,
      );
      const bodies = answer !== null && "body" in answer ? [answer.body] : [];
      expect(() => z.array(completion).parse(bodies)).not.toThrow();
    }),
  );
});
