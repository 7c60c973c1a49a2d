export type FinishReason = "stop" | "length" | "tool_calls" | "content_filter";

const REASON_BY_NAME: ReadonlyMap<string, FinishReason> = new Map([
  ...finishReasonEntries(
    "stop",
    "stop stop_sequence end end_turn pause_turn compaction eos eos_token",
  ),
  ...finishReasonEntries("stop", "complete completed"),
  ["", "stop"],
  ["tool_use", "stop"], // with a client tool call it becomes `tool_calls`
  ...finishReasonEntries("tool_calls", "tool_calls tool_call"),
  ...finishReasonEntries(
    "content_filter",
    "content_filter content_filtered guardrail_intervened refusal",
  ),
  ...finishReasonEntries(
    "content_filter",
    "safety recitation blocklist prohibited_content spii language",
  ),
  ...finishReasonEntries(
    "content_filter",
    "model_armor image_safety image_prohibited_content image_recitation",
  ),
]);

const GAVE_UP = /^(?:abort|error|timeout|malformed_|insufficient_system_resource|network_error)/;

function finishReasonEntries(reason: FinishReason, names: string): [string, FinishReason][] {
  return names.split(" ").map((name) => [name, reason]);
}

/**
 * Converts a provider's finish reason, or returns null if the provider gave up. Unknown reasons
 * become `length`, so that clients don't run incomplete calls.
 */
export function finishReasonOf(raw: string): FinishReason | null {
  const name = raw.toLowerCase();
  return GAVE_UP.test(name) ? null : (REASON_BY_NAME.get(name) ?? "length");
}

export function isCutOffReason(reason: string | null): boolean {
  return reason === "length" || reason === "content_filter";
}
