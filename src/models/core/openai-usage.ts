import { promptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { JsonObject } from "./json-value.ts";

export function openAiUsage(usage: Usage): JsonObject {
  const prompt = promptTokens(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

export function openAiInputUsage(usage: Usage): JsonObject {
  const prompt = promptTokens(usage);
  return { prompt_tokens: prompt, total_tokens: prompt };
}
