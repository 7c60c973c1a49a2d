import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { effortFor } from "../effort.ts";
import { toBase64 } from "../../src/models/core/data-url.ts";
import { FormFile } from "../../src/shared/http/form.ts";
import type { FormField } from "../../src/shared/http/form.ts";
import { pngOf } from "../fixtures/pictures.ts";
import { pngFile } from "../fixtures/png-file.ts";
import { balanceOf, bindingsWith, errorOf, send } from "./client.ts";
import { charged as chargedFor, formOf, key, usePayer } from "./media-client.ts";
import { mockUpstream } from "./upstream.ts";
import type { UpstreamCall } from "./upstream.ts";

const KEYS = { RESIDENCY: "relaxed", GEMINI_API_KEY: "k", XAI_API_KEY: "k" };
const PICTURE = "iVBORw0KGgo=";
const PROMPT = "make it blue";
/** Maximum tokens of a small image in the input, and of the text. */
const HELD_INPUT = 6821;
const HELD_TEXT = PROMPT.length + 64;

usePayer();

type Sent = {
  readonly fields: Readonly<Record<string, string>>;
  readonly files?: readonly FormField[];
  readonly answer?: object;
  readonly vars?: object;
};

/** Sends a form to the endpoint. Returns the response and the provider's calls. */
async function edit({ fields, files = [["image", pngFile(64, 64)]], answer = {}, vars }: Sent) {
  const { calls } = mockUpstream(() => Response.json(answer));
  const form = await formOf([...Object.entries({ prompt: PROMPT, ...fields }), ...files]);
  const response = await send("/v1/images/edits", {
    key,
    ...form,
    bindings: bindingsWith({ ...KEYS, ...vars }),
  });
  return { calls, response };
}

/** Returns a charged response's images and receipt, which the balance confirms. */
async function charged(sent: Sent) {
  let calls: readonly UpstreamCall[] = [];
  const { text, receipt } = await chargedFor(async () => {
    const edited = await edit(sent);
    ({ calls } = edited);
    return edited.response;
  });
  expect(receipt.cost_micro).toBeLessThanOrEqual(receipt.held_micro);
  const { data, usage } = JSON.parse(text) as { data: unknown; usage: Record<string, unknown> };
  return { calls, data, usage, receipt };
}

const TWO_IMAGES: readonly FormField[] = [
  ["image[]", pngFile(1024, 1024, "one.png")],
  ["image[]", pngFile(512, 512, "two.png")],
];

/** Returns the charged tokens: the reported ones up to the hold, or the held ones. */
function chargedTokens(tokens: number | undefined, held: number): number {
  return tokens === undefined || tokens === 0 ? held : Math.min(tokens, held);
}

/** Returns a response of Google. */
const drawn = (usageMetadata?: object) => ({
  candidates: [{ content: { parts: [{ inlineData: { mimeType: "image/png", data: PICTURE } }] } }],
  usageMetadata,
});
/** Returns token counts as Google reports them. */
const counted = (text: number, source: number | undefined, image: number) => ({
  promptTokenCount: text + (source ?? 0),
  ...(source !== undefined && {
    promptTokensDetails: [
      { modality: "TEXT", tokenCount: text },
      { modality: "IMAGE", tokenCount: source },
    ],
  }),
  candidatesTokenCount: image,
  candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: image }],
});

