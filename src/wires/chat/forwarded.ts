import { isObject } from "../../core/json-value.ts";
import { FILENAME } from "../../core/core-request.ts";
import type { JsonObject } from "../../core/provider.ts";
import type { Profile } from "./profile.ts";

const MESSAGE_KEYS = ["role", "content", "name", "refusal", "tool_call_id"] as const;
const PART_KEYS: Readonly<Record<string, string>> = {
  text: "text",
  refusal: "refusal",
  image_url: "image_url",
  input_audio: "input_audio",
  file: "file",
};

/**
 * The value of a request field with OpenAI's own keys alone inside messages and tools: strict hosts
 * answer 400 to the extras that coding agents add (`cache_control` and the like).
 */
export function forwarded(field: string, value: unknown, profile: Profile): unknown {
  if (!Array.isArray(value)) return value;
  if (field === "messages") return value.map((message) => forwardedMessage(message, profile));
  return field === "tools" ? value.map(forwardedTool) : value;
}

function forwardedMessage(message: unknown, profile: Profile): unknown {
  if (!isObject(message)) return message;
  const kept: Record<string, unknown> = {};
  for (const key of MESSAGE_KEYS) {
    if (message[key] !== undefined && (message[key] !== null || key === "content")) {
      kept[key] = message[key];
    }
  }
  if (message["role"] === "developer" && !profile.developerRole) kept["role"] = "system";
  if (Array.isArray(message["content"])) kept["content"] = message["content"].map(forwardedPart);
  if (Array.isArray(message["tool_calls"])) {
    kept["tool_calls"] = message["tool_calls"].map(forwardedToolCall);
  }
  const call = message["function_call"];
  if (isObject(call)) kept["function_call"] = picked(call, ["name", "arguments"]);
  return kept;
}

function forwardedPart(part: unknown): unknown {
  if (!isObject(part)) return part;
  const type = part["type"];
  const key = typeof type === "string" ? PART_KEYS[type] : undefined;
  if (key === undefined) return part;
  const value = part[key];
  const named = type === "file" ? { filename: FILENAME } : {};
  return { type, [key]: isObject(value) ? { ...named, ...withoutNulls(value) } : value };
}

function forwardedToolCall(call: unknown): unknown {
  if (!isObject(call)) return call;
  return {
    ...picked(call, ["id", "type"]),
    ...(isObject(call["function"]) && {
      function: picked(call["function"], ["name", "arguments"]),
    }),
    ...(isObject(call["custom"]) && { custom: picked(call["custom"], ["name", "input"]) }),
  };
}

function forwardedTool(tool: unknown): unknown {
  if (!isObject(tool)) return tool;
  return {
    type: tool["type"],
    ...(isObject(tool["function"]) && {
      function: picked(tool["function"], ["name", "description", "parameters", "strict"]),
    }),
    ...(isObject(tool["custom"]) && {
      custom: picked(tool["custom"], ["name", "description", "format"]),
    }),
  };
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
