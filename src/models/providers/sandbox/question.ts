import type { ChatBody, ChatMessage } from "../../core/core-request.ts";
import { countTokens } from "./tokens.ts";

export type SandboxQuestion = {
  readonly userText: string | null;
  readonly results: readonly ToolResult[];
  readonly callRounds: number;
  readonly messageCount: number;
};

type ToolResult = { readonly tool: string | null; readonly text: string };

const TOKENS_PER_MESSAGE = 3;

export function readSandboxQuestion({ messages }: ChatBody): SandboxQuestion {
  const lastUserIndex = messages.findLastIndex(({ role }) => role === "user");
  const laterMessages = messages.slice(lastUserIndex + 1);
  const rounds = laterMessages.filter((message) => callsIn(message).length > 0).length;
  const lastOther = messages.findLastIndex(({ role }) => role !== "tool");
  const last = messages[lastOther];
  const names = new Map(last && callsIn(last).map(({ id, name }) => [id, name]));
  const results = messages.slice(lastOther + 1).map((message) => ({
    tool: (message.role === "tool" && names.get(message.tool_call_id)) || null,
    text: contentText(message.content),
  }));
  const text = contentText(messages[lastUserIndex]?.content);
  return {
    userText: text === "" ? null : text,
    results,
    callRounds: rounds,
    messageCount: messages.length,
  };
}

/** Counts the text and calls of each message, 3 tokens per message, and the tools' JSON. */
export function countPromptTokens({ messages, tools = [] }: ChatBody): number {
  let tokens = 0;
  for (const message of messages) {
    tokens += TOKENS_PER_MESSAGE + countTokens(contentText(message.content));
    for (const call of callsIn(message)) {
      tokens += countTokens(call.name) + countTokens(call.arguments);
    }
  }
  return tools.length === 0 ? tokens : tokens + countTokens(JSON.stringify(tools));
}

function callsIn(message: ChatMessage) {
  const calls = (message.role === "assistant" && message.tool_calls) || [];
  return calls.map((call) => {
    const { name, arguments: argumentsJson } =
      call.type === "function" ? call.function : NO_FUNCTION;
    return { id: call.id, name, arguments: argumentsJson };
  });
}

const NO_FUNCTION = { name: "", arguments: "" };

function contentText(content: ChatMessage["content"]): string {
  return typeof content === "string" ? content : (content ?? []).map(partText).join("\n");
}

function partText(part: Exclude<NonNullable<ChatMessage["content"]>, string>[number]): string {
  switch (part.type) {
    case "text":
      return part.text;
    case "refusal":
      return part.refusal;
    case "image_url":
      return "[image]";
    case "file":
      return "[file]";
  }
}
