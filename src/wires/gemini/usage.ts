import type { Usage } from "../../lib/usage.ts";
import { isObject } from "../../core/json-value.ts";
import { countedUsage, tokenCount } from "../../core/token-count.ts";

/**
 * `usageMetadata` of a chat answer (ai.google.dev, GenerateContentResponse): the prompt includes what
 * was cached, the candidates exclude thoughts, the tools' prompt stands apart. A count that is absent is
 * 0; without the prompt's (Vertex in mid-stream), with 0 or with an odd one, there is no usage.
 */
export function readUsage(raw: unknown): Usage | null {
  if (!isObject(raw)) return null;
  const prompt = tokenCount(raw["promptTokenCount"]);
  const cached = tokenCount(raw["cachedContentTokenCount"] ?? 0);
  const tools = tokenCount(raw["toolUsePromptTokenCount"] ?? 0);
  const said = tokenCount(raw["candidatesTokenCount"] ?? 0);
  const thoughts = tokenCount(raw["thoughtsTokenCount"] ?? 0);
  if (prompt === null || cached === null || tools === null) return null;
  if (said === null || thoughts === null) return null;
  const cacheRead = Math.min(cached, prompt);
  return countedUsage({
    input: prompt - cacheRead + tools,
    cacheRead,
    cacheWrite: 0,
    output: said + thoughts,
    reasoning: thoughts,
  });
}

/** The usage of an embeddings request of so many tokens; null when the count is none. */
export function embeddingUsage(tokens: unknown): Usage | null {
  const input = tokenCount(tokens);
  return input === null ? null : { input, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0 };
}
