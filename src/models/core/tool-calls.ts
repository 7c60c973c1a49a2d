import { base62Hash } from "../../shared/hash.ts";
import { isObject, listOf, textOf } from "./json-value.ts";
import type { JsonObject } from "./json-value.ts";
import type { ChatBody, ChatMessage } from "./core-request.ts";

/**
 * Gives tool calls unique IDs, because some hosts repeat IDs and others reject repeated IDs.
 * Matches results to calls by their order.
 */
export class UniqueToolCallIds {
  readonly #usedIds = new Set<string>();
  #openCalls = new Map<string, string[]>();
  readonly #answeredCalls = new Map<string, string>();

  beginTurn(): void {
    this.#openCalls = new Map();
  }

  /** Returns the ID, or a new one if an earlier call has this ID. */
  addCall(id: string): string {
    let sentId = id;
    for (let attempt = 2; this.#usedIds.has(sentId); attempt++) sentId = `${id}_${attempt}`;
    this.#usedIds.add(sentId);
    const open = this.#openCalls.get(id);
    if (open === undefined) this.#openCalls.set(id, [sentId]);
    else open.push(sentId);
    return sentId;
  }

  /** Returns the unique ID of the first call with this client ID and no result yet. */
  addResult(id: string): string {
    const sentId = this.#openCalls.get(id)?.shift() ?? this.#answeredCalls.get(id) ?? id;
    this.#answeredCalls.set(id, sentId);
    return sentId;
  }
}

export type ToolCallIdFormat = { readonly pattern: RegExp; readonly length: number };

/** The format of Mistral's tool call IDs, also on Bedrock: nine letters and digits. */
export const NINE_CHARACTER_ID_FORMAT: ToolCallIdFormat = {
  pattern: /^[a-zA-Z0-9]{9}$/,
  length: 9,
};
/** The format of IDs with at most 64 letters, digits, `_` and `-`. */
export const WORD_CHARACTER_ID_FORMAT: ToolCallIdFormat = {
  pattern: /^[a-zA-Z0-9_-]{1,64}$/,
  length: 24,
};

/**
 * Maps each tool call ID to an ID that the host accepts. Never changes an ID's mapping, because
 * prompt caches would miss.
 */
export class AcceptedToolCallIds {
  readonly #shape: ToolCallIdFormat;
  readonly #idByOriginal = new Map<string, string>();
  readonly #usedIds = new Set<string>();

  constructor(shape: ToolCallIdFormat) {
    this.#shape = shape;
  }

  idFor(id: string): string {
    const known = this.#idByOriginal.get(id);
    if (known !== undefined) return known;
    let fit = this.#shape.pattern.test(id) ? id : base62Hash(id, this.#shape.length);
    for (let attempt = 1; this.#usedIds.has(fit); attempt++) {
      fit = base62Hash(`${attempt} ${id}`, this.#shape.length);
    }
    this.#idByOriginal.set(id, fit);
    this.#usedIds.add(fit);
    return fit;
  }
}

const NAME_MAX = 64;
const VALID_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

function fittingToolName(name: string): string {
  if (VALID_NAME.test(name)) return name;
  const readable = name.replaceAll(/[^a-zA-Z0-9_-]/g, "_").slice(-(NAME_MAX - 9));
  return `${base62Hash(name, 8)}_${readable}`;
}

/**
 * Replaces tool names that providers reject. `origins` maps the new names to the original names.
 */
export class AcceptedToolNames {
  readonly origins = new Map<string, string>();
  readonly #fittingByName = new Map<string, string>();

  constructor(names: Iterable<string>) {
    const all = new Set(names);
    const takenNames = new Set(all);
    for (const name of all) {
      let uniqueName = fittingToolName(name);
      if (uniqueName === name) continue;
      for (let attempt = 1; takenNames.has(uniqueName); attempt++) {
        uniqueName = fittingToolName(`${attempt} ${name}`);
      }
      takenNames.add(uniqueName);
      this.#fittingByName.set(name, uniqueName);
      this.origins.set(uniqueName, name);
    }
  }

  nameFor(name: string): string {
    return this.#fittingByName.get(name) ?? name;
  }
}

export function joinNamespaceAndName(namespace: string | null, name: string): string {
  if (namespace === null) return name;
  return fittingToolName(`${namespace}__${name}`);
}

/**
 * Matches models that support tool namespaces. Earlier models reject namespaces, or the names of
 * OpenAI's tools.
 */
export const MODELS_WITH_TOOL_NAMESPACES = /^gpt-(?:5\.[6-9]|[6-9])/;

export function removeToolNamespaces({ tools, input, ...body }: JsonObject): JsonObject {
  return {
    ...body,
    ...(tools !== undefined && { tools: listOf(tools).filter(isObject).flatMap(flatTools) }),
    input: Array.isArray(input) ? input.filter(isObject).map(flatCall) : input,
  };
}

function flatTools(tool: JsonObject): JsonObject[] {
  if (tool["type"] !== "namespace") return [tool];
  const namespace = textOf(tool["name"]);
  const removeNamespace = (one: JsonObject): JsonObject => {
    return { ...one, name: joinNamespaceAndName(namespace, textOf(one["name"])) };
  };
  return listOf(tool["tools"]).filter(isObject).map(removeNamespace);
}

function flatCall(item: JsonObject): JsonObject {
  const { namespace, ...call } = item;
  if (typeof namespace !== "string") return item;
  return { ...call, name: joinNamespaceAndName(namespace, textOf(call["name"])) };
}

export function normalizeChatHistory(body: ChatBody): ChatBody {
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
  const pairs = new UniqueToolCallIds();
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
  const called = { name: fittingToolName(name), arguments: normalizeArguments(argumentsJson) };
  return { ...call, id, function: called };
}

/**
 * Returns tool arguments as the text of a JSON object. Wraps invalid text in an object, to show the
 * model its mistake.
 */
export function normalizeArguments(text: string): string {
  if (text.trim() === "") return "{}";
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return text;
  } catch {}
  return JSON.stringify({ invalid_arguments: text });
}
