import type { JsonObject, ProviderFailure } from "../provider.ts";
import type { Conversation } from "./conversation.ts";
import { listOf, objectOf, parseObject, textOf } from "../json-value.ts";

/** A function that the client offers; `parameters` is its JSON schema, undefined when it takes none. */
export type Tool = {
  readonly name: string;
  readonly parameters: unknown;
};

/** The tools to call now, one entry for each call; none means: answer with text. */
export type ToolChoice =
  | { readonly ok: true; readonly tools: readonly Called[] }
  | { readonly ok: false; readonly failure: ProviderFailure };

/** A tool to call; `arguments` is JSON text where the client has said it. */
export type Called = Tool & { readonly arguments?: string };

/**
 * Decides which tools are called:
 * - with `tool_choice: "none"` none;
 * - what the last user message orders as `call <tool> <json>`, one order in each round of calls since;
 * - after a tool's result none (so every loop ends);
 * - a named function: that one;
 * - otherwise those whose name stands in the last user message, and when none does: with `required`, and
 *   where `isEager`, the first; else none.
 * One tool is called twice when the text says "two" or "twice". `parallel_tool_calls: false` leaves
 * the first call only. A choice that names a tool that is not there is refused, as OpenAI does.
 */
export function chooseTools(
  body: JsonObject,
  { ask, results, rounds }: Conversation,
  isEager: boolean,
): ToolChoice {
  const wish = readWish(body);
  if (!wish.ok) return wish;
  const text = ask ?? "";
  const orders = ordersIn(text, wish.tools);
  const order = orders[rounds];
  if (order !== undefined) return { ok: true, tools: [order] };
  if (results.length > 0 || orders.length > 0) return { ok: true, tools: [] };
  let chosen = fitting(wish, text, isEager);
  if (chosen.length === 1 && /\b(?:two|twice)\b/i.test(text)) chosen = [...chosen, ...chosen];
  if (body["parallel_tool_calls"] === false) chosen = chosen.slice(0, 1);
  return { ok: true, tools: chosen };
}

function fitting(
  { tools, named, forced }: Extract<Wish, { ok: true }>,
  text: string,
  isEager: boolean,
): readonly Tool[] {
  const chosen = named ? tools : namedIn(text, tools);
  return chosen.length === 0 && (forced || isEager) ? tools.slice(0, 1) : chosen;
}

type Wish =
  | {
      readonly ok: true;
      readonly tools: readonly Tool[];
      readonly forced: boolean;
      readonly named: boolean;
    }
  | { readonly ok: false; readonly failure: ProviderFailure };

function readWish(body: JsonObject): Wish {
  const tools = readTools(body["tools"]);
  const choice = body["tool_choice"] ?? "auto";
  if (choice === "none") return { ok: true, tools: [], forced: false, named: false };
  if (choice === "auto") return { ok: true, tools, forced: false, named: false };
  if (tools.length === 0) return refuse("'tool_choice' needs at least one function in 'tools'.");
  if (choice === "required") return { ok: true, tools, forced: true, named: false };
  const { type, function: named, allowed_tools: allowed } = objectOf(choice);
  if (type === "function") {
    const tool = tools.find((candidate) => candidate.name === objectOf(named)["name"]);
    if (tool === undefined) return refuse("'tool_choice' names a function that 'tools' lacks.");
    return { ok: true, tools: [tool], forced: true, named: true };
  }
  if (type !== "allowed_tools") return refuse("This model calls functions only.");
  const names = listOf(objectOf(allowed)["tools"]).map(
    (tool) => objectOf(objectOf(tool)["function"])["name"],
  );
  const some = tools.filter((tool) => names.includes(tool.name));
  if (some.length < names.length) return refuse("'tool_choice' allows a tool that 'tools' lacks.");
  const forced = objectOf(allowed)["mode"] === "required";
  return { ok: true, tools: some, forced, named: false };
}

function readTools(value: unknown): readonly Tool[] {
  const tools: Tool[] = [];
  for (const item of listOf(value)) {
    const fn = objectOf(objectOf(item)["function"]);
    const name = textOf(fn["name"]);
    if (objectOf(item)["type"] !== "function" || name === "") continue;
    tools.push({ name, parameters: fn["parameters"] });
  }
  return tools;
}

function refuse(message: string): Wish {
  const detail = { message, param: "tool_choice", code: null, reason: "400" };
  return { ok: false, failure: { kind: "refused", ...detail } };
}

/** The tools whose name stands in a text. */
function namedIn(ask: string, tools: readonly Tool[]): readonly Tool[] {
  const names = new Set(ask.split(/[^A-Za-z0-9_-]+/).map((name) => name.toLowerCase()));
  return tools.filter((tool) => names.has(tool.name.toLowerCase()));
}

/** `call <tool> <json>` in a text, in order; what names no tool or has no JSON object behind it is no such order. */
function ordersIn(ask: string, tools: readonly Tool[]): readonly Called[] {
  const orders: Called[] = [];
  for (const match of ask.matchAll(/(?:^|\s)call\s+([\w.-]+)\s*(?=\{)/gi)) {
    const tool = tools.find(({ name }) => name === match[1]);
    const json = objectAt(ask, match.index + match[0].length);
    if (tool !== undefined && json !== null) orders.push({ ...tool, arguments: json });
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

/** Each brace is a try: a text of nothing else may not take for ever. */
const BRACES_MAX = 64;
