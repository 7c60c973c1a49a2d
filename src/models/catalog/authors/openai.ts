import type { ModelAbility } from "../model.ts";
import {
  chatModel,
  embeddingModel,
  modelFactory,
  O200K_FACTOR,
  pricesSeenOn,
  TV,
  TVR,
} from "../entry.ts";
import type {
  CatalogEntry,
  PriceChange,
  ChatFacts,
  DollarPrices,
  LongPromptRule,
} from "../entry.ts";

const UPLIFT_FROM = "2026-03-05";
const EVERYWHERE = ["global", "us", "eu"] as const;
const MILLION = 1_000_000;
const HOSTS = { regions: EVERYWHERE } as const;

/**
 * Maximum tokens per image. Some models count tiles: 85 + 8 x 170 (4o-mini: 2,833 + 8 x 5,667).
 * Others count 1,536 patches (later models 2,500 or 10,000), times at most 1.2 (large models) or
 * 2.46 (small models).
 */
const TILES = 1_445;
const TILES_4O_MINI = 48_169;
const PATCHES = 1_536;
const PATCHES_SMALL = 3_779;
const PATCHES_SMALL_HIGH = 6_150;
const PATCHES_LARGE = 12_000;
const PATCHES_LARGE_SMALL = 24_600;

type ModelFacts = {
  readonly chat: ChatFacts;
  readonly longPrompt?: LongPromptRule;
  /** The minimum output cap on the Responses API, whose models return only one choice. */
  readonly minOutput?: number;
  readonly later?: readonly PriceChange[];
};

const gpt6 = (abilities: readonly ModelAbility[], image: number): ModelFacts => ({
  chat: [1_050_000, 128_000, abilities, O200K_FACTOR, image],
  longPrompt: { above: 272_000, inputPercent: 200, outputPercent: 150 },
});
const gpt5 = (image: number): ModelFacts => ({
  chat: [400_000, 128_000, TVR, O200K_FACTOR, image],
});
const gpt41 = (image: number): ModelFacts => ({
  chat: [1_047_576, 32_768, TV, O200K_FACTOR, image],
});
const gpt4o = (image: number): ModelFacts => ({ chat: [128_000, 16_384, TV, O200K_FACTOR, image] });

const GPT_6_1: ModelFacts = { ...gpt6(TVR, PATCHES_LARGE), minOutput: 16 };
const GPT_6 = gpt6(TVR, PATCHES_LARGE);
const GPT_6_SMALL = gpt6(TVR, PATCHES_LARGE_SMALL);

const AUGUST = "2026-08-05";
/**
 * Last days of models with an announced shutdown (developers.openai.com, deprecations, 2026-10-28).
 */
const GPT_5_ENDS = "2026-12-10";
const GPT_4_ENDS = "2027-01-13";
const GPT_5_4_NANO_ENDS = "2027-03-31";
/**
 * The price after the promotion, which lasts "at least through 2026-11-21" (OpenAI's changelog).
 */
const SOL_5_6_AFTER: readonly PriceChange[] = [["2026-11-22", [5, 0.5, 6.25, 30], "2026-09-22"]];

