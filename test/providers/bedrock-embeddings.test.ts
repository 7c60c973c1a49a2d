import { expect, it } from "vitest";
import { answerTo } from "./adapter-kit.ts";
import { BEDROCK } from "./bedrock-kit.ts";

const TITAN = "amazon.titan-embed-text-v2:0";
const COHERE = "cohere.embed-multilingual-v3";
const reply = (body: object, count?: string) => ({
  headers: {
    "content-type": "application/json",
    ...(count !== undefined && { "x-amzn-bedrock-input-token-count": count }),
  },
  body: JSON.stringify(body),
});

const titan = (embedding: number[], inputTextTokenCount: unknown = 3) =>
  reply({ embedding, inputTextTokenCount });
const embed = (upstreamId: string, body: object, replies: ReturnType<typeof reply>[]) =>
  answerTo(BEDROCK, { kind: "embeddings", upstreamId, body: { ...body } }, replies);
const vectors = (count: number) => ({
  embeddings: { float: Array.from({ length: count }, (_, at) => [at]) },
  id: "x",
  response_type: "embeddings_by_type",
});

it("the Bedrock adapter sends Titan one text per request, and merges the responses in order", async () => {
  const replies = [titan([1]), titan([2], 4), titan([3], 5)];
  const { answer, requests } = await embed(
    TITAN,
    { input: ["a", "b", "c"], dimensions: 256 },
    replies,
  );
  expect(requests.map(({ url }) => new URL(url).pathname)).toEqual(
    Array.from("abc", () => "/model/amazon.titan-embed-text-v2%3A0/invoke"),
  );
  expect(requests.map(({ json }) => json)).toEqual(
    ["a", "b", "c"].map((inputText) => ({ inputText, dimensions: 256, normalize: true })),
  );
  expect(answer).toMatchObject({
    kind: "json",
    body: { data: [[1], [2], [3]] },
    usage: { input: 12, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 },
  });
});

it("the Bedrock adapter omits dimensions and normalize for the first version of Titan", async () => {
  const body = { input: "a", dimensions: 256 };
  const { requests } = await embed("amazon.titan-embed-text-v1", body, [titan([1])]);
  expect(requests[0]?.json).toEqual({ inputText: "a" });
});

it("the Bedrock adapter sends Cohere 96 texts per request, and reads the token count from a header", async () => {
  const input = Array.from({ length: 97 }, (_, at) => `text ${at}`);
  const replies = [reply(vectors(96), "300"), reply(vectors(1), "4")];
  const { answer, requests } = await embed(COHERE, { input }, replies);
  expect(requests[1]?.json).toEqual({
    input_type: "search_document",
    texts: ["text 96"],
    embedding_types: ["float"],
  });
  expect(answer).toMatchObject({ kind: "json", usage: { input: 304 } });
  const body = { input: "a", input_type: "search_query", dimensions: 512 };
  const { requests: other } = await embed(COHERE, body, [reply(vectors(1), "4")]);
  expect(other[0]?.json).toMatchObject({ input_type: "search_query", output_dimension: 512 });
});

it("the Bedrock adapter accepts plain vectors of Cohere's third version", async () => {
  const { answer } = await embed(COHERE, { input: ["a"] }, [reply({ embeddings: [[1, 2]] }, "2")]);
  expect(answer).toMatchObject({ body: { data: [[1, 2]] }, usage: { input: 2 } });
});

it.each([
  ["odd", titan([1], 1.5)],
  ["missing", titan([1], null)],
  ["not a number", reply({ embedding: [1] }, "many")],
])("the Bedrock adapter estimates the usage if the count is %s", async (_, answered) => {
  const { answer } = await embed(TITAN, { input: "a" }, [answered]);
  expect(answer).toMatchObject({ kind: "json", usage: null });
});

it.each([{ embedding: [] }, { embedding: ["1"] }, { embeddings: { float: [[1], [2]] } }, {}])(
  "the Bedrock adapter treats a response that lacks requested vectors as a failure: %j",
  async (body) => {
    const { answer } = await embed(COHERE, { input: ["a"] }, [reply(body, "1")]);
    expect(answer).toEqual({ kind: "failure", failure: { kind: "retry", reason: "bad_answer" } });
  },
);

it("the Bedrock adapter rejects token IDs, and rejects an embeddings model that may run outside the region", async () => {
  const tokens = await embed(TITAN, { input: [1, 2] }, [titan([1])]);
  expect(tokens.answer).toMatchObject({ failure: { kind: "refused", param: "input" } });
  const unavailable = await embed("global.cohere.embed-v4:0", { input: "a" }, [titan([1])]);
  expect(unavailable.answer).toMatchObject({ failure: { kind: "disabled" } });
  expect([...tokens.requests, ...unavailable.requests]).toEqual([]);
});
