import { sumPromptTokens } from "../../shared/usage.ts";
import type { Usage } from "../../shared/usage.ts";
import type { JsonObject } from "./json-value.ts";
import { readAnyValue, createObjectReader } from "./json-value.ts";

const TOKENS_MAX = 1_000_000_000;

export function readTokenCount(value: unknown): number | null {
  if (typeof value !== "number" || !Number.isSafeInteger(value)) return null;
  return value >= 0 && value <= TOKENS_MAX ? value : null;
}

/** Returns a token count, 0 if it is absent, or null if it is invalid. */
export function readCountOrZero(value: unknown): number | null {
  return readTokenCount(value ?? 0);
}

/** Returns the usage, or null if the provider reported no prompt tokens. */
export function discardUsageWithoutPrompt(usage: Usage | null): Usage | null {
  return usage === null || sumPromptTokens(usage) === 0 ? null : usage;
}

export function toOpenAiUsage(usage: Usage): JsonObject {
  const prompt = sumPromptTokens(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  };
}

export function toOpenAiInputUsage(usage: Usage): JsonObject {
  const prompt = sumPromptTokens(usage);
  return { prompt_tokens: prompt, total_tokens: prompt };
}

const parseCounts = createObjectReader({
  prompt_tokens: readAnyValue,
  completion_tokens: readAnyValue,
  total_tokens: readAnyValue,
  prompt_tokens_details: createObjectReader({
    cached_tokens: readAnyValue,
    cache_write_tokens: readTokenCount,
  }),
  completion_tokens_details: createObjectReader({ reasoning_tokens: readTokenCount }),
  prompt_cache_hit_tokens: readAnyValue,
  num_cached_tokens: readAnyValue,
  cached_tokens: readAnyValue,
  prompt_token_details: createObjectReader({ cached_tokens: readAnyValue }),
});
type Counts = ReturnType<typeof parseCounts>;
const usageField = createObjectReader({ usage: readAnyValue });

/** The ways in which a provider's usage differs from OpenAI's. */
export type UsageDifferences = {
  /**
   * Set if `completion_tokens` excludes reasoning. If set, a `prompt_tokens` below the cached
   * tokens excludes them.
   */
  readonly apart?: boolean;
  readonly inside?: string;
};

/**
 * Reads the usage of an OpenAI-compatible host. Prompt tokens include cached tokens, and completion
 * tokens include reasoning, unless `usageShape` or the total shows otherwise. Returns null for a
 * missing or invalid count, or an empty prompt.
 */
export function readUsage(raw: unknown, usageShape: UsageDifferences = {}): Usage | null {
  return discardUsageWithoutPrompt(readCounts(raw, usageShape));
}

/** Reads usage without output tokens. Voyage returns only the total. */
export function readInputUsage(raw: unknown): Usage | null {
  const reported = parseCounts(raw);
  return discardUsageWithoutPrompt(
    toUsage(reported, reported.prompt_tokens ?? reported.total_tokens, 0, {}),
  );
}

/** Reads usage whose counts can be 0, for hosts that report usage with each stream event. */
export function readCounts(raw: unknown, usageShape: UsageDifferences = {}): Usage | null {
  const reported = parseCounts(raw);
  return toUsage(reported, reported.prompt_tokens, reported.completion_tokens, usageShape);
}

function toUsage(
  read: Counts,
  promptCount: unknown,
  outputCount: unknown,
  usageShape: UsageDifferences,
): Usage | null {
  const [prompt, output] = [readTokenCount(promptCount), readTokenCount(outputCount)];
  if (prompt === null || output === null) return null;
  const cached = cachedTokens(read);
  const cacheWriteTokens = read.prompt_tokens_details.cache_write_tokens ?? 0;
  const reasoningTokens = read.completion_tokens_details.reasoning_tokens ?? 0;
  const isCacheSeparate = usageShape.apart === true;
  const totalInput = isCacheSeparate && cached > prompt ? prompt + cached : prompt;
  // The output excludes reasoning if the reported total implies it, or if there are more reasoning
  // tokens than output tokens.
  const total = readTokenCount(read.total_tokens);
  const isReasoningSeparate = isCacheSeparate
    ? total !== totalInput + output
    : reasoningTokens > output || total === totalInput + output + reasoningTokens;
  const reported = isReasoningSeparate ? output + reasoningTokens : output;
  const cacheRead = Math.min(cached, totalInput);
  const cacheWrite = Math.min(cacheWriteTokens, totalInput - cacheRead);
  return {
    input: totalInput - cacheRead - cacheWrite,
    cacheRead,
    cacheWrite,
    output: reported,
    reasoning: Math.min(reasoningTokens, reported),
  };
}

export function findRawUsage(raw: JsonObject, { inside }: UsageDifferences): unknown {
  const { usage } = raw;
  return usage ?? (inside === undefined ? null : usageField(raw[inside]).usage);
}

function cachedTokens(read: Counts): number {
  const reported =
    read.prompt_tokens_details.cached_tokens ??
    read.prompt_cache_hit_tokens ??
    read.num_cached_tokens ??
    read.cached_tokens ??
    read.prompt_token_details.cached_tokens;
  return readTokenCount(reported) ?? 0;
}
