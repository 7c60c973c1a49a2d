import { chatModel, facts, pricesSeenOn, TR, TVR } from "../entry.ts";
import type { CatalogEntry } from "../entry.ts";

const july = pricesSeenOn("2026-07-02");
const august = pricesSeenOn("2026-08-04");
const FIREWORKS = "accounts/fireworks/models";

/**
 * DeepSeek's models, at the prices of Beijing's working hours, twice the usual prices
 * (api-docs.deepseek.com, pricing).
 */
const DEEPSEEK_MODELS: readonly CatalogEntry[] = [
  chatModel("deepseek/deepseek-v4-pro", "2026-04-24", facts(1_000_000, 384_000, TR), [
    pricesSeenOn("2026-10-17")("deepseek", "deepseek-v4-pro", [1.32, 0.044, 3.96]),
    july("together", "deepseek-ai/DeepSeek-V4-Pro-0813", [1.74, 0.2, 3.48], {
      limits: { context: 512_000 },
    }),
  ]),
  chatModel("deepseek/deepseek-v4.1-flash", "2026-09-17", facts(1_000_000, 384_000, TVR), [
    pricesSeenOn("2026-10-17")("deepseek", "deepseek-flash", [0.3, 0.006, 1.2]),
  ]),
];

/**
 * Moonshot's models. Fireworks publishes no output limit for Kimi K3, so Bedrock's (128,000)
 * applies.
 */
const MOONSHOT_MODELS: readonly CatalogEntry[] = [
  chatModel("moonshotai/kimi-k3", "2026-07-28", facts(1_040_000, 128_000, TR), [
    august("fireworks", `${FIREWORKS}/kimi-k3`, [3, 0.3, 15]),
  ]),
  chatModel("moonshotai/kimi-k2.6", "2026-04-21", facts(262_144, 256_000, TVR), [
    july("workers-ai", "@cf/moonshotai/kimi-k2.6", [0.95, 0.16, 4]),
  ]),
  chatModel("moonshotai/kimi-k2.7-code", "2026-06-12", facts(262_144, 262_144, TVR), [
    july("workers-ai", "@cf/moonshotai/kimi-k2.7-code", [0.95, 0.19, 4]),
  ]),
];

const ZAI_MODELS: readonly CatalogEntry[] = [
  chatModel("zai/glm-5.2", "2026-06-16", facts(262_144, 262_144, TR), [
    july("together", "zai-org/GLM-5.2", [1.4, 0.26, 4.4], { limits: { maxOutput: 164_000 } }),
    july("workers-ai", "@cf/zai-org/glm-5.2", [1.4, 0.26, 4.4]),
  ]),
  chatModel("zai/glm-4.7-flash", "2026-01-19", facts(131_072, 131_072, TR), [
    july("workers-ai", "@cf/zai-org/glm-4.7-flash", [0.0605, 0.4]),
  ]),
];

const MINIMAX_AND_QWEN_MODELS: readonly CatalogEntry[] = [
  chatModel("minimax/minimax-m3", "2026-06-12", facts(512_000, 512_000, TR), [
    july("fireworks", `${FIREWORKS}/minimax-m3`, [0.3, 0.06, 1.2]),
  ]),
  chatModel("qwen/qwen3-30b", "2025-04-30", facts(32_768, 32_768, TR), [
    july("workers-ai", "@cf/qwen/qwen3-30b-a3b-fp8", [0.0509, 0.335]),
  ]),
];

/** Open-weight models of Chinese authors. */
export const CHINESE_MODELS: readonly CatalogEntry[] = [
  ...DEEPSEEK_MODELS,
  ...MOONSHOT_MODELS,
  ...ZAI_MODELS,
  ...MINIMAX_AND_QWEN_MODELS,
];
