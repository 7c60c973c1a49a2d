import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, bindingsWith, errorOf, openAccount, send } from "./client.ts";
import { mockUpstream } from "./upstream.ts";

const KEYS = {
  RESIDENCY: "relaxed",
  COHERE_API_KEY: "k",
  VOYAGE_API_KEY: "k",
  JINA_API_KEY: "k",
};
const UNIT_MICRO = 2000;

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

type Ranked = {
  readonly id: string;
  readonly results: readonly { index: number; relevance_score: number; document?: object }[];
  readonly meta: { readonly billed_units: object };
  readonly usage: { readonly total_tokens: number };
};

const DOCUMENTS = ["a blue dog", "the red fox", "nothing"];
const rank = (fields: object = {}, bindings?: Env, path = "/v1/rerank"): Promise<Response> =>
  send(path, {
    key,
    method: "POST",
    body: { model: "sandbox/rerank", query: "a red fox", documents: DOCUMENTS, ...fields },
    ...(bindings && { bindings }),
  });

/** Returns a charged response's body and cost, which the balance confirms. */
async function charged(sent: () => Promise<Response>): Promise<Ranked & { readonly cost: number }> {
  const before = await balanceOf(key);
  const response = await sent();
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  const cost = Number(response.headers.get("x-cost-micro"));
  expect(before - (await balanceOf(key))).toBe(cost);
  return { ...(JSON.parse(text) as Ranked), cost };
}

/** Returns a provider with this response. */
function answering(answer: object) {
  const { calls } = mockUpstream(() => Response.json(answer));
  return { calls, bindings: bindingsWith(KEYS) };
}

describe("POST /v1/rerank", () => {
  it("returns the documents in order of relevance, in Cohere's format", async () => {
    const answer = await charged(() => rank());
    expect(answer).toMatchObject({
      results: [{ index: 1 }, { index: 0 }, { index: 2 }],
      meta: { api_version: { version: "2" }, billed_units: { search_units: 1 } },
      cost: UNIT_MICRO,
    });
  });

  it("accepts the path that Cohere's SDKs call", async () => {
    const response = await rank({ top_n: 1 }, undefined, "/v2/rerank");
    expect(response.status).toBe(200);
    expect((await response.json<Ranked>()).results).toHaveLength(1);
  });

  it("accepts the field names of Voyage and Jina", async () => {
    const documents = DOCUMENTS.map((text) => ({ text }));
    const { results } = await charged(() => rank({ documents, top_k: 1, return_documents: true }));
    expect(results).toEqual([
      { index: 1, relevance_score: expect.any(Number) as number, document: documents[1] },
    ]);
  });

  it("charges each started hundred of documents as one unit, and writes a receipt with the units", async () => {
    const documents = Array.from({ length: 201 }, (_, i) => `document ${i}`);
    const response = await rank({ documents });
    expect(Number(response.headers.get("x-cost-micro"))).toBe(3 * UNIT_MICRO);
    const id = response.headers.get("x-request-id") ?? "";
    const receipt = await (await send(`/v1/generations/${id}`, { key })).json();
    expect(receipt).toMatchObject({
      held_micro: 3 * UNIT_MICRO,
      cost_micro: 3 * UNIT_MICRO,
      lines: [{ what: "search_unit", tokens: 3, micro: 3 * UNIT_MICRO }],
    });
  });

  it("appears in the model list with a price per search unit", async () => {
    const listed = await (await send("/v1/models/sandbox/rerank", { key })).json();
    expect(listed).toMatchObject({
      kind: "rerank",
      pricing: { prompt: "0", search_unit: "0.002" },
    });
  });
});

const RESULTS = [
  { index: 0, relevance_score: 0.1 },
  { index: 1, relevance_score: 0.9 },
];

