import { describe, expect, it } from "vitest";
import { bindingsWith, send } from "./client.ts";
import { answering, charged, statusAndCost, key, sender, usePayer } from "./media-client.ts";

const KEYS = { COHERE_API_KEY: "k", VOYAGE_API_KEY: "k", JINA_API_KEY: "k" };
const UNIT_MICRO = 2000;

type Ranked = {
  readonly id: string;
  readonly results: readonly { index: number; relevance_score: number; document?: object }[];
  readonly meta: { readonly billed_units: object };
  readonly usage: { readonly total_tokens: number };
};

const DOCUMENTS = ["a blue dog", "the red fox", "nothing"];
const DEFAULTS = { model: "sandbox/rerank", query: "a red fox", documents: DOCUMENTS };

usePayer();
const rank = sender("/v1/rerank", DEFAULTS);

/** Returns a charged response's body and cost. */
async function ranked(...sent: Parameters<typeof rank>): Promise<Ranked & { cost: number }> {
  const { text, receipt } = await charged(() => rank(...sent));
  return { ...(JSON.parse(text) as Ranked), cost: receipt.cost_micro };
}

describe("POST /v1/rerank", () => {
  it("returns documents by relevance in Cohere's format", async () => {
    const answer = await ranked();
    expect(answer).toMatchObject({
      results: [{ index: 1 }, { index: 0 }, { index: 2 }],
      meta: { api_version: { version: "2" }, billed_units: { search_units: 1 } },
      cost: UNIT_MICRO,
    });
  });

  it("accepts the path that Cohere's SDKs call", async () => {
    const response = await sender("/v2/rerank", DEFAULTS)({ body: { top_n: 1 } });
    expect(response.status).toBe(200);
    expect((await response.json<Ranked>()).results).toHaveLength(1);
  });

  it("accepts the field names of Voyage and Jina", async () => {
    const documents = DOCUMENTS.map((text) => ({ text }));
    const { results } = await ranked({
      body: { documents, top_k: 1, return_documents: true },
    });
    expect(results).toEqual([
      { index: 1, relevance_score: expect.any(Number) as number, document: documents[1] },
    ]);
  });

  it("charges three search units for 201 documents, and lists these units in the receipt", async () => {
    const documents = Array.from({ length: 201 }, (_, i) => `document ${i}`);
    const { receipt } = await charged(() => rank({ body: { documents } }));
    expect(receipt).toMatchObject({
      held_micro: 3 * UNIT_MICRO,
      cost_micro: 3 * UNIT_MICRO,
      lines: [{ what: "search_unit", tokens: 3, micro: 3 * UNIT_MICRO }],
    });
  });

  it("shows its price per search unit in the model list", async () => {
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
  ])("charges %s at Cohere", async (_, model, billed_units, cost) => {
    const { calls, bindings } = answering(KEYS, {
      id: "x",
      results: RESULTS,
      meta: { billed_units },
    });
    const long = { documents: ["a ".repeat(1000), "b"] };
    const answer = await ranked({
      body: { ...long, model, max_tokens_per_doc: 300 },
      bindings,
    });
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
    const { calls, bindings } = answering(KEYS, { [field]: RESULTS, usage: { total_tokens: 40 } });
    const answer = await ranked({ body: { model }, bindings });
    expect(answer).toMatchObject({ cost: 2, usage: { total_tokens: 40 } });
    expect(calls[0]).toMatchObject({ url, body: { ...body, documents: DOCUMENTS } });
  });

  it.each([
    ["no results", []],
    ["a document that was not sent", [{ index: 9, relevance_score: 1 }]],
    ["a duplicate document", [RESULTS[0], RESULTS[0]]],
    ["a score that is not a number", [{ index: 0, relevance_score: "high" }]],
  ])("returns 502 for %s, and charges nothing", async (_, results) => {
    const units = { billed_units: { search_units: 1 } };
    const { bindings } = answering(KEYS, { results, meta: units });
    const body = { model: "cohere/rerank-v4.0-pro" };
    expect(await statusAndCost(() => rank({ body, bindings }))).toEqual([502, 0]);
  });
});

describe("a rejected POST /v1/rerank", () => {
  it("returns 503 for a model without a price per search unit or token", async () => {
    const route = [{ provider: "mock", upstream_id: "m" }];
    const model = { id: "x/y", kind: "rerank", context: 10, routes: route };
    for (const price of [{ image: 5 }, {}]) {
      const bindings = bindingsWith({ MODELS: JSON.stringify([{ ...model, price }]) });
      const response = await rank({ bindings });
      expect(response.status).toBe(503);
    }
  });
});
