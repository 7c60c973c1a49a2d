import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, bindingsWith, errorOf, openAccount, send } from "./client.ts";
import { mockUpstream } from "./upstream.ts";

const KEYS = { RESIDENCY: "relaxed", OPENAI_API_KEY: "k", MISTRAL_API_KEY: "k" };
const REQUEST_MICRO = 1000;

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

type Moderated = { readonly id: string; readonly results: readonly Record<string, unknown>[] };

const moderate = (fields: object, bindings?: Env): Promise<Response> =>
  send("/v1/moderations", {
    key,
    method: "POST",
    body: { model: "sandbox/moderation", input: "hello", ...fields },
    ...(bindings && { bindings }),
  });

/** Returns a provider with these results and an operator's price per request. */
function answering(provider: "openai" | "mistral", results: unknown) {
  const { calls } = mockUpstream(() => Response.json({ id: "x", model: "m", results }));
  const route = { provider, upstream_id: "m" };
  const price = { request: 7, input: 1_000_000 };
  const model = { id: "own/mod", kind: "moderation", context: 8192, price, routes: [route] };
  return { calls, bindings: bindingsWith({ ...KEYS, MODELS: JSON.stringify([model]) }) };
}

const RESULT = { categories: { hate: true, other: false }, category_scores: { hate: 0.9 } };
const IMAGE = { type: "image_url", image_url: { url: "https://images.test/a.png" } };

describe("POST /v1/moderations", () => {
  it("returns 200 with a result for each text, and charges the request once", async () => {
    const before = await balanceOf(key);
    const response = await moderate({ input: ["hello", "violence"] });
    expect(await response.json()).toMatchObject({
      id: expect.stringMatching(/^modr-/) as string,
      model: "sandbox/moderation",
      results: [{ flagged: false }, { flagged: true, categories: { violence: true } }],
      usage: { cost_micro: REQUEST_MICRO },
    });
    expect(before - (await balanceOf(key))).toBe(REQUEST_MICRO);
    const id = response.headers.get("x-request-id") ?? "";
    const receipt = await (await send(`/v1/generations/${id}`, { key })).json();
    expect(receipt).toMatchObject({
      held_micro: REQUEST_MICRO,
      lines: [{ what: "request", tokens: 1, micro: REQUEST_MICRO }],
    });
  });

  it("returns one result for an input of several parts", async () => {
    const parts = [{ type: "text", text: "violence" }, IMAGE];
    const { results } = await (await moderate({ input: parts })).json<Moderated>();
    expect(results).toMatchObject([{ flagged: true }]);
  });

  it("writes a receipt that can be found by the ID of the response", async () => {
    const { id } = await (await moderate({})).json<Moderated>();
    expect((await send(`/v1/generations/${id}`, { key })).status).toBe(200);
  });
});

describe("POST /v1/moderations at providers", () => {
  it("sends the input to OpenAI, and charges nothing at its list price", async () => {
    const { calls, bindings } = answering("openai", [{ flagged: true, ...RESULT }]);
    const before = await balanceOf(key);
    const input = [{ type: "text", text: "a" }, IMAGE];
    const response = await moderate({ model: "omni-moderation-latest", input }, bindings);
    const { results } = await response.json<Moderated>();
    expect(results).toEqual([{ flagged: true, ...RESULT }]);
    expect(calls[0]).toMatchObject({
      url: "https://api.openai.com/v1/moderations",
      body: { model: "omni-moderation-latest", input },
    });
    expect(await balanceOf(key)).toBe(before);
  });

  it("adds 'flagged' to Mistral's results", async () => {
    const other = { ...RESULT, categories: { hate: false } };
    const { calls, bindings } = answering("mistral", [RESULT, other]);
    const model = "mistral/mistral-moderation-latest";
    const response = await moderate({ model, input: ["a", "b"] }, bindings);
    expect(await response.json()).toMatchObject({
      results: [{ flagged: true }, { flagged: false }],
    });
    expect(calls[0]?.url).toMatch(/^https:\/\/api\.(eu|us)\.mistral\.ai\/v1\/moderations$/);
  });

  it("joins the texts of an input for Mistral, which accepts no parts", async () => {
    const { calls, bindings } = answering("mistral", [RESULT]);
    const input = ["a", "b"].map((text) => ({ type: "text", text }));
    const model = "mistral/mistral-moderation-latest";
    expect((await moderate({ model, input }, bindings)).status).toBe(200);
    expect(calls[0]?.body).toMatchObject({ input: "a\nb" });
  });

  it("charges the held tokens at an operator's price per token, because no provider reports tokens", async () => {
    const { bindings } = answering("openai", [RESULT]);
    const response = await moderate({ model: "own/mod", input: "hello" }, bindings);
    const cost = Number(response.headers.get("x-cost-micro"));
    const id = response.headers.get("x-request-id") ?? "";
    const receipt = await (await send(`/v1/generations/${id}`, { key })).json();
    expect(receipt).toMatchObject({ held_micro: cost, estimated: true });
    expect(cost).toBeGreaterThan(7);
  });

  it.each([
    ["no results", []],
    ["fewer results than texts", [RESULT]],
    ["more results than texts", [RESULT, RESULT, RESULT]],
    ["a result without categories", [RESULT, { flagged: false }]],
    ["results in another format", { flagged: false }],
  ])("returns 502 for %s, and charges nothing", async (_, results) => {
    const { bindings } = answering("openai", results);
    const before = await balanceOf(key);
    await errorOf(await moderate({ model: "own/mod", input: ["a", "b"] }, bindings), 502);
    expect(await balanceOf(key)).toBe(before);
  });
});

describe("a rejected POST /v1/moderations", () => {
  it.each([
    ["input", { input: "" }],
    ["input", { input: [] }],
    ["input", { input: undefined }],
    ["input", { input: Array.from({ length: 257 }, () => "a") }],
    ["input[0].type", { input: [{ type: "video_url" }] }],
    ["input[0].image_url.url", { input: [{ type: "image_url", image_url: {} }] }],
    ["metadata", { metadata: {} }],
    ["user", { user: "x".repeat(257) }],
  ])("returns 400 with the param for an invalid %s", async (param, wrong) => {
    expect(await errorOf(await moderate(wrong), 400)).toMatchObject({
      type: "invalid_request_error",
      param,
    });
  });

  it("returns 400 for an image that the model doesn't accept", async () => {
    const { bindings } = answering("mistral", [RESULT]);
    const wrong = { model: "mistral/mistral-moderation-latest", input: [IMAGE] };
    expect(await errorOf(await moderate(wrong, bindings), 400)).toMatchObject({ param: "input" });
  });

  it("returns 402 if the balance is lower than the amount to hold", async () => {
    const { key: poor } = await openAccount({ credits: REQUEST_MICRO - 1 });
    const body = { model: "sandbox/moderation", input: "a" };
    const response = await send("/v1/moderations", { key: poor, method: "POST", body });
    expect(await errorOf(response, 402)).toMatchObject({ required_micro: REQUEST_MICRO });
  });
});
