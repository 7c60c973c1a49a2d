import {
  chatModel,
  CL100K_FACTOR,
  facts,
  embeddingModel,
  fixedEmbeddingModel,
  modelFactory,
  pricesSeenOn,
  T,
  TR,
  TV,
  TVR,
  ESTIMATE_FACTOR_MAX,
} from "../entry.ts";
import type { CatalogEntry } from "../entry.ts";
import type { ModelAbility } from "../model.ts";

const june = pricesSeenOn("2026-06-09");
const july = pricesSeenOn("2026-07-02");
const august = pricesSeenOn("2026-08-21");
const rerank = modelFactory("rerank");
const november = pricesSeenOn("2026-11-20");

/** Mistral's regional hosts cost 10% more than its global host, which this gateway never calls. */
const MISTRAL = { regions: ["global", "eu", "us"], uplift: 10 } as const;
/** Maximum tokens of an image of up to 1,540 x 1,540 pixels, including line-break tokens. */
const MISTRAL_IMAGE = 4_160;
const mistralFacts = (context: number, maxOutput: number, abilities: readonly ModelAbility[]) =>
  facts(context, maxOutput, abilities, CL100K_FACTOR, MISTRAL_IMAGE);

/**
 * Mistral publishes no output limit for Large 4, so Large 3's applies. The catalog excludes image
 * input for Large 4, and embeddings on regional hosts, because Mistral doesn't document them.
 */
const MISTRAL_MODELS: readonly CatalogEntry[] = [
  chatModel("mistral/mistral-large-4", "2026-11-20", facts(1_000_000, 262_144, T), [
    pricesSeenOn("2026-11-20")("mistral", "mistral-large-4", [0.7, 0.07, 2.1], MISTRAL),
  ]),
  chatModel("mistral/mistral-large-3", "2025-12-02", mistralFacts(262_144, 262_144, TV), [
    june("mistral", "mistral-large-2512", [0.5, 0.05, 1.5], MISTRAL),
  ]),
  chatModel("mistral/mistral-medium-3.5", "2026-04-29", mistralFacts(262_144, 262_144, TVR), [
    pricesSeenOn("2026-11-20")("mistral", "mistral-medium-3-5", [1.5, 0.15, 7.5], MISTRAL),
  ]),
  chatModel("mistral/mistral-small-4", "2026-03-16", mistralFacts(256_000, 256_000, TVR), [
    june("mistral", "mistral-small-2603", [0.15, 0.015, 0.6], MISTRAL),
  ]),
  chatModel("mistral/codestral", "2025-07-30", facts(256_000, 4_096, T), [
    june("mistral", "codestral-2508", [0.3, 0.03, 0.9], MISTRAL),
  ]),
];

const MISTRAL_MODERATION = modelFactory("moderation")(
  "mistral/mistral-moderation-latest",
  "2026-03-01",
  8_192,
  [november("mistral", "mistral-moderation-latest", { request: 0 }, { regions: MISTRAL.regions })],
);

const voxtral = modelFactory("transcription");
const perMinute = (dollars: number) => ({ second: (dollars / 60) * 1_000_000 });

const MISTRAL_AUDIO: readonly CatalogEntry[] = [
  voxtral("mistral/voxtral-mini-transcribe-3", "2026-11-20", 4_096, [
    november("mistral", "voxtral-mini-transcribe-3", perMinute(0.0035), MISTRAL),
  ]),
  voxtral("mistral/voxtral-small-transcribe-3", "2026-11-20", 4_096, [
    november("mistral", "voxtral-small-transcribe-3", perMinute(0.004), MISTRAL),
  ]),
  modelFactory("speech")("mistral/voxtral-mini-tts-3", "2026-11-20", 4_096, [
    november("mistral", "voxtral-mini-tts-3-0", { character: 13 }, MISTRAL),
  ]),
];