/** OpenAI's models. From GPT-5.6 on, a cache write costs 1.25 times the input price. */
export const OPENAI_MODELS: readonly CatalogEntry[] = [
  gpt("gpt-6.1-sol", ["2026-09-29", "2026-10-26"], GPT_6_1, [2, 0.1, 2.5, 10]),
  gpt("gpt-6.1-terra", ["2026-10-26", "2026-10-26"], GPT_6_1, [1, 0.05, 1.25, 5]),
  gpt("gpt-6-astra", ["2026-09-03", "2026-10-26"], GPT_6, [10, 1, 12.5, 50]),
  gpt("gpt-6-sol", ["2026-09-22", "2026-10-13"], GPT_6, [2, 0.2, 2.5, 10]),
  gpt("gpt-6-luna", ["2026-09-22", "2026-10-26"], GPT_6_SMALL, [0.1, 0.01, 0.125, 0.5]),
  gpt(
    "gpt-5.6-sol",
    ["2026-06-26", "2026-09-22"],
    { ...GPT_6, later: SOL_5_6_AFTER },
    [4, 0.4, 5, 20],
  ),
  gpt("gpt-5.6-terra", ["2026-06-26", "2026-10-26"], GPT_6, [2, 0.2, 2.5, 12]),
  gpt("gpt-5.6-luna", ["2026-06-26", "2026-08-21"], GPT_6_SMALL, [0.2, 0.02, 0.25, 1.2]),
  gpt("gpt-5.4", ["2026-03-05", AUGUST], GPT_6, [2.5, 0.25, 15]),
  gpt("gpt-5.4-mini", ["2026-03-17", AUGUST], gpt5(PATCHES_SMALL_HIGH), [0.75, 0.075, 4.5]),
  ...endingOn(GPT_5_4_NANO_ENDS, [
    gpt("gpt-5.4-nano", ["2026-03-17", AUGUST], gpt5(PATCHES_SMALL_HIGH), [0.2, 0.02, 1.25]),
  ]),
  ...endingOn(GPT_5_ENDS, [
    gpt("gpt-5-mini", ["2025-08-07", AUGUST], gpt5(PATCHES_SMALL), [0.25, 0.025, 2]),
    gpt("gpt-5-nano", ["2025-08-07", AUGUST], gpt5(PATCHES_SMALL), [0.05, 0.005, 0.4]),
  ]),
  ...endingOn(GPT_4_ENDS, [
    gpt("gpt-4.1", ["2025-04-14", AUGUST], gpt41(PATCHES), [2, 0.5, 8]),
    gpt("gpt-4.1-mini", ["2025-04-14", AUGUST], gpt41(PATCHES_SMALL), [0.4, 0.1, 1.6]),
    gpt("gpt-4o", ["2024-05-13", AUGUST], gpt4o(TILES), [2.5, 1.25, 10]),
    gpt("gpt-4o-mini", ["2024-07-18", AUGUST], gpt4o(TILES_4O_MINI), [0.15, 0.075, 0.6]),
  ]),
  ...["2.5-sunburst", "2.5-flare"].map((name) => gptImage(name, "2026-09-08")),
  ...["2.6-sunburst", "2.6-flare"].map((name) => gptImage(name, "2026-11-13")),
  embedding("text-embedding-3-small", 0.02),
  embedding("text-embedding-3-large", 0.13),
  modelFactory("transcription")("openai/gpt-transcribe", "2026-10-17", 4_096, [
    pricesSeenOn("2026-11-20")(
      "openai",
      "gpt-transcribe",
      { second: (0.0045 / 60) * MILLION },
      { ...HOSTS, uplift: 10 },
    ),
  ]),
  // OpenAI doesn't charge for moderation (developers.openai.com).
  modelFactory("moderation", ["vision"])("openai/omni-moderation-latest", "2024-09-26", 32_768, [
    pricesSeenOn("2026-11-20")("openai", "omni-moderation-latest", { request: 0 }, HOSTS),
  ]),
];

function gpt(
  name: string,
  [released, pricedOn]: readonly [string, string],
  facts: ModelFacts,
  dollars: DollarPrices,
): CatalogEntry {
  const route = pricesSeenOn(pricedOn)("openai", name, dollars, {
    regions: EVERYWHERE,
    ...(released >= UPLIFT_FROM && { uplift: 10 }),
    ...(facts.longPrompt !== undefined && { longPrompt: facts.longPrompt }),
    ...(facts.minOutput !== undefined && { limits: { choices: 1 } }),
    ...(facts.later !== undefined && { later: facts.later }),
  });
  const { minOutput = 1 } = facts;
  return { ...chatModel(`openai/${name}`, released, facts.chat, [route]), minOutput };
}

function endingOn(day: string, entries: readonly CatalogEntry[]): CatalogEntry[] {
  return entries.map((entry) => {
    return { ...entry, routes: entry.routes.map((route) => ({ ...route, until: day })) };
  });
}

/**
 * `image_token` is the price of generated images. The release date of gpt-image 2.6 is the day on
 * which OpenAI's SDK added it.
 */
function gptImage(name: string, released: string): CatalogEntry {
  const dollars = { input: 5, input_image_token: 8, image_token: 30 };
  const route = pricesSeenOn("2026-11-20")("openai", `gpt-image-${name}`, dollars, {
    regions: EVERYWHERE,
    uplift: 10,
  });
  return modelFactory("image")(`openai/gpt-image-${name}`, released, 32_000, [route]);
}

function embedding(name: string, dollars: number): CatalogEntry {
  return embeddingModel(`openai/${name}`, "2024-01-25", 8_192, [
    pricesSeenOn("2026-08-21")("openai", name, [dollars], { regions: EVERYWHERE }),
  ]);
}
