import type { ChatBody, ChatMessage } from "../../core/core-request.ts";
import { countTokens, splitJsonFragments, splitIntoWords, cutToTokens } from "./tokens.ts";
import { base62Hash } from "../../../shared/hash.ts";
import { isObject, parseObject } from "../../core/json-value.ts";
import type { ProviderFailure } from "../../core/provider.ts";
import {
  parseTools,
  createLegacyFunctionsFailure,
  usesLegacyFunctions,
} from "../../core/conversation.ts";
import type { FunctionTool } from "../../core/conversation.ts";
import { createSchemaInstance } from "./schema-instance.ts";

type SandboxQuestion = {
  readonly userText: string | null;
  readonly results: readonly { readonly tool: string | null; readonly text: string }[];
  readonly callRounds: number;
  readonly messageCount: number;
};

const TOKENS_PER_MESSAGE = 3;

function readSandboxQuestion({ messages }: ChatBody): SandboxQuestion {
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

/**
 * Counts the prompt tokens: each message's text and calls, 3 tokens per message, and the tools'
 * JSON.
 */
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

export type SandboxToolCall = {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
};
type SandboxCallDraft = Omit<SandboxToolCall, "id">;

const ID_CHARACTERS = 24;
const BRACES_MAX = 64;

/**
 * Returns a response's tool calls. The last user message can request calls as `call <tool> <json>`,
 * and each response makes the next one. Otherwise, the response calls the function that
 * `tool_choice` names, or each tool that the message mentions. With the choice `required`, it makes
 * at least one call.
 */
function sandboxCallsFor(
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

function callsWithIds(
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
    const value = createSchemaInstance(parameters, count);
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

export type SandboxReply = {
  readonly content: string | null;
  readonly thought: string;
  readonly calls: readonly SandboxToolCall[];
  readonly finish: "stop" | "length" | "tool_calls";
  readonly tokens: number;
  readonly split: (text: string) => readonly string[];
};

export type SandboxReplyOptions = {
  readonly opening?: string;
  /**
   * Whether the model writes a sentence before its calls, and calls the first tool if none was
   * requested.
   */
  readonly isAgent?: boolean;
  readonly thinks?: boolean;
};

const GREETING = "Hello! Say something as the user and this model repeats it.";

/**
 * Returns one reply per choice. A reply calls the matching tools, reports tool results, or repeats
 * the last user text after `opening`. Output beyond `cap` tokens is cut.
 */
export function createSandboxReplies(
  body: ChatBody,
  cap: number,
  mode: SandboxReplyOptions = {},
): readonly SandboxReply[] | ProviderFailure {
  const { opening = "", thinks = false } = mode;
  if (body.messages.some(usesLegacyFunctions)) return createLegacyFunctionsFailure();
  const conversation = readSandboxQuestion(body);
  const calls = sandboxCallsFor(body, conversation, mode.isAgent === true);
  if ("kind" in calls) return calls;
  const { n: choices = 1 } = body;
  const thought = thinks && body.reasoning_effort !== "none" ? thoughtOf(conversation, cap) : "";
  const tokensLeft = cap - countTokens(thought);
  if (calls.length === 0) {
    const reply = textReply(body, opening + textFor(conversation), tokensLeft);
    return Array.from({ length: choices }, () => ({ ...reply, thought }));
  }
  const { drafts, ...reported } = callReply(calls, tokensLeft, sentenceBefore(calls, mode));
  return Array.from({ length: choices }, (_, index): SandboxReply => {
    const seed = `${conversation.messageCount} ${index} ${conversation.userText ?? ""}`;
    return { ...reported, thought, calls: callsWithIds(drafts, seed), split: splitIntoWords };
  });
}

function thoughtOf({ userText: ask, results }: SandboxQuestion, cap: number): string {
  const plan =
    results.length > 0 ? "I report the results of the tools." : "I repeat what was said.";
  return cutToTokens(`The user said: ${ask ?? "nothing"}. ${plan}`, Math.floor(cap / 2));
}

function textFor(conversation: SandboxQuestion): string {
  if (conversation.results.length === 0) return conversation.userText ?? GREETING;
  return conversation.results
    .map((result) => `${result.tool ?? "The tool"} returned: ${result.text}`)
    .join("\n");
}

function textReply(body: ChatBody, text: string, cap: number): SandboxReply {
  const formatted = formatText(body.response_format, text);
  const fullText = cutAtStop(formatted.text, body.stop);
  const content = cutToTokens(fullText, cap);
  const finish = content.length < fullText.length ? "length" : "stop";
  return {
    content,
    thought: "",
    calls: [],
    finish,
    tokens: countTokens(content),
    split: formatted.split,
  };
}

function formatText(
  format: ChatBody["response_format"],
  text: string,
): Pick<SandboxReply, "split"> & { text: string } {
  if (format === undefined || format.type === "text") return { text, split: splitIntoWords };
  const schema = format.type === "json_schema" ? format.json_schema.schema : undefined;
  const value = schema === undefined ? { echo: text } : createSchemaInstance(schema);
  return { text: JSON.stringify(value), split: splitJsonFragments };
}

function cutAtStop(text: string, stop: ChatBody["stop"]): string {
  let end = text.length;
  for (const sequence of [stop ?? []].flat()) {
    if (sequence === "") continue;
    const at = text.indexOf(sequence);
    if (at >= 0) end = Math.min(end, at);
  }
  return text.slice(0, end);
}

function sentenceBefore(
  calls: readonly SandboxCallDraft[],
  { isAgent = false }: SandboxReplyOptions,
): string {
  return isAgent ? `I call ${calls[0]?.name}.` : "";
}

function callReply(calls: readonly SandboxCallDraft[], cap: number, sentence: string): CallReply {
  const content = sentence === "" ? null : cutToTokens(sentence, cap);
  const drafts: SandboxCallDraft[] = [];
  let tokens = countTokens(content ?? "");
  let isCut = false;
  for (const draft of calls) {
    const tokensLeft = cap - tokens - countTokens(draft.name);
    isCut = tokensLeft < countTokens(draft.arguments);
    if (tokensLeft < 0) break;
    const args = isCut ? cutToTokens(draft.arguments, tokensLeft) : draft.arguments;
    drafts.push({ name: draft.name, arguments: args });
    tokens += countTokens(draft.name) + countTokens(args);
    if (isCut) break;
  }
  return { content, drafts, finish: isCut ? "length" : "tool_calls", tokens };
}

type CallReply = Pick<SandboxReply, "content" | "finish" | "tokens"> & {
  readonly drafts: readonly SandboxCallDraft[];
};
