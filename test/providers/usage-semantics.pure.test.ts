import { expect, it } from "vitest";
import { readBedrockEmbeddings as bedrockAnswer } from "../../src/models/protocols/converse/embeddings.ts";
import {
  readCohereEmbeddings,
  readCohereUsage as cohereUsage,
} from "../../src/models/protocols/cohere/answer.ts";
import {
  GEMINI_EMBEDDINGS,
  VERTEX_EMBEDDINGS,
} from "../../src/models/protocols/gemini/embeddings.ts";
import { readEmbeddings } from "../../src/models/protocols/chat/answer.ts";
import {
  readInputUsage,
  readUsage,
  findRawUsage,
  toOpenAiUsage,
} from "../../src/models/core/openai-usage.ts";
import { objectOf } from "../../src/models/core/json-value.ts";
import type { JsonObject } from "../../src/models/core/provider.ts";
import { readConverseUsage } from "../../src/models/protocols/converse/converse-answer.ts";
import { readGeminiUsage } from "../../src/models/protocols/gemini/answer.ts";
import { readMessagesUsage } from "../../src/models/protocols/messages/host-answer.ts";
import { PROVIDER_HOST_PROFILES } from "../../src/models/providers/profiles.ts";
import type { Usage } from "../../src/shared/usage.ts";
import { callOf } from "./adapter-kit.ts";

/** Reads the usage of a JSON body, or of the event that contains it. */
type Reader = (answer: JsonObject) => Usage | null;

const embeddings: Reader = (answer) => readInputUsage(answer["usage"]);

/** The readers of providers with their own protocol. The others are OpenAI-compatible profiles. */
const READERS: Readonly<Record<string, Reader>> = {
  messages: (answer) => readMessagesUsage(objectOf(answer["usage"])),
  converse: (answer) => readConverseUsage(answer["usage"]),
  gemini: (answer) => readGeminiUsage(answer["usageMetadata"]),
  cohere: (answer) => cohereUsage(answer["usage"]),
  workersAi: (answer) => readUsage(answer["usage"]),
};

function readerOf(name: string): Reader {
  const shape = PROVIDER_HOST_PROFILES.get(name)?.usageShape;
  return READERS[name] ?? ((answer) => readUsage(findRawUsage(answer, shape ?? {}), shape));
}

/**
 * Recorded usage. A line has the reader, the case, our counts (input, cache read, cache write,
 * output, reasoning) and the counts that a client sees (prompt, completion, total). The next line
 * is the recording.
 */
