import { callOf } from "./adapter-kit.ts";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import { base64ToFloats, floatsToBase64 } from "../../src/models/core/embedding-batches.ts";
import { readChatCompletion, readEmbeddings } from "../../src/models/protocols/chat/answer.ts";
import { readUsage } from "../../src/models/core/openai-usage.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";

function completion(message: object, more: object = {}) {
  return { id: "x", choices: [{ index: 0, message, finish_reason: "stop", ...more }] };
}

/** Returns the body of a response, or undefined if it is invalid. */
function bodyOf(raw: JsonObject): JsonObject | undefined {
  const answer = readChatCompletion(raw);
  return answer !== null && "body" in answer ? answer.body : undefined;
}

const reason = (finish_reason: unknown) =>
  (bodyOf(completion({ content: "" }, { finish_reason }))?.["choices"] as object[])?.[0];

it("a provider's finish reasons map to OpenAI's, and no response is returned if the finish reason means a failure", () => {
  expect(reason("eos")).toMatchObject({ finish_reason: "stop" });
  expect(reason(undefined)).toMatchObject({ finish_reason: "stop" });
  expect(reason("length")).toMatchObject({ finish_reason: "length" });
  expect(reason("abort")).toBeUndefined();
  for (const body of [{}, { choices: [] }, { choices: [{}] }, { choices: "x" }]) {
    expect(readChatCompletion(body)).toBeNull();
  }
});

it("a provider's refusal stays in the message if it is text, and otherwise becomes null", () => {
  for (const refusal of ["I can't help.", 7]) {
    const message = { refusal: typeof refusal === "string" ? refusal : null };
    const body = bodyOf(completion({ content: null, refusal }));
    expect(body).toMatchObject({ choices: [{ message }] });
  }
});

it("a provider's malformed token totals are ignored, and malformed token details can't exceed the totals", () => {
  for (const bad of [-1, 0.5, Number.NaN, "7", null, undefined, 1e300, {}, Infinity]) {
    expect(readUsage({ prompt_tokens: bad, completion_tokens: 1 })).toBeNull();
    expect(readUsage({ prompt_tokens: 1, completion_tokens: bad })).toBeNull();
  }
  fc.assert(
    fc.property(
      fc.anything(),
      fc.anything(),
      fc.anything(),
      fc.integer({ min: 1, max: 1000 }),
      (a, b, c, prompt) => {
        const usage = readUsage({
          prompt_tokens: prompt,
          completion_tokens: 5,
          prompt_tokens_details: { cached_tokens: a, cache_write_tokens: b },
          completion_tokens_details: { reasoning_tokens: c },
        });
        expect(usage).not.toBeNull();
        if (usage === null) return;
        expect(usage.input + usage.cacheRead + usage.cacheWrite).toBe(prompt);
        expect(usage.reasoning).toBeLessThanOrEqual(usage.output);
        expect(Object.values(usage).every((n) => Number.isSafeInteger(n) && n >= 0)).toBe(true);
      },
    ),
  );
  const swapped = {
    prompt_tokens: 5,
    completion_tokens: 1,
    prompt_tokens_details: { cached_tokens: 9 },
  };
  expect(readUsage(swapped)).toMatchObject({ input: 0, cacheRead: 5 });
});

const of = (input: unknown) => callOf({ kind: "embeddings", body: { input } });

it("an embeddings response either has one vector per input, in order, or counts as a failure", () => {
  const data = [1, 0].map((index) => ({ index, embedding: [index] }));
  expect(readEmbeddings({ data }, of(["a", "b"]))?.body["data"]).toEqual([[0], [1]]);
  expect(readEmbeddings({ data }, of(["a", "b", "c"]))).toBeNull();
  expect(readEmbeddings({ data: [{ embedding: null }] }, of("a"))).toBeNull();
  expect(readEmbeddings({ data: [{ index: 0, embedding: [] }] }, of("a"))).toBeNull();
  const counts = ["a", ["a", "b"], [1, 2, 3], [[1], [2]]].map((input) =>
    [1, 2].filter((size) => readEmbeddings({ data: data.slice(-size) }, of(input)) !== null),
  );
  expect(counts).toEqual([[1], [2], [1], [2]]);
});

it("an embeddings response in little-endian float32 base64 decodes to the same numbers", () => {
  expect(floatsToBase64([1, -2])).toBe("AACAPwAAAMA=");
  expect(base64ToFloats("AACAPwAAAMA=")).toEqual([1, -2]);
  expect([base64ToFloats("AACAPw"), base64ToFloats("AAA="), base64ToFloats("%%")]).toEqual([
    [1],
    null,
    null,
  ]);
  const float32 = fc.float({ noNaN: true });
  fc.assert(
    fc.property(fc.array(float32), (floats) => {
      expect(base64ToFloats(floatsToBase64(floats))).toEqual(floats);
    }),
  );
  const long = Array.from({ length: 20_000 }, (_, at) => at / 4);
  expect(base64ToFloats(floatsToBase64(long))).toEqual(long);
});
