import {
  chatModel,
  facts,
  fixedEmbeddingModel,
  GEMINI_FACTOR,
  modelFactory,
  O200K_FACTOR,
  pricesSeenOn,
  T,
  TR,
  TV,
  TVR,
} from "../entry.ts";
import type { CatalogEntry } from "../entry.ts";

const july = pricesSeenOn("2026-07-02");
const US = { regions: ["us"] } as const;

const META_MODELS: readonly CatalogEntry[] = [
  chatModel("meta/llama-3.3-70b", "2024-12-06", facts(128_000, 24_000, T), [
    july("bedrock", "us.meta.llama3-3-70b-instruct-v1:0", [0.72, 0.72], {
      ...US,
      limits: { maxOutput: 4_096 },
    }),
    july("workers-ai", "@cf/meta/llama-3.3-70b-instruct-fp8-fast", [0.293, 2.253], {
      limits: { context: 24_000 },
    }),
  ]),
  chatModel("meta/llama-4-maverick", "2025-04-05", facts(1_000_000, 8_192, TV), [
    july("bedrock", "us.meta.llama4-maverick-17b-instruct-v1:0", [0.24, 0.97], US),
  ]),
  chatModel("meta/llama-4-scout", "2025-04-05", facts(3_500_000, 16_384, TV), [
    july("bedrock", "us.meta.llama4-scout-17b-instruct-v1:0", [0.17, 0.66], {
      ...US,
      limits: { maxOutput: 8_192 },
    }),
    july("workers-ai", "@cf/meta/llama-4-scout-17b-16e-instruct", [0.27, 0.85], {
      limits: { context: 131_000 },
    }),
  ]),
];

const GPT_OSS_MODELS: readonly CatalogEntry[] = [
  chatModel("openai/gpt-oss-120b", "2025-08-05", facts(131_072, 131_072, TR, O200K_FACTOR), [
    july("groq", "openai/gpt-oss-120b", [0.15, 0.075, 0.6], { limits: { maxOutput: 65_536 } }),
    july("cerebras", "gpt-oss-120b", [0.35, 0.75], { limits: { maxOutput: 40_960 } }),
    july("together", "openai/gpt-oss-120b", [0.15, 0.6]),
    july("workers-ai", "@cf/openai/gpt-oss-120b", [0.35, 0.75], {
      limits: { context: 128_000, maxOutput: 16_384 },
    }),
  ]),
  chatModel("openai/gpt-oss-20b", "2025-08-05", facts(131_072, 65_536, TR, O200K_FACTOR), [
    july("groq", "openai/gpt-oss-20b", [0.075, 0.0375, 0.3]),
    july("workers-ai", "@cf/openai/gpt-oss-20b", [0.2, 0.3], {
      limits: { context: 128_000, maxOutput: 16_384 },
    }),
  ]),
];

const GEMMA_MODELS: readonly CatalogEntry[] = [
  chatModel("google/gemma-4-26b", "2026-04-02", facts(256_000, 16_384, TVR, GEMINI_FACTOR), [
    july("workers-ai", "@cf/google/gemma-4-26b-a4b-it", [0.1, 0.3]),
  ]),
];

const EMBEDDING_MODELS: readonly CatalogEntry[] = [
  fixedEmbeddingModel("baai/bge-m3", "2024-01-30", 60_000, [
    pricesSeenOn("2026-08-21")("workers-ai", "@cf/baai/bge-m3", [0.012]),
  ]),
  fixedEmbeddingModel("qwen/qwen3-embedding-0.6b", "2025-06-05", 8_192, [
    pricesSeenOn("2026-08-21")("workers-ai", "@cf/qwen/qwen3-embedding-0.6b", [0.012]),
  ]),
];

const seen = pricesSeenOn("2026-11-20");
const whisper = modelFactory("transcription");
const perHour = (dollars: number) => ({ second: (dollars / 3600) * 1_000_000 });

const WHISPER_MODELS: readonly CatalogEntry[] = [
  whisper("openai/whisper-large-v3", "2026-11-20", 4_096, [
    seen("groq", "whisper-large-v3", perHour(0.111)),
  ]),
  whisper("openai/whisper-large-v3-turbo", "2024-10-01", 4_096, [
    seen("groq", "whisper-large-v3-turbo", perHour(0.04)),
    seen("workers-ai", "@cf/openai/whisper-large-v3-turbo", perHour(0.00051 * 60)),
  ]),
];

const ORPHEUS = modelFactory("speech")("canopylabs/orpheus-v1-english", "2026-11-20", 4_096, [
  seen("groq", "canopylabs/orpheus-v1-english", { character: 22 }),
]);

export const OPEN_WEIGHTS_MODELS: readonly CatalogEntry[] = [
  ...META_MODELS,
  ...GPT_OSS_MODELS,
  ...GEMMA_MODELS,
  ...EMBEDDING_MODELS,
  ...WHISPER_MODELS,
  ORPHEUS,
];
