import * as fc from "fast-check";
import { expect, it } from "vitest";
import { parseChatRequest } from "../../src/models/core/core-request.ts";
import { toClaudeSchema } from "../../src/models/claude/json-schema.ts";
import { toMessagesApiRequest } from "../../src/models/protocols/messages/host-request.ts";
import { callOf } from "./adapter-kit.ts";

const PNG = "data:image/png;base64,iVBORw0KGgo=";

/** All content of a valid request, in unusual combinations. */
const odd = fc.constantFrom("", " ", "x", "ä/:", "{}", '{"a":1}', "[]", "nonsense", "\n", PNG);
const name = fc.constantFrom("f", "json", "toString", "__proto__");
const schema = fc.object({
  key: fc.constantFrom("type", "properties", "anyOf", "oneOf", "items", "__proto__", "a"),
});
const words = fc.oneof(
  odd,
  fc.array(
    odd.map((one) => ({ type: "text", text: one })),
    { minLength: 1, maxLength: 3 },
  ),
);
const url = fc.constantFrom(PNG, "https://a/b", "http:", "data:image/svg+xml;base64,AA==", "x");
const picture = url.map((address) => ({ type: "image_url", image_url: { url: address } }));
const oddCall = fc.record({
  id: fc.constantFrom("t1", "t2", "ä"),
  type: fc.constant("function"),
  function: fc.record({ name, arguments: odd }),
});
const details = fc.array(
  fc.record({
    type: fc.constantFrom("anthropic.thinking", "anthropic.redacted_thinking", "other"),
    thinking: fc.oneof(odd, fc.constant(1)),
    signature: odd,
    data: odd,
  }),
);
const message = fc.oneof(
  fc.record({ role: fc.constantFrom("system", "developer", "user"), content: words }),
  fc.record({ role: fc.constant("user"), content: fc.array(picture, { minLength: 1 }) }),
  fc.record(
    {
      role: fc.constant("assistant"),
      content: fc.oneof(words, fc.constant(null)),
      tool_calls: fc.array(oddCall, { minLength: 1, maxLength: 3 }),
      reasoning_details: details,
      refusal: odd,
    },
    { requiredKeys: ["role"] },
  ),
  fc.record({
    role: fc.constant("tool"),
    content: words,
    tool_call_id: fc.constantFrom("t1", "t3"),
  }),
);
const tool = fc.record({
  type: fc.constant("function"),
  function: fc.record(
    { name, parameters: schema, strict: fc.boolean() },
    { requiredKeys: ["name"] },
  ),
});
const body = fc.record(
  {
    model: fc.constant("m"),
    messages: fc.array(message, { minLength: 1, maxLength: 6 }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    top_p: fc.double({ min: 0, max: 1, noNaN: true }),
    n: fc.constantFrom(1, 2),
    stop: fc.oneof(odd, fc.array(odd, { minLength: 1, maxLength: 4 })),
    tools: fc.array(tool, { maxLength: 3 }),
    tool_choice: fc.oneof(
      fc.constantFrom("none", "auto", "required"),
      fc.record({ type: fc.constantFrom("function", "allowed_tools", "custom"), function: schema }),
    ),
    parallel_tool_calls: fc.boolean(),
    response_format: fc.oneof(
      fc.constant({ type: "json_object" }),
      schema.map((one) => ({ type: "json_schema", json_schema: { name: "x", schema: one } })),
    ),
    reasoning_effort: fc.constantFrom("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    prompt_cache_key: odd,
  },
  { requiredKeys: ["model", "messages"] },
);
const model = fc.constantFrom(
  "claude-3-5-haiku-20241022",
  "claude-sonnet-4-20250514",
  "claude-haiku-4-5",
  "claude-opus-4-8",
  "claude-sonnet-5",
  "claude-sonnet-5-5",
  "claude-opus-5-5",
);

it("the Anthropic adapter converts or rejects every valid request, and never sends a message that is empty or ends with thinking", () => {
  fc.assert(
    fc.property(body, model, fc.integer({ min: 1, max: 64_000 }), (raw, upstreamId, cap) => {
      const checked = parseChatRequest(raw);
      fc.pre(checked.ok);
      const call = callOf({ upstreamId, cap, body: checked.value });
      const request = toMessagesApiRequest(call, "us");
      if (!("body" in request)) return request.kind === "refused";
      expect(request.body).toMatchObject({ max_tokens: cap, service_tier: "standard_only" });
      const messages = request.body["messages"] as { role: string; content: { type: string }[] }[];
      expect(messages[0]?.role).toBe("user");
      for (const { content } of messages) {
        expect(content.at(-1)?.type).toMatch(/^(text|image|tool_use|tool_result)$/);
      }
      return JSON.stringify(request.body).length > 0;
    }),
    { numRuns: 500 },
  );
});

it("the Anthropic adapter keeps a schema's structure, and drops the schema's limits at any depth", () => {
  const bounded = { type: "string", minLength: 1, pattern: "^a", format: "email", "x-own": 1 };
  const kept = { type: "string", format: "email" };
  const raw = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: ["object", "null"],
    properties: {
      pattern: bounded,
      list: { type: "array", items: bounded, minItems: 1, uniqueItems: true },
      either: { oneOf: [bounded, { type: "string", format: "color", not: {} }] },
      both: { allOf: [{ $ref: "#/$defs/inner" }], description: "d", default: 1 },
      ["__proto__"]: { type: "integer", minimum: 3 },
    },
    required: ["pattern"],
    $defs: { inner: { properties: { a: { const: 1 } }, additionalProperties: true } },
    patternProperties: { a: {} },
  };
  expect(JSON.parse(JSON.stringify(toClaudeSchema(raw)))).toEqual(
    JSON.parse(
      JSON.stringify({
        type: ["object", "null"],
        properties: {
          pattern: kept,
          list: { type: "array", items: kept },
          either: { anyOf: [kept, { type: "string" }] },
          both: { allOf: [{ $ref: "#/$defs/inner" }], description: "d", default: 1 },
          ["__proto__"]: { type: "integer" },
        },
        required: ["pattern"],
        $defs: { inner: { properties: { a: { const: 1 } }, additionalProperties: false } },
        additionalProperties: false,
      }),
    ),
  );
});
