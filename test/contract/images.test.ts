import { describe, expect, it } from "vitest";
import { balanceOf, bindingsWith, errorOf } from "./client.ts";
import {
  answering as answeringWith,
  charged as chargedFor,
  statusAndCost,
  key,
  sender,
  usePayer,
} from "./media-client.ts";
import { mockUpstream } from "./upstream.ts";

const KEYS = { RESIDENCY: "relaxed", OPENAI_API_KEY: "k", GEMINI_API_KEY: "k", XAI_API_KEY: "k" };
const SUNBURST = "openai/gpt-image-2.5-sunburst";
const IMAGE_MICRO = 2000;
/** Maximum tokens of a medium 1024x1024 image: 478 and half as many again, at $30 per million. */
const HELD_TOKENS = 717;
const PICTURE = "iVBORw0KGgo=";

usePayer();

type ImagesResponse = {
  readonly created: number;
  readonly data: readonly { readonly b64_json: string }[];
  readonly usage: {
    readonly input_tokens: number;
    readonly output_tokens: number;
    readonly cost_micro: number;
  };
};

const post = sender("/v1/images/generations", { model: "sandbox/image", prompt: "a red fox" });
const draw = (body: object = {}, bindings?: Env): Promise<Response> =>
  post({ body, ...(bindings && { bindings }) });

/** Returns a charged response's text, headers, receipt and cost. */
async function charged(sent: () => Promise<Response>) {
  const response = await chargedFor(sent);
  return { ...response, cost: response.receipt.cost_micro };
}

async function createImages(
  fields: object,
  bindings?: Env,
): Promise<ImagesResponse & { readonly cost: number }> {
  const { text, cost } = await charged(() => draw(fields, bindings));
  const answer = JSON.parse(text) as ImagesResponse;
  expect(answer.usage.cost_micro).toBe(cost);
  return { ...answer, cost };
}

/** Returns a body in network chunks, each sent some time after the previous one was read. */
function inChunks(parts: string[], waitMs = 20): ReadableStream<Uint8Array> {
  const pull = async (stream: ReadableStreamDefaultController<Uint8Array>): Promise<void> => {
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    const next = parts.shift();
    if (next === undefined) stream.close();
    else stream.enqueue(new TextEncoder().encode(next));
  };
  return new ReadableStream({ pull }, { highWaterMark: 0 });
}

/** Returns a provider with this response. */
const providerWith = (answer: object | string, type = "application/json") =>
  answeringWith(KEYS, () => {
    const body = typeof answer === "string" ? answer : JSON.stringify(answer);
    return new Response(body, { headers: { "content-type": type } });
  });

const openAi = (images: number, usage?: object) => ({
  created: 1,
  size: "1024x1024",
  quality: "medium",
  data: Array.from({ length: images }, () => ({ b64_json: PICTURE })),
  usage,
});
const MEDIUM = { model: SUNBURST, size: "1024x1024", quality: "medium" };

describe("POST /v1/images/generations", () => {
  it("returns 200 with images in OpenAI's format and their cost", async () => {
    const answer = await createImages({ n: 2 });
    expect(answer).toMatchObject({
      created: expect.any(Number) as number,
      data: [
        { b64_json: expect.stringMatching(/^iVBOR/) as string },
        { b64_json: expect.stringMatching(/^iVBOR/) as string },
      ],
      output_format: "png",
    });
    expect(answer.cost).toBe(2 * IMAGE_MICRO + answer.usage.input_tokens);
  });

  it("streams previews, then the image with usage", async () => {
    const { text, cost, headers } = await charged(() => draw({ stream: true, partial_images: 1 }));
    expect(headers.get("content-type")).toContain("text/event-stream");
    const events = text.split("\n\n").filter((event) => event !== "");
    expect(events.map((event) => /^event: (\S+)/.exec(event)?.[1])).toEqual([
      "image_generation.partial_image",
      "image_generation.completed",
    ]);
    const [preview, last] = events.map((event) => {
      return JSON.parse(event.slice(event.indexOf("{"))) as object;
    });
    expect(preview).toMatchObject({ type: "image_generation.partial_image", b64_json: /./ });
    expect(last).toMatchObject({ type: "image_generation.completed", usage: { cost_micro: cost } });
  });

  it("writes a receipt with the number of charged images", async () => {
    const { receipt } = await charged(() => draw());
    expect(receipt.lines).toMatchObject([
      { what: "input" },
      { what: "image", tokens: 1, micro: IMAGE_MICRO },
    ]);
  });
});

