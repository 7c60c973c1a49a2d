import { cleanMessage } from "../../core/cleaned-message.ts";
import { finishReasonOf } from "../../core/finish-reason.ts";
import { objectOf, textOf } from "../../core/json-value.ts";
import type { ProviderResponse, JsonObject } from "../../core/provider.ts";
import { toCompletion } from "../../core/output-part.ts";
import type { OutputPart } from "../../core/output-part.ts";
import { anyValue, listReader, objectReader } from "../../core/shape.ts";
import { claudeThoughtDetail } from "../../claude/thoughts.ts";
import { messagesUsage } from "./host-usage.ts";

/** A content block (platform.claude.com, Create a Message). */
export const readMessagesBlock = objectReader({
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

export const readMessagesEnding = objectReader({
  stop_reason: anyValue,
  stop_details: objectReader({ explanation: textOf }),
});
type MessageEnd = ReturnType<typeof readMessagesEnding>;

/** Returns null for an invalid message. The input of `jsonTool` becomes the JSON output. */
export function readMessagesCompletion(
  raw: JsonObject,
  jsonTool: string | null,
  secret: string,
): ProviderResponse | null {
  const { content, usage } = raw;
  if (!Array.isArray(content)) return null;
  const parts = listReader(readMessagesBlock)(content).flatMap((one) =>
    toOutputParts(one, jsonTool),
  );
  return toCompletion(
    [[...parts, ...endingParts(readMessagesEnding(raw), secret)]],
    messagesUsage(usage),
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
  const detail = claudeThoughtDetail(block);
  const thought: OutputPart[] = type === "thinking" ? [{ kind: "thought", text: thinking }] : [];
  return detail === null ? thought : [...thought, { kind: "detail", detail }];
}

export function endingParts(
  { stop_reason: stopReason, stop_details: details }: MessageEnd,
  secret: string,
): OutputPart[] {
  const reason = finishReasonOf(textOf(stopReason)) ?? "length"; // no stop reason of Claude means a failure
  const refusal = reason === "content_filter" ? cleanMessage(details.explanation, secret) : "";
  const end: OutputPart = { kind: "finish", reason };
  return refusal === "" ? [end] : [{ kind: "refusal", text: refusal }, end];
}
