import type { Usage } from "../../../shared/usage.ts";
import { objectOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import { objectReader } from "../../core/shape.ts";
import { countedUsage, countOrZero, tokenCount } from "../../core/token-count.ts";

const readCounts = objectReader({
  input_tokens: tokenCount,
  output_tokens: tokenCount,
  cache_read_input_tokens: countOrZero,
  cache_creation_input_tokens: countOrZero,
  output_tokens_details: objectReader({ thinking_tokens: countOrZero }),
  cache_creation: objectReader({
    ephemeral_5m_input_tokens: countOrZero,
    ephemeral_1h_input_tokens: countOrZero,
  }),
});

/**
 * Reads usage of /v1/messages. `input_tokens` excludes cache reads and writes. `output_tokens`
 * includes thinking. With `requestsHour`, cache writes count as one-hour writes unless reported as
 * five-minute writes.
 */
export function messagesUsage(raw: unknown, requestsHour = false): Usage | null {
  const parsed = readCounts(raw);
  const { input_tokens: input, output_tokens: output, cache_creation: writesByLifetime } = parsed;
  const { cache_read_input_tokens: cacheRead, cache_creation_input_tokens: cacheWrite } = parsed;
  if (input === null || output === null || cacheRead === null || cacheWrite === null) return null;
  const reasoning = Math.min(parsed.output_tokens_details.thinking_tokens ?? 0, output);
  const usage = countedUsage({ input, cacheRead, cacheWrite, output, reasoning });
  // Only the first usage report separates cache writes by lifetime.
  const reportedHourWrites = requestsHour
    ? cacheWrite - (writesByLifetime.ephemeral_5m_input_tokens ?? 0)
    : (writesByLifetime.ephemeral_1h_input_tokens ?? 0);
  if (usage === null) return null;
  const hourWrites = Math.max(0, Math.min(cacheWrite, reportedHourWrites));
  return hourWrites === 0 ? usage : { ...usage, cacheWriteHour: hourWrites };
}

export function reportsOutputTokens(raw: unknown): boolean {
  return readCounts(raw).output_tokens !== null;
}

/** Merges a later usage report, whose totals replace the earlier ones. Ignores nulls. */
export function mergeLaterUsage(before: JsonObject, laterUsage: unknown): JsonObject {
  const reported = Object.entries(objectOf(laterUsage)).filter(([, value]) => value !== null);
  return { ...before, ...Object.fromEntries(reported) };
}
