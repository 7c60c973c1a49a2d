import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { Mistral } from "@mistralai/mistralai";
import { CohereClient, CohereClientV2 } from "cohere-ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { removeDirectory } from "../../scripts/tmpfs.ts";
import { pngOf } from "../fixtures/pictures.ts";
import { makeOrganization } from "../node/support/organization.ts";
import { ADMIN_TOKEN, startTwoRegions } from "../node/support/two-regions.ts";
import type { TwoRegions } from "../node/support/two-regions.ts";
import { makeEnvironment } from "./python/environment.ts";
import { MEDIA } from "./python/packages.ts";

const INSTALL_MS = 300_000;
const directory = mkdtempSync(path.join(tmpdir(), "turnpike-media-"));

let regions: TwoRegions;
let key = "";
/** The requests of image models that the provider received. */
const received: string[] = [];
const PICTURE = "iVBORw0KGgo=";
const OF_GOOGLE = {
  candidates: [{ content: { parts: [{ inlineData: { mimeType: "image/png", data: PICTURE } }] } }],
};
const OF_XAI = { data: [{ b64_json: PICTURE }] };
/** A provider with the paths and responses of Google and xAI. */
const provider = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    received.push(Buffer.concat(chunks).toString());
    response.writeHead(200, { "content-type": "application/json" });
    const isGoogle = request.url?.includes("generateContent") === true;
    response.end(JSON.stringify(isGoogle ? OF_GOOGLE : OF_XAI));
  });
});
/** The reason why the Python programs can't run, or "". */
let missing = "";
beforeAll(async () => {
  provider.listen(0, "127.0.0.1");
  await once(provider, "listening");
  const url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const hosts = { GEMINI_BASE_URL: url, XAI_BASE_URL: url, GEMINI_API_KEY: "k", XAI_API_KEY: "k" };
  regions = await startTwoRegions({ bindings: { RESIDENCY: "relaxed", ...hosts } });
  const options = { credits: 100_000_000, keyScope: "global", rpmLimit: 1000 } as const;
  ({ key } = await makeOrganization(regions.eu.adminUrl, ADMIN_TOKEN, options));
  missing = await makeEnvironment(directory, MEDIA);
}, INSTALL_MS);
afterAll(async () => {
  await regions.stop();
  provider.close();
  removeDirectory(directory);
});

const audio = () =>
  new Uint8Array(20_000).fill(7).fill(0x49, 0, 1).fill(0x44, 1, 2).fill(0x33, 2, 3);
const DOCUMENT = "https://example.com/a.pdf";

