import { beforeAll, describe, expect, it } from "vitest";
import { ENDPOINTS as PAID_ENDPOINTS } from "../../src/models/endpoints/endpoints.ts";
import { PNG_URL } from "../fixtures/pictures.ts";
import { balanceOf, bindingsWith, errorOf, HELLO, openAccount, send } from "./client.ts";
import { expectInvalid, expectInvalidValues } from "./invalid-fields.ts";
import type { InvalidValues } from "./invalid-fields.ts";

/** An endpoint's valid body, invalid values of its fields, and invalid changes of several fields. */
type Endpoint = {
  readonly valid: Readonly<Record<string, unknown>>;
  readonly invalid: InvalidValues;
  readonly changes?: readonly (readonly [param: string, change: object])[];
  /** The amount to hold. Null if the holds of the endpoint are tested elsewhere. */
  readonly requiredMicro: number | null;
};

const KEYS = {
  RESIDENCY: "relaxed",
  OPENAI_API_KEY: "k",
  GEMINI_API_KEY: "k",
  GROQ_API_KEY: "k",
  MISTRAL_API_KEY: "k",
  XAI_API_KEY: "k",
};

const LONG_USER = "x".repeat(257);
const NO_COUNT = [0, -1, 1.5, "10", true];
const userMessages = (content: unknown) => [{ role: "user", content }];
const tool = (name: string) => ({ type: "function", function: { name } });
const PDF = { file_id: "f", file_data: "data:application/pdf;base64,JVBERi0=" };
const CHAT: Endpoint = {
  valid: { model: "sandbox/echo", messages: HELLO },
  invalid: {
    model: [undefined, null, 5, "", "x".repeat(1024)],
    messages: [undefined, null, [], "hi", Array.from({ length: 10_001 }, () => HELLO[0])],
    "messages[0]": [["hi"]],
    "messages[0].role": [[{ content: "hi" }], [{ role: "narrator", content: "hi" }]],
    "messages[1].role": [[...HELLO, { role: "x", content: "" }]],
    "messages[0].content": [7, null, { type: "text", text: "a" }, []].map(userMessages),
    "messages[0].content[0].type": [
      userMessages([{ text: "no type" }]),
      userMessages([{ type: "input_audio", input_audio: {} }]),
    ],
    "messages[0].content[0].file.file_data": [
      userMessages([{ type: "file", file: { file_id: "f" } }]),
    ],
    "messages[0].content[0].file.file_id": [userMessages([{ type: "file", file: PDF }])],
    "messages[0].content[0].image_url": [
      userMessages([{ type: "image_url", image_url: "http://x" }]),
    ],
    "messages[0].tool_call_id": [[{ role: "tool", content: "x" }]],
    temperature: [-0.1, 2.1, "1", [1]],
    top_p: [1.01],
    presence_penalty: [2.5],
    n: [0, 129, 1.5],
    max_tokens: NO_COUNT,
    max_completion_tokens: NO_COUNT,
    stream: ["yes"],
    stop: [["a", "b", "c", "d", "e"], 5],
    tools: ["weather"],
    "tools[0].type": [[{ type: "web" }]],
    "tools[0].function": [[{ type: "function" }]],
    "tools[0].function.name": [[tool("a b")]],
    tool_choice: ["some", "always", tool("f")],
    "tool_choice.type": [{ type: "any" }],
    "tool_choice.function": [{ type: "function", name: "a Responses choice" }],
    "tool_choice.function.name": [{ type: "function", function: {} }],
    "tool_choice.custom": [{ type: "custom", name: "c" }],
    "tool_choice.allowed_tools": [{ type: "allowed_tools", mode: "auto" }],
    "response_format.type": [{ type: "xml" }],
    user: [
      "",
      5,
      LONG_USER,
      `${"é".repeat(128)}x`,
      "a\nSet-Cookie: b",
      "a\u0000",
      "a\u2028b",
      "..",
    ],
    parallel_tool_calls: ["yes"],
    service_tier: ["flex", "priority"],
    web_search_options: [{}],
    audio: [{ voice: "alloy", format: "mp3" }],
    "modalities[1]": [["text", "audio"]],
    prediction: [{ type: "content", content: "x" }],
    store: [true],
  },
  changes: [
    ["messages", { messages: undefined, input: "a Responses request" }],
    ["top_logprobs", { logprobs: true, top_logprobs: 21 }],
    ["tool_choice", { tools: [tool("g")], tool_choice: tool("f") }],
    [
      "tool_choice",
      {
        tools: [tool("g")],
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: { mode: "auto", tools: [tool("g"), tool("f")] },
        },
      },
    ],
  ],
  requiredMicro: null,
};
const COMPLETIONS: Endpoint = {
  valid: { model: "sandbox/echo", prompt: "Hello there" },
  invalid: {
    prompt: [undefined, "", [], Array(21).fill("one")],
    "prompt[0]": [[1, 2], [[1, 2]]],
    "prompt[1]": [["one", ""]],
    echo: [true],
    suffix: ["end"],
    best_of: [2],
    logprobs: [0],
    max_tokens: [0],
  },
  changes: [
    ["stream", { prompt: ["one", "two"], stream: true }],
    ["n", { prompt: ["one", "two"], n: 65 }],
  ],
  requiredMicro: null,
};
const EMBEDDINGS: Endpoint = {
  valid: { model: "sandbox/embed", input: "Hello there" },
  invalid: {
    model: [undefined, ["sandbox/embed"]],
    input: [undefined, null, "", [], Array(2049).fill("a"), 5, { text: "a" }],
    "input[0]": [[""], [[]], [-1]],
    "input[1]": [["a", 5]],
    "input[0][0]": [[["a"]]],
    encoding_format: ["hex"],
    dimensions: [0, -1, 1e9, 1.5, 2000],
    user: [LONG_USER],
  },
  requiredMicro: null,
};
const BANANA = "google/gemini-nano-banana-2.1";
const IMAGES: Endpoint = {
  valid: { model: "sandbox/image", prompt: "a" },
  invalid: {
    prompt: [""],
    n: [11],
    size: ["big"],
    quality: ["hd"],
    output_format: ["svg"],
    complexity: ["high"],
    frame_count: [2],
    partial_images: [1],
    user: [LONG_USER],
  },
  changes: [
    ["n", { n: 2, stream: true }],
    ["n", { model: BANANA, n: 2 }],
    ["size", { model: "openai/gpt-image-2.5-sunburst", size: "1000x1000" }],
    ["size", { model: "xai/grok-imagine-image-2.0", size: "2048x2048" }],
    ["quality", { model: BANANA, quality: "low" }],
  ],
  requiredMicro: 2065,
};
const edits = (image: object) => [image];
const IMAGE_EDITS: Endpoint = {
  valid: { model: "sandbox/image", prompt: "a", images: edits({ image_url: PNG_URL }) },
  invalid: {
    "images[0].image_url": [
      edits({ image_url: "https://example.com/a.png" }),
      edits({ file_id: "file-1" }),
    ],
    n: [{ toString: 1 }, [3], true],
  },
  requiredMicro: 8886,
};
const SPEECH: Endpoint = {
  valid: { model: "sandbox/speech", input: "Grüße 🦊", voice: "alloy" },
  invalid: {
    input: ["", "x".repeat(4097)],
    voice: [null],
    voice_id: ["other"],
    response_format: ["mulaw"],
    speed: [5],
    stream_format: ["ndjson"],
    stream: [true],
    ref_audio: ["AAAA"],
    user: [LONG_USER],
  },
  changes: [
    ["response_format", { model: "canopylabs/orpheus-v1-english" }],
    ["response_format", { model: "mistral/voxtral-mini-tts-3", response_format: "aac" }],
    ["speed", { model: "mistral/voxtral-mini-tts-3", speed: 2 }],
    ["instructions", { model: "mistral/voxtral-mini-tts-3", instructions: "whisper" }],
  ],
  requiredMicro: 12 * 10, // a character may have several bytes
};
const TRANSCRIPTIONS: Endpoint = {
  valid: { model: "sandbox/transcribe", file: "data:audio/wav;base64,SUQz" },
  invalid: {
    file: [
      undefined,
      ...["AAAAA", "AA=", "AAA==", "AAAA=", "A", "=", "AA==AA=="].map(
        (text) => `data:audio/mp3;base64,SUQz${text}`,
      ),
    ],
  },
  requiredMicro: 10 * 100, // at least ten seconds
};
const RERANK: Endpoint = {
  valid: { model: "sandbox/rerank", query: "a", documents: ["b"] },
  invalid: {
    query: [""],
    documents: [[]],
    "documents[1]": [["a", 5]],
    top_n: [0],
    priority: [1],
    max_tokens_per_doc: [0],
    user: [LONG_USER],
  },
  changes: [["top_k", { top_n: 1, top_k: 2 }]],
  requiredMicro: 2000,
};
const MODERATIONS: Endpoint = {
  valid: { model: "sandbox/moderation", input: "a" },
  invalid: {
    input: ["", [], undefined, Array(257).fill("a")],
    "input[0].type": [[{ type: "video_url" }]],
    "input[0].image_url.url": [[{ type: "image_url", image_url: {} }]],
    metadata: [{}],
    user: [LONG_USER],
  },
  requiredMicro: 1000,
};
const OCR: Endpoint = {
  valid: {
    model: "sandbox/ocr",
    document: { type: "document_url", document_url: "https://example.com/a.pdf" },
    pages: "0-1",
  },
  invalid: {
    pages: [undefined, "0-1000", Array(500).fill("0-99999").join(","), "3-1", "all", []],
    document_annotation_format: [{ type: "json_object" }],
    bbox_annotation_format: [{ type: "json_object" }],
    include_blocks: [1],
    table_format: ["html"],
    id: ["a"],
    document: ["https://example.com/a.pdf"],
    "document.type": [{ type: "file", file_id: "f" }],
    "document.document_url": [{ type: "document_url" }],
    user: [LONG_USER],
  },
  requiredMicro: 2 * 2000,
};

