import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { effortFor } from "../effort.ts";
import { FormFile } from "../../src/shared/http/form.ts";
import type { FormField } from "../../src/shared/http/form.ts";
import { PNG_URL } from "../fixtures/pictures.ts";
import { pngFile } from "../fixtures/png-file.ts";
import { balanceOf, bindingsWith, errorOf, send } from "./client.ts";
import { charged as chargedFor, formOf, key, usePayer } from "./media-client.ts";

const KEYS = { RESIDENCY: "relaxed", OPENAI_API_KEY: "k", GEMINI_API_KEY: "k", XAI_API_KEY: "k" };
const SUNBURST = "openai/gpt-image-2.5-sunburst";
const MEDIUM = { model: SUNBURST, size: "1024x1024", quality: "medium" };
const PICTURE = "iVBORw0KGgo=";
/** Maximum tokens of a small image in the input, and of a medium 1024x1024 image in the output. */
const HELD_INPUT = 6821;
const HELD_OUTPUT = 717;
/** Maximum text tokens of the prompt. */
const HELD_TEXT = "a red fox".length + 64;
const HELD_COST = HELD_TEXT * 5 + HELD_INPUT * 8 + HELD_OUTPUT * 30;

usePayer();

type Sent = {
  readonly fields?: Readonly<Record<string, string>>;
  readonly files?: readonly FormField[];
  readonly bindings?: Env;
  readonly headers?: Record<string, string>;
  readonly key?: string;
  readonly signal?: AbortSignal;
};

async function edit({ fields, files = [["image", pngFile(64, 64)]], headers, ...more }: Sent = {}) {
  const allFields = { model: "sandbox/image", prompt: "a red fox", ...fields };
  const form = await formOf([...Object.entries(allFields), ...files]);
  return send("/v1/images/edits", {
    key,
    ...form,
    headers: { ...form.headers, ...headers },
    ...more,
  });
}

const charged = (sent: Sent = {}) => chargedFor(() => edit(sent));

/** Returns a provider with these responses, and the forms that it received. */
function providerWith(answer: () => Response) {
  const calls: { readonly url: string; readonly form: FormData }[] = [];
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    if (request.headers.get("user-agent") !== "turnpike") return new Response("", { status: 503 });
    calls.push({ url: request.url, form: await request.formData() });
    return answer();
  });
  return { calls, bindings: bindingsWith(KEYS) };
}

const openAi = (images: number, usage?: object) => ({
  created: 1,
  size: "1024x1024",
  quality: "medium",
  data: Array.from({ length: images }, () => ({ b64_json: PICTURE })),
  usage,
});
const usageOf = (text: number, image: number, output: number) => ({
  input_tokens: text + image,
  input_tokens_details: { text_tokens: text, image_tokens: image },
  output_tokens: output,
  total_tokens: text + image + output,
});

type Report = { readonly text?: number; readonly image?: number; readonly output?: number };

const counts = fc.oneof(fc.nat(2000), fc.nat(1_000_000));
/** Token counts that a provider can report: none, a part, the right ones, or far too many. */
const REPORTS: fc.Arbitrary<Report | null> = fc.option(
  fc.record({ text: counts, image: counts, output: counts }, { requiredKeys: [] }),
);

function reportedUsage({ text = 0, image, output }: Report): object {
  return {
    input_tokens: text + (image ?? 0),
    ...(image !== undefined && { input_tokens_details: { image_tokens: image } }),
    output_tokens: output,
  };
}

/**
 * Returns the cost of the reported units up to the hold. Units without a report cost their hold.
 */
function expectedCost(report: Report, n: number): number {
  return (
    chargedTokens(report.text, HELD_TEXT) * 5 +
    chargedTokens(report.image, HELD_INPUT) * 8 +
    chargedTokens(report.output, HELD_OUTPUT * n) * 30
  );
}

function chargedTokens(reported = 0, held = 0): number {
  return reported === 0 ? held : Math.min(reported, held);
}

