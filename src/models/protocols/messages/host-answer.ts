import type { Usage } from "../../../shared/usage.ts";
import {
  objectOf,
  createObjectReader,
  textOf,
  readAnyValue,
  createListReader,
} from "../../core/json-value.ts";
import type { JsonObject, ProviderResponse } from "../../core/provider.ts";
import {
  discardUsageWithoutPrompt,
  readCountOrZero,
  readTokenCount,
} from "../../core/openai-usage.ts";
import { cleanMessage } from "../../core/cleaned-message.ts";
import { toFinishReason, toCompletion } from "../../core/output-part.ts";
import type { OutputPart } from "../../core/output-part.ts";
import { claudeThoughtToDetail } from "../../claude/thoughts.ts";

const readCounts = createObjectReader({
  input_tokens: readTokenCount,
  output_tokens: readTokenCount,
  cache_read_input_tokens: readCountOrZero,
  cache_creation_input_tokens: readCountOrZero,
  output_tokens_details: createObjectReader({ thinking_tokens: readCountOrZero }),
  cache_creation: createObjectReader({
    ephemeral_5m_input_tokens: readCountOrZero,
    ephemeral_1h_input_tokens: readCountOrZero,
  }),
});

/**
 * Reads usage of /v1/messages. `input_tokens` excludes cache reads and writes. `output_tokens`
 * includes thinking. If `requestsHour`, cache writes count as one-hour writes unless reported as
 * five-minute writes.
 */
export function readMessagesUsage(raw: unknown, requestsHour = false): Usage | null {
  const parsed = readCounts(raw);
  const { input_tokens: input, output_tokens: output, cache_creation: writesByLifetime } = parsed;
  const { cache_read_input_tokens: cacheRead, cache_creation_input_tokens: cacheWrite } = parsed;
  if (input === null || output === null || cacheRead === null || cacheWrite === null) return null;
  const reasoning = Math.min(parsed.output_tokens_details.thinking_tokens ?? 0, output);
  const usage = discardUsageWithoutPrompt({ input, cacheRead, cacheWrite, output, reasoning });
  // Only the first usage report separates cache writes by lifetime.
  const reportedHourWrites = requestsHour
    ? cacheWrite - (writesByLifetime.ephemeral_5m_input_tokens ?? 0)
    : (writesByLifetime.ephemeral_1h_input_tokens ?? 0);
  if (usage === null) return null;
  const hourWrites = Math.max(0, Math.min(cacheWrite, reportedHourWrites));
  return hourWrites === 0 ? usage : { ...usage, cacheWriteHour: hourWrites };
}

export function hasOutputTokenCount(raw: unknown): boolean {
  return readCounts(raw).output_tokens !== null;
}

/** Merges a later usage report. Later totals replace earlier ones, except for nulls. */
export function mergeLaterUsage(before: JsonObject, laterUsage: unknown): JsonObject {
  const reported = Object.entries(objectOf(laterUsage)).filter(([, value]) => value !== null);
  return { ...before, ...Object.fromEntries(reported) };
}

/** Reads a content block of a Messages response. */
export const readMessagesBlock = createObjectReader({
  type: textOf,
  text: textOf,
  thinking: textOf,
  signature: textOf,
  data: textOf,
  id: textOf,
  name: textOf,
  input: objectOf,
});
export type MessagesOutputBlock = ReturnType<typeof readMessagesBlock>;

export const readMessagesStopFields = createObjectReader({
  stop_reason: readAnyValue,
  stop_details: createObjectReader({ explanation: textOf }),
});

/**
 * Converts a message, or returns null if it is invalid. The input of `jsonTool` becomes the JSON
 * output.
 */
export function readMessagesCompletion(
  raw: JsonObject,
  jsonTool: string | null,
  secret: string,
): ProviderResponse | null {
  const { content, usage } = raw;
  if (!Array.isArray(content)) return null;
  const parts = createListReader(readMessagesBlock)(content).flatMap((one) =>
    toOutputParts(one, jsonTool),
  );
  return toCompletion(
    [[...parts, ...convertStopFieldsToParts(readMessagesStopFields(raw), secret)]],
    readMessagesUsage(usage),
  );
}

function toOutputParts(block: MessagesOutputBlock, jsonTool: string | null): OutputPart[] {
  const { type, text, thinking, id, name, input } = block;
  if (type === "text") return [{ kind: "text", text }];
  if (type === "tool_use") {
    const json = JSON.stringify(input);
    if (name === jsonTool) return [{ kind: "text", text: json }];
    return [{ kind: "call", id, name, arguments: json }];
  }
  if (!type.endsWith("thinking")) return [];
  const detail = claudeThoughtToDetail(block);
  const thought: OutputPart[] = type === "thinking" ? [{ kind: "thought", text: thinking }] : [];
  return detail === null ? thought : [...thought, { kind: "detail", detail }];
}

export function convertStopFieldsToParts(
  { stop_reason: stopReason, stop_details: details }: ReturnType<typeof readMessagesStopFields>,
  secret: string | undefined,
): OutputPart[] {
  // None of Claude's stop reasons means a failure.
  const reason = toFinishReason(textOf(stopReason)) ?? "length";
  const refusal = reason === "content_filter" ? cleanMessage(details.explanation, secret) : "";
  const end: OutputPart = { kind: "finish", reason };
  return refusal === "" ? [end] : [{ kind: "refusal", text: refusal }, end];
}