const MISTRAL_OCR = modelFactory("ocr")("mistral/mistral-ocr-4-1", "2026-07-16", 4_096, [
  november("mistral", "mistral-ocr-4-1", { page: 0.004 }, MISTRAL),
]);

/** All prices double for a prompt of more than 200,000 tokens. */
const GROK = { longPrompt: { above: 200_000, inputPercent: 200, outputPercent: 200 } } as const;

/**
 * xAI's models (docs.x.ai: models, regions). The US host has only Grok 4.6. Grok 4.6 and 4.7 have
 * no output limit.
 */
const XAI_MODELS: readonly CatalogEntry[] = [
  chatModel("xai/grok-4.7", "2026-09-21", facts(500_000, 500_000, TVR, ESTIMATE_FACTOR_MAX), [
    pricesSeenOn("2026-09-29")("xai", "grok-4.7", [2, 0.5, 6], GROK),
  ]),
  chatModel("xai/grok-4.6", "2026-08-07", facts(500_000, 500_000, TVR, ESTIMATE_FACTOR_MAX), [
    august("xai-us", "grok-4.6", [2, 0.5, 6], { ...GROK, regions: ["us"], uplift: 10 }),
    august("xai", "grok-4.6", [2, 0.5, 6], GROK),
  ]),
  chatModel("xai/grok-4.3", "2026-04-17", facts(1_000_000, 30_000, TVR, ESTIMATE_FACTOR_MAX), [
    july("xai", "grok-4.3", [1.25, 0.2, 2.5], GROK),
  ]),
  // The release date is the day on which the price was read. The gateway doesn't sell larger
  // images, which cost more.
  modelFactory("image")("xai/grok-imagine-image-2.0", "2026-11-20", 32_000, [
    november("xai", "grok-imagine-image-2.0", { image: 0.04, input_image: 0.06 }),
  ]),
];

/**
 * Bedrock runs these models in us-east-1. Sources disagree about EU prices, so the EU is excluded.
 */
const US = { regions: ["us"] } as const;

const AMAZON_MODELS: readonly CatalogEntry[] = [
  chatModel("amazon/nova-pro", "2024-12-03", facts(300_000, 8_192, TV, ESTIMATE_FACTOR_MAX), [
    july("bedrock", "amazon.nova-pro-v1:0", [0.8, 0.2, 3.2], US),
  ]),
  chatModel("amazon/nova-lite", "2024-12-03", facts(300_000, 8_192, TV, ESTIMATE_FACTOR_MAX), [
    july("bedrock", "amazon.nova-lite-v1:0", [0.06, 0.015, 0.24], US),
  ]),
  chatModel("amazon/nova-micro", "2024-12-03", facts(128_000, 8_192, T, ESTIMATE_FACTOR_MAX), [
    july("bedrock", "amazon.nova-micro-v1:0", [0.035, 0.00875, 0.14], US),
  ]),
  embeddingModel("amazon/titan-embed-v2", "2024-04-30", 8_192, [
    august("bedrock", "amazon.titan-embed-text-v2:0", [0.02], { regions: ["eu", "us"] }),
  ]),
];

