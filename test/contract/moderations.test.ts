import { describe, expect, it } from "vitest";
import { balanceOf, errorOf, send } from "./client.ts";
import { answering, charged, statusAndCost, key, sender, usePayer } from "./media-client.ts";

const REQUEST_MICRO = 1000;

usePayer();
const moderate = sender("/v1/moderations", { model: "sandbox/moderation", input: "hello" });

type Moderated = { readonly id: string; readonly results: readonly Record<string, unknown>[] };

/** Returns a provider with these results and an operator's price per request. */
function classifying(provider: "openai" | "mistral", results: unknown) {
  const route = { provider, upstream_id: "m" };
  const price = { request: 7, input: 1_000_000 };
  const model = { id: "own/mod", kind: "moderation", context: 8192, price, routes: [route] };
  const variables = { OPENAI_API_KEY: "k", MISTRAL_API_KEY: "k", MODELS: JSON.stringify([model]) };
  return answering(variables, { id: "x", model: "m", results });
}

const RESULT = { categories: { hate: true, other: false }, category_scores: { hate: 0.9 } };
const IMAGE = { type: "image_url", image_url: { url: "https://images.test/a.png" } };

describe("POST /v1/moderations", () => {
  it("returns 200 with one result per text, and charges the request once", async () => {
    const body = { input: ["hello", "violence"] };
    const { text, receipt } = await charged(() => moderate({ body }));
    expect(JSON.parse(text)).toMatchObject({
      id: expect.stringMatching(/^modr-/) as string,
      model: "sandbox/moderation",
      results: [{ flagged: false }, { flagged: true, categories: { violence: true } }],
      usage: { cost_micro: REQUEST_MICRO },
    });
    expect(receipt).toMatchObject({
      held_micro: REQUEST_MICRO,
      lines: [{ what: "request", tokens: 1, micro: REQUEST_MICRO }],
    });
  });

  it("returns one result for an input of several parts", async () => {
    const parts = [{ type: "text", text: "violence" }, IMAGE];
    const { results } = await (await moderate({ body: { input: parts } })).json<Moderated>();
    expect(results).toMatchObject([{ flagged: true }]);
  });

  it("writes a receipt that clients can find by the ID of the response", async () => {
    const { id } = await (await moderate()).json<Moderated>();
    expect((await send(`/v1/generations/${id}`, { key })).status).toBe(200);
  });
});

describe("POST /v1/moderations at providers", () => {
  it("sends the input to OpenAI, and charges nothing, because OpenAI's moderation is free", async () => {
    const { calls, bindings } = classifying("openai", [{ flagged: true, ...RESULT }]);
    const before = await balanceOf(key);
    const input = [{ type: "text", text: "a" }, IMAGE];
    const response = await moderate({
      body: { model: "omni-moderation-latest", input },
      bindings,
    });
    const { results } = await response.json<Moderated>();
    expect(results).toEqual([{ flagged: true, ...RESULT }]);
    expect(calls[0]).toMatchObject({
      url: "https://api.openai.com/v1/moderations",
      body: { model: "omni-moderation-latest", input },
    });
    expect(await balanceOf(key)).toBe(before);
  });

  it("adds the field 'flagged' to Mistral's results", async () => {
    const other = { ...RESULT, categories: { hate: false } };
    const { calls, bindings } = classifying("mistral", [RESULT, other]);
    const model = "mistral/mistral-moderation-latest";
    const response = await moderate({ body: { model, input: ["a", "b"] }, bindings });
    expect(await response.json()).toMatchObject({
      results: [{ flagged: true }, { flagged: false }],
    });
    expect(calls[0]?.url).toMatch(/^https:\/\/api\.(eu|us)\.mistral\.ai\/v1\/moderations$/);
  });

  it("joins the texts of an input for Mistral, which accepts no parts", async () => {
    const { calls, bindings } = classifying("mistral", [RESULT]);
    const input = ["a", "b"].map((text) => ({ type: "text", text }));
    const model = "mistral/mistral-moderation-latest";
    expect((await moderate({ body: { model, input }, bindings })).status).toBe(200);
    expect(calls[0]?.body).toMatchObject({ input: "a\nb" });
  });

  it("charges the held tokens at an operator's token price, because providers report no tokens", async () => {
    const { bindings } = classifying("openai", [RESULT]);
    const { receipt } = await charged(() => moderate({ body: { model: "own/mod" }, bindings }));
    expect(receipt).toMatchObject({ held_micro: receipt.cost_micro, estimated: true });
    expect(receipt.cost_micro).toBeGreaterThan(7);
  });

  it.each([
    ["no results", []],
    ["fewer results than texts", [RESULT]],
    ["more results than texts", [RESULT, RESULT, RESULT]],
    ["a result without categories", [RESULT, { flagged: false }]],
    ["results in another format", { flagged: false }],
  ])("returns 502 for %s, and charges nothing", async (_, results) => {
    const { bindings } = classifying("openai", results);
    const body = { model: "own/mod", input: ["a", "b"] };
    expect(await statusAndCost(() => moderate({ body, bindings }))).toEqual([502, 0]);
  });
});

describe("a rejected POST /v1/moderations", () => {
  it("returns 400 for an image to a model that doesn't accept images", async () => {
    const { bindings } = classifying("mistral", [RESULT]);
    const body = { model: "mistral/mistral-moderation-latest", input: [IMAGE] };
    expect(await errorOf(await moderate({ body, bindings }), 400)).toMatchObject({
      param: "input",
    });
  });
});
