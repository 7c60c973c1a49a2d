import { beforeAll, describe, expect, it } from "vitest";
import { balanceOf, bindingsWith, errorOf, openAccount, send } from "./client.ts";
import { mockUpstream } from "./upstream.ts";

const KEYS = { RESIDENCY: "relaxed", MISTRAL_API_KEY: "k" };
const PAGE_MICRO = 2000;
const MISTRAL = "mistral/mistral-ocr-4-1";
/** Micro-credits of a page on Mistral's regional host, with 10%. */
const MISTRAL_PAGE_MICRO = 4400;
const PDF = { type: "document_url", document_url: "https://example.com/a.pdf" };
const IMAGE = { type: "image_url", image_url: "https://example.com/a.png" };

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

type Sent = {
  readonly body?: object;
  readonly bindings?: Env;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
};

function read({ body, ...more }: Sent = {}): Promise<Response> {
  const given = { model: "sandbox/ocr", document: PDF, ...body };
  return send("/v1/ocr", { key, method: "POST", body: given, ...more });
}

type Receipt = { cost_micro: number; held_micro: number; estimated: boolean };

/** Returns a charged response and its receipt. The balance confirms the cost. */
async function charged(sent: Sent) {
  const before = await balanceOf(key);
  const response = await read(sent);
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  const id = response.headers.get("x-request-id") ?? "";
  const receipt = await (await send(`/v1/generations/${id}`, { key })).json<Receipt>();
  expect(before - (await balanceOf(key))).toBe(receipt.cost_micro);
  expect(response.headers.get("x-cost-micro")).toBe(String(receipt.cost_micro));
  return { answer: JSON.parse(text) as unknown, receipt };
}

function answering(answer: object, waitMs = 0) {
  const { calls } = mockUpstream(async () => {
    await scheduler.wait(waitMs);
    return Response.json(answer);
  });
  return { calls, bindings: bindingsWith({ ...KEYS, UPSTREAM_HEADERS_MS: "50" }) };
}

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
  ])("returns 200, and holds and charges the pages %j", async (pages, count) => {
    const { answer, receipt } = await charged({ body: { pages } });
    expect(answer).toMatchObject({
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
    const { receipt } = await charged({ body: { document: IMAGE } });
    expect(receipt.held_micro).toBe(PAGE_MICRO);
  });

  it("charges a retry only once", async () => {
    const headers = { "idempotency-key": crypto.randomUUID() };
    await charged({ headers, body: { pages: "0" } });
    expect((await read({ headers, body: { pages: "0" } })).status).toBe(409);
    expect((await read({ headers, body: { pages: "1" } })).status).toBe(422);
  });
});

describe("POST /v1/ocr at Mistral", () => {
  it.each([
    ["the processed pages", readBy(2), 2],
    ["only the held pages if more are reported", readBy(9), 3],
    ["the held pages if no count is reported", { pages: pagesOf("a") }, 3],
    ["the held pages if the count isn't a number", readBy("1"), 3],
    ["the held pages if 0 are reported with pages", readBy(0), 3],
    ["nothing for a document without the requested pages", readBy(0, []), 0],
  ])("charges %s", async (_, given, count) => {
    const { calls, bindings } = answering(given);
    const more = { include_image_base64: true, include_blocks: true };
    const body = { model: MISTRAL, pages: "0-2", ...more };
    const { answer, receipt } = await charged({ body, bindings });
    expect(receipt).toMatchObject({
      held_micro: 3 * MISTRAL_PAGE_MICRO,
      cost_micro: count * MISTRAL_PAGE_MICRO,
    });
    expect(answer).toMatchObject({ pages: given.pages, usage_info: { pages_processed: count } });
    expect(calls[0]?.url).toMatch(/\/v1\/ocr$/);
    expect(calls[0]?.body).toEqual({
      model: "mistral-ocr-4-1",
      document: PDF,
      pages: [0, 1, 2],
      ...more,
    });
  });

  it("waits longer than UPSTREAM_HEADERS_MS, because documents take a long time", async () => {
    const { bindings } = answering(readBy(1), 300);
    const { receipt } = await charged({ body: { model: MISTRAL, pages: "0" }, bindings });
    expect(receipt.cost_micro).toBe(MISTRAL_PAGE_MICRO);
  });

  it.each([{}, { pages: "a" }, { pages: [{}] }, { error: { message: "no" } }])(
    "returns 502 for %j, and charges nothing",
    async (given) => {
      const { bindings } = answering(given);
      const before = await balanceOf(key);
      await errorOf(await read({ body: { model: MISTRAL, pages: "0" }, bindings }), 502);
      expect(await balanceOf(key)).toBe(before);
    },
  );
});

describe("a rejected POST /v1/ocr", () => {
  it.each([
    ["pages", {}],
    ["pages", { pages: "0-1000" }],
    ["pages", { pages: Array(500).fill("0-99999").join(",") }],
    ["pages", { pages: Array(10_000).fill("0-9").join(",") }],
    ["pages", { pages: "3-1" }],
    ["pages", { pages: "all" }],
    ["pages", { pages: [] }],
    ["document_annotation_format", { document_annotation_format: { type: "json_object" } }],
    ["bbox_annotation_format", { bbox_annotation_format: { type: "json_object" } }],
    ["include_blocks", { include_blocks: 1 }],
    ["table_format", { table_format: "html" }],
    ["id", { id: "a" }],
    ["user", { pages: "0", user: "x".repeat(257) }],
  ])("returns 400 for an invalid %s", async (param, body) => {
    const error = await errorOf(await read({ body }), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param });
  });

  it.each([{ type: "file", file_id: "f" }, { type: "document_url" }, "https://example.com/a.pdf"])(
    "returns 400 for the document %j",
    async (document) => {
      const { param } = await errorOf(await read({ body: { document, pages: "0" } }), 400);
      expect(param).toMatch(/^document/);
    },
  );

  it("returns 402 if the balance is lower than the amount to hold", async () => {
    const { key: poor } = await openAccount({ credits: 2 * PAGE_MICRO - 1 });
    const body = { model: "sandbox/ocr", document: PDF, pages: "0-1" };
    const response = await send("/v1/ocr", { key: poor, method: "POST", body });
    expect(await errorOf(response, 402)).toMatchObject({ required_micro: 2 * PAGE_MICRO });
  });
});
