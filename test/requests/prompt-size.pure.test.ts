import { measureEmbeddingsPrompt } from "../../src/models/core/embeddings.ts";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatBody } from "../../src/models/core/core-request.ts";
import { measureChatPrompt, measureNativePrompt } from "../../src/models/core/prompt-size.ts";
import { MODEL } from "./run-fixture.ts";

const body = (fields: object): ChatBody => ({
  model: "m",
  messages: [],
  ...fields,
});
const size = (input: number[] | number[][]) =>
  measureEmbeddingsPrompt({ model: "m", input }, MODEL);
const userMessage = (content: unknown, more: object = {}) => ({ role: "user", content, ...more });
const bytes = (value: string): number => new TextEncoder().encode(value).length;

const boundOf = (fields: object) => measureChatPrompt(body(fields), MODEL).bound;
const schema = (more: object) => ({
  messages: [userMessage("hi".repeat(300))],
  response_format: {
    type: "json_schema",
    json_schema: { schema: { type: "object", ...more } },
  },
});
const native = (value: object, weights = new Map()) =>
  measureNativePrompt({ messages: [value], tools: [] }, weights, MODEL).bound;

describe("the counted size of a prompt", () => {
  it("includes an upper bound that covers all forwarded bytes and is never below the estimate", () => {
    const texts = fc.array(fc.string({ unit: "binary", maxLength: 600 }), { maxLength: 5 });
    fc.assert(
      fc.property(texts, (all) => {
        const whole = measureChatPrompt(
          body({ messages: all.map((one) => userMessage(one)) }),
          MODEL,
        );
        const sum = all.reduce((total, one) => total + bytes(one.toWellFormed()), 0);
        expect(whole.bound).toBeGreaterThanOrEqual(sum);
        expect(whole.estimate).toBeLessThanOrEqual(whole.bound);
        expect(whole.likely).toBeLessThanOrEqual(whole.bound);
      }),
    );
  });

  it.each([
    ["text parts", userMessage([{ type: "text", text: "x".repeat(999) }])],
    ["a name", userMessage("", { name: "x".repeat(999) })],
    [
      "tool calls",
      { role: "assistant", tool_calls: [{ function: { arguments: "x".repeat(999) } }] },
    ],
    ["a function call", { role: "assistant", function_call: { arguments: "x".repeat(999) } }],
    ["reasoning", { role: "assistant", content: null, reasoning_content: "x".repeat(999) }],
    ["a refusal part", { role: "assistant", content: null, refusal: "x".repeat(999) }],
    ["a tool's output", { role: "tool", content: "x".repeat(999), tool_call_id: "call_1" }],
  ])("includes %s", (_, message) => {
    expect(measureChatPrompt(body({ messages: [message] }), MODEL).bound).toBeGreaterThan(999);
  });

  it.each(["tools", "functions", "response_format"])("includes the field %s", (field) => {
    const fields = { messages: [userMessage("hi")], [field]: [{ description: "x".repeat(999) }] };
    expect(measureChatPrompt(body(fields), MODEL).bound).toBeGreaterThan(999);
  });

  it("counts an inline image as a fixed maximum, whatever its length", () => {
    for (const start of [
      "iVBORw0KGgo",
      "/9j/",
      "R0lGODlh",
      "UklGRhoAAABXRUJQ",
      "AAAAHGZ0eXBoZWlj",
    ]) {
      const url = `data:image/png;base64,${start}${"x".repeat(99_999)}`;
      const image = { type: "image_url", image_url: { url } };
      const one = measureChatPrompt(body({ messages: [userMessage([image])] }), MODEL).bound;
      const two = measureChatPrompt(body({ messages: [userMessage([image, image])] }), MODEL).bound;
      expect(two - one).toBe(MODEL.imageTokens);
    }
  });

  it("counts data other than images as text, both inline and in native requests", () => {
    const base64 = btoa("word ".repeat(10_000));
    const url = `data:image/png;base64,${base64}`;
    const part = { type: "image_url", image_url: { url } };
    const chat = measureChatPrompt(body({ messages: [userMessage([part])] }), MODEL).bound;
    expect(chat).toBeGreaterThan(base64.length);
    for (const data of [base64, url]) {
      const source = { type: "base64", media_type: "image/png", data };
      const weights = new Map([[source, { image: "data" }]]);
      const sent = { messages: [{ role: "user", content: [{ type: "image", source }] }] };
      expect(measureNativePrompt(sent, weights, MODEL).bound).toBeGreaterThan(base64.length);
    }
  });

  it("includes text that the gateway adds: tool result names, later instructions and schemas", () => {
    const named = (name: string, results: number) => {
      const called = { id: "c", type: "function", function: { name, arguments: "{}" } };
      const result = { role: "tool", tool_call_id: "c", content: "" };
      const turn = { role: "assistant", content: null, tool_calls: [called] };
      return boundOf({ messages: [turn, ...Array.from({ length: results }, () => result)] });
    };
    const longer = (results: number) => named("n".repeat(201), results) - named("n", results);
    // The name appears in the call and where the tool is offered again.
    expect(longer(0)).toBe(2 * 200);
    expect(longer(5)).toBe(7 * 200);
    const conversation = (role: string, first: string) =>
      boundOf({
        messages: [
          { role: first, content: "a" },
          { role, content: "a" },
        ],
      });
    expect(conversation("system", "user") - conversation("user", "user")).toBeGreaterThan(
      "<system></system>".length,
    );
    expect(conversation("system", "system")).toBe(conversation("user", "user"));
    const closed = ',"additionalProperties":false';
    expect(boundOf(schema({}))).toBe(boundOf(schema({ additionalProperties: false })));
    expect(closed.length).toBe(29);
  });

  it("includes every key and string of a forwarded body, and provider-defined tools", () => {
    const long = "k".repeat(999);
    expect(native({ [long]: 1 })).toBeGreaterThan(999);
    expect(native({ a: { b: [{ c: long }] } })).toBeGreaterThan(999);
    expect(native({ input: { [long]: long } })).toBeGreaterThan(2 * 999);
    const known = { type: "bash_20250124", name: "bash" };
    const weighed = (weights: Map<object, "known_tool">) =>
      measureNativePrompt({ messages: [], tools: [known] }, weights, MODEL).estimate;
    expect(weighed(new Map([[known, "known_tool"]])) - weighed(new Map())).toBe(1500);
  });

  it("equals the number of token IDs for arrays of token IDs", () => {
    expect(size([[1, 2, 3]]).bound - size([[1]]).bound).toBe(2);
    expect(size([1, 2, 3]).bound - size([1]).bound).toBe(2);
  });
});
