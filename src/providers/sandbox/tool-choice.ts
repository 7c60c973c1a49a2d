import type { JsonObject, ProviderFailure } from "../provider.ts";
import type { Conversation } from "./conversation.ts";
import { listOf, objectOf, textOf } from "../json-value.ts";

/** A function that the client offers; `parameters` is its JSON schema, undefined when it takes none. */
export type Tool = {
  readonly name: string;
  readonly description: string;
  readonly parameters: unknown;
};

/** The tools to call now, one entry for each call; none means: answer with text. */
export type ToolChoice =
  | { readonly ok: true; readonly tools: readonly Tool[] }
  | { readonly ok: false; readonly failure: ProviderFailure };

/**
 * Decides which tools are called:
 * - after a tool's result, and with `tool_choice: "none"`, none (so every loop ends);
 * - a named function: that one;
 * - otherwise those that the last user text asks for (see `askedFor`), and when it asks for none:
 *   with `required` the first, with `auto` none.
 * One tool is called twice when the text says "two" or "twice". `parallel_tool_calls: false` leaves
 * the first call only. A choice that names a tool that is not there is refused, as OpenAI does.
 */
export function chooseTools(body: JsonObject, conversation: Conversation): ToolChoice {
  const wish = readWish(body);
  if (!wish.ok) return wish;
  if (conversation.results.length > 0) return { ok: true, tools: [] };
  const ask = conversation.ask ?? "";
  let chosen = wish.named ? wish.tools : askedFor(ask, wish.tools);
  if (chosen.length === 0 && wish.forced) chosen = wish.tools.slice(0, 1);
  if (chosen.length === 1 && /\b(?:two|twice)\b/i.test(ask)) chosen = [...chosen, ...chosen];
  if (body["parallel_tool_calls"] === false) chosen = chosen.slice(0, 1);
  return { ok: true, tools: chosen };
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
    tools.push({ name, description: textOf(fn["description"]), parameters: fn["parameters"] });
  }
  return tools;
}

function refuse(message: string): Wish {
  const detail = { message, param: "tool_choice", code: null, reason: "400" };
  return { ok: false, failure: { kind: "refused", ...detail } };
}

/**
 * The tools that a text asks for, by the first of these rules that finds any:
 * 1. tools whose whole name stands in it;
 * 2. tools whose name has a word in it that no other tool's name has;
 * 3. the one tool whose name and description share most words with it, the first of equals.
 * Words are compared in lower case; "get", "the" and their like count for nothing.
 */
function askedFor(ask: string, tools: readonly Tool[]): readonly Tool[] {
  if (tools.length === 0) return [];
  const names = new Set(ask.split(/[^A-Za-z0-9_-]+/).map((name) => name.toLowerCase()));
  const whole = tools.filter((tool) => names.has(tool.name.toLowerCase()));
  if (whole.length > 0) return whole;
  const asked = tellingWords(ask);
  const nameWords = tools.map((tool) => tellingWords(tool.name));
  const owners = new Map<string, number>();
  for (const word of nameWords.flatMap((words) => [...words])) {
    owners.set(word, (owners.get(word) ?? 0) + 1);
  }
  const own = tools.filter((_, i) =>
    [...(nameWords[i] ?? [])].some((word) => asked.has(word) && owners.get(word) === 1),
  );
  return own.length > 0 ? own : nearest(asked, tools);
}

function nearest(asked: ReadonlySet<string>, tools: readonly Tool[]): readonly Tool[] {
  let best: Tool | undefined;
  let most = 0;
  for (const tool of tools) {
    const words = tellingWords(`${tool.name} ${tool.description}`);
    const shared = [...words].filter((word) => asked.has(word)).length;
    if (shared > most) [best, most] = [tool, shared];
  }
  return best === undefined ? [] : [best];
}

/** The lower-case words of a text or a snake_case or camelCase name that tell what it is about. */
function tellingWords(text: string): Set<string> {
  const words = text.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  return new Set((words.match(/[\p{L}\p{N}]{3,}/gu) ?? []).filter((word) => !COMMON.has(word)));
}

const COMMON = new Set(
  (
    "about all and any are based been before below call can current data default details does each example " +
    "fetch for from function get given has have here how if information input into its let list make may more " +
    "must name not now one only optional our output parameter parameters please provide provided return returns " +
    "run set should some specific specified such tell that the their them then there these they this tool two " +
    "twice use used user using value values want was what when where which who why will with would you your"
  ).split(" "),
);