describe("POST /v1/images/edits", () => {
  it("returns an edited image, and charges input images at their own price", async () => {
    const { text, receipt } = await charged();
    expect(JSON.parse(text)).toMatchObject({
      data: [{ b64_json: expect.stringMatching(/^iVBOR/) as string }],
      usage: { input_tokens_details: { image_tokens: 1024 }, cost_micro: receipt.cost_micro },
    });
    expect(receipt).toMatchObject({
      estimated: false,
      lines: [
        { what: "input" },
        { what: "image", tokens: 1 },
        { what: "input_image_token", tokens: 1024 },
      ],
    });
    expect(receipt.held_micro).toBeGreaterThan(HELD_INPUT + 2000);
  });

  it("streams events with OpenAI's event names for image edits", async () => {
    const { text } = await charged({ fields: { stream: "true", partial_images: "1" } });
    expect(text.match(/^event: \S+$/gm)).toEqual([
      "event: image_edit.partial_image",
      "event: image_edit.completed",
    ]);
  });

  it("accepts JSON with images as data URLs", async () => {
    const before = await balanceOf(key);
    const body = { model: "sandbox/image", prompt: "a", images: [{ image_url: PNG_URL }] };
    const response = await send("/v1/images/edits", { key, method: "POST", body });
    const { usage } = await response.json<{ usage: { cost_micro: number } }>();
    expect(usage.cost_micro).toBeGreaterThan(1024 + 2000);
    expect(before - (await balanceOf(key))).toBe(usage.cost_micro);
  });

  it("runs a retried form only once, even if the multipart boundary differs", async () => {
    const headers = { "idempotency-key": crypto.randomUUID() };
    const { receipt } = await charged({ headers });
    const before = await balanceOf(key);
    const again = await edit({ headers });
    await again.text();
    expect(receipt.cost_micro).toBeGreaterThan(0);
    expect(await balanceOf(key)).toBe(before);
    const other = await edit({ headers, files: [["image", pngFile(65, 64)]] });
    expect(other.status).toBe(422);
  });
});

describe("POST /v1/images/edits at OpenAI", () => {
  it("forwards the fields and files of the form", async () => {
    const { calls, bindings } = providerWith(() =>
      Response.json(openAi(1, usageOf(10, 2048, 439))),
    );
    const files: FormField[] = [
      ["image[]", pngFile(1024, 1024, "one.png")],
      ["image[]", pngFile(512, 512, "two.png")],
      ["mask", pngFile(1024, 1024, "mask.png")],
    ];
    const { receipt } = await charged({ fields: { ...MEDIUM, n: "1" }, files, bindings });
    expect(receipt.cost_micro).toBe(10 * 5 + 2048 * 8 + 439 * 30);
    expect(receipt.held_micro).toBe(HELD_COST + 2 * HELD_INPUT * 8); // the mask counts as an image
    const [call] = calls;
    expect(call?.url).toBe("https://api.openai.com/v1/images/edits");
    const { form = new FormData() } = call ?? {};
    expect(form.get("model")).toBe("gpt-image-2.5-sunburst");
    expect(form.get("quality")).toBe("medium");
    const sent = [...form.getAll("image[]"), form.get("mask")] as unknown as File[];
    expect(sent.map(({ name, type, size }) => [name, type, size])).toEqual(
      ["one.png", "two.png", "mask.png"].map((name) => [name, "image/png", 33]),
    );
  });

  it("holds one token per patch of a large image, plus a reserve", async () => {
    const { bindings } = providerWith(() => Response.json(openAi(1)));
    const files: FormField[] = [["image", pngFile(4032, 3024)]];
    const { receipt } = await charged({ fields: MEDIUM, files, bindings });
    const tokens = Math.ceil(126 * 95 * 1.5);
    expect(receipt.lines).toContainEqual(
      expect.objectContaining({ what: "input_image_token", tokens }),
    );
    expect(receipt.estimated).toBe(true);
  });

  it("charges the reported units, up to the hold", async () => {
    const small = fc.integer({ min: 1, max: 3 });
    await fc.assert(
      fc.asyncProperty(small, small, REPORTS, async (pictures, n, report) => {
        const answer = openAi(pictures, report === null ? undefined : reportedUsage(report));
        const { bindings } = providerWith(() => Response.json(answer));
        const fields = { ...MEDIUM, n: String(n) };
        const { receipt, text } = await charged({ fields, bindings });
        expect((JSON.parse(text) as { data: unknown[] }).data).toHaveLength(pictures);
        expect(receipt.cost_micro).toBeLessThanOrEqual(receipt.held_micro);
        expect(receipt.cost_micro).toBe(expectedCost(report ?? {}, n));
      }),
      { numRuns: effortFor(15, 400) },
    );
  }, 60_000);

  it("charges the held amount if the client disconnects before the image arrives", async () => {
    const client = new AbortController();
    const { bindings } = providerWith(() => {
      client.abort();
      const stream = new ReadableStream({ start: (one) => one.enqueue(new Uint8Array([58, 10])) });
      return new Response(stream, { headers: { "content-type": "text/event-stream" } });
    });
    const before = await balanceOf(key);
    const impatient = { ...bindings, DRAIN_S: "0", DRAIN_THINKING_S: "0" };
    const fields = { ...MEDIUM, stream: "true" };
    await edit({ fields, bindings: impatient, signal: client.signal });
    await vi.waitFor(async () => expect(before - (await balanceOf(key))).toBe(HELD_COST), 5000);
  });
});

