import { expect, it } from "vitest";
import { toGeminiSchema } from "../../src/models/protocols/gemini/request.ts";
import { parseObject } from "../../src/models/core/json-value.ts";

it("a schema sent to Google drops all keywords next to $ref that don't start with $, at any depth", () => {
  const reference = { $ref: "#/$defs/X", $comment: "c" };
  const schema = {
    type: "object",
    properties: { a: { ...reference, description: "an x" }, $ref: { type: "string", title: "t" } },
    items: [{ anyOf: [{ ...reference, default: 1 }] }],
    default: { $ref: "data", title: "data" },
    $defs: { X: { type: "object" } },
  };
  expect(toGeminiSchema(schema)).toEqual({
    ...schema,
    properties: { ...schema.properties, a: reference },
    items: [{ anyOf: [reference] }],
  });
});

it("a schema sent to Google keeps the original digits and key order", () => {
  const text =
    '{"type":"object","properties":{"b":{"maximum":9223372036854775807},"1":{"minimum":1.0}}}';
  expect(JSON.stringify(toGeminiSchema(parseObject(text) ?? {}))).toBe(text);
});
