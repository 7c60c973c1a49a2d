import type { Usage } from "../../../shared/usage.ts";
import { objectReader } from "../../core/shape.ts";
import { countedUsage, countOrZero, tokenCount } from "../../core/token-count.ts";

const counts = objectReader({
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
  const read = counts(raw);
  const { promptTokenCount: prompt, cachedContentTokenCount: cached } = read;
  const { toolUsePromptTokenCount: tools, candidatesTokenCount: reported } = read;
  const { thoughtsTokenCount: thoughts } = read;
  if (prompt === null || cached === null || tools === null) return null;
  if (reported === null || thoughts === null) return null;
  const cacheRead = Math.min(cached, prompt);
  return countedUsage({
    input: prompt - cacheRead + tools,
    cacheRead,
    cacheWrite: 0,
    output: reported + thoughts,
    reasoning: thoughts,
  });
}

export function readGeminiEmbeddingUsage(tokens: unknown): Usage | null {
  const input = tokenCount(tokens);
  return input === null ? null : { input, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
}
