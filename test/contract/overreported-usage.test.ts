import * as fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { toBase64 } from "../../src/models/core/data-url.ts";
import { SHORT_HEADER_FILES } from "../fixtures/short-headers.ts";
import { balanceOf, bindingsWith, openAccount, send } from "./client.ts";
import { mockUpstream } from "./upstream.ts";

const KEYS = {
  RESIDENCY: "relaxed",
  COHERE_API_KEY: "k",
  GEMINI_API_KEY: "k",
  MISTRAL_API_KEY: "k",
  OPENAI_API_KEY: "k",
  XAI_API_KEY: "k",
};
const RUNS = { numRuns: 12 };

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount({ credits: 1_000_000_000 }));
});

type Bill = { readonly status: number; readonly cost: number; readonly held: number };

/** Sends a request to a provider with this response. The balance confirms the cost. */
async function billed(path: string, body: object, answer: object): Promise<Bill> {
  mockUpstream(() => Response.json(answer));
  const bindings = bindingsWith(KEYS);
  const before = await balanceOf(key);
  const response = await send(path, { key, method: "POST", body, bindings });
  const { status } = response;
  await response.arrayBuffer().catch(() => null);
  const cost = before - (await balanceOf(key));
  if (status !== 200) return { status, cost, held: 0 };
  const id = response.headers.get("x-request-id") ?? "";
  const found = await send(`/v1/generations/${id}`, { key });
  const receipt = await found.json<{ cost_micro: number; held_micro: number }>();
  expect(receipt.cost_micro).toBe(cost);
  return { status, cost, held: receipt.held_micro };
}

/** Counts that a provider can report: none, zero, the right one, or a wrong one. */
const counts = (most: number) => fc.oneof(fc.constantFrom(undefined, 0), fc.nat(most));
/** Returns the billed count: the report up to the hold, or the hold. */
const within = (reported: number | undefined, held: number): number =>
  reported === undefined || reported === 0 ? held : Math.min(reported, held);

async function expectBills<T>(check: fc.IAsyncProperty<T>): Promise<void> {
  await fc.assert(check, RUNS);
}

