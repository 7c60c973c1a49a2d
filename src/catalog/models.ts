import type { Region } from "../lib/caller.ts";
import type { Ability, ModelKind } from "./model.ts";

/**
 * A model as its maker sells it. Prices in whole micros per million tokens (1 $/M = 1_000_000).
 * `released` is the day of its first public release and decides the regional uplift.
 */
export type CatalogueEntry = {
  readonly id: string;
  readonly provider: string;
  readonly upstreamId: string;
  readonly kind: ModelKind;
  readonly released: string;
  /** The day on which a source showed this price. */
  readonly pricedOn: string;
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly output: number;
  /** Above this many prompt tokens the whole request costs input x 2 and output x 1.5. */
  readonly longPromptAbove?: number;
  readonly context: number;
  readonly maxOutput: number;
  readonly minOutput: number;
  readonly abilities: readonly Ability[];
  readonly imageTokens: number;
  readonly estimateFactor: number;
  /** The hosts on which the maker promises to run it. */
  readonly regions: readonly (Region | "global")[];
};

/** o200k: 4.1, 4o, 5.x, 6.x. The embedding models use cl100k (reference/providers.md 4.2). */
const O200K = 1.15;
const CL100K = 1.5;
const LONG_PROMPT = 272_000;

/**
 * Bounds per image. Tile models: 85 + 170 x 8 tiles; 4o-mini 2,833 + 5,667 x 8. Patch models: at most
 * 1,536 patches (2,500 from 5.4 mini on, 10,000 in "original" detail on the large ones), times the
 * largest multiplier published for the class (1.2 large, 2.46 small); those that are billed less
 * than their page says are held at the page's figure.
 */
const TILES = 1_445;
const TILES_4O_MINI = 48_169;
const PATCHES_SMALL = 3_779;
const PATCHES_SMALL_HIGH = 6_150;
const PATCHES_LARGE = 12_000;
const PATCHES_LARGE_SMALL = 24_600;

const EVERYWHERE = ["global", "us", "eu"] as const;
const TV: readonly Ability[] = ["tools", "vision"];
const TVR: readonly Ability[] = ["tools", "vision", "reasoning"];
const KNOWN = { minOutput: 1, estimateFactor: O200K, regions: EVERYWHERE } as const;

/** From 5.6 on a cache write costs 1.25 x input. Dates of the 6.x releases are known to the month only. */
const GPT_6 = {
  ...KNOWN,
  context: 1_050_000,
  maxOutput: 128_000,
  longPromptAbove: LONG_PROMPT,
  abilities: TVR,
  imageTokens: PATCHES_LARGE,
};
const GPT_6_SMALL = { ...GPT_6, imageTokens: PATCHES_LARGE_SMALL };
const GPT_5_4 = {
  ...KNOWN,
  context: 400_000,
  maxOutput: 128_000,
  abilities: TVR,
  imageTokens: PATCHES_SMALL_HIGH,
};
const GPT_5 = { ...GPT_5_4, imageTokens: PATCHES_SMALL };
const GPT_4_1 = { ...KNOWN, context: 1_047_576, maxOutput: 32_768, abilities: TV };
const GPT_4O = { ...KNOWN, context: 128_000, maxOutput: 16_384, abilities: TV };