describe("POST /v1/images/generations at OpenAI", () => {
  it.each([
    ["the reported tokens", 1, { input_tokens: 10, output_tokens: 439 }, 10 * 5 + 439 * 30],
    ["at most the held tokens", 1, { input_tokens: 10, output_tokens: 90_000 }, 50 + 21_510],
    [
      "at most the hold for more images than n",
      3,
      { input_tokens: 10, output_tokens: 1317 },
      50 + 21_510,
    ],
  ])("charges by OpenAI's token count: %s", async (_, images, usage, cost) => {
    const { calls, bindings } = providerWith(openAi(images, usage));
    const answer = await createImages(MEDIUM, bindings);
    expect(answer.cost).toBe(cost);
    expect(answer.data).toEqual(Array.from({ length: images }, () => ({ b64_json: PICTURE })));
    expect(answer).toMatchObject({ size: "1024x1024", quality: "medium" });
    expect(calls).toMatchObject([
      {
        url: "https://api.openai.com/v1/images/generations",
        body: { model: "gpt-image-2.5-sunburst", prompt: "a red fox", n: 1, quality: "medium" },
      },
    ]);
  });

  it("charges the held amount if OpenAI reports no usage", async () => {
    const answer = await createImages(MEDIUM, providerWith(openAi(1)).bindings);
    const { input_tokens: input, output_tokens: output, cost_micro: cost } = answer.usage;
    expect(output).toBe(HELD_TOKENS);
    expect(cost).toBe(input * 5 + HELD_TOKENS * 30);
  });

  it("forwards the events of a stream", async () => {
    const event = (type: string, more: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, b64_json: PICTURE, ...more })}\n\n`;
    const usage = { input_tokens: 10, output_tokens: 500, total_tokens: 510 };
    const { bindings } = providerWith(
      `: {"comment\n\n${event("image_generation.partial_image", { partial_image_index: 0 })}${event("image_generation.completed", { quality: "medium", usage })}`,
      "text/event-stream",
    );
    const body = { ...MEDIUM, stream: true, partial_images: 1 };
    const { text, cost } = await charged(() => draw(body, bindings));
    expect(cost).toBe(50 + 500 * 30);
    expect(text).toContain(`"b64_json":"${PICTURE}","partial_image_index":0}\n\nevent: `);
    expect(text).toContain(
      `"b64_json":"${PICTURE}","quality":"medium","usage":{"input_tokens":10,`,
    );
  });

  it("returns only the image, index and format of a preview", async () => {
    const seen = { type: "image_generation.partial_image", b64_json: PICTURE };
    const more = { request_id: "theirs", usage: { input_tokens: 1 }, host: "x", size: "1024x1024" };
    const done = { type: "image_generation.completed", b64_json: PICTURE };
    const { bindings } = providerWith(
      [{ ...seen, ...more, partial_image_index: 1 }, { ...seen, host: "x" }, done]
        .map((event) => `data: ${JSON.stringify(event)}\n\n`)
        .join(""),
      "text/event-stream",
    );
    const { text } = await charged(() => draw({ ...MEDIUM, stream: true }, bindings));
    const [, first = "", second = ""] = text.split("data: ");
    const shown = [first, second].map(
      (event) => JSON.parse(event.split("\n\n")[0] ?? "") as object,
    );
    expect(shown).toEqual([
      { ...seen, partial_image_index: 1, size: "1024x1024" },
      { ...seen, partial_image_index: 0 },
    ]);
  });

  it("waits several minutes for the first event of a stream", async () => {
    const done = { type: "image_generation.completed", b64_json: PICTURE };
    const headers = { "content-type": "text/event-stream" };
    const parts = [`data: ${JSON.stringify(done)}\n\n`];
    mockUpstream(() => new Response(inChunks(parts, 600), { headers }));
    const waits = { UPSTREAM_FIRST_MS: "100", UPSTREAM_IDLE_MS: "100", KEEP_ALIVE_MS: "50" };
    const bindings = bindingsWith({ ...KEYS, ...waits });
    const { text } = await charged(() => draw({ ...MEDIUM, stream: true }, bindings));
    expect(text).toContain(`"b64_json":"${PICTURE}"`);
  });

  it("ends a stream with an error and without a charge if the provider's stream breaks off within an event", async () => {
    const { bindings } = providerWith(
      'data: {"type":"image_generation.completed","b64_json":"iVBO',
      "text/event-stream",
    );
    const { text, cost } = await charged(() => draw({ ...MEDIUM, stream: true }, bindings));
    expect(cost).toBe(0);
    expect(text).toMatch(/\nevent: error\n\n$/);
    expect(JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "")).toMatchObject({ type: "error" });
  });

  it.each([
    ["without images", { created: 1, data: [], usage: { input_tokens: 1, output_tokens: 1 } }],
    ["with an error", { error: { message: "broken", type: "server_error" } }],
    ["that isn't JSON", "{nonsense}"],
  ])("returns 502 for a response %s, and charges nothing", async (_, answer) => {
    const { bindings } = providerWith(answer);
    expect(await statusAndCost(() => draw(MEDIUM, bindings))).toEqual([502, 0]);
  });
});

