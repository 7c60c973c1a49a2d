import { describe, expect, it } from "vitest";
import * as z from "zod/mini";
import {
  parseBody,
  parseQuery,
  wholeNumberParameterWithDefault,
} from "../../src/shared/http/parse-body.ts";

const part = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image_url"), image_url: z.object({ url: z.string() }) }),
]);
const message = z.discriminatedUnion("role", [
  z.object({
    role: z.enum(["user", "system"]),
    content: z.union([z.string(), z.array(part).check(z.minLength(1))]),
  }),
  z.object({ role: z.literal("assistant"), content: z.nullish(z.string()) }),
]);
const body = z.object({
  model: z.string().check(z.minLength(1), z.maxLength(5)),
  messages: z.array(message).check(z.minLength(1), z.maxLength(3)),
  temperature: z.nullish(z.number().check(z.minimum(0), z.maximum(2))),
  max_tokens: z.optional(z.int().check(z.positive())),
  stream: z.optional(z.boolean()),
  format: z.optional(z.enum(["float", "base64"])),
  stop: z.nullish(z.union([z.string(), z.array(z.string()).check(z.minLength(1), z.maxLength(4))])),
  tool_choice: z.optional(z.union([z.enum(["auto", "none"]), z.object({ type: z.string() })])),
  slug: z.optional(z.string().check(z.regex(/^[a-z]+$/, "must be lowercase letters"))),
  ref: z.optional(z.string().check(z.refine((text) => text !== "x", "Pick another reference."))),
  pattern: z.optional(z.string().check(z.regex(/^a/))),
  home: z.optional(z.url()),
  step: z.optional(z.number().check(z.multipleOf(5))),
  code: z.optional(z.string().check(z.length(3))),
  odd: z.optional(z.number().check(z.refine((n) => n % 2 === 1))),
  metadata: z.optional(z.record(z.string().check(z.maxLength(4)), z.string())),
  strict: z.optional(z.strictObject({ a: z.optional(z.string()) })),
});
const good = { model: "m", messages: [{ role: "user", content: "hi" }] };

it("the function parseBody returns a valid body without unknown fields", () => {
  expect(parseBody(body, { ...good, extra: 1, temperature: null })).toEqual({
    ok: true,
    value: { ...good, temperature: null },
  });
});

function withMessage(...messages: unknown[]): { messages: unknown[] } {
  return { messages };
}

