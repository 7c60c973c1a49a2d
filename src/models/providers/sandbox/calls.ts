import { hashedBase62 } from "../../../shared/hash.ts";
import type { ChatBody } from "../../core/core-request.ts";
import { isObject, parseObject } from "../../core/json-value.ts";
import type { ProviderFailure } from "../../core/provider.ts";
import { toolsOf } from "../../core/tools.ts";
import type { Tool } from "../../core/tools.ts";
import type { Question } from "./question.ts";
import { instanceOf } from "./schema-instance.ts";

/** A call as OpenAI shows it; `arguments` is JSON text of an object. */
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: string };
/** The same without its id, which tells choices and turns apart. */
export type CallDraft = Omit<ToolCall, "id">;

const ID_CHARACTERS = 24;
/** Each brace is a try: a text of nothing else may not take for ever. */
const BRACES_MAX = 64;

/**
 * What is called now; nothing: answer with text.
 * - what the last user message orders as `call <tool> <json>`, one order in each round of calls since;
 * - after a tool's result nothing (so every loop ends);
 * - the function that `tool_choice` names, whatever the text;
 * - else each tool as often as its name stands in the last user message, with other arguments each time;
 * - else, with `required` and for an agent, the first.
 * `parallel_tool_calls: false` leaves the first call only.
 */
export function callsFor(
  body: ChatBody,
  { ask, results, rounds }: Question,
  isAgent: boolean,
): readonly CallDraft[] | ProviderFailure {
  const tools = toolsOf({ ...body, tools: functionsIn(body) });
  if ("kind" in tools) return tools;
  const { list, choice, parallel } = tools;
  if (choice === "none") return [];
  const text = ask ?? "";
  const orders = ordersIn(text, list);
  const order = orders[rounds];
  if (order !== undefined) return [order];
  if (results.length > 0 || orders.length > 0) return [];
  let called = namedIn(text, list);
  if (typeof choice === "object") called = list.filter(({ name }) => name === choice.name);
  if (called.length === 0 && (choice === "required" || isAgent)) called = list.slice(0, 1);
  return drafts(parallel ? called : called.slice(0, 1));
}

function functionsIn({ tools = [] }: ChatBody): NonNullable<ChatBody["tools"]> {
  return tools.filter(({ type }) => type === "function");
}

/** The drafts with ids that depend on `seed` and position alone. */
export function withIds(calls: readonly CallDraft[], seed: string): readonly ToolCall[] {
  return calls.map(({ name, arguments: args }, index) => {
    const id = `call_${hashedBase62(`${seed} ${index} ${name}`, ID_CHARACTERS)}`;
    return { id, name, arguments: args };
  });
}

/** Made from the tools' schemas; a tool that is called again gets other arguments where its schema leaves room. */
function drafts(tools: readonly Tool[]): readonly CallDraft[] {
  const times = new Map<string, number>();
  return tools.map(({ name, parameters }) => {
    const time = times.get(name) ?? 0;
    times.set(name, time + 1);
    const value = instanceOf(parameters, time);
    return { name, arguments: JSON.stringify(isObject(value) ? value : {}) };
  });
}

/** The tools whose name stands in a text, in its order and as often. */
function namedIn(ask: string, tools: readonly Tool[]): readonly Tool[] {
  const byName = new Map(tools.map((tool) => [tool.name.toLowerCase(), tool]));
  const words = ask.toLowerCase().split(/[^a-z0-9_-]+/);
  return words.flatMap((word) => byName.get(word) ?? []);
}

/** `call <tool> <json>` in a text, in order; what names no tool or has no JSON object behind it is no such order. */
function ordersIn(ask: string, tools: readonly Tool[]): readonly CallDraft[] {
  const orders: CallDraft[] = [];
  for (const match of ask.matchAll(/(?:^|\s)call\s+([\w.-]+)\s*(?=\{)/gi)) {
    const tool = tools.find(({ name }) => name === match[1]);
    const json = objectAt(ask, match.index + match[0].length);
    if (tool !== undefined && json !== null) orders.push({ name: tool.name, arguments: json });
  }
  return orders;
}

/** The JSON object that begins there, as it was written; null where there is none. */
function objectAt(text: string, start: number): string | null {
  let tries = 0;
  for (let end = text.indexOf("}", start); end !== -1; end = text.indexOf("}", end + 1)) {
    if (++tries > BRACES_MAX) return null;
    const json = text.slice(start, end + 1);
    if (parseObject(json) !== null) return json;
  }
  return null;
}