describe.each(["eu", "us"] as const)("OpenAI's SDK for JavaScript in the region %s", (region) => {
  const client = () => new OpenAI({ apiKey: key, baseURL: regions[region].baseUrl, maxRetries: 0 });

  it("moderates a text", async () => {
    const request = { model: "sandbox/moderation", input: "violence" };
    const { results } = await client().moderations.create(request);
    expect(results.map(({ flagged }) => flagged)).toEqual([true]);
  });

  it("transcribes a file, with and without streaming", async () => {
    const newRequest = () => ({ model: "sandbox/transcribe", file: new File([audio()], "a.mp3") });
    const { text } = await client().audio.transcriptions.create(newRequest());
    expect(text).toBe("This is the audio of a.mp3.");
    const stream = await client().audio.transcriptions.create({ ...newRequest(), stream: true });
    const types: string[] = [];
    for await (const { type } of stream) types.push(type);
    expect(types).toEqual(["transcript.text.delta", "transcript.text.done"]);
  });

  it("generates an image, also as a stream", async () => {
    const request = { model: "sandbox/image", prompt: "a red fox" };
    const { data = [], usage } = await client().images.generate({ ...request, n: 2 });
    expect(data.map(({ b64_json: picture }) => picture?.slice(0, 6))).toEqual(["iVBORw", "iVBORw"]);
    expect(usage?.input_tokens).toBeGreaterThan(0);
    const types: string[] = [];
    const streamed = { ...request, stream: true, partial_images: 1 } as const;
    for await (const { type } of await client().images.generate(streamed)) types.push(type);
    expect(types).toEqual(["image_generation.partial_image", "image_generation.completed"]);
  });

  it("edits images, also as a stream", async () => {
    const files = () => [1, 2].map((at) => new File([pngOf(64, 64)], `${at}.png`));
    const request = { model: "sandbox/image", prompt: "make it blue" };
    const [image] = files();
    if (image === undefined) throw new Error("no file");
    const one = await client().images.edit({ ...request, image, n: 2 });
    expect(one.data).toHaveLength(2);
    expect(one.usage?.input_tokens_details.image_tokens).toBe(1024);
    const two = await client().images.edit({
      ...request,
      image: files(),
      mask: image,
      quality: "low",
    });
    expect(two.usage?.input_tokens_details.image_tokens).toBe(2048);
    const types: string[] = [];
    const streamed = { ...request, image, stream: true, partial_images: 1 } as const;
    for await (const { type } of await client().images.edit(streamed)) types.push(type);
    expect(types).toEqual(["image_edit.partial_image", "image_edit.completed"]);
  });

  it.each(["google/gemini-nano-banana-2.1", "xai/grok-imagine-image-2.0"])(
    "edits an image with %s",
    async (model) => {
      received.length = 0;
      const image = new File([pngOf(64, 64)], "a.png");
      const { data = [] } = await client().images.edit({ model, image, prompt: "make it blue" });
      expect(data.map((one) => one.b64_json)).toEqual([PICTURE]);
      expect(received).toEqual([
        expect.stringContaining(Buffer.from(pngOf(64, 64)).toString("base64")),
      ]);
    },
  );

  it("generates speech from a text", async () => {
    const request = { model: "sandbox/speech", voice: "alloy", input: "Hello" };
    const file = await client().audio.speech.create({ ...request, response_format: "wav" });
    expect([file.headers.get("content-type"), await file.text()]).toEqual(["audio/wav", "Hello"]);
  });
});

describe.each(["eu", "us"] as const)("Cohere's SDK for JavaScript in the region %s", (region) => {
  const options = () => ({
    token: key,
    environment: new URL(regions[region].baseUrl).origin,
    maxRetries: 0,
  });
  const ranking = { model: "sandbox/rerank", query: "a red fox", topN: 1 };

  it("ranks documents with version 2 of Cohere's API", async () => {
    const documents = ["a blue dog", "the red fox"];
    const { results, meta } = await new CohereClientV2(options()).rerank({ ...ranking, documents });
    expect(results).toMatchObject([{ index: 1 }]);
    expect(meta?.billedUnits?.searchUnits).toBe(1);
  });

  it("ranks documents with version 1 of Cohere's API", async () => {
    const documents = ["a blue dog", { text: "the red fox" }];
    const request = { ...ranking, documents, returnDocuments: true };
    const { results } = await new CohereClient(options()).rerank(request);
    expect(results).toMatchObject([{ index: 1, document: { text: "the red fox" } }]);
  });
});