const gemini = (usageMetadata?: object, candidate: object = {}) => ({
  candidates: [
    {
      content: {
        parts: [
          { text: "Here it is." },
          {
            thoughtSignature: "s".repeat(40_000),
            inlineData: { mimeType: "image/png", data: PICTURE },
          },
        ],
      },
      ...candidate,
    },
  ],
  usageMetadata,
});

describe("POST /v1/images/generations at Google and xAI", () => {
  const BANANA = { model: "google/gemini-nano-banana-2.1", size: "1536x1024" };

  it("charges Gemini's text and thinking tokens at different prices than image tokens", async () => {
    const { calls, bindings } = providerWith(
      gemini({
        promptTokenCount: 10,
        candidatesTokenCount: 1130,
        candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 1120 }],
        thoughtsTokenCount: 90,
      }),
    );
    const answer = await createImages(BANANA, bindings);
    expect(answer.data).toEqual([{ b64_json: PICTURE }]);
    expect(answer.cost).toBe(10 * 1.5 + 1120 * 30 + 100 * 7.5);
    expect(calls[0]).toMatchObject({
      body: { generationConfig: { imageConfig: { aspectRatio: "3:2", imageSize: "1K" } } },
    });
  });

  it("charges the held amount if Gemini reports no usage", async () => {
    const { cost } = await createImages(BANANA, providerWith(gemini()).bindings);
    expect(cost).toBeGreaterThan(16_384 * (30 + 7.5));
  });

  const refusedPrompt = { promptFeedback: { blockReason: "PROHIBITED_CONTENT" } };
  const textOnly = { content: { parts: [{ text: "I can't." }] }, finishReason: "STOP" };
  const PROMPT = { promptTokenCount: 10 };
  it.each([
    ["a rejected prompt", { ...refusedPrompt, usageMetadata: PROMPT }, 15],
    [
      "an unsafe image",
      { candidates: [{ finishReason: "IMAGE_SAFETY" }], usageMetadata: PROMPT },
      15,
    ],
    [
      "a response with only text",
      { candidates: [textOnly], usageMetadata: { ...PROMPT, candidatesTokenCount: 20 } },
      15 + 20 * 7.5,
    ],
    [
      "a response with only thoughts",
      {
        candidates: [{ finishReason: "MAX_TOKENS" }],
        usageMetadata: { ...PROMPT, thoughtsTokenCount: 100 },
      },
      15 + 100 * 7.5,
    ],
  ])("returns 400 for %s, and charges the reported tokens", async (_, answer, cost) => {
    const { calls, bindings } = providerWith(answer);
    const before = await balanceOf(key);
    expect(await errorOf(await draw(BANANA, bindings), 400)).toMatchObject({ param: "prompt" });
    expect(before - (await balanceOf(key))).toBe(cost);
    expect(calls).toHaveLength(1);
  });

  it("charges the reported tokens if Gemini blocks the final image after a draft", async () => {
    const text = JSON.stringify(gemini(PROMPT, { finishReason: "IMAGE_SAFETY" }));
    const middle = text.indexOf(PICTURE) + 4;
    const parts = [text.slice(0, middle), text.slice(middle)];
    mockUpstream(() => new Response(inChunks(parts)));
    const body = { model: BANANA.model, stream: true };
    const { text: shown, cost } = await charged(() => draw(body, bindingsWith(KEYS)));
    expect(shown).toContain("content_policy_violation");
    expect(cost).toBe(15);
  });

  it("charges for the images that xAI returns, up to the requested number", async () => {
    const { calls, bindings } = providerWith({
      data: [1, 2, 3].map(() => ({ b64_json: PICTURE })),
    });
    const { cost } = await createImages({ model: "xai/grok-imagine-image-2.0", n: 2 }, bindings);
    expect(cost).toBe(80_000);
    expect(calls[0]?.body).toMatchObject({ response_format: "b64_json", resolution: "1k", n: 2 });
  });
});

