import type { Usage } from "../../../shared/usage.ts";
import { objectReader } from "../../core/shape.ts";
import { countedUsage, countOrZero, tokenCount } from "../../core/token-count.ts";

const readCounts = objectReader({
  inputTokens: tokenCount,
  outputTokens: tokenCount,
  cacheReadInputTokens: countOrZero,
  cacheWriteInputTokens: countOrZero,
});

/**
 * Reads Converse's TokenUsage. `inputTokens` excludes cached tokens, and `outputTokens` includes
 * reasoning. Returns null if the usage is invalid or all counts are 0.
 */
export function readConverseUsage(raw: unknown): Usage | null {
  const { inputTokens: input, outputTokens: output, ...cache } = readCounts(raw);
  const { cacheReadInputTokens: cacheRead, cacheWriteInputTokens: cacheWrite } = cache;
  if (input === null || output === null || cacheRead === null || cacheWrite === null) return null;
  return countedUsage({ input, cacheRead, cacheWrite, output, reasoning: 0 });
}
