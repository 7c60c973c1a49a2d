import { messagesUsage } from "../../src/models/protocols/messages/host-usage.ts";
import { readConverseUsage } from "../../src/models/protocols/converse/converse-usage.ts";
import { usageOf as cohereUsage } from "../../src/models/protocols/cohere/answer.ts";
import { readGeminiUsage as geminiUsage } from "../../src/models/protocols/gemini/usage.ts";
import { objectOf } from "../../src/models/core/json-value.ts";
import { readUsage } from "../../src/models/core/chat-usage.ts";
import type { Row } from "./usage-row.ts";

/** The upstreams with a wire of their own (recorded answers). */
export const NATIVE_ROWS: readonly Row[] = [
  {
    upstream: "Anthropic: input is the rest that was neither read from nor written to the cache",
    reader: (answer) => messagesUsage(objectOf(answer["usage"])),
    raw: {
      usage: {
        input_tokens: 3,
        cache_creation_input_tokens: 20,
        cache_read_input_tokens: 100,
        output_tokens: 50,
        output_tokens_details: { thinking_tokens: 10 },
      },
    },
    want: [3, 100, 20, 50, 10],
    wire: [123, 50, 173],
  },
  {
    upstream: "Bedrock Converse: input is the rest, as Anthropic's",
    reader: (answer) => readConverseUsage(answer["usage"]),
    raw: {
      usage: {
        cacheReadInputTokens: 100,
        cacheWriteInputTokens: 20,
        inputTokens: 3,
        outputTokens: 50,
        totalTokens: 173,
      },
    },
    want: [3, 100, 20, 50, 0],
    wire: [123, 50, 173],
  },
  {
    upstream: "Bedrock Converse without a cache",
    reader: (answer) => readConverseUsage(answer["usage"]),
    raw: { usage: { inputTokens: 125, outputTokens: 45, totalTokens: 170 } },
    want: [125, 0, 0, 45, 0],
    wire: [125, 45, 170],
  },
  {
    upstream: "Gemini: prompt includes what was cached, candidates leave thoughts out",
    reader: (answer) => geminiUsage(answer["usageMetadata"]),
    raw: {
      usageMetadata: {
        promptTokenCount: 29,
        candidatesTokenCount: 15,
        totalTokenCount: 89,
        cachedContentTokenCount: 9,
        thoughtsTokenCount: 45,
      },
    },
    want: [20, 9, 0, 60, 45],
    wire: [29, 60, 89],
  },
  {
    upstream: "Gemini: what tools put into the prompt is counted beside it",
    reader: (answer) => geminiUsage(answer["usageMetadata"]),
    raw: {
      usageMetadata: {
        promptTokenCount: 10,
        toolUsePromptTokenCount: 7,
        candidatesTokenCount: 5,
        totalTokenCount: 22,
      },
    },
    want: [17, 0, 0, 5, 0],
    wire: [17, 5, 22],
  },
  {
    upstream: "Gemini that only thought: candidates are left out",
    reader: (answer) => geminiUsage(answer["usageMetadata"]),
    raw: { usageMetadata: { promptTokenCount: 9, totalTokenCount: 194, thoughtsTokenCount: 185 } },
    want: [9, 0, 0, 185, 185],
    wire: [9, 185, 194],
  },
  {
    upstream: "Cohere: billed units, never the tokens with its own instructions",
    reader: (answer) => cohereUsage(answer["usage"]),
    raw: {
      usage: {
        billed_units: { input_tokens: 12, output_tokens: 7 },
        tokens: { input_tokens: 507, output_tokens: 10 },
        cached_tokens: 448,
      },
    },
    want: [12, 0, 0, 7, 0],
    wire: [12, 7, 19],
  },
  {
    upstream: "Workers AI: as OpenAI",
    reader: (answer) => readUsage(answer["usage"]),
    raw: {
      usage: {
        prompt_tokens: 26,
        completion_tokens: 10,
        total_tokens: 36,
        prompt_tokens_details: { cached_tokens: 6 },
      },
    },
    want: [20, 6, 0, 10, 0],
    wire: [26, 10, 36],
  },
  {
    upstream: "Workers AI: a prompt of zero tokens is no usage",
    reader: (answer) => readUsage(answer["usage"]),
    raw: { usage: { prompt_tokens: 0, completion_tokens: 2, total_tokens: 2 } },
    want: null,
    wire: null,
  },
];
