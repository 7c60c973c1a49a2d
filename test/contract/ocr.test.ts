import { describe, expect, it } from "vitest";
import { answering, charged, statusAndCost, sender, usePayer } from "./media-client.ts";

const KEYS = { MISTRAL_API_KEY: "k", UPSTREAM_HEADERS_MS: "50" };
const PAGE_MICRO = 2000;
const MISTRAL = "mistral/mistral-ocr-4-1";
/** Micro-credits of a page on Mistral's regional host, with 10%. */
const MISTRAL_PAGE_MICRO = 4400;
const PDF = { type: "document_url", document_url: "https://example.com/a.pdf" };
const IMAGE = { type: "image_url", image_url: "https://example.com/a.png" };

usePayer();
const read = sender("/v1/ocr", { model: "sandbox/ocr", document: PDF });

const pagesOf = (...texts: string[]) => texts.map((markdown, index) => ({ index, markdown }));
const readBy = (pages_processed: unknown, pages = pagesOf("a")) => ({
  pages,
  model: "m",
  usage_info: { pages_processed, doc_size_bytes: 9 },
});

describe("POST /v1/ocr", () => {
  it.each([
    ["0-2,1", 3],
    ["7", 1],
    [[0, 4, 4], 2],
    [3, 1],
  ])("returns 200, and holds and charges only the requested pages %j", async (pages, count) => {
    const { text, receipt } = await charged(() => read({ body: { pages } }));
    expect(JSON.parse(text)).toMatchObject({
      model: "sandbox/ocr",
      usage_info: { pages_processed: count },
      usage: { pages: count, cost_micro: count * PAGE_MICRO },
    });
    expect(receipt).toMatchObject({
      held_micro: count * PAGE_MICRO,
      cost_micro: count * PAGE_MICRO,
      lines: [{ what: "page", tokens: count, micro: count * PAGE_MICRO }],
    });
  });

  it("counts an image as one page", async () => {
    const { receipt } = await charged(() => read({ body: { document: IMAGE } }));
    expect(receipt.held_micro).toBe(PAGE_MICRO);
  });
});

describe("POST /v1/ocr at Mistral", () => {
  it.each([
    ["the processed pages", readBy(2), 2],
    ["the held pages if the count isn't a number", readBy("1"), 3],
    ["the held pages if 0 are reported with pages", readBy(0), 3],
    ["nothing for a document without the requested pages", readBy(0, []), 0],
  ])("charges by Mistral's page count: %s", async (_, providerResponse, count) => {
    const { calls, bindings } = answering(KEYS, providerResponse);
    const more = { include_image_base64: true, include_blocks: true };
    const body = { model: MISTRAL, pages: "0-2", ...more };
    const { text, receipt } = await charged(() => read({ body, bindings }));
    expect(receipt).toMatchObject({
      held_micro: 3 * MISTRAL_PAGE_MICRO,
      cost_micro: count * MISTRAL_PAGE_MICRO,
    });
    expect(JSON.parse(text)).toMatchObject({
      pages: providerResponse.pages,
      usage_info: { pages_processed: count },
    });
    expect(calls[0]?.url).toMatch(/\/v1\/ocr$/);
    expect(calls[0]?.body).toEqual({
      model: "mistral-ocr-4-1",
      document: PDF,
      pages: [0, 1, 2],
      ...more,
    });
  });

  it("waits longer than UPSTREAM_HEADERS_MS, because documents take longer", async () => {
    const { bindings } = answering(KEYS, async () => {
      await scheduler.wait(300);
      return Response.json(readBy(1));
    });
    const body = { model: MISTRAL, pages: "0" };
    const { receipt } = await charged(() => read({ body, bindings }));
    expect(receipt.cost_micro).toBe(MISTRAL_PAGE_MICRO);
  });

  it.each([{}, { pages: "a" }, { pages: [{}] }, { error: { message: "no" } }])(
    "returns 502 for %j, and charges nothing",
    async (providerResponse) => {
      const { bindings } = answering(KEYS, providerResponse);
      expect(
        await statusAndCost(() => read({ body: { model: MISTRAL, pages: "0" }, bindings })),
      ).toEqual([502, 0]);
    },
  );
});