const ownModel = (provider: string, name: string) => ({
  id: `test/${provider}`,
  kind: "image",
  context: 32_000,
  price: { input: 0, image: 1000, image_token: 30_000_000, text_token: 7_500_000 },
  routes: [{ provider, upstream_id: name }],
});

describe("POST /v1/images/generations with an operator-defined model", () => {
  const PROVIDERS = ["xai", "generic"].map((profile) => ({
    id: `own-${profile}`,
    base_url: `https://${profile}.example.com/v1`,
    profile,
    regions: ["eu"],
  }));
  const MODELS = [
    ownModel("google", "banana-next"),
    ownModel("own-xai", "image-next"),
    ownModel("own-generic", "gemini-next"),
  ];
  const own = (bindings: Env) => ({
    ...bindings,
    PROVIDERS: JSON.stringify(PROVIDERS),
    MODELS: JSON.stringify(MODELS),
  });

  it.each([
    ["n", { model: "test/google", n: 2 }],
    ["quality", { model: "test/google", quality: "low" }],
    ["size", { model: "test/own-xai", size: "2048x2048" }],
    ["quality", { model: "test/own-xai", quality: "low" }],
  ])(
    "rejects the field %s if the provider doesn't support it, whatever the model's name: %j",
    async (param, wrong) => {
      const { calls, bindings } = providerWith({});
      expect(await errorOf(await draw(wrong, own(bindings)), 400)).toMatchObject({ param });
      expect(calls).toHaveLength(0);
    },
  );

  it("holds credits for the output cap that the gateway sends to Google", async () => {
    const { calls, bindings } = providerWith(gemini());
    const { cost } = await createImages({ model: "test/google" }, own(bindings));
    expect(cost).toBe(1000 + 16_384 * (30 + 7.5));
    expect(calls[0]).toMatchObject({ body: { generationConfig: { maxOutputTokens: 16_384 } } });
  });

  it("sends OpenAI's fields to a server with OpenAI's API, even for a Google model", async () => {
    const { calls, bindings } = providerWith(openAi(2));
    const body = { model: "test/own-generic", n: 2, quality: "high" };
    const { cost } = await createImages(body, own(bindings));
    expect(cost).toBe(2000 + 2 * 32_768 * 30); // without a cap or a count, at the model's maximum
    expect(calls[0]?.body).toMatchObject({ model: "gemini-next", n: 2, quality: "high" });
  });
});
