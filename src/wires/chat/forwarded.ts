import { FILENAME } from "../../core/core-request.ts";
import type { ChatBody, ChatMessage } from "../../core/core-request.ts";
import type { AssistantCall } from "../../core/conversation.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { Profile } from "./profile.ts";

/**
 * The value of a field of a checked request with OpenAI's own keys alone inside messages and tools: strict hosts
 * answer 400 to the extras that coding agents add (`cache_control` and the like).
 */
export function forwarded(field: string, value: unknown, profile: Profile): unknown {
  if (field === "messages") {
    return (value as ChatBody["messages"]).map((message) => forwardedMessage(message, profile));
  }
  return field === "tools" ? (value as Tool[]).map(forwardedTool) : value;
}

function forwardedMessage(message: ChatMessage, { developerRole }: Profile): JsonObject {
  const { role, content } = message;
  const parts = Array.isArray(content) ? content.map(forwardedPart) : content;
  return {
    role: role === "developer" && !developerRole ? "system" : role,
    ...(parts !== undefined && { content: parts }),
    ...picked(message, ["name", "refusal", "tool_call_id"]),
    ...(role === "assistant" && forwardedCalls(message)),
  };
}

function forwardedCalls({ tool_calls: calls, function_call: legacy }: Assistant): JsonObject {
  return {
    ...(calls && { tool_calls: calls.map(forwardedCall) }),
    ...(legacy && { function_call: picked(legacy, ["name", "arguments"]) }),
  };
}

type Assistant = Extract<ChatMessage, { role: "assistant" }>;
type Part = Exclude<NonNullable<ChatMessage["content"]>, string>[number];

function forwardedPart(part: Part): JsonObject {
  const { type } = part;
  switch (type) {
    case "text":
      return { type, text: part.text };
    case "refusal":
      return { type, refusal: part.refusal };
    case "image_url":
      return { type, image_url: withoutNulls(part.image_url) };
    case "file":
      return { type, file: { filename: FILENAME, ...withoutNulls(part.file) } };
  }
}

function forwardedCall(call: AssistantCall): JsonObject {
  const { id, type } = call;
  return type === "function"
    ? { id, type, function: picked(call.function, ["name", "arguments"]) }
    : { id, type, custom: picked(call.custom, ["name", "input"]) };
}

type Tool = NonNullable<ChatBody["tools"]>[number];

function forwardedTool(tool: Tool): JsonObject {
  const { type } = tool;
  return type === "function"
    ? { type, function: picked(tool.function, ["name", "description", "parameters", "strict"]) }
    : { type, custom: picked(tool.custom, ["name", "description", "format"]) };
}

function withoutNulls(source: JsonObject): JsonObject {
  return picked(source, Object.keys(source));
}

function picked(source: JsonObject, keys: readonly string[]): JsonObject {
  return Object.fromEntries(
    keys
      .filter((key) => source[key] !== undefined && source[key] !== null)
      .map((key) => [key, source[key]]),
  );
}
