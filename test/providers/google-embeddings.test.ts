import { expect, it } from "vitest";
import type { JsonObject, Provider } from "../../src/models/core/provider.ts";
import { GOOGLE_FAILURES, jsonReply } from "../fixtures/google-replies.ts";
import type { RawReply } from "../fixtures/reply-scenarios.ts";
import { answerTo } from "./adapter-kit.ts";
import { GEMINI } from "./google-kit.ts";
import { TOKEN, vertexProvider } from "./vertex-kit.ts";

const OLD = "gemini-embedding-001";
const NEW = "gemini-embedding-2";
const embed = (
  provider: Provider,
  body: JsonObject,
  reply: RawReply | readonly RawReply[],
  upstreamId = OLD,
) => answerTo(provider, { kind: "embeddings", upstreamId, body }, reply);
const vectors = (...values: unknown[]) =>
  jsonReply({ embeddings: values.map((one) => ({ values: one })) });
const dataOf = (answer: object) => (answer as { body: { data: number[][] } }).body.data;

it("the Google adapter returns one vector per text in order, without usage if Google reports none", async () => {
  const { answer, requests } = await embed(GEMINI, { input: "one" }, vectors([1, 0]));
  expect(answer).toEqual({
    kind: "json",
    body: { data: [[1, 0]] },
    usage: null,
  });
  expect(requests[0]?.url).toMatch(/v1beta\/models\/gemini-embedding-001:batchEmbedContents$/);
  expect(requests[0]?.json).toEqual({
    requests: [{ model: `models/${OLD}`, content: { parts: [{ text: "one" }] } }],
  });
  const many = await embed(GEMINI, { input: ["a", "b"] }, vectors([1, 0], [0, 1]));
  expect(dataOf(many.answer)).toEqual([
    [1, 0],
    [0, 1],
  ]);
});

it("the Google adapter returns reported usage", async () => {
  const recorded = {
    embeddings: [{ values: [0.5, 0.8] }],
    usageMetadata: { promptTokenCount: 12, promptTokenDetails: [] },
  };
  const { answer } = await embed(GEMINI, { input: "a" }, jsonReply(recorded), NEW);
  expect(answer).toMatchObject({ usage: { input: 12, output: 0 } });
});

/** Returns this number of vectors that contain their position. */
const slice = (start: number, length: number) =>
  vectors(...Array.from({ length }, (_, at) => [start + at, 1]));

it("the Google adapter splits inputs into requests of 100, and merges the vectors in order", async () => {
  const input = Array.from({ length: 250 }, (_, at) => String(at));
  const replies = [slice(0, 100), slice(100, 100), slice(200, 50)];
  const { answer, requests } = await embed(GEMINI, { input }, replies, NEW);
  expect(requests.map(({ json: body }) => (body["requests"] as []).length)).toEqual([100, 100, 50]);
  expect(dataOf(answer).map(([at]) => at)).toEqual(input.map(Number));
  const failed = await embed(GEMINI, { input }, [
    slice(0, 100),
    GOOGLE_FAILURES.errors["quota"] ?? jsonReply({}),
  ]);
  expect(failed.answer).toMatchObject({ kind: "failure", failure: { kind: "overloaded" } });
});

it("the Google adapter normalizes a shortened vector of gemini-embedding-001, but no other vectors", async () => {
  const body = { input: "a", dimensions: 2, user: "someone", encoding_format: "base64" };
  const { answer, requests } = await embed(GEMINI, body, vectors([3, 4]));
  expect(dataOf(answer)).toEqual([[0.6, 0.8]]);
  expect(requests[0]?.json).toHaveProperty("requests.0.outputDimensionality", 2);
  expect(requests[0]?.text).not.toMatch(/someone|base64/);
  expect(dataOf((await embed(GEMINI, body, vectors([0, 0]))).answer)).toEqual([[0, 0]]);
  expect(dataOf((await embed(GEMINI, body, vectors([3, 4]), NEW)).answer)).toEqual([[3, 4]]);
  const full = Array.from({ length: 3072 }, () => 1);
  expect(dataOf((await embed(GEMINI, { input: "a" }, vectors(full))).answer)).toEqual([full]);
});

it.each([
  ["too few vectors", vectors([1])],
  ["too many vectors", vectors([1], [2], [3])],
  ["an empty vector", vectors([1], [])],
  ["text instead of numbers", vectors([1], ["2"])],
  ["no vectors", jsonReply({})],
  [
    "a number out of range",
    { ...jsonReply({}), body: '{"embeddings":[{"values":[1]},{"values":[1e999]}]}' },
  ],
])("the Google adapter rejects an embeddings response with %s", async (_name, reply) => {
  const { answer } = await embed(GEMINI, { input: ["a", "b"] }, reply);
  expect(answer).toEqual({ kind: "failure", failure: { kind: "retry", reason: "bad_answer" } });
});
/** Recorded from aiplatform.googleapis.com. */
const predicted = (...items: readonly (readonly [number[], unknown])[]) =>
  jsonReply({
    predictions: items.map(([values, tokens]) => ({
      embeddings: { statistics: { token_count: tokens, truncated: false }, values },
    })),
    metadata: { billableCharacterCount: 35 },
  });

it("the Google adapter sends Vertex one text at a time for gemini-embedding-001, and sums the tokens", async () => {
  const vertex = await vertexProvider();
  const replies = [TOKEN, predicted([[3, 4], 5]), predicted([[0, 2], 6])];
  const body = { input: ["a", "b"], dimensions: 2 };
  const { answer, requests } = await embed(vertex, body, replies);
  expect(dataOf(answer)).toEqual([
    [0.6, 0.8],
    [0, 1],
  ]);
  expect(answer).toMatchObject({ usage: { input: 11 } });
  expect(requests[1]?.url).toMatch(/\/publishers\/google\/models\/gemini-embedding-001:predict$/);
  expect(requests.slice(1).map((one) => one.json)).toEqual(
    ["a", "b"].map((content) => ({
      instances: [{ content }],
      parameters: { autoTruncate: false, outputDimensionality: 2 },
    })),
  );
});

it("the Google adapter sends Vertex several texts for other models, without usage if a count is missing", async () => {
  const vertex = await vertexProvider();
  const replies = [TOKEN, predicted([[1], 5], [[2], undefined])];
  const { answer, requests } = await embed(
    vertex,
    { input: ["a", "b"] },
    replies,
    "text-embedding-005",
  );
  expect(requests).toHaveLength(2);
  expect(answer).toMatchObject({ kind: "json", usage: null });
  expect(dataOf(answer)).toEqual([[1], [2]]);
});