const RECORDED = `
generic | an unnamed server whose total alone shows that reasoning is separate | 36 0 0 150 50 | 36 150 186
{"usage":{"prompt_tokens":36,"completion_tokens":100,"total_tokens":186,"completion_tokens_details":{"reasoning_tokens":50}}}
generic | an unnamed server such as Moonshot, with cached_tokens next to the counts | 7 12 0 13 0 | 19 13 32
{"usage":{"prompt_tokens":19,"completion_tokens":13,"total_tokens":32,"cached_tokens":12}}
openai | OpenAI: what was cached and written is in the prompt, reasoning in the completion | 30 60 10 50 20 | 100 50 150
{"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":10},"completion_tokens_details":{"reasoning_tokens":20}}}
azure | Azure | 15 0 0 78 64 | 15 78 93
{"usage":{"completion_tokens":78,"completion_tokens_details":{"reasoning_tokens":64,"audio_tokens":0},"prompt_tokens":15,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":0},"total_tokens":93}}
groq | Groq, with times | 27 0 0 64 64 | 27 64 91
{"usage":{"prompt_tokens":27,"total_time":0.143,"completion_tokens":64,"total_tokens":91,"completion_tokens_details":{"reasoning_tokens":64}}}
groq | Groq, in x_groq alone | 210 0 0 15 0 | 210 15 225
{"x_groq":{"id":"req","usage":{"prompt_tokens":210,"completion_tokens":15,"total_tokens":225}}}
deepseek | DeepSeek | 118 256 0 61 17 | 374 61 435
{"usage":{"prompt_tokens":374,"completion_tokens":61,"total_tokens":435,"prompt_tokens_details":{"cached_tokens":256},"completion_tokens_details":{"reasoning_tokens":17},"prompt_cache_hit_tokens":256}}
deepseek | DeepSeek, hits and misses alone | 13 5 0 9 0 | 18 9 27
{"usage":{"prompt_tokens":18,"completion_tokens":9,"total_tokens":27,"prompt_cache_hit_tokens":5,"prompt_cache_miss_tokens":13}}
mistral | Mistral, with OpenAI's details | 43 128 0 14 0 | 171 14 185
{"usage":{"prompt_tokens":171,"total_tokens":185,"completion_tokens":14,"prompt_tokens_details":{"cached_tokens":128}}}
mistral | Mistral, with num_cached_tokens | 4 16 0 2 0 | 20 2 22
{"usage":{"prompt_tokens":20,"completion_tokens":2,"total_tokens":22,"num_cached_tokens":16,"request_count":1}}
mistral | Mistral, with prompt_token_details | 13 7 0 2 0 | 20 2 22
{"usage":{"prompt_tokens":20,"completion_tokens":2,"total_tokens":22,"prompt_token_details":{"cached_tokens":7}}}
xai | xAI: reasoning is separate from the completion | 1 11 0 291 290 | 12 291 303
{"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":303,"prompt_tokens_details":{"text_tokens":12,"cached_tokens":11},"completion_tokens_details":{"reasoning_tokens":290}}}
xai | xAI: more was cached than the prompt has | 4142 4328 0 254 0 | 8470 254 8724
{"usage":{"prompt_tokens":4142,"completion_tokens":254,"total_tokens":8724,"prompt_tokens_details":{"cached_tokens":4328}}}
xai | xAI: the total says that reasoning is inside | 10 0 0 50 40 | 10 50 60
{"usage":{"prompt_tokens":10,"completion_tokens":50,"total_tokens":60,"completion_tokens_details":{"reasoning_tokens":40}}}
xai | xAI without a total | 10 0 0 45 40 | 10 45 55
{"usage":{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":40}}}
together | together | 2 40 0 17 9 | 42 17 59
{"usage":{"prompt_tokens":42,"completion_tokens":17,"total_tokens":59,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":9}}}
fireworks | fireworks | 2 40 0 17 9 | 42 17 59
{"usage":{"prompt_tokens":42,"completion_tokens":17,"total_tokens":59,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":9}}}
openrouter | openrouter | 2 40 0 17 9 | 42 17 59
{"usage":{"prompt_tokens":42,"completion_tokens":17,"total_tokens":59,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":9}}}
vllm | vllm | 2 40 0 17 9 | 42 17 59
{"usage":{"prompt_tokens":42,"completion_tokens":17,"total_tokens":59,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":9}}}
ollama | ollama | 2 40 0 17 9 | 42 17 59
{"usage":{"prompt_tokens":42,"completion_tokens":17,"total_tokens":59,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":9}}}
generic | generic | 2 40 0 17 9 | 42 17 59
{"usage":{"prompt_tokens":42,"completion_tokens":17,"total_tokens":59,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":9}}}
cerebras | Cerebras | 66 256 0 104 97 | 322 104 426
{"usage":{"total_tokens":426,"completion_tokens":104,"completion_tokens_details":{"reasoning_tokens":97},"prompt_tokens":322,"prompt_tokens_details":{"cached_tokens":256}}}
generic | xAI's count at a host whose profile does not have it: the total decides | 12 0 0 291 290 | 12 291 303
{"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":303,"completion_tokens_details":{"reasoning_tokens":290}}}
generic | more reasoning than the output can contain: it is separate from the output | 12 0 0 291 290 | 12 291 303
{"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":13,"completion_tokens_details":{"reasoning_tokens":290}}}
xai | no usage | none | none
{"usage":null}
generic | a total alone, of a chat | none | none
{"usage":{"total_tokens":9}}
messages | Anthropic: input is the rest that was neither read from nor written to the cache | 3 100 20 50 10 | 123 50 173
{"usage":{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":50,"output_tokens_details":{"thinking_tokens":10}}}
converse | Bedrock Converse: input is the rest, as Anthropic's | 3 100 20 50 0 | 123 50 173
{"usage":{"cacheReadInputTokens":100,"cacheWriteInputTokens":20,"inputTokens":3,"outputTokens":50,"totalTokens":173}}
converse | Bedrock Converse without a cache | 125 0 0 45 0 | 125 45 170
{"usage":{"inputTokens":125,"outputTokens":45,"totalTokens":170}}
gemini | Gemini: prompt includes what was cached, candidates leave thoughts out | 20 9 0 60 45 | 29 60 89
{"usageMetadata":{"promptTokenCount":29,"candidatesTokenCount":15,"totalTokenCount":89,"cachedContentTokenCount":9,"thoughtsTokenCount":45}}
gemini | Gemini: what tools put into the prompt is counted separately | 17 0 0 5 0 | 17 5 22
{"usageMetadata":{"promptTokenCount":10,"toolUsePromptTokenCount":7,"candidatesTokenCount":5,"totalTokenCount":22}}
gemini | Gemini that only thought: candidates are omitted | 9 0 0 185 185 | 9 185 194
{"usageMetadata":{"promptTokenCount":9,"totalTokenCount":194,"thoughtsTokenCount":185}}
cohere | Cohere: billed units, never the tokens with its own instructions | 12 0 0 7 0 | 12 7 19
{"usage":{"billed_units":{"input_tokens":12,"output_tokens":7},"tokens":{"input_tokens":507,"output_tokens":10},"cached_tokens":448}}
workersAi | Workers AI: as OpenAI | 20 6 0 10 0 | 26 10 36
{"usage":{"prompt_tokens":26,"completion_tokens":10,"total_tokens":36,"prompt_tokens_details":{"cached_tokens":6}}}
workersAi | Workers AI: a prompt of zero tokens is no usage | none | none
{"usage":{"prompt_tokens":0,"completion_tokens":2,"total_tokens":2}}
`;
const RECORDINGS = RECORDED.trim()
  .split("\n")
  .flatMap((line, at, lines) =>
    at % 2 === 0 ? [[...line.split(" | "), lines[at + 1] ?? ""]] : [],
  );

