import { afterEach, expect, it, vi } from "vitest";
import { openAiCompatible } from "../../src/models/providers/openai-compatible.ts";
import { PROFILES } from "../../src/models/providers/profiles.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { answerTo } from "./adapter-kit.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

function host(name: string) {
  const profile = PROFILES.get(name);
  if (profile === undefined) throw new Error(`no profile ${name}`);
  return openAiCompatible({ id: name, baseUrl: "https://host.test/v1", profile, secret: "k" });
}

/** Returns Voyage's response: `embedding` before `index`, and only a total. */
function vectors(from: number, count: number, usage: object = { total_tokens: count }) {
  const data = Array.from({ length: count }, (_, index) => {
    return { object: "embedding", embedding: [from + index, 0.5], index };
  });
  return {
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ object: "list", data: data.toReversed(), model: "voyage-4", usage }),
  };
}

const embed = (body: JsonObject) => ({ kind: "embeddings" as const, upstreamId: "voyage-4", body });

it("the OpenAI-compatible adapter sends Voyage its own field names, without truncation or unsupported formats", async () => {
  const body = {
    input: "a",
    dimensions: 256,
    encoding_format: "float",
    input_type: "query",
    user: "u",
  };
  const { answer, asked } = await answerTo(host("voyage"), embed(body), vectors(0, 1));
  expect(asked[0]?.json).toEqual({
    model: "voyage-4",
    input: ["a"],
    output_dimension: 256,
    input_type: "query",
    truncation: false,
  });
  expect(answer).toEqual({
    kind: "json",
    usage: { input: 1, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 },
    body: {
      object: "list",
      data: [{ object: "embedding", index: 0, embedding: [0, 0.5] }],
      usage: { prompt_tokens: 1, total_tokens: 1 },
    },
  });
  vi.restoreAllMocks();
  const coded = embed({ input: "a", encoding_format: "base64" });
  const second = await answerTo(host("voyage"), coded, vectors(0, 1));
  expect(second.asked[0]?.json["encoding_format"]).toBe("base64");
});

it("the OpenAI-compatible adapter splits texts into several requests, merges them in order, and counts them once", async () => {
  const input = Array.from({ length: 70 }, (_, at) => `text ${at}`);
  const replies = [vectors(0, 32), vectors(32, 32), vectors(64, 6)];
  const { answer, asked } = await answerTo(
    host("mistral"),
    embed({ input, dimensions: 8 }),
    replies,
  );
  expect(asked.map(({ json }) => (json["input"] as string[]).length)).toEqual([32, 32, 6]);
  expect(asked.flatMap(({ json }) => json["input"] as string[])).toEqual(input);
  expect(asked.every(({ json }) => json["output_dimension"] === 8)).toBe(true);
  if (answer.kind !== "json") throw new Error(JSON.stringify(answer));
  const data = answer.body["data"] as { index: number; embedding: number[] }[];
  expect(data.map(({ index, embedding }) => [index, embedding[0]])).toEqual(
    input.map((_, at) => [at, at]),
  );
  expect(answer.usage?.input).toBe(70);
});

it("the OpenAI-compatible adapter fails if a part fails, and estimates usage if a part has none", async () => {
  const input = Array.from({ length: 40 }, (_, at) => `text ${at}`);
  const busy = { status: 429, headers: { "retry-after": "3" }, body: "{}" };
  const failed = await answerTo(host("mistral"), embed({ input }), [vectors(0, 32), busy]);
  expect(failed.answer).toMatchObject({ failure: { kind: "overloaded", retryAfterMs: 3000 } });
  vi.restoreAllMocks();
  const unknown = [vectors(0, 32), vectors(32, 8, {})];
  const { answer } = await answerTo(host("mistral"), embed({ input }), unknown);
  expect(answer).toMatchObject({ kind: "json", usage: null });
});

it("the OpenAI-compatible adapter rejects token IDs before sending if the provider only accepts texts", async () => {
  for (const name of ["voyage", "mistral"]) {
    for (const input of [
      [1, 2],
      [[1], [2]],
    ]) {
      const { answer, asked } = await answerTo(host(name), embed({ input }), vectors(0, 1));
      expect(answer).toMatchObject({ failure: { kind: "refused", param: "input" } });
      expect(asked).toEqual([]);
      vi.restoreAllMocks();
    }
  }
  const { asked } = await answerTo(host("openai"), embed({ input: [1, 2] }), vectors(0, 1));
  expect(asked[0]?.json["input"]).toEqual([1, 2]);
});

it("the OpenAI-compatible adapter treats a missing vector as a failure", async () => {
  const { answer } = await answerTo(host("voyage"), embed({ input: ["a", "b"] }), vectors(0, 1));
  expect(answer).toMatchObject({ failure: { kind: "retry", reason: "bad_answer" } });
});