const COHERE_MODELS: readonly CatalogEntry[] = [
  chatModel("cohere/command-a", "2025-03-13", facts(256_000, 8_000, T), [
    july("cohere", "command-a-03-2025", [2.5, 10]),
  ]),
  chatModel("cohere/command-a-reasoning", "2025-08-21", facts(256_000, 32_000, TR), [
    july("cohere", "command-a-reasoning-08-2025", [2.5, 10]),
  ]),
  chatModel("cohere/command-r7b", "2024-12-02", facts(128_000, 4_000, T), [
    july("cohere", "command-r7b-12-2024", [0.0375, 0.15]),
  ]),
  embeddingModel("cohere/embed-v4.0", "2025-04-15", 128_000, [
    august("cohere", "embed-v4.0", [0.12]),
  ]),
  fixedEmbeddingModel("cohere/embed-multilingual-v3.0", "2023-11-02", 512, [
    august("cohere", "embed-multilingual-v3.0", [0.1]),
    august("bedrock", "cohere.embed-multilingual-v3", [0.1], { regions: ["eu", "us"] }),
  ]),
  rerank("cohere/rerank-v3.5", "2024-12-02", 4_096, [
    november("cohere", "rerank-v3.5", { search_unit: 0.002 }),
  ]),
  rerank("cohere/rerank-v4.0-fast", "2025-12-11", 32_768, [
    november("cohere", "rerank-v4.0-fast", { search_unit: 0.002 }),
  ]),
  rerank("cohere/rerank-v4.0-pro", "2025-12-11", 32_768, [
    november("cohere", "rerank-v4.0-pro", { search_unit: 0.0025 }),
  ]),
  rerank("cohere/rerank-v5.0-fast", "2026-11-03", 32_768, [
    november("cohere", "rerank-v5.0-fast", [0.02]),
  ]),
  rerank("cohere/rerank-v5.0-pro", "2026-11-03", 32_768, [
    november("cohere", "rerank-v5.0-pro", [0.05]),
  ]),
];

const voyage = pricesSeenOn("2026-06-18");
const VOYAGE = { regions: ["global", "eu", "us"], uplift: 10 } as const;

const VOYAGE_MODELS: readonly CatalogEntry[] = [
  embeddingModel("voyage/voyage-4-large", "2026-01-15", 32_000, [
    voyage("voyage", "voyage-4-large", [0.12], VOYAGE),
  ]),
  embeddingModel("voyage/voyage-4", "2026-01-15", 32_000, [
    voyage("voyage", "voyage-4", [0.06], VOYAGE),
  ]),
  embeddingModel("voyage/voyage-4-lite", "2026-01-15", 32_000, [
    voyage("voyage", "voyage-4-lite", [0.02], VOYAGE),
  ]),
  embeddingModel("voyage/voyage-code-3", "2024-12-04", 32_000, [
    voyage("voyage", "voyage-code-3", [0.18]),
  ]),
  rerank("voyage/rerank-3", "2026-11-20", 32_000, [november("voyage", "rerank-3", [0.05])]),
  rerank("voyage/rerank-3-lite", "2026-11-20", 32_000, [
    november("voyage", "rerank-3-lite", [0.02]),
  ]),
];

const elevenLabsModel = (name: string, dollars: number): CatalogEntry =>
  modelFactory("speech")(`elevenlabs/${name.replaceAll("_", "-")}`, "2026-11-20", 4_096, [
    november("elevenlabs", name, { character: dollars }),
  ]);

/**
 * Prices from LiteLLM 1.110.2, which cites ElevenLabs' price page. Each release date is the day on
 * which the price was read.
 */
const ELEVENLABS_MODELS: readonly CatalogEntry[] = [
  elevenLabsModel("eleven_v4", 80),
  elevenLabsModel("eleven_v4_turbo", 40),
  elevenLabsModel("eleven_v3", 80),
  elevenLabsModel("eleven_multilingual_v2", 80),
  elevenLabsModel("eleven_flash_v2_5", 40),
];

const JINA_MODELS: readonly CatalogEntry[] = [
  rerank("jina/jina-reranker-v3.5", "2026-07-27", 131_072, [
    november("jina", "jina-reranker-v3.5", [0.05]),
  ]),
];

/** Models of Amazon, Cohere, ElevenLabs, Jina, Mistral, Voyage and xAI. */
export const OTHER_AUTHORS_MODELS: readonly CatalogEntry[] = [
  ...MISTRAL_MODELS,
  MISTRAL_MODERATION,
  ...MISTRAL_AUDIO,
  MISTRAL_OCR,
  ...XAI_MODELS,
  ...AMAZON_MODELS,
  ...COHERE_MODELS,
  ...VOYAGE_MODELS,
  ...JINA_MODELS,
  ...ELEVENLABS_MODELS,
];
