import { isObject, listOf } from "../core/json-value.ts";
import type { JsonObject, KnownFields } from "../core/json-value.ts";

const MESSAGE = fields(
  "role content name refusal reasoning reasoning_content reasoning_details tool_calls function_call tool_call_id",
);
const PART = fields("type text image_url file refusal cache_control");
const CALL = fields("id index type function custom extra_content");
const TOOL = fields("type function custom cache_control");
const CALLED = fields("name arguments input");
const DECLARED = fields("name description parameters strict format");
const NAMES_MAX = 100;

/**
 * Returns the names of unknown fields inside messages and tools, for the header `x-dropped`. These
 * fields are never sent to a provider.
 */
export function unknownInside({ messages, tools }: KnownFields<"messages" | "tools">): string[] {
  const found = new Set<string>();
  const look = (value: unknown, known: ReadonlySet<string>, place: string): void => {
    if (!isObject(value) || found.size >= NAMES_MAX) return;
    for (const [field, inner] of Object.entries(value)) {
      if (!known.has(field) && asksSomething(inner)) found.add(`${place}.${field}`);
    }
  };
  for (const message of objects(messages)) {
    const { content, tool_calls: calls }: KnownFields<"content" | "tool_calls"> = message;
    look(message, MESSAGE, "messages");
    for (const part of objects(content)) look(part, PART, "messages.content");
    for (const call of objects(calls)) {
      look(call, CALL, "messages.tool_calls");
      look(calledIn(call), CALLED, "messages.tool_calls.function");
    }
  }
  for (const tool of objects(tools)) {
    look(tool, TOOL, "tools");
    look(calledIn(tool), DECLARED, "tools.function");
  }
  return [...found];
}

function calledIn({ function: called }: KnownFields<"function">): unknown {
  return called;
}

function asksSomething(value: unknown): boolean {
  return value !== null && !(Array.isArray(value) && value.length === 0);
}

function objects(value: unknown): readonly JsonObject[] {
  return listOf(value).filter(isObject);
}

function fields(names: string): ReadonlySet<string> {
  return new Set(names.split(" "));
}