describe.each(["eu", "us"] as const)("Mistral's SDK for JavaScript in the region %s", (region) => {
  const client = () =>
    new Mistral({ apiKey: key, serverURL: new URL(regions[region].baseUrl).origin });

  it("completes a chat, also as a stream", async () => {
    const request = {
      model: "sandbox/echo",
      messages: [{ role: "user" as const, content: "Hello there" }],
    };
    const { choices, usage } = await client().chat.complete(request);
    expect(choices[0]?.message?.content).toContain("Hello there");
    expect(usage.totalTokens).toBeGreaterThan(0);
    let streamed = "";
    for await (const { data } of await client().chat.stream(request)) {
      streamed += String(data.choices[0]?.delta.content ?? "");
    }
    expect(streamed).toBe(choices[0]?.message?.content);
  });

  it("creates embeddings", async () => {
    const { data } = await client().embeddings.create({ model: "sandbox/embed", inputs: ["a"] });
    expect(data[0]?.embedding).toHaveLength(256);
  });

  it("moderates texts", async () => {
    const request = { model: "sandbox/moderation", inputs: ["hello", "violence"] };
    const { results } = await client().classifiers.moderate(request);
    expect(results.map(({ categories }) => categories?.["violence"])).toEqual([false, true]);
  });

  it("transcribes a file, with and without streaming", async () => {
    const request = {
      model: "sandbox/transcribe",
      file: { fileName: "a.mp3", content: audio() },
    };
    const { text, usage } = await client().audio.transcriptions.complete(request);
    expect([text, usage.promptAudioSeconds]).toEqual(["This is the audio of a.mp3.", 20]);
    const types: string[] = [];
    for await (const { event } of await client().audio.transcriptions.stream(request)) {
      types.push(event);
    }
    expect(types).toEqual(["transcription.text.delta", "transcription.done"]);
  });

  it("generates speech from a text, also as a stream", async () => {
    const request = { model: "sandbox/speech", voiceId: "alloy", input: "Hello" };
    const whole = await client().audio.speech.complete(request);
    if (!("audioData" in whole)) throw new Error("no audio");
    expect(Buffer.from(whole.audioData, "base64").toString()).toBe("Hello");
    const stream = await client().audio.speech.complete(
      { ...request, stream: true },
      { headers: { accept: "text/event-stream" } },
    );
    if ("audioData" in stream) throw new Error("no stream");
    const types: string[] = [];
    for await (const { event } of stream) types.push(event);
    expect(types).toEqual(["speech.audio.delta", "speech.audio.delta", "speech.audio.done"]);
  });

  it("reads a document and an image", async () => {
    const read = await client().ocr.process({
      model: "sandbox/ocr",
      document: { type: "document_url", documentUrl: DOCUMENT },
      pages: [0, 1],
    });
    expect(read.pages.map(({ markdown }) => markdown)).toEqual(["# Page 0", "# Page 1"]);
    expect(read.usageInfo.pagesProcessed).toBe(2);
    const image = { type: "image_url" as const, imageUrl: "https://example.com/a.png" };
    const { pages } = await client().ocr.process({ model: "sandbox/ocr", document: image });
    expect(pages).toHaveLength(1);
  });
});

it.for(["eu", "us"] as const)(
  "OpenAI's, Cohere's and Mistral's SDKs for Python call every endpoint in the region %s",
  { timeout: INSTALL_MS },
  async (region, { skip }) => {
    skip(missing !== "", missing);
    const { stdout } = await promisify(execFile)(
      path.join(directory, "bin/python"),
      [path.join(import.meta.dirname, "python/media_sdks.py")],
      {
        env: {
          ...process.env,
          PYTHONPYCACHEPREFIX: path.join(directory, "cache"),
          URL: regions[region].baseUrl,
          KEY: key,
        },
      },
    );
    expect(JSON.parse(stdout)).toEqual({
      openai: {
        moderation: [true],
        transcription: "This is the audio of a.mp3.",
        "transcription streamed": "transcript.text.delta transcript.text.done",
        images: 2,
        "image streamed": "image_generation.partial_image image_generation.completed",
        "images edited": [2, 2048],
        "edit streamed": "image_edit.partial_image image_edit.completed",
        speech: "Hello",
      },
      cohere: { "rerank 1": [1, "the red fox"], "rerank 2": [1, 1] },
      mistral: {
        chat: true,
        "chat streamed": true,
        embeddings: 256,
        moderation: [false, true],
        transcription: ["This is the audio of a.mp3.", 20],
        "transcription streamed": "transcription.text.delta transcription.done",
        speech: "Hello",
        "speech streamed": "speech.audio.delta speech.audio.delta speech.audio.done",
        ocr: ["# Page 0", "# Page 1"],
      },
    });
  },
);