describe("POST /v1/images/edits at Google", () => {
  const model = "google/gemini-nano-banana-2.1";

  it("sends the images before the text, and charges the counted tokens", async () => {
    const answer = drawn(counted(10, 2240, 1120));
    const fields = { model, size: "1536x1024" };
    const { calls, data, usage, receipt } = await charged({ fields, files: TWO_IMAGES, answer });
    expect(data).toEqual([{ b64_json: PICTURE }]);
    expect(usage["input_tokens_details"]).toEqual({ text_tokens: 10, image_tokens: 2240 });
    expect(receipt).toMatchObject({
      cost_micro: (10 + 2240) * 1.5 + 1120 * 30,
      held_micro: Math.ceil((HELD_TEXT + 2 * HELD_INPUT) * 1.5) + 16_384 * (30 + 7.5),
      estimated: false,
    });
    expect(calls[0]?.url).toMatch(/\/models\/gemini-nano-banana-2\.1:generateContent$/);
    const sources = [pngOf(1024, 1024), pngOf(512, 512)].map((bytes) => ({
      inlineData: { mimeType: "image/png", data: toBase64(bytes) },
    }));
    expect(calls[0]?.body).toMatchObject({
      contents: [{ role: "user", parts: [...sources, { text: PROMPT }] }],
      generationConfig: { maxOutputTokens: 16_384, imageConfig: { aspectRatio: "3:2" } },
    });
  });

  it("leaves a prompt unchanged even if the prompt resembles an internal placeholder", async () => {
    const prompt = `download:${"a".repeat(24)}`;
    const answer = drawn(counted(10, 1120, 1120));
    const { calls } = await charged({ fields: { model, prompt }, answer });
    expect(calls[0]?.body["contents"]).toMatchObject([
      { parts: [{ inlineData: {} }, { text: prompt }] },
    ]);
  });

  it("charges the tokens that Google reports, up to the hold", async () => {
    const counts = fc.oneof(fc.integer({ min: 1, max: 2000 }), fc.nat(1_000_000));
    const source = fc.option(counts, { nil: undefined });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 80 }),
        source,
        counts,
        async (text, images, out) => {
          const { receipt } = await charged({
            fields: { model },
            answer: drawn(counted(text, images, out)),
          });
          const texts = out === 0 ? 16_384 : 0;
          expect(receipt.cost_micro).toBe(
            Math.ceil(
              chargedTokens(text, HELD_TEXT) * 1.5 +
                chargedTokens(images, HELD_INPUT) * 1.5 +
                chargedTokens(out, 16_384) * 30 +
                texts * 7.5,
            ),
          );
        },
      ),
      { numRuns: effortFor(10, 300) },
    );
  });

  it("charges the reported tokens if Google blocks the edit", async () => {
    const before = await balanceOf(key);
    const { promptTokenCount, promptTokensDetails } = counted(10, 1120, 0);
    const answer = {
      promptFeedback: { blockReason: "PROHIBITED_CONTENT" },
      usageMetadata: { promptTokenCount, promptTokensDetails },
    };
    const { response } = await edit({ fields: { model }, answer });
    expect(await errorOf(response, 400)).toMatchObject({ param: "prompt" });
    expect(before - (await balanceOf(key))).toBe(1130 * 1.5);
  });

  it.each<[string, Sent["fields"], readonly FormField[]]>([
    ["mask", {}, [["mask", pngFile(64, 64)]]],
    ["n", { n: "2" }, []],
    ["quality", { quality: "low" }, []],
    ["background", { background: "opaque" }, []],
    ["size", { size: "1024x100" }, []],
    ["image", {}, [["image[]", new FormFile("a.gif", "image/gif", new Uint8Array(9))]]],
  ])("returns 400 with the param %s", async (param, fields, files) => {
    const image: FormField[] = param === "image" ? [] : [["image", pngFile(64, 64)]];
    const sent = { fields: { model, ...fields }, files: [...image, ...files] };
    const { calls, response } = await edit(sent);
    expect(await errorOf(response, 400)).toMatchObject({ param });
    expect(calls).toHaveLength(0);
  });
});

/** Returns an image of a request to xAI. */
const sourceOf = (width: number, height: number) => ({
  type: "image_url",
  url: `data:image/png;base64,${toBase64(pngOf(width, height))}`,
});
/** Returns a response of xAI. */
const xaiResponse = (images: number) => ({
  data: Array.from({ length: images }, () => ({ b64_json: PICTURE })),
});

