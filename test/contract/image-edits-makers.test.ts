import * as fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { RequestForm } from "../../src/models/core/outgoing-body.ts";
import { toBase64 } from "../../src/models/core/base64.ts";
import { FormFile } from "../../src/shared/http/form.ts";
import type { FormField } from "../../src/shared/http/form.ts";
import { pngOf } from "../fixtures/pictures.ts";
import { pngFile } from "../fixtures/png-file.ts";
import { balanceOf, bindingsWith, errorOf, openAccount, send } from "./client.ts";
import { mockUpstream } from "./upstream.ts";

const KEYS = { RESIDENCY: "relaxed", GEMINI_API_KEY: "k", XAI_API_KEY: "k" };
const PICTURE = "iVBORw0KGgo=";
const PROMPT = "make it blue";
/** The most tokens of a small image in the input, and of the text. */
const HELD_INPUT = 6821;
const HELD_TEXT = PROMPT.length + 64;

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount({ rpmLimit: 1000 }));
});

type Sent = {
  readonly fields: Readonly<Record<string, string>>;
  readonly files?: readonly FormField[];
  readonly answer?: object;
  readonly vars?: object;
};

/** Sends a form to the endpoint. Returns the response and the provider's calls. */
async function edit({ fields, files = [["image", pngFile(64, 64)]], answer = {}, vars }: Sent) {
  const { calls } = mockUpstream(() => Response.json(answer));
  const form = new RequestForm([...Object.entries({ prompt: PROMPT, ...fields }), ...files]);
  const response = await send("/v1/images/edits", {
    key,
    method: "POST",
    headers: { "content-type": form.type },
    body: new Uint8Array(await new Response(form.stream()).arrayBuffer()),
    bindings: bindingsWith({ ...KEYS, ...vars }),
  });
  return { calls, response };
}

/** Returns a charged response's images and receipt, which the balance confirms. */
async function charged(sent: Sent) {
  const before = await balanceOf(key);
  const { calls, response } = await edit(sent);
  const text = await response.text();
  expect([response.status, text]).toEqual([200, expect.any(String)]);
  const id = response.headers.get("x-request-id") ?? "";
  const receipt = await (
    await send(`/v1/generations/${id}`, { key })
  ).json<{ cost_micro: number; held_micro: number; estimated: boolean }>();
  expect(before - (await balanceOf(key))).toBe(receipt.cost_micro);
  expect(receipt.cost_micro).toBeLessThanOrEqual(receipt.held_micro);
  const { data, usage } = JSON.parse(text) as { data: unknown; usage: Record<string, unknown> };
  return { calls, data, usage, receipt };
}

const TWO: readonly FormField[] = [
  ["image[]", pngFile(1024, 1024, "one.png")],
  ["image[]", pngFile(512, 512, "two.png")],
];

describe("POST /v1/images/edits at Google", () => {
  const model = "google/gemini-nano-banana-2.1";
  const drawn = (usageMetadata?: object) => ({
    candidates: [{ content: { parts: [{ inlineData: { mimeType: "image/png", data: PICTURE } }] } }],
    usageMetadata,
  });
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

  it("sends the images before the text, and charges the counted tokens", async () => {
    const answer = drawn(counted(10, 2240, 1120));
    const fields = { model, size: "1536x1024" };
    const { calls, data, usage, receipt } = await charged({ fields, files: TWO, answer });
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

  it("doesn't replace text of the prompt by an image", async () => {
    const prompt = `download:${"a".repeat(24)}`;
    const answer = drawn(counted(10, 1120, 1120));
    const { calls } = await charged({ fields: { model, prompt }, answer });
    const [content] = calls[0]?.body["contents"] as { parts: object[] }[];
    expect(content?.parts.at(-1)).toEqual({ text: prompt });
  });

  it("charges the reported tokens within the hold, whatever Google reports", async () => {
    const counts = fc.oneof(fc.integer({ min: 1, max: 2000 }), fc.nat(1_000_000));
    const source = fc.option(counts, { nil: undefined });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 80 }), source, counts, async (text, images, out) => {
        const { receipt } = await charged({ fields: { model }, answer: drawn(counted(text, images, out)) });
        const within = (tokens: number | undefined, held: number) => Math.min(tokens || held, held);
        const texts = out === 0 ? 16_384 : 0;
        expect(receipt.cost_micro).toBe(
          Math.ceil(
            within(text, HELD_TEXT) * 1.5 +
              within(images, HELD_INPUT) * 1.5 +
              within(out, 16_384) * 30 +
              texts * 7.5,
          ),
        );
      }),
      { numRuns: 30 },
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
