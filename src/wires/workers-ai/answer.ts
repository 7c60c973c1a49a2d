import type { Usage } from "../../lib/usage.ts";
import { ChunkBuilder } from "../../core/chunk-builder.ts";
import type { FinishReason } from "../../core/chunk-builder.ts";
import { completionOf } from "../../core/completion.ts";
import type { SaidTool } from "../../core/completion.ts";
import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import { argumentsText, brokenOff } from "../../core/chat-message.ts";
import { readUsage } from "../../core/chat-usage.ts";
import type {
  Answer,
  JsonObject,
  ChatCall,
  ProviderFailure,
  StreamEvent,
} from "../../core/provider.ts";
import { textIn, withSpent } from "../../core/spent.ts";
import { toolsOf } from "../../core/tools.ts";
import { pieceOf } from "./piece.ts";

/** A chat answer in either form as OpenAI's completion; null when it is none. */
export function chatAnswer(whole: JsonObject, call: ChatCall): Answer | ProviderFailure | null {
  const raw = isObject(whole["result"]) ? whole["result"] : whole;
  const isAnswer = listOf(raw["choices"]).length > 0 || "response" in raw || "tool_calls" in raw;
  if (!isAnswer) return null;
  const { text, reasoning, calls, finish } = pieceOf(raw);
  const named = calls.filter((one) => one.name !== "");
  const leaked = named.length === 0 ? leakedCalls(text, call) : [];
  const tools = leaked.length > 0 ? leaked : named;
  const usage = readUsage(raw["usage"], "chat");
  if (finish === "error" || finish === "abort") {
    const { body } = completionOf([{ content: text, reasoning, tools, finish: "stop" }], null);
    return withSpent(brokenOff(finish), { usage, said: textIn(body) });
  }
  const said = {
    content: leaked.length > 0 ? null : text,
    reasoning,
    tools,
    finish: tools.length > 0 ? "stop" : (finish ?? guessedFinish(usage, call.cap)),
  };
  return completionOf([said], usage);
}

/** Workers AI's own form names no reason: an answer as long as its cap was cut by it. */
export function guessedFinish(usage: Usage | null, cap: number | null): FinishReason {
  return usage !== null && cap !== null && usage.output >= cap ? "length" : "stop";
}

/** gpt-oss may write a call that it was forced to make as its text: the calls in it, or none. */
function leakedCalls(text: string, call: ChatCall): readonly SaidTool[] {
  const tools = toolsOf(call.body);
  if ("kind" in tools || tools.choice === "auto" || tools.choice === "none") return [];
  const names = new Set<unknown>(tools.list.map((tool) => tool.name));
  const said = parsedList(text);
  if (!said.every((one) => isObject(one) && names.has(one["name"]))) return [];
  return said.filter(isObject).map(({ name, arguments: given, parameters, ...rest }) => ({
    id: null,
    name: textOf(name),
    arguments: argumentsText(given ?? parameters ?? rest),
  }));
}

function parsedList(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : [value];
  } catch {
    return [];
  }
}

/** A completion as the events of a stream. */
export function streamOf({ body, usage }: Answer): StreamEvent[] {
  const choice = objectOf(listOf(body["choices"])[0]);
  const message = objectOf(choice["message"]);
  const builder = new ChunkBuilder();
  const events = [
    ...builder.begin(),
    ...builder.reasoning(textOf(message["reasoning_content"])),
    ...builder.text(textOf(message["content"])),
  ];
  for (const tool of listOf(message["tool_calls"]).filter(isObject)) {
    const called = objectOf(tool["function"]);
    events.push(...builder.tool(textOf(tool["id"]), textOf(called["name"])));
    events.push(...builder.toolArguments(textOf(called["arguments"])));
  }
  events.push(...builder.finish(choice["finish_reason"] as FinishReason));
  if (usage !== null) events.push({ kind: "usage", usage });
  return [...events, { kind: "end" }];
}