describe("POST /v1/rerank at providers", () => {
  it.each([
    ["search units", "cohere/rerank-v4.0-pro", { search_units: 1 }, 2500],
    ["tokens", "cohere/rerank-v5.0-pro", { input_tokens: 1000 }, 50],
    [
      "only the held search units if more are reported",
      "cohere/rerank-v4.0-pro",
      { search_units: 50 },
      2500,
    ],
    ["the held search units if none are reported", "cohere/rerank-v4.0-pro", undefined, 2500],
  ])("charges %s at Cohere", async (_, model, billed_units, cost) => {
    const { calls, bindings } = answering({ id: "x", results: RESULTS, meta: { billed_units } });
    const long = { documents: ["a ".repeat(1000), "b"] };
    const answer = await charged(() => rank({ ...long, model, max_tokens_per_doc: 300 }, bindings));
    expect(answer.cost).toBe(cost);
    expect(answer.results.map(({ index }) => index)).toEqual([1, 0]);
    expect(calls[0]).toMatchObject({
      url: "https://api.cohere.com/v2/rerank",
      body: { ...long, query: "a red fox", top_n: 2, max_tokens_per_doc: 300 },
    });
  });

  it.each([
    ["voyage/rerank-3", "data", "https://api.voyageai.com/v1/rerank", { top_k: 3 }],
    ["jina/jina-reranker-v3.5", "results", "https://api.jina.ai/v1/rerank", { top_n: 3 }],
  ])("charges the tokens of %s", async (model, field, url, body) => {
    const { calls, bindings } = answering({ [field]: RESULTS, usage: { total_tokens: 40 } });
    const answer = await charged(() => rank({ model }, bindings));
    expect(answer).toMatchObject({ cost: 2, usage: { total_tokens: 40 } });
    expect(calls[0]).toMatchObject({ url, body: { ...body, documents: DOCUMENTS } });
  });

  it.each([
    ["no results", []],
    ["a document that was not sent", [{ index: 9, relevance_score: 1 }]],
    ["a duplicate document", [RESULTS[0], RESULTS[0]]],
    ["a score that is not a number", [{ index: 0, relevance_score: "high" }]],
  ])("returns 502 for %s, and charges nothing", async (_, results) => {
    const { bindings } = answering({ results, meta: { billed_units: { search_units: 1 } } });
    const before = await balanceOf(key);
    await errorOf(await rank({ model: "cohere/rerank-v4.0-pro" }, bindings), 502);
    expect(await balanceOf(key)).toBe(before);
  });
});

describe("a rejected POST /v1/rerank", () => {
  it.each([
    ["query", { query: "" }],
    ["documents", { documents: [] }],
    ["documents[1]", { documents: ["a", 5] }],
    ["top_n", { top_n: 0 }],
    ["top_k", { top_n: 1, top_k: 2 }],
    ["priority", { priority: 1 }],
    ["max_tokens_per_doc", { max_tokens_per_doc: 0 }],
    ["user", { user: "x".repeat(257) }],
  ])("returns 400 with the param for an invalid %s", async (param, wrong) => {
    const error = await errorOf(await rank(wrong), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param });
  });

  it("returns 402 if the balance is lower than the amount to hold", async () => {
    const { key: poor } = await openAccount({ credits: UNIT_MICRO - 1 });
    const body = { model: "sandbox/rerank", query: "a", documents: ["b"] };
    const response = await send("/v1/rerank", { key: poor, method: "POST", body });
    expect(await errorOf(response, 402)).toMatchObject({ required_micro: UNIT_MICRO });
  });

  it("returns 503 if a model's price has an unsupported unit or none", async () => {
    const route = [{ provider: "mock", upstream_id: "m" }];
    const model = { id: "x/y", kind: "rerank", context: 10, routes: route };
    for (const price of [{ image: 5 }, {}]) {
      const bindings = bindingsWith({ MODELS: JSON.stringify([{ ...model, price }]) });
      const response = await rank({}, bindings);
      expect(response.status).toBe(503);
    }
  });
});
