import type { Usage } from "../../lib/usage.ts";
import { objectOf } from "../json-value.ts";
import type { JsonObject } from "../provider.ts";
import { tokenCount } from "../token-count.ts";

/**
 * Usage as /v1/messages reports it: `input_tokens` is what was neither read from nor written to the
 * cache, `output_tokens` includes thinking. Null, so that it is estimated, when a count is missing or
 * no count.
 */
export function messagesUsage(raw: JsonObject): Usage | null {
  const input = tokenCount(raw["input_tokens"]);
  const output = tokenCount(raw["output_tokens"]);
  const cacheRead = tokenCount(raw["cache_read_input_tokens"] ?? 0);
  const cacheWrite = tokenCount(raw["cache_creation_input_tokens"] ?? 0);
  if (input === null || output === null || cacheRead === null || cacheWrite === null) return null;
  const thought = tokenCount(objectOf(raw["output_tokens_details"])["thinking_tokens"]) ?? 0;
  return { input, cacheRead, cacheWrite, output, reasoning: Math.min(thought, output) };
}

/** A stream's usage so far with a later report on top: its numbers are cumulative, null is no number. */
export function laterUsage(before: JsonObject, later: unknown): JsonObject {
  const said = Object.entries(objectOf(later)).filter(([, value]) => value !== null);
  return { ...before, ...Object.fromEntries(said) };
}
