import { describe, expect, it } from "vitest";
import { getPriceForPrompt } from "../../src/models/catalog/price.ts";
import { catalogOf, liveModelsIn } from "./config-fixture.ts";
import type { PROVIDERS } from "./config-fixture.ts";
import type { Region } from "../../src/shared/regions.ts";

/** A name, the region, [model, provider, prompt tokens], and micro-credits per million tokens. */
type Row = readonly [
  what: string,
  region: Region,
  query: readonly [model: string, provider: (typeof PROVIDERS)[number], promptTokens: number],
  prices: readonly [input: number, cached: number, cacheWrite: number, output: number],
];
const PRICES: readonly Row[] = [
  [
    "an old model on a regional host",
    "eu",
    ["openai/gpt-4o-mini", "openai", 1],
    [150_000, 75_000, 150_000, 600_000],
  ],
  [
    "a model of March 2026",
    "eu",
    ["openai/gpt-5.4", "openai", 272_000],
    [2_750_000, 275_000, 2_750_000, 16_500_000],
  ],
  [
    "a long prompt on a regional host",
    "eu",
    ["openai/gpt-5.4", "openai", 272_001],
    [5_500_000, 550_000, 5_500_000, 24_750_000],
  ],
  [
    "a long prompt with cache writes",
    "us",
    ["openai/gpt-6-luna", "openai", 300_000],
    [220_000, 22_000, 275_000, 825_000],
  ],
  [
    "Claude at Anthropic in the US",
    "us",
    ["anthropic/claude-opus-5.5", "anthropic", 900_000],
    [4_400_000, 220_000, 5_500_000, 22_000_000],
  ],
  [
    "a Claude model without inference_geo",
    "us",
    ["anthropic/claude-haiku-4.5", "anthropic", 1],
    [1_000_000, 100_000, 1_250_000, 5_000_000],
  ],
  [
    "Claude at Bedrock in the EU",
    "eu",
    ["anthropic/claude-sonnet-5", "bedrock", 1],
    [2_200_000, 220_000, 2_750_000, 11_000_000],
  ],
  [
    "Haiku 5.5 up to its limit",
    "eu",
    ["anthropic/claude-haiku-5.5", "bedrock", 100_000],
    [110_000, 11_000, 137_500, 550_000],
  ],
  [
    "Haiku 5.5 above its limit",
    "eu",
    ["anthropic/claude-haiku-5.5", "bedrock", 100_001],
    [550_000, 55_000, 687_500, 2_750_000],
  ],
  [
    "Gemini at Vertex AI",
    "eu",
    ["google/gemini-3.8-flash", "vertex", 1],
    [825_000, 82_500, 825_000, 4_125_000],
  ],
  [
    "Gemini at the Gemini API",
    "us",
    ["google/gemini-3.8-flash", "google", 1],
    [750_000, 75_000, 750_000, 3_750_000],
  ],
  [
    "a long prompt of Gemini Pro",
    "us",
    ["google/gemini-3.1-pro-preview", "google", 200_001],
    [4_000_000, 400_000, 4_000_000, 18_000_000],
  ],
  [
    "Mistral at its own host",
    "eu",
    ["mistral/mistral-large-3", "mistral", 1],
    [550_000, 55_000, 550_000, 1_650_000],
  ],
  [
    "Grok in the US",
    "us",
    ["xai/grok-4.6", "xai-us", 200_000],
    [2_200_000, 550_000, 2_200_000, 6_600_000],
  ],
  [
    "a long prompt of Grok in the US",
    "us",
    ["xai/grok-4.6", "xai-us", 200_001],
    [4_400_000, 1_100_000, 4_400_000, 13_200_000],
  ],
  [
    "Grok on a global host",
    "us",
    ["xai/grok-4.6", "xai", 1],
    [2_000_000, 500_000, 2_000_000, 6_000_000],
  ],
  [
    "a host without a regional promise",
    "us",
    ["openai/gpt-oss-120b", "groq", 1],
    [150_000, 75_000, 150_000, 600_000],
  ],
];

describe("the price of a model", () => {
  it.each(PRICES)(
    "matches the expected price to the micro-credit: %s",
    (_what, region, [model, provider, promptTokens], prices) => {
      const { models } = catalogOf({ REGION: region }, liveModelsIn(region));
      const route = models.get(model)?.routes.find((one) => one.provider === provider);
      if (route === undefined) throw new Error("not sold");
      const [input, cached, cacheWrite, output] = prices;
      expect(getPriceForPrompt(route, promptTokens)).toEqual({ input, cached, cacheWrite, output });
    },
  );

  it("depends on the region of the provider's host, whatever the order of the hosts", () => {
    for (const regions of [["us", "global"] as const, ["global", "us"] as const]) {
      const { models } = catalogOf({ REGION: "us" }, [{ id: "anthropic", regions }]);
      expect(models.get("anthropic/claude-opus-5.5")?.routes[0]?.price.input).toBe(4_400_000);
      expect(models.get("anthropic/claude-haiku-4.5")?.routes[0]?.price.input).toBe(1_000_000);
    }
  });

  it("drops to the global price in the EU if RESIDENCY allows global hosts", () => {
    const { models } = catalogOf({ RESIDENCY: "relaxed" }, liveModelsIn("eu"));
    const [anthropic, bedrock] = models.get("anthropic/claude-opus-5.5")?.routes ?? [];
    expect([anthropic?.provider, anthropic?.price.input]).toEqual(["anthropic", 4_000_000]);
    expect([bedrock?.provider, bedrock?.price.input]).toEqual(["bedrock", 4_400_000]);
    expect(models.get("openai/gpt-6-sol")?.routes[0]?.price.input).toBe(2_200_000);
  });
});
