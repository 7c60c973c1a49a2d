import { promptTokens } from "../lib/usage.ts";
import type { Usage } from "../lib/usage.ts";
import type { JsonObject } from "./provider.ts";

/** The `usage` object of an OpenAI answer. */
export function wireUsage(usage: Usage, kind: "chat" | "embeddings"): JsonObject {
  const prompt = promptTokens(usage);
  if (kind === "embeddings") return { prompt_tokens: prompt, total_tokens: prompt };
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}
