import type { Usage } from "../../lib/usage.ts";
import { objectOf } from "../../core/json-value.ts";
import type { JsonObject } from "../../core/provider.ts";
import { tokenCount } from "../../core/token-count.ts";

/**
 * Usage as /v1/messages reports it: `input_tokens` is what was neither read from nor written to the
 * cache, `output_tokens` includes thinking. Null, so that it is estimated, when a count is missing or
 * no count. `asksHour`: the request had something kept for an hour, so that what is not said to be kept for
 * five minutes was.
 */
export function messagesUsage(raw: JsonObject, asksHour = false): Usage | null {
  const input = tokenCount(raw["input_tokens"]);
  const output = tokenCount(raw["output_tokens"]);
  const cacheRead = tokenCount(raw["cache_read_input_tokens"] ?? 0);
  const cacheWrite = tokenCount(raw["cache_creation_input_tokens"] ?? 0);
  if (input === null || output === null || cacheRead === null || cacheWrite === null) return null;
  const thought = tokenCount(objectOf(raw["output_tokens_details"])["thinking_tokens"]) ?? 0;
  const reasoning = Math.min(thought, output);
  const usage = { input, cacheRead, cacheWrite, output, reasoning };
  const hour = hourOf(objectOf(raw["cache_creation"]), cacheWrite, asksHour);
  return hour === 0 ? usage : { ...usage, cacheWriteHour: hour };
}

/** How much of what was written is kept for an hour; the split stands only where the usage begins. */
function hourOf(split: JsonObject, written: number, asksHour: boolean): number {
  const minutes = tokenCount(split["ephemeral_5m_input_tokens"] ?? 0) ?? 0;
  const hour = tokenCount(split["ephemeral_1h_input_tokens"] ?? 0) ?? 0;
  const rest = asksHour ? written - minutes : hour;
  return Math.max(0, Math.min(written, rest));
}

/** A stream's usage so far with a later report on top: its numbers are cumulative, null is no number. */
export function laterUsage(before: JsonObject, later: unknown): JsonObject {
  const said = Object.entries(objectOf(later)).filter(([, value]) => value !== null);
  return { ...before, ...Object.fromEntries(said) };
}
