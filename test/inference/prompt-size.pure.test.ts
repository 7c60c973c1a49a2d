import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatBody } from "../../src/inference/core-request.ts";
import { chatPromptSize, embeddingsPromptSize } from "../../src/inference/prompt-size.ts";
import { MODEL } from "./run-fixture.ts";

const body = (fields: object): ChatBody => ({
  model: "m",
  messages: [],
  ...fields,
});
const size = (input: number[] | number[][]) => embeddingsPromptSize({ model: "m", input }, MODEL);
const said = (content: unknown, more: object = {}) => ({ role: "user", content, ...more });
const bytes = (value: string): number => new TextEncoder().encode(value).length;

describe("a prompt's size", () => {
  it("is in order, and its bound is never below the bytes of everything that is forwarded", () => {
    const texts = fc.array(fc.string({ unit: "binary", maxLength: 600 }), { maxLength: 5 });
    fc.assert(
      fc.property(texts, (all) => {
        const whole = chatPromptSize(body({ messages: all.map((one) => said(one)) }), MODEL);
        const sum = all.reduce((total, one) => total + bytes(one.toWellFormed()), 0);
        expect(whole.bound).toBeGreaterThanOrEqual(sum);
        expect(whole.estimate).toBeLessThanOrEqual(whole.bound);
        expect(whole.likely).toBeLessThanOrEqual(whole.bound);
      }),
    );
  });

  it.each([
    ["text parts", said([{ type: "text", text: "x".repeat(999) }])],
    ["a name", said("", { name: "x".repeat(999) })],
    [
      "tool calls",
      { role: "assistant", tool_calls: [{ function: { arguments: "x".repeat(999) } }] },
    ],
    ["a function call", { role: "assistant", function_call: { arguments: "x".repeat(999) } }],
    ["reasoning", { role: "assistant", content: null, reasoning_content: "x".repeat(999) }],
    ["a refusal", { role: "assistant", content: null, refusal: "x".repeat(999) }],
    ["a tool's result", { role: "tool", content: "x".repeat(999), tool_call_id: "call_1" }],
  ])("counts %s", (_, message) => {
    expect(chatPromptSize(body({ messages: [message] }), MODEL).bound).toBeGreaterThan(999);
  });

  it.each(["tools", "functions", "response_format"])("counts %s", (field) => {
    const fields = { messages: [said("hi")], [field]: [{ description: "x".repeat(999) }] };
    expect(chatPromptSize(body(fields), MODEL).bound).toBeGreaterThan(999);
  });

  it("takes an image at the model's fixed bound, whatever its address weighs", () => {
    const image = { type: "image_url", image_url: { url: `data:${"x".repeat(99_999)}` } };
    const one = chatPromptSize(body({ messages: [said([image])] }), MODEL).bound;
    const two = chatPromptSize(body({ messages: [said([image, image])] }), MODEL).bound;
    expect(two - one).toBe(MODEL.imageTokens);
  });

  it("of token arrays is their length", () => {
    expect(size([[1, 2, 3]]).bound - size([[1]]).bound).toBe(2);
    expect(size([1, 2, 3]).bound - size([1]).bound).toBe(2);
  });
});
