import { base62Hash } from "../../../shared/hash.ts";
import type { ChatBody } from "../../core/core-request.ts";
import { isObject, parseObject } from "../../core/json-value.ts";
import type { ProviderFailure } from "../../core/provider.ts";
import { parseTools } from "../../core/tools.ts";
import type { FunctionTool } from "../../core/tools.ts";
import type { SandboxQuestion } from "./question.ts";
import { schemaInstance } from "./schema-instance.ts";

/** A tool call. `arguments` is a JSON object as text. */
export type SandboxToolCall = {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
};
export type SandboxCallDraft = Omit<SandboxToolCall, "id">;

const ID_CHARACTERS = 24;
const BRACES_MAX = 64;

/**
 * Returns a response's tool calls. The last user message can request calls as `call <tool> <json>`,
 * one per round. Otherwise, the response calls the function that `tool_choice` names, or each tool
 * that the message mentions, with `required` at least one. `parallel_tool_calls: false` keeps only
 * the first call.
 */
export function sandboxCallsFor(
  body: ChatBody,
  { userText: ask, results, callRounds: rounds }: SandboxQuestion,
  isAgent: boolean,
): readonly SandboxCallDraft[] | ProviderFailure {
  const tools = parseTools({ ...body, tools: functionsIn(body) });
  if ("kind" in tools) return tools;
  const { list, choice, parallel } = tools;
  if (choice === "none") return [];
  const text = ask ?? "";
  const requestedCalls = callsRequestedIn(text, list);
  const requestedCall = requestedCalls[rounds];
  if (requestedCall !== undefined) return [requestedCall];
  if (results.length > 0 || requestedCalls.length > 0) return [];
  let calledTools = toolsMentionedIn(text, list);
  if (typeof choice === "object") calledTools = list.filter(({ name }) => name === choice.name);
  if (calledTools.length === 0 && (choice === "required" || isAgent)) {
    calledTools = list.slice(0, 1);
  }
  return draftCalls(parallel ? calledTools : calledTools.slice(0, 1));
}

function functionsIn({ tools = [] }: ChatBody): NonNullable<ChatBody["tools"]> {
  return tools.filter(({ type }) => type === "function");
}

export function callsWithIds(
  calls: readonly SandboxCallDraft[],
  seed: string,
): readonly SandboxToolCall[] {
  return calls.map(({ name, arguments: args }, index) => {
    const id = `call_${base62Hash(`${seed} ${index} ${name}`, ID_CHARACTERS)}`;
    return { id, name, arguments: args };
  });
}

function draftCalls(tools: readonly FunctionTool[]): readonly SandboxCallDraft[] {
  const countByName = new Map<string, number>();
  return tools.map(({ name, parameters }) => {
    const count = countByName.get(name) ?? 0;
    countByName.set(name, count + 1);
    const value = schemaInstance(parameters, count);
    return { name, arguments: JSON.stringify(isObject(value) ? value : {}) };
  });
}

function toolsMentionedIn(ask: string, tools: readonly FunctionTool[]): readonly FunctionTool[] {
  const byName = new Map(tools.map((tool) => [tool.name.toLowerCase(), tool]));
  const words = ask.toLowerCase().split(/[^a-z0-9_-]+/);
  return words.flatMap((word) => byName.get(word) ?? []);
}

function callsRequestedIn(
  ask: string,
  tools: readonly FunctionTool[],
): readonly SandboxCallDraft[] {
  const requestedCalls: SandboxCallDraft[] = [];
  for (const match of ask.matchAll(/(?:^|\s)call\s+([\w.-]+)\s*(?=\{)/gi)) {
    const tool = tools.find(({ name }) => name === match[1]);
    const json = jsonObjectAt(ask, match.index + match[0].length);
    if (tool !== undefined && json !== null) {
      requestedCalls.push({ name: tool.name, arguments: json });
    }
  }
  return requestedCalls;
}

function jsonObjectAt(text: string, start: number): string | null {
  let tries = 0;
  for (let end = text.indexOf("}", start); end !== -1; end = text.indexOf("}", end + 1)) {
    if (++tries > BRACES_MAX) return null;
    const json = text.slice(start, end + 1);
    if (parseObject(json) !== null) return json;
  }
  return null;
}