it.each(RECORDINGS)(
  "usage reported by a provider is converted to the gateway's token counts (%s): %s",
  (...[reader = "", , counts = "", openAiCounts = "", raw = ""]) => {
    const usage = readerOf(reader)(JSON.parse(raw) as JsonObject);
    const { input, cacheRead, cacheWrite, output, reasoning } = usage ?? {};
    const view = usage && toOpenAiUsage(usage);
    expect({
      counts: usage === null ? "none" : [input, cacheRead, cacheWrite, output, reasoning].join(" "),
      openAiCounts:
        view === null
          ? "none"
          : [view["prompt_tokens"], view["completion_tokens"], view["total_tokens"]].join(" "),
    }).toEqual({ counts, openAiCounts });
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
  "the embeddings usage that %s reports is converted to the gateway's token counts",
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
      return VERTEX_EMBEDDINGS.answer({ predictions: [{ embeddings: one }] }, CALL);
    },
  ],
  ["Titan", () => bedrockAnswer({ embedding: [1], inputTextTokenCount: 0 }, CALL, new Headers())],
  ["Cohere at Bedrock", () => bedrockAnswer({ embeddings: { float: [[1]] } }, CALL, counted)],
])("embeddings of %s without a token count have no usage", (_name, answer) => {
  const result = answer();
  expect(result?.body["data"]).toHaveLength(1);
  expect(result?.usage).toBeNull();
  expect(result?.body).not.toHaveProperty("usage");
});