describe("POST /v1/images/edits at xAI", () => {
  const model = "xai/grok-imagine-image-2.0";
  const OUTPUT_MICRO = 40_000;
  const SOURCE_MICRO = 60_000;

  it("sends a single image in the field image, and charges the input image and the result", async () => {
    const fields = { model, size: "1536x1024" };
    const { calls, data, receipt } = await charged({ fields, answer: xaiResponse(1) });
    expect(data).toEqual([{ b64_json: PICTURE }]);
    expect(receipt).toMatchObject({
      cost_micro: OUTPUT_MICRO + SOURCE_MICRO,
      held_micro: OUTPUT_MICRO + SOURCE_MICRO,
      estimated: false,
    });
    expect(calls[0]?.url).toBe("https://api.x.ai/v1/images/edits");
    expect(calls[0]?.body).toEqual({
      model: "grok-imagine-image-2.0",
      prompt: PROMPT,
      n: 1,
      response_format: "b64_json",
      resolution: "1k",
      aspect_ratio: "3:2",
      image: sourceOf(64, 64),
    });
  });

  it("sends multiple images in the field images", async () => {
    const { calls } = await charged({
      fields: { model },
      files: TWO_IMAGES,
      answer: xaiResponse(1),
    });
    expect(calls[0]?.body).toMatchObject({ images: [sourceOf(1024, 1024), sourceOf(512, 512)] });
    expect(calls[0]?.body).not.toHaveProperty("image");
  });

  it("charges for all input images and for at most n results", async () => {
    const small = fc.integer({ min: 1, max: 3 });
    await fc.assert(
      fc.asyncProperty(
        small,
        small,
        fc.integer({ min: 1, max: 6 }),
        async (sources, n, results) => {
          const files = Array.from({ length: sources }, (_, at): FormField => [
            "image[]",
            pngFile(8, 8, `${at}.png`),
          ]);
          const fields = { model, n: String(n) };
          const { receipt } = await charged({ fields, files, answer: xaiResponse(results) });
          const cost = (outputs: number) => sources * SOURCE_MICRO + outputs * OUTPUT_MICRO;
          expect(receipt.cost_micro).toBe(cost(Math.min(n, results)));
          expect(receipt.held_micro).toBe(cost(n));
        },
      ),
      { numRuns: effortFor(8, 200) },
    );
  });

  it("charges nothing if xAI fails", async () => {
    const before = await balanceOf(key);
    const { response } = await edit({ fields: { model }, answer: { data: [] } });
    await errorOf(response, 502);
    expect(await balanceOf(key)).toBe(before);
  });

  it.each<[string, Sent["fields"], readonly FormField[]]>([
    ["mask", {}, [["mask", pngFile(64, 64)]]],
    ["quality", { quality: "low" }, []],
    ["size", { size: "2048x2048" }, []],
    ["image", {}, Array.from({ length: 3 }, () => ["image[]", pngFile(8, 8)] as const)],
  ])("returns 400 with the param %s", async (param, fields, more) => {
    const files: FormField[] = [["image[]", pngFile(64, 64)], ...more];
    const { calls, response } = await edit({ fields: { model, ...fields }, files });
    expect(await errorOf(response, 400)).toMatchObject({ param });
    expect(calls).toHaveLength(0);
  });

  it("returns 400 for a model without a price for input images", async () => {
    const route = { provider: "xai", upstream_id: "grok-imagine-image-2.0" };
    const price = { image: 40_000, input_image_token: 1 };
    const unpriced = {
      id: "test/unpriced",
      kind: "image",
      context: 32_000,
      price,
      routes: [route],
    };
    const vars = { MODELS: JSON.stringify([unpriced]) };
    const { calls, response } = await edit({ fields: { model: "test/unpriced" }, vars });
    expect(await errorOf(response, 400)).toMatchObject({ param: "model" });
    expect(calls).toHaveLength(0);
  });
});
