import type { JsonObject } from "../../core/provider.ts";
import { listOf, objectOf, textOf } from "../../core/json-value.ts";
import { countTokens } from "./tokens.ts";

/** What the sandbox reads out of a chat request's messages. */
export type Asked = {
  /** The text of the last user message; null when there is none. */
  readonly ask: string | null;
  /** The tool messages at the end, in order: what the last round of calls brought. */
  readonly results: readonly ToolResult[];
  /** How often calls were made since the user last spoke. */
  readonly rounds: number;
  /** How many messages there are: tells the turns of one conversation apart. */
  readonly turn: number;
};

export type ToolResult = { readonly tool: string | null; readonly text: string };

const TOKENS_PER_MESSAGE = 3;

export function readAsked(body: JsonObject): Asked {
  const messages = listOf(body["messages"]).map(objectOf);
  const asked = messages.findLastIndex((message) => message["role"] === "user");
  const ask = messages[asked];
  const since = messages.slice(asked + 1);
  const rounds = since.filter((message) => listOf(message["tool_calls"]).length > 0).length;
  const lastOther = messages.findLastIndex((message) => message["role"] !== "tool");
  const names = callNames(messages[lastOther]);
  const results = messages.slice(lastOther + 1).map((message) => ({
    tool: names.get(textOf(message["tool_call_id"])) ?? null,
    text: contentText(message["content"]),
  }));
  const text = ask === undefined ? "" : contentText(ask["content"]);
  return { ask: text === "" ? null : text, results, rounds, turn: messages.length };
}

/** Prompt tokens: every message's text and tool calls, 3 for each message, and the tools' JSON. */
export function countPrompt(body: JsonObject): number {
  let tokens = 0;
  for (const item of listOf(body["messages"])) {
    const message = objectOf(item);
    tokens += TOKENS_PER_MESSAGE + countTokens(contentText(message["content"]));
    for (const call of listOf(message["tool_calls"])) {
      const { name, arguments: args } = objectOf(objectOf(call)["function"]);
      tokens += countTokens(textOf(name)) + countTokens(textOf(args));
    }
  }
  const tools = listOf(body["tools"]);
  return tools.length === 0 ? tokens : tokens + countTokens(JSON.stringify(tools));
}

/** A message's text: its text parts on lines of their own, other parts as `[image]`, `[audio]`, `[file]`. */
function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  return listOf(content).map(partText).join("\n");
}

function partText(value: unknown): string {
  const part = objectOf(value);
  switch (part["type"]) {
    case "text":
      return textOf(part["text"]);
    case "refusal":
      return textOf(part["refusal"]);
    case "image_url":
      return "[image]";
    case "input_audio":
      return "[audio]";
    default:
      return "[file]";
  }
}

function callNames(message: JsonObject | undefined): ReadonlyMap<string, string> {
  const calls = listOf(message?.["tool_calls"]).map(objectOf);
  return new Map(
    calls.map((call) => [textOf(call["id"]), textOf(objectOf(call["function"])["name"])]),
  );
}
