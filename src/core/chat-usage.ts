import type { Usage } from "../lib/usage.ts";
import { isObject, objectOf } from "./json-value.ts";
import type { JsonObject } from "./provider.ts";
import { countedUsage, tokenCount } from "./token-count.ts";

/** Where usage differs from OpenAI's. */
export type UsageShape = {
  /**
   * Parts are counted apart from their whole: reasoning beside `completion_tokens`, and what was
   * cached beside `prompt_tokens` whenever it is more.
   */
  readonly apart?: boolean;
  /** An object of the answer or chunk that may hold `usage` in its stead. */
  readonly inside?: string;
};

/**
 * Usage as OpenAI-compatible hosts report it: `prompt_tokens` includes what
 * was cached, and `completion_tokens` includes reasoning, unless the host counts them apart. Parts
 * larger than their whole are clamped to it; a count that is missing, negative, fractional, not a number
 * or absurd makes the usage missing (null), so that it is estimated instead. So does a prompt of 0.
 */
export function readUsage(
  raw: unknown,
  kind: "chat" | "embeddings",
  shape: UsageShape = {},
): Usage | null {
  return countedUsage(readCounts(raw, kind, shape));
}

/** As `readUsage`, but explicit zeros are zeros: for hosts that report one event of a stream alone. */
export function readCounts(
  raw: unknown,
  kind: "chat" | "embeddings",
  shape: UsageShape = {},
): Usage | null {
  if (!isObject(raw)) return null;
  // Voyage says the total of an embedding alone.
  const isChat = kind === "chat";
  const prompt = tokenCount(
    isChat ? raw["prompt_tokens"] : (raw["prompt_tokens"] ?? raw["total_tokens"]),
  );
  const output = isChat ? tokenCount(raw["completion_tokens"]) : 0;
  if (prompt === null || output === null) return null;
  const cached = cachedTokens(raw);
  const written = part(raw["prompt_tokens_details"], "cache_write_tokens");
  const thought = part(raw["completion_tokens_details"], "reasoning_tokens");
  const isApart = shape.apart === true;
  const whole = isApart && cached > prompt ? prompt + cached : prompt;
  // A total without it says that, for once, reasoning is inside.
  const isInside = !isApart || tokenCount(raw["total_tokens"]) === whole + output;
  const said = isInside ? output : output + thought;
  const cacheRead = Math.min(cached, whole);
  const cacheWrite = Math.min(written, whole - cacheRead);
  const input = whole - cacheRead - cacheWrite;
  return { input, cacheRead, cacheWrite, output: said, reasoning: Math.min(thought, said) };
}

/** The usage of an answer or chunk, where its host puts it. */
export function usageIn(raw: JsonObject, { inside }: UsageShape): unknown {
  return raw["usage"] ?? (inside === undefined ? null : objectOf(raw[inside])["usage"]);
}

/** OpenAI's name for it first, then DeepSeek's and Mistral's own. */
function cachedTokens(raw: JsonObject): number {
  const said =
    objectOf(raw["prompt_tokens_details"])["cached_tokens"] ??
    raw["prompt_cache_hit_tokens"] ??
    raw["num_cached_tokens"] ??
    objectOf(raw["prompt_token_details"])["cached_tokens"];
  return tokenCount(said) ?? 0;
}

function part(details: unknown, name: string): number {
  return tokenCount(objectOf(details)[name]) ?? 0;
}
