/** OpenAI's reasons to end a choice that a native provider can mean. */
export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

/** OpenAI's finish reasons by the names under which providers report them, in lower case. */
const MEANINGS: ReadonlyMap<string, FinishReason> = new Map([
  ...named("stop", "stop stop_sequence end end_turn pause_turn compaction eos eos_token"),
  ...named("stop", "complete completed"),
  ["", "stop"],
  ["tool_use", "stop"], // with a call of the client's tools it becomes `tool_calls`
  ...named("tool_calls", "tool_calls tool_call"),
  ...named("content_filter", "content_filter content_filtered guardrail_intervened refusal"),
  ...named("content_filter", "safety recitation blocklist prohibited_content spii language"),
  ...named("content_filter", "model_armor image_safety image_prohibited_content image_recitation"),
]);

/** Names that say that the provider gave up. */
const BROKEN = /^(?:abort|error|timeout|malformed_|insufficient_system_resource|network_error)/;

function named(reason: FinishReason, names: string): [string, FinishReason][] {
  return names.split(" ").map((name) => [name, reason]);
}

/**
 * Returns what a provider's finish reason means, or null when the provider gave up. An unknown reason reads as
 * `length`: a client that takes a cut answer for a whole one would run truncated tool calls.
 */
export function finishMeaning(raw: string): FinishReason | null {
  const name = raw.toLowerCase();
  return BROKEN.test(name) ? null : (MEANINGS.get(name) ?? "length");
}

/** Reports whether an answer that ended so may have lost its end, and with it the rest of a tool call. */
export function isCut(reason: string | null): boolean {
  return reason === "length" || reason === "content_filter";
}