describe("the charge if a provider reports more usage than it delivers", () => {
  it("covers only the images that arrive, up to n images", async () => {
    const n = 3;
    const body = { model: "xai/grok-imagine-image-2.0", prompt: "a fox", n };
    await expectBills(
      fc.asyncProperty(fc.nat(6), counts(9), async (images, reported) => {
        const data = Array.from({ length: images }, () => ({ b64_json: "iVBORw0KGgo=" }));
        const answer = { data, usage: { images: reported } };
        const { status, cost, held } = await billed("/v1/images/generations", body, answer);
        expect([status, cost]).toEqual(
          images === 0 ? [502, 0] : [200, Math.min(images, n) * 40_000],
        );
        expect(cost).toBeLessThanOrEqual(images === 0 ? 0 : held);
      }),
    );
  });

  it("covers the reported tokens, up to the hold, if fewer than n images arrive", async () => {
    const body = {
      model: "openai/gpt-image-2.5-flare",
      prompt: "a fox",
      n: 3,
      quality: "low",
      size: "1024x1024",
    };
    await expectBills(
      fc.asyncProperty(fc.integer({ min: 1, max: 2 }), counts(5000), async (images, tokens) => {
        const data = Array.from({ length: images }, () => ({ b64_json: "iVBORw0KGgo=" }));
        const usage = { input_tokens: 10, output_tokens: tokens };
        const { cost, held } = await billed("/v1/images/generations", body, { data, usage });
        expect(cost).toBeLessThanOrEqual(held);
        expect(cost).toBe(10 * 5 + within(tokens, 3 * 308) * 30);
      }),
    );
  });

  it("covers the tokens that Google reports, or the hold if Google reports none", async () => {
    const body = { model: "google/gemini-3.1-flash-lite-image", prompt: "a fox" };
    const inlineData = { mimeType: "image/png", data: "iVBORw0KGgo=" };
    const candidates = [{ content: { parts: [{ inlineData }] }, finishReason: "STOP" }];
    const held = 16_384;
    await expectBills(
      fc.asyncProperty(counts(20_000), async (tokens) => {
        const usageMetadata = {
          promptTokenCount: 4,
          candidatesTokenCount: tokens,
          candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: tokens }],
        };
        const answer = { candidates, usageMetadata };
        const { cost } = await billed("/v1/images/generations", body, answer);
        const texts = tokens ? 0 : held;
        expect(cost).toBe(Math.ceil(4 * 0.25 + within(tokens, held) * 30 + texts * 1.5));
      }),
    );
  });

  it("covers the reported search units if fewer than top_n results arrive", async () => {
    const documents = ["one", "two", "three"];
    const body = { model: "cohere/rerank-v4.0-pro", query: "a", documents, top_n: 3 };
    await expectBills(
      fc.asyncProperty(fc.integer({ min: 1, max: 3 }), counts(9), async (results, units) => {
        const ranked = documents
          .slice(0, results)
          .map((_, index) => ({ index, relevance_score: 1 }));
        const answer = { results: ranked, meta: { billed_units: { search_units: units } } };
        const { cost, held } = await billed("/v1/rerank", body, answer);
        expect([cost, held]).toEqual([within(units, 1) * 2500, 2500]);
      }),
    );
  });

  it("covers the reported tokens if fewer than top_n results arrive", async () => {
    const documents = ["one ".repeat(500), "two ".repeat(500)];
    const body = { model: "cohere/rerank-v5.0-pro", query: "a", documents, top_n: 2 };
    await expectBills(
      fc.asyncProperty(fc.constant(1), counts(9_000), async (results, tokens) => {
        const ranked = documents
          .slice(0, results)
          .map((_, index) => ({ index, relevance_score: 1 }));
        const answer = { results: ranked, meta: { billed_units: { input_tokens: tokens } } };
        const { cost, held } = await billed("/v1/rerank", body, answer);
        const price = 0.05;
        expect(cost).toBe(tokens ? Math.min(Math.ceil(tokens * price), held) : held);
      }),
    );
  });

  it("covers the reported pages, up to the hold, if the response contains fewer pages", async () => {
    const held = 4;
    const document = { type: "document_url", document_url: "https://example.com/a.pdf" };
    const body = { model: "mistral/mistral-ocr-4-1", document, pages: "0-3" };
    await expectBills(
      fc.asyncProperty(fc.integer({ min: 1, max: 4 }), counts(9), async (pages, reported) => {
        const read = Array.from({ length: pages }, (_, index) => ({ index, markdown: "a" }));
        const usage_info = { pages_processed: reported, doc_size_bytes: 9 };
        const bill = await billed("/v1/ocr", body, { pages: read, model: "m", usage_info });
        expect([bill.cost, bill.held]).toEqual([within(reported, held) * 4400, held * 4400]);
      }),
    );
  });
});

describe.each(SHORT_HEADER_FILES)(
  "the hold for a $name file with an understated length in the header",
  ({ file, frameSeconds }) => {
    it("covers the length of all audio frames, so that the gateway can charge the reported seconds", async () => {
      const price = 75; // micro-credits per second
      await expectBills(
        fc.asyncProperty(
          fc.integer({ min: 100, max: 400 }),
          fc.boolean(),
          async (frames, reports) => {
            const seconds = Math.ceil(frames * frameSeconds);
            const data = `data:audio/mp4;base64,${toBase64(file(frames))}`;
            const answer = { text: "Hi", ...(reports && { usage: { type: "duration", seconds } }) };
            const body = { model: "openai/gpt-transcribe", file: data };
            const { cost, held } = await billed("/v1/audio/transcriptions", body, answer);
            expect(held).toBeGreaterThanOrEqual(seconds * price);
            expect(cost).toBe(reports ? seconds * price : held);
          },
        ),
      );
    });
  },
);
