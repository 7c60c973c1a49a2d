import type { Usage } from "../../lib/usage.ts";
import { isObject } from "../../core/json-value.ts";
import { countedUsage, tokenCount } from "../../core/token-count.ts";

/**
 * Converse's TokenUsage: `inputTokens` is the uncached rest of the
 * prompt, `outputTokens` includes reasoning, which is not told apart. Null when a count is odd, or nothing was counted.
 */
export function converseUsage(raw: unknown): Usage | null {
  if (!isObject(raw)) return null;
  const input = tokenCount(raw["inputTokens"]);
  const output = tokenCount(raw["outputTokens"]);
  const cacheRead = tokenCount(raw["cacheReadInputTokens"] ?? 0);
  const cacheWrite = tokenCount(raw["cacheWriteInputTokens"] ?? 0);
  if (input === null || output === null || cacheRead === null || cacheWrite === null) return null;
  return countedUsage({ input, cacheRead, cacheWrite, output, reasoning: 0 });
}
