import type { Usage } from "../../shared/usage.ts";
import type { JsonObject } from "./provider.ts";
import { asIs, shape } from "./shape.ts";
import { countedUsage, tokenCount } from "./token-count.ts";

const counts = shape({
  prompt_tokens: asIs,
  completion_tokens: asIs,
  total_tokens: asIs,
  prompt_tokens_details: shape({ cached_tokens: asIs, cache_write_tokens: tokenCount }),
  completion_tokens_details: shape({ reasoning_tokens: tokenCount }),
  prompt_cache_hit_tokens: asIs,
  num_cached_tokens: asIs,
  cached_tokens: asIs,
  prompt_token_details: shape({ cached_tokens: asIs }),
});
type Counts = ReturnType<typeof counts>;
const place = shape({ usage: asIs });

export type UsageShape = {
  /**
   * Set if `completion_tokens` excludes reasoning. If there are more cached tokens than
   * `prompt_tokens`, then `prompt_tokens` excludes cached tokens too.
   */
  readonly apart?: boolean;
  readonly inside?: string;
};

/**
 * Reads the usage of an OpenAI-compatible host. Prompt tokens include cached ones and completion
 * tokens include reasoning, unless the host or the total shows otherwise. Returns null if a count
 * is missing or invalid or the prompt is 0.
 */
export function readUsage(raw: unknown, differs: UsageShape = {}): Usage | null {
  return countedUsage(readCounts(raw, differs));
}

/** Reads usage without output tokens. Voyage returns only the total. */
export function readInputUsage(raw: unknown): Usage | null {
  const read = counts(raw);
  return countedUsage(usageOf(read, read.prompt_tokens ?? read.total_tokens, 0, {}));
}

/** Reads usage in which 0 is a valid count, for hosts that report it per stream event. */
export function readCounts(raw: unknown, differs: UsageShape = {}): Usage | null {
  const read = counts(raw);
  return usageOf(read, read.prompt_tokens, read.completion_tokens, differs);
}

function usageOf(
  read: Counts,
  requested: unknown,
  given: unknown,
  differs: UsageShape,
): Usage | null {
  const [prompt, output] = [tokenCount(requested), tokenCount(given)];
  if (prompt === null || output === null) return null;
  const cached = cachedTokens(read);
  const written = read.prompt_tokens_details.cache_write_tokens ?? 0;
  const thought = read.completion_tokens_details.reasoning_tokens ?? 0;
  const isApart = differs.apart === true;
  const whole = isApart && cached > prompt ? prompt + cached : prompt;
  // The output excludes reasoning if the total shows it, or if there are more reasoning tokens than
  // output tokens.
  const total = tokenCount(read.total_tokens);
  const isBeside = isApart
    ? total !== whole + output
    : thought > output || total === whole + output + thought;
  const reported = isBeside ? output + thought : output;
  const cacheRead = Math.min(cached, whole);
  const cacheWrite = Math.min(written, whole - cacheRead);
  const input = whole - cacheRead - cacheWrite;
  return { input, cacheRead, cacheWrite, output: reported, reasoning: Math.min(thought, reported) };
}

export function usageIn(raw: JsonObject, { inside }: UsageShape): unknown {
  const { usage } = raw;
  return usage ?? (inside === undefined ? null : place(raw[inside]).usage);
}

function cachedTokens(read: Counts): number {
  const reported =
    read.prompt_tokens_details.cached_tokens ??
    read.prompt_cache_hit_tokens ??
    read.num_cached_tokens ??
    read.cached_tokens ??
    read.prompt_token_details.cached_tokens;
  return tokenCount(reported) ?? 0;
}
