import { chatModel, facts, GEMINI_FACTOR, modelFactory, pricesSeenOn, TVR } from "../entry.ts";
import type { CatalogEntry, PriceChange, DollarPrices, LongPromptRule } from "../entry.ts";

const vectors = modelFactory("embeddings", ["dimensions"], GEMINI_FACTOR);
const IMAGE_TOKENS = 1_120;
/** Maximum tokens of an image: 16 tiles (768 x 768 pixels) of 258 tokens. */
const IMAGE_TOKENS_2_5 = 4_128;
/** Prices from 2027 on. In 2026, the 3.7 and 3.8 Flash models cost half as much. */
const fullPrice = (seen: string): readonly PriceChange[] => [
  ["2027-01-01", [1.5, 0.15, 7.5], seen],
];

const august = pricesSeenOn("2026-08-21");

type GeminiOptions = {
  /** Whether both of Vertex AI's multi-regions (EU and US) serve the model. */
  readonly regional?: boolean;
  readonly later?: readonly PriceChange[];
  readonly longPrompt?: LongPromptRule;
  readonly image?: number;
};

/**
 * Google's models on the Gemini API and in Vertex AI's multi-regions, which cost 10% more. 2.5 Pro
 * and 2.5 Flash are excluded: Google reuses these names for other models from 2026-12-01 on.
 */
export const GOOGLE_MODELS: readonly CatalogEntry[] = [
  gemini("4-argon", ["2026-11-20", "2026-11-20"], [2, 0.1, 10], {
    later: [["2026-12-01", [4, 0.2, 20], "2026-11-20"]],
  }),
  gemini("4-hydrogen", ["2026-11-20", "2026-11-20"], [1.5, 0.075, 7.5], {}),
  gemini("3.8-flash", ["2026-09-02", "2026-10-07"], [0.75, 0.075, 3.75], {
    regional: true,
    later: fullPrice("2026-10-07"),
  }),
  gemini("3.7-flash", ["2026-08-13", "2026-08-21"], [0.75, 0.075, 3.75], {
    later: fullPrice("2026-08-21"),
  }),
  gemini("3.5-flash", ["2026-05-19", "2026-08-21"], [1.5, 0.15, 9], { regional: true }),
  gemini("3.5-flash-lite", ["2026-07-21", "2026-08-21"], [0.3, 0.03, 2.5], { regional: true }),
  gemini("3.1-pro-preview", ["2026-02-19", "2026-08-05"], [2, 0.2, 12], {
    longPrompt: { above: 200_000, inputPercent: 200, outputPercent: 150 },
  }),
  gemini("3.1-flash-lite", ["2026-05-07", "2026-08-21"], [0.25, 0.025, 1.5], { regional: true }),
  gemini("2.5-flash-lite", ["2025-06-17", "2026-08-05"], [0.1, 0.01, 0.4], {
    image: IMAGE_TOKENS_2_5,
  }),
  imageModel("gemini-nano-banana-2.1", "2026-10-06", [1.5, 7.5, 30]),
  imageModel("gemini-3-pro-image", "2025-11-20", [2, 12, 120]),
  imageModel("gemini-3.1-flash-lite-image", "2026-11-20", [0.25, 1.5, 30]),
  speechModel("gemini-3.8-flash-tts", 9),
  speechModel("gemini-3.8-flash-lite-tts", 6),
  vectors("google/gemini-embedding-001", "2025-07-14", 2_048, [
    august("google", "gemini-embedding-001", [0.15]),
    august("vertex", "gemini-embedding-001", [0.15], { regions: ["eu", "us"], uplift: 10 }),
  ]),
  vectors("google/gemini-embedding-2", "2026-04-22", 8_192, [
    august("google", "gemini-embedding-2", [0.2]),
  ]),
];

function imageModel(
  upstreamId: string,
  released: string,
  [input, text, images]: readonly [number, number, number],
): CatalogEntry {
  const dollars = { input, input_image_token: input, text_token: text, image_token: images };
  const route = pricesSeenOn("2026-11-20")("google", upstreamId, dollars);
  return modelFactory("image")(`google/${upstreamId}`, released, 32_000, [route]);
}

/**
 * Launch prices, valid until the end of 2026. Flash's input price also applies to Flash Lite. The
 * release date is the day of the price check (LiteLLM 1.110.2).
 */
function speechModel(upstreamId: string, audio: number): CatalogEntry {
  const route = pricesSeenOn("2026-11-20")("google", upstreamId, {
    input: 0.5,
    audio_token: audio,
  });
  return modelFactory("speech")(`google/${upstreamId}`, "2026-11-20", 32_000, [route]);
}

function gemini(
  name: string,
  [released, pricedOn]: readonly [string, string],
  dollars: DollarPrices,
  { regional = false, later, longPrompt, image = IMAGE_TOKENS }: GeminiOptions,
): CatalogEntry {
  const upstreamId = `gemini-${name}`;
  const more = {
    ...(later !== undefined && { later }),
    ...(longPrompt !== undefined && { longPrompt }),
  };
  const vertex = { ...more, regions: ["eu", "us"], uplift: 10 } as const;
  return chatModel(
    `google/${upstreamId}`,
    released,
    facts(1_048_576, 65_536, TVR, GEMINI_FACTOR, image),
    [
      ...(regional ? [pricesSeenOn(pricedOn)("vertex", upstreamId, dollars, vertex)] : []),
      pricesSeenOn(pricedOn)("google", upstreamId, dollars, more),
    ],
  );
}
