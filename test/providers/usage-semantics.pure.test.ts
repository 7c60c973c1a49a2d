import { expect, it } from "vitest";
import { embeddingsAnswer as bedrockAnswer } from "../../src/models/protocols/converse/embeddings.ts";
import { readCohereEmbeddings } from "../../src/models/protocols/cohere/answer.ts";
import { GEMINI_EMBEDDINGS, PREDICT } from "../../src/models/protocols/gemini/embeddings.ts";
import { readEmbeddings } from "../../src/models/protocols/chat/answer.ts";
import { readInputUsage } from "../../src/models/core/chat-usage.ts";
import { openAiUsage } from "../../src/models/core/openai-usage.ts";
import { COMPATIBLE_ROWS } from "./usage-rows-compatible.ts";
import { NATIVE_ROWS } from "./usage-rows-native.ts";
import { callOf } from "./adapter-kit.ts";
import type { Reader, Row } from "./usage-row.ts";

const embeddings: Reader = (answer) => readInputUsage(answer["usage"]);

/** What counts what; each family of upstreams has its rows. */
const ROWS: readonly Row[] = [...COMPATIBLE_ROWS, ...NATIVE_ROWS];

it.each(ROWS)(
  "the usage that $upstream reports is converted to our token counts",
  ({ reader, raw, want, wire }) => {
    const usage = reader(raw);
    const numbers = usage && [
      usage.input,
      usage.cacheRead,
      usage.cacheWrite,
      usage.output,
      usage.reasoning,
    ];
    expect(numbers).toEqual(want);
    const shown = usage && openAiUsage(usage);
    const counts = shown && [
      shown["prompt_tokens"],
      shown["completion_tokens"],
      shown["total_tokens"],
    ];
    expect(counts).toEqual(wire);
  },
);

it.each([
  ["OpenAI", { prompt_tokens: 8, total_tokens: 8 }, 8],
  [
    "Mistral",
    { prompt_tokens: 15, total_tokens: 15, completion_tokens: 0, prompt_audio_seconds: null },
    15,
  ],
  ["Voyage, with only a total", { total_tokens: 12 }, 12],
  ["odd", { prompt_tokens: -1, total_tokens: 12 }, null],
])(
  "the embeddings usage that %s reports is converted to our token counts",
  (_name, usage, input) => {
    const want =
      input === null ? null : { input, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
    expect(embeddings({ usage })).toEqual(want);
  },
);

const CALL = callOf({ kind: "embeddings", body: { input: ["words"] } });
const zeros = { prompt_tokens: 0, total_tokens: 0 };
const counted = new Headers({ "x-amzn-bedrock-input-token-count": "0" });
it.each([
  ["OpenAI's format", () => readEmbeddings({ data: [{ embedding: [1] }], usage: zeros }, CALL)],
  [
    "Voyage",
    () => readEmbeddings({ data: [{ embedding: [1] }], usage: { total_tokens: 0 } }, CALL),
  ],
  [
    "Cohere",
    () =>
      readCohereEmbeddings(
        { embeddings: { float: [[1]] }, meta: { billed_units: { input_tokens: 0 } } },
        CALL,
      ),
  ],
  [
    "the Gemini API",
    () =>
      GEMINI_EMBEDDINGS.answer(
        { embeddings: [{ values: [1] }], usageMetadata: { promptTokenCount: 0 } },
        CALL,
      ),
  ],
  [
    "Vertex",
    () => {
      const one = { values: [1], statistics: { token_count: 0 } };
      return PREDICT.answer({ predictions: [{ embeddings: one }] }, CALL);
    },
  ],
  ["Titan", () => bedrockAnswer({ embedding: [1], inputTextTokenCount: 0 }, CALL, new Headers())],
  ["Cohere at Bedrock", () => bedrockAnswer({ embeddings: { float: [[1]] } }, CALL, counted)],
])("embeddings of %s without a token count have no usage", (_name, answer) => {
  const given = answer();
  expect(given?.body["data"]).toHaveLength(1);
  expect(given?.usage).toBeNull();
  expect(given?.body).not.toHaveProperty("usage");
});
