import type { Usage } from "../../../shared/usage.ts";
import { shape } from "../../core/shape.ts";
import { countedUsage, countOrZero, tokenCount } from "../../core/token-count.ts";

const counts = shape({
  promptTokenCount: tokenCount,
  cachedContentTokenCount: countOrZero,
  toolUsePromptTokenCount: countOrZero,
  candidatesTokenCount: countOrZero,
  thoughtsTokenCount: countOrZero,
});

/**
 * `usageMetadata` of a chat answer (ai.google.dev, GenerateContentResponse): the prompt includes what
 * was cached, the candidates exclude thoughts, the tools' prompt stands apart. A count that is absent is
 * 0; without the prompt's (Vertex in mid-stream), with 0 or with an odd one, there is no usage.
 */
export function readUsage(raw: unknown): Usage | null {
  const read = counts(raw);
  const { promptTokenCount: prompt, cachedContentTokenCount: cached } = read;
  const { toolUsePromptTokenCount: tools, candidatesTokenCount: said } = read;
  const { thoughtsTokenCount: thoughts } = read;
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
