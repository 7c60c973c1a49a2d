import { PROFILES } from "../../src/models/providers/profile.ts";
import { readUsage, usageIn } from "../../src/models/core/chat-usage.ts";
import type { Reader, Row } from "./usage-row.ts";

const compatible = (profile: string): Reader => {
  const shape = PROFILES.get(profile)?.usage;
  return (answer) => readUsage(usageIn(answer, shape ?? {}), shape);
};
/** Usage as OpenAI-compatible hosts were recorded. */
export const COMPATIBLE_ROWS: readonly Row[] = [
  {
    upstream: "an unnamed server whose total alone shows that reasoning is separate",
    reader: compatible("generic"),
    raw: {
      usage: {
        prompt_tokens: 36,
        completion_tokens: 100,
        total_tokens: 186,
        completion_tokens_details: { reasoning_tokens: 50 },
      },
    },
    want: [36, 0, 0, 150, 50],
    wire: [36, 150, 186],
  },
  {
    upstream: "an unnamed server such as Moonshot, with cached_tokens beside the counts",
    reader: compatible("generic"),
    raw: {
      usage: { prompt_tokens: 19, completion_tokens: 13, total_tokens: 32, cached_tokens: 12 },
    },
    want: [7, 12, 0, 13, 0],
    wire: [19, 13, 32],
  },
  {
    upstream: "OpenAI: what was cached and written is in the prompt, reasoning in the completion",
    reader: compatible("openai"),
    raw: {
      usage: {
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
        completion_tokens_details: { reasoning_tokens: 20 },
      },
    },
    want: [30, 60, 10, 50, 20],
    wire: [100, 50, 150],
  },
  {
    upstream: "Azure",
    reader: compatible("azure"),
    raw: {
      usage: {
        completion_tokens: 78,
        completion_tokens_details: { reasoning_tokens: 64, audio_tokens: 0 },
        prompt_tokens: 15,
        prompt_tokens_details: { audio_tokens: 0, cached_tokens: 0 },
        total_tokens: 93,
      },
    },
    want: [15, 0, 0, 78, 64],
    wire: [15, 78, 93],
  },
  {
    upstream: "Groq, with times",
    reader: compatible("groq"),
    raw: {
      usage: {
        prompt_tokens: 27,
        total_time: 0.143,
        completion_tokens: 64,
        total_tokens: 91,
        completion_tokens_details: { reasoning_tokens: 64 },
      },
    },
    want: [27, 0, 0, 64, 64],
    wire: [27, 64, 91],
  },
  {
    upstream: "Groq, in x_groq alone",
    reader: compatible("groq"),
    raw: {
      x_groq: {
        id: "req",
        usage: { prompt_tokens: 210, completion_tokens: 15, total_tokens: 225 },
      },
    },
    want: [210, 0, 0, 15, 0],
    wire: [210, 15, 225],
  },
  {
    upstream: "DeepSeek",
    reader: compatible("deepseek"),
    raw: {
      usage: {
        prompt_tokens: 374,
        completion_tokens: 61,
        total_tokens: 435,
        prompt_tokens_details: { cached_tokens: 256 },
        completion_tokens_details: { reasoning_tokens: 17 },
        prompt_cache_hit_tokens: 256,
      },
    },
    want: [118, 256, 0, 61, 17],
    wire: [374, 61, 435],
  },
  {
    upstream: "DeepSeek, hits and misses alone",
    reader: compatible("deepseek"),
    raw: {
      usage: {
        prompt_tokens: 18,
        completion_tokens: 9,
        total_tokens: 27,
        prompt_cache_hit_tokens: 5,
        prompt_cache_miss_tokens: 13,
      },
    },
    want: [13, 5, 0, 9, 0],
    wire: [18, 9, 27],
  },
  {
    upstream: "Mistral, with OpenAI's details",
    reader: compatible("mistral"),
    raw: {
      usage: {
        prompt_tokens: 171,
        total_tokens: 185,
        completion_tokens: 14,
        prompt_tokens_details: { cached_tokens: 128 },
      },
    },
    want: [43, 128, 0, 14, 0],
    wire: [171, 14, 185],
  },
  {
    upstream: "Mistral, with num_cached_tokens",
    reader: compatible("mistral"),
    raw: {
      usage: {
        prompt_tokens: 20,
        completion_tokens: 2,
        total_tokens: 22,
        num_cached_tokens: 16,
        request_count: 1,
      },
    },
    want: [4, 16, 0, 2, 0],
    wire: [20, 2, 22],
  },
  {
    upstream: "Mistral, with prompt_token_details",
    reader: compatible("mistral"),
    raw: {
      usage: {
        prompt_tokens: 20,
        completion_tokens: 2,
        total_tokens: 22,
        prompt_token_details: { cached_tokens: 7 },
      },
    },
    want: [13, 7, 0, 2, 0],
    wire: [20, 2, 22],
  },
  {
    upstream: "xAI: reasoning is beside the completion",
    reader: compatible("xai"),
    raw: {
      usage: {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 303,
        prompt_tokens_details: { text_tokens: 12, cached_tokens: 11 },
        completion_tokens_details: { reasoning_tokens: 290 },
      },
    },
    want: [1, 11, 0, 291, 290],
    wire: [12, 291, 303],
  },
  {
    upstream: "xAI: more was cached than the prompt has",
    reader: compatible("xai"),
    raw: {
      usage: {
        prompt_tokens: 4142,
        completion_tokens: 254,
        total_tokens: 8724,
        prompt_tokens_details: { cached_tokens: 4328 },
      },
    },
    want: [4142, 4328, 0, 254, 0],
    wire: [8470, 254, 8724],
  },
  {
    upstream: "xAI: the total says that reasoning is inside",
    reader: compatible("xai"),
    raw: {
      usage: {
        prompt_tokens: 10,
        completion_tokens: 50,
        total_tokens: 60,
        completion_tokens_details: { reasoning_tokens: 40 },
      },
    },
    want: [10, 0, 0, 50, 40],
    wire: [10, 50, 60],
  },
  {
    upstream: "xAI without a total",
    reader: compatible("xai"),
    raw: {
      usage: {
        prompt_tokens: 10,
        completion_tokens: 5,
        completion_tokens_details: { reasoning_tokens: 40 },
      },
    },
    want: [10, 0, 0, 45, 40],
    wire: [10, 45, 55],
  },
  ...["together", "fireworks", "openrouter", "vllm", "ollama", "generic"].map((profile) => ({
    upstream: profile,
    reader: compatible(profile),
    raw: {
      usage: {
        prompt_tokens: 42,
        completion_tokens: 17,
        total_tokens: 59,
        prompt_tokens_details: { cached_tokens: 40 },
        completion_tokens_details: { reasoning_tokens: 9 },
      },
    },
    want: [2, 40, 0, 17, 9] as const,
    wire: [42, 17, 59] as const,
  })),
  {
    upstream: "Cerebras",
    reader: compatible("cerebras"),
    raw: {
      usage: {
        total_tokens: 426,
        completion_tokens: 104,
        completion_tokens_details: { reasoning_tokens: 97 },
        prompt_tokens: 322,
        prompt_tokens_details: { cached_tokens: 256 },
      },
    },
    want: [66, 256, 0, 104, 97],
    wire: [322, 104, 426],
  },
  {
    upstream: "xAI's count at a host whose profile does not have it: the total tells",
    reader: compatible("generic"),
    raw: {
      usage: {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 303,
        completion_tokens_details: { reasoning_tokens: 290 },
      },
    },
    want: [12, 0, 0, 291, 290],
    wire: [12, 291, 303],
  },
  {
    upstream: "more reasoning than the output can contain: it is beside the output",
    reader: compatible("generic"),
    raw: {
      usage: {
        prompt_tokens: 12,
        completion_tokens: 1,
        total_tokens: 13,
        completion_tokens_details: { reasoning_tokens: 290 },
      },
    },
    want: [12, 0, 0, 291, 290],
    wire: [12, 291, 303],
  },
  { upstream: "no usage", reader: compatible("xai"), raw: { usage: null }, want: null, wire: null },
  {
    upstream: "a total alone, of a chat",
    reader: compatible("generic"),
    raw: { usage: { total_tokens: 9 } },
    want: null,
    wire: null,
  },
];