/** OpenAI's models: facts and dates of `reference/models.json`; to be re-checked before launch. */
export const OPENAI_MODELS: readonly CatalogueEntry[] = [
  chat(
    "gpt-6.1-sol",
    ["2026-11-01", "2026-11-20"],
    [2_000_000, 100_000, 2_500_000, 10_000_000],
    GPT_6,
  ),
  chat(
    "gpt-6.1-terra",
    ["2026-11-01", "2026-11-20"],
    [1_000_000, 50_000, 1_250_000, 5_000_000],
    GPT_6,
  ),
  chat(
    "gpt-6-luna",
    ["2026-09-01", "2026-11-20"],
    [100_000, 10_000, 125_000, 500_000],
    GPT_6_SMALL,
  ),
  chat(
    "gpt-5.6-sol",
    ["2026-06-26", "2026-08-21"],
    [5_000_000, 500_000, 6_250_000, 30_000_000],
    GPT_6,
  ),
  chat(
    "gpt-5.6-terra",
    ["2026-06-26", "2026-08-21"],
    [2_000_000, 200_000, 2_500_000, 12_000_000],
    GPT_6,
  ),
  chat(
    "gpt-5.6-luna",
    ["2026-06-26", "2026-08-21"],
    [200_000, 20_000, 250_000, 1_200_000],
    GPT_6_SMALL,
  ),
  chat("gpt-5.4", ["2026-03-05", "2026-07-02"], [2_500_000, 250_000, 2_500_000, 15_000_000], GPT_6),
  chat(
    "gpt-5.4-mini",
    ["2026-03-17", "2026-07-02"],
    [750_000, 75_000, 750_000, 4_500_000],
    GPT_5_4,
  ),
  chat(
    "gpt-5.4-nano",
    ["2026-03-17", "2026-07-02"],
    [200_000, 20_000, 200_000, 1_250_000],
    GPT_5_4,
  ),
  chat("gpt-5-mini", ["2025-08-07", "2026-07-02"], [250_000, 25_000, 250_000, 2_000_000], GPT_5),
  chat("gpt-5-nano", ["2025-08-07", "2026-07-02"], [50_000, 5_000, 50_000, 400_000], GPT_5),
  chat("gpt-4.1", ["2025-04-14", "2026-07-02"], [2_000_000, 500_000, 2_000_000, 8_000_000], {
    ...GPT_4_1,
    imageTokens: 1_536,
  }),
  chat("gpt-4.1-mini", ["2025-04-14", "2026-07-02"], [400_000, 100_000, 400_000, 1_600_000], {
    ...GPT_4_1,
    imageTokens: PATCHES_SMALL,
  }),
  chat("gpt-4o", ["2024-05-13", "2026-07-02"], [2_500_000, 1_250_000, 2_500_000, 10_000_000], {
    ...GPT_4O,
    imageTokens: TILES,
  }),
  chat("gpt-4o-mini", ["2024-07-18", "2026-07-02"], [150_000, 75_000, 150_000, 600_000], {
    ...GPT_4O,
    imageTokens: TILES_4O_MINI,
  }),
  chat("o4-mini", ["2025-04-16", "2026-07-02"], [1_100_000, 275_000, 1_100_000, 4_400_000], {
    ...KNOWN,
    abilities: TVR,
    context: 200_000,
    maxOutput: 100_000,
    imageTokens: PATCHES_SMALL,
  }),
  embedding("text-embedding-3-small", 20_000),
  embedding("text-embedding-3-large", 130_000),
];

type Facts = Pick<
  CatalogueEntry,
  | "context"
  | "maxOutput"
  | "minOutput"
  | "abilities"
  | "imageTokens"
  | "estimateFactor"
  | "regions"
  | "longPromptAbove"
>;

/** `dates`: released, priced on; `prices`: input, cached, cache write, output. */
function chat(
  name: string,
  [released, pricedOn]: readonly [string, string],
  prices: readonly [number, number, number, number],
  facts: Facts,
): CatalogueEntry {
  const [input, cached, cacheWrite, output] = prices;
  return {
    id: `openai/${name}`,
    provider: "openai",
    upstreamId: name,
    kind: "chat",
    released,
    pricedOn,
    input,
    cached,
    cacheWrite,
    output,
    ...facts,
  };
}

function embedding(name: string, input: number): CatalogueEntry {
  return {
    id: `openai/${name}`,
    provider: "openai",
    upstreamId: name,
    kind: "embeddings",
    released: "2024-01-25",
    pricedOn: "2026-08-21",
    input,
    cached: input,
    cacheWrite: input,
    output: 0,
    context: 8_192,
    maxOutput: 0,
    minOutput: 1,
    abilities: ["dimensions"],
    imageTokens: 0,
    estimateFactor: CL100K,
    regions: EVERYWHERE,
  };
}
