import { ToolCallPairs } from "./call-pairs.ts";
import type { ChatBody, ChatMessage } from "./core-request.ts";
import { fittingToolName } from "./tool-name.ts";
import { isObject } from "./json-value.ts";

export function normalizeBodyHistory(body: ChatBody): ChatBody {
  const hasCalls = body.messages.some(
    (message) => "tool_calls" in message || message.role === "tool",
  );
  return hasCalls ? { ...body, messages: normalizeHistory(body.messages) } : body;
}

/**
 * Makes messages acceptable to every provider: wraps invalid arguments, corrects tool names, and
 * makes call IDs unique.
 */
export function normalizeHistory(messages: readonly ChatMessage[]): ChatMessage[] {
  const pairs = new ToolCallPairs();
  return messages.map((message) => {
    if (message.role === "tool") {
      const id = pairs.addResult(message.tool_call_id);
      return id === message.tool_call_id ? message : { ...message, tool_call_id: id };
    }
    if (message.role !== "assistant" || !message.tool_calls) return message;
    pairs.beginTurn();
    return {
      ...message,
      tool_calls: message.tool_calls.map((call) => normalizeCall(call, pairs.addCall(call.id))),
    };
  });
}

type ToolCall = NonNullable<Extract<ChatMessage, { role: "assistant" }>["tool_calls"]>[number];

function normalizeCall(call: ToolCall, id: string): ToolCall {
  if (call.type === "custom") return { ...call, id };
  const { name, arguments: argumentsJson } = call.function;
  const called = { name: fittingToolName(name), arguments: acceptedArguments(argumentsJson) };
  return { ...call, id, function: called };
}

/**
 * Returns tool arguments as the text of a JSON object. Wraps other text, so that the model sees its
 * mistake.
 */
export function acceptedArguments(text: string): string {
  if (text.trim() === "") return "{}";
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return text;
  } catch {}
  return JSON.stringify({ invalid_arguments: text });
}
