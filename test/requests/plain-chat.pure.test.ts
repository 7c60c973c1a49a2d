import * as fc from "fast-check";
import { expect, it } from "vitest";
import * as z from "zod/mini";
import { chatBodySchema, isPlainChat } from "../../src/models/core/core-request.ts";

/** A field's value: usually valid, sometimes almost valid, or anything. */
const or = (right: fc.Arbitrary<unknown>, ...near: readonly unknown[]): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 40, arbitrary: right },
    { weight: 1, arbitrary: fc.constantFrom(...near, null, "", 0, {}, [], true) },
    { weight: 1, arbitrary: fc.jsonValue() },
  );
const role = or(fc.constantFrom("system", "developer", "user", "assistant"), "tool", "function");
const plainMessage = fc.record({ role, content: or(fc.string(), ["x"], [{ type: "text" }]) });
const oddMessage = fc.record(
  {
    role,
    content: or(fc.string(), null),
    name: or(fc.string({ maxLength: 300 })),
    refusal: or(fc.string()),
    tool_calls: or(fc.constant([])),
    __proto__: fc.jsonValue(),
    vendor: fc.jsonValue(),
  },
  { requiredKeys: ["role"], noNullPrototype: true },
);
const message = fc.oneof({ weight: 40, arbitrary: plainMessage }, oddMessage);
const count = or(fc.integer({ min: 1, max: 100 }), -1, 1.5, 2 ** 53, "1", 128, 129);
const body = fc.record(
  {
    model: or(fc.string({ minLength: 1, maxLength: 20 }), "x".repeat(256), "x".repeat(257)),
    messages: or(fc.array(message, { minLength: 1, maxLength: 4 }), [[]]),
    temperature: or(fc.double({ min: 0, max: 2, noNaN: true }), -0.1, 2.1, "1"),
    top_p: or(fc.double({ min: 0, max: 1, noNaN: true }), 1.1),
    max_tokens: count,
    max_completion_tokens: count,
    n: count,
    stream: or(fc.boolean(), "true", 1),
    stream_options: or(fc.record({ include_usage: fc.boolean() }), { include_usage: 1 }, { a: 1 }),
    user: or(fc.string({ minLength: 1, maxLength: 8 }), ".", "..", "a\u0000", "x".repeat(257)),
  },
  { requiredKeys: ["model", "messages"], noNullPrototype: true },
);

it("isPlainChat accepts only bodies that the schema would accept unchanged", () => {
  let plain = 0;
  fc.assert(
    fc.property(body, (value) => {
      if (!isPlainChat(value)) return;
      plain++;
      const parsed = z.safeParse(chatBodySchema, value);
      expect(parsed.success).toBe(true);
      expect(parsed.data).toEqual(value);
      expect(JSON.stringify(parsed.data)).toHaveLength(JSON.stringify(value).length);
    }),
    { numRuns: 3000 },
  );
  expect(plain).toBeGreaterThan(500);
});

it.each([
  ["no messages", { model: "m" }],
  ["no model", { messages: [{ role: "user", content: "x" }] }],
  ["an image", { model: "m", messages: [{ role: "user", content: [{ type: "image_url" }] }] }],
  ["a name", { model: "m", messages: [{ role: "user", content: "x", name: "n" }] }],
  ["tools", { model: "m", messages: [{ role: "user", content: "x" }], tools: [] }],
  ["an unsupported field", { model: "m", messages: [{ role: "user", content: "x" }], store: true }],
  [
    "10,001 messages",
    {
      model: "m",
      messages: Array.from({ length: 10_001 }, () => ({ role: "user", content: "x" })),
    },
  ],
])("isPlainChat leaves the decision about a body with %s to the schema", (_, value) => {
  expect(isPlainChat(value)).toBe(false);
});

it("isPlainChat accepts an SDK's usual request", () => {
  const messages = [
    { role: "system", content: "Be brief." },
    { role: "user", content: "Why is the sky blue?" },
  ];
  const stream_options = { include_usage: true };
  const usual = { model: "smart", messages, temperature: 0.2, max_tokens: 100, user: "ann" };
  expect(isPlainChat({ ...usual, stream: true, stream_options })).toBe(true);
});