describe("the error for an invalid body", () => {
  it.each<[Record<string, unknown>, string, string]>([
    [{ model: undefined }, "model", "Missing required parameter: 'model'."],
    [{ messages: undefined }, "messages", "Missing required parameter: 'messages'."],
    [{ model: 4 }, "model", "model must be a string, not a number."],
    [{ model: null }, "model", "model must be a string, not null."],
    [{ model: "" }, "model", "model must be at least 1 character long."],
    [{ model: "abcdef" }, "model", "model must be at most 5 characters long."],
    [{ temperature: 2.5 }, "temperature", "temperature must be at most 2."],
    [{ temperature: -0.1 }, "temperature", "temperature must be at least 0."],
    [{ temperature: "hot" }, "temperature", "temperature must be a number, not a string."],
    [{ max_tokens: 1.5 }, "max_tokens", "max_tokens must be a whole number."],
    [{ max_tokens: "1" }, "max_tokens", "max_tokens must be a number, not a string."],
    [{ max_tokens: -1 }, "max_tokens", "max_tokens must be more than 0."],
    [{ stream: "yes" }, "stream", "stream must be true or false, not a string."],
    [{ format: "hex" }, "format", 'format must be "float" or "base64".'],
    [{ messages: [] }, "messages", "messages must have at least 1 item."],
    [
      { messages: Array.from({ length: 4 }, () => good.messages[0]) },
      "messages",
      "messages must have at most 3 items.",
    ],
    [{ messages: {} }, "messages", "messages must be an array, not an object."],
    [withMessage(4), "messages[0]", "messages[0] must be an object, not a number."],
    [
      withMessage({ content: "x" }),
      "messages[0].role",
      "Missing required parameter: 'messages[0].role'.",
    ],
    [
      withMessage(good.messages[0], { role: "robot" }),
      "messages[1].role",
      'messages[1].role must be "user", "system" or "assistant".',
    ],
    [
      withMessage({ role: "user" }),
      "messages[0].content",
      "Missing required parameter: 'messages[0].content'.",
    ],
    [
      withMessage({ role: "user", content: 5 }),
      "messages[0].content",
      "messages[0].content must be a string or an array, not a number.",
    ],
    [
      withMessage({ role: "user", content: [{ type: "sound" }] }),
      "messages[0].content[0].type",
      'messages[0].content[0].type must be "text" or "image_url".',
    ],
    [
      withMessage({ role: "user", content: [{ type: "image_url", image_url: { url: 1 } }] }),
      "messages[0].content[0].image_url.url",
      "messages[0].content[0].image_url.url must be a string, not a number.",
    ],
    [{ stop: 5 }, "stop", "stop must be a string or an array, not a number."],
    [{ stop: ["a", 5] }, "stop[1]", "stop[1] must be a string, not a number."],
    [{ stop: [] }, "stop", "stop must have at least 1 item."],
    [{ tool_choice: "all" }, "tool_choice", 'tool_choice must be "auto", "none" or an object.'],
    [{ slug: "A" }, "slug", "slug must be lowercase letters."],
    [{ ref: "x" }, "ref", "Pick another reference."],
    [{ pattern: "b" }, "pattern", "pattern has a wrong format."],
    [{ home: "b" }, "home", "home must be a valid url."],
    [{ step: 4 }, "step", "step must be a multiple of 5."],
    [{ code: "ab" }, "code", "code must be exactly 3 characters long."],
    [{ odd: 2 }, "odd", "odd is not valid."],
    [
      { metadata: { abcde: "" } },
      "metadata.abcde",
      "metadata.abcde is not a valid name for a field.",
    ],
    [{ metadata: { a: 1 } }, "metadata.a", "metadata.a must be a string, not a number."],
    [{ strict: { b: 1 } }, "strict", "strict has an unknown field 'b'."],
  ])("names the invalid parameter and the parameter's rule: %j", (change, param, text) => {
    expect(parseBody(body, { ...good, ...change })).toEqual({
      ok: false,
      failure: { kind: "invalid_request", message: text, param },
    });
  });

  it("reports no parameter if the body as a whole is invalid", () => {
    expect(parseBody(body, [])).toMatchObject({
      failure: { message: "The request body must be an object, not an array.", param: null },
    });
  });
});

describe("the parser of query parameters", () => {
  const page = z.object({
    limit: wholeNumberParameterWithDefault(1, 100, 50),
    offset: wholeNumberParameterWithDefault(0, 1e9, 0),
  });
  const parse = (query: string) => parseQuery(page, `http://eu.test/v1/users${query}`);

  it("applies default values to integers, and ignores unknown parameters where allowed", () => {
    expect(parse("")).toEqual({ ok: true, value: { limit: 50, offset: 0 } });
    expect(parse("?limit=100&offset=7&x=1&x=2&__proto__=3")).toEqual({
      ok: true,
      value: { limit: 100, offset: 7 },
    });
  });

  it.each([
    ["?limit=0", "limit", "limit must be at least 1."],
    ["?limit=101", "limit", "limit must be at most 100."],
    ["?offset=-1", "offset", "offset must be at least 0."],
    ["?limit=1e9", "limit", "limit must be a whole number."],
    ["?limit=5.0", "limit", "limit must be a whole number."],
    ["?limit=", "limit", "limit must be a whole number."],
    ["?limit=ten", "limit", "limit must be a whole number."],
    ["?limit=99999999999999999999", "limit", "limit must be a whole number."],
    ["?limit=5&limit=6", "limit", "limit must be given once."],
  ])("rejects the query %s with 400", (query, param, text) => {
    expect(parse(query)).toEqual({
      ok: false,
      failure: { kind: "invalid_request", message: text, param },
    });
  });
});
