import type { Usage } from "../../../shared/usage.ts";
import { objectReader } from "../../core/shape.ts";
import { countedUsage, countOrZero, tokenCount } from "../../core/token-count.ts";

const readCounts = objectReader({
  promptTokenCount: tokenCount,
  cachedContentTokenCount: countOrZero,
  toolUsePromptTokenCount: countOrZero,
  candidatesTokenCount: countOrZero,
  thoughtsTokenCount: countOrZero,
});

/**
 * Reads `usageMetadata` (ai.google.dev, GenerateContentResponse). The prompt count includes cached
 * tokens and excludes tool prompts. The candidates count excludes thoughts. Returns null if the
 * prompt count isn't above 0.
 */
export function readGeminiUsage(raw: unknown): Usage | null {
  const parsed = readCounts(raw);
  const { promptTokenCount: promptTokens, cachedContentTokenCount: cachedTokens } = parsed;
  const { toolUsePromptTokenCount: toolPromptTokens, candidatesTokenCount: outputTokens } = parsed;
  const { thoughtsTokenCount: thoughtTokens } = parsed;
  if (promptTokens === null || cachedTokens === null || toolPromptTokens === null) return null;
  if (outputTokens === null || thoughtTokens === null) return null;
  const cacheRead = Math.min(cachedTokens, promptTokens);
  return countedUsage({
    input: promptTokens - cacheRead + toolPromptTokens,
    cacheRead,
    cacheWrite: 0,
    output: outputTokens + thoughtTokens,
    reasoning: thoughtTokens,
  });
}

export function readGeminiEmbeddingUsage(tokens: unknown): Usage | null {
  const input = tokenCount(tokens);
  return input === null ? null : { input, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
}