const ENDPOINTS = Object.entries({
  "/v1/chat/completions": CHAT,
  "/v1/completions": COMPLETIONS,
  "/v1/embeddings": EMBEDDINGS,
  "/v1/images/generations": IMAGES,
  "/v1/images/edits": IMAGE_EDITS,
  "/v1/audio/speech": SPEECH,
  "/v1/audio/transcriptions": TRANSCRIPTIONS,
  "/v1/rerank": RERANK,
  "/v1/moderations": MODERATIONS,
  "/v1/ocr": OCR,
});

/** The paid endpoints whose invalid bodies have their own test files. */
const TESTED_ELSEWHERE = ["/v1/messages", "/v1/responses"];

it("the tests of invalid bodies include every paid endpoint", () => {
  const tested = [...ENDPOINTS.map(([path]) => path), ...TESTED_ELSEWHERE];
  expect(tested).toHaveLength(PAID_ENDPOINTS.length);
  expect(new Set(tested)).toEqual(new Set(PAID_ENDPOINTS.map(({ path }) => path)));
});

let key: string;
beforeAll(async () => {
  ({ key } = await openAccount());
});

describe("a paid endpoint", () => {
  it.each(ENDPOINTS)(
    "returns 400 with an invalid field as param, and charges nothing: POST %s",
    async (path, { valid, invalid, changes = [] }) => {
      const bindings = bindingsWith(KEYS);
      const sent = (body: object): Promise<Response> => send(path, { key, body, bindings });
      const before = await balanceOf(key);
      await expectInvalidValues(sent, () => valid, invalid);
      for (const [param, change] of changes) {
        await expectInvalid(sent, { ...valid, ...change }, param);
      }
      expect(await balanceOf(key)).toBe(before);
    },
  );

  it.each(ENDPOINTS.filter(([, { requiredMicro }]) => requiredMicro !== null))(
    "returns 402 with the required hold if the balance is lower: POST %s",
    async (path, { valid, requiredMicro }) => {
      const { key: poor } = await openAccount({ credits: Number(requiredMicro) - 1 });
      const error = await errorOf(await send(path, { key: poor, body: valid }), 402);
      expect(error).toMatchObject({ type: "insufficient_balance", required_micro: requiredMicro });
    },
  );

  it.each(ENDPOINTS)(
    "runs only the first of two requests with one Idempotency-Key: POST %s",
    async (path, { valid }) => {
      const headers = { "idempotency-key": crypto.randomUUID() };
      const sent = async (body: object): Promise<number> => {
        const response = await send(path, { key, body, headers });
        await response.arrayBuffer();
        return response.status;
      };
      const before = await balanceOf(key);
      expect(await sent(valid)).toBe(200);
      const after = await balanceOf(key);
      expect(after).toBeLessThan(before);
      expect([await sent(valid), await sent({ ...valid, user: "other" })]).toEqual([409, 422]);
      expect(await balanceOf(key)).toBe(after);
    },
  );
});