describe("a rejected POST /v1/images/edits", () => {
  const jpeg = new FormFile("a.jpg", "image/jpeg", new Uint8Array([0xff, 0xd8, 0xff, 0xd9]));
  const file = pngFile(8, 8);

  it.each<readonly [string, string, Sent]>([
    ["no image", "image", { files: [] }],
    ["a text instead of an image", "image", { fields: { image: "a" }, files: [] }],
    [
      "two fields named image",
      "image",
      {
        files: [
          ["image", file],
          ["image", file],
        ],
      },
    ],
    ["17 images", "image", { files: Array.from({ length: 17 }, () => ["image[]", file] as const) }],
    ["a file that isn't an image", "image", { files: [["image", jpeg]] }],
    ["a side of more than 16,384 pixels", "image", { files: [["image", pngFile(16_385, 8)]] }],
    [
      "a mask that isn't a PNG",
      "mask",
      {
        files: [
          ["image", file],
          ["mask", jpeg],
        ],
      },
    ],
    [
      "a markup",
      "markup",
      {
        files: [
          ["image", file],
          ["markup", file],
        ],
      },
    ],
    ["an input_fidelity", "input_fidelity", { fields: { input_fidelity: "high" } }],
    ["a complexity", "complexity", { fields: { complexity: "low" } }],
    ["moderation", "moderation", { fields: { moderation: "low" } }],
    ["an n of 11", "n", { fields: { n: "11" } }],
    ["two images in a stream", "n", { fields: { n: "2", stream: "true" } }],
    ["previews without a stream", "partial_images", { fields: { partial_images: "1" } }],
    ["stream=yes", "stream", { fields: { stream: "yes" } }],
  ])("returns 400 with the param for %s", async (_, param, sent) => {
    const { calls, bindings } = providerWith(() => Response.json({}));
    const error = await errorOf(await edit({ ...sent, bindings }), 400);
    expect(error).toMatchObject({ type: "invalid_request_error", param });
    expect(calls).toHaveLength(0);
  });

  it("returns 400 for a model without a price for input images", async () => {
    const route = { provider: "openai", upstream_id: "gpt-image-2" };
    const price = { input: 5_000_000, image_token: 30_000_000 };
    const model = { id: "test/unpriced", kind: "image", context: 32_000, price, routes: [route] };
    const { calls, bindings } = providerWith(() => Response.json({}));
    const priced = { ...bindings, MODELS: JSON.stringify([model]) };
    const response = await edit({ fields: { model: "test/unpriced" }, bindings: priced });
    expect(await errorOf(response, 400)).toMatchObject({ param: "model" });
    expect(calls).toHaveLength(0);
  });
});
