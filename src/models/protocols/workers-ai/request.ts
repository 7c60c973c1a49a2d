import {
  joinContentText,
  createRefusalFailure,
  createUnsupportedFailure,
  usesLegacyFunctions,
  parseTools,
  toOpenAiTool,
} from "../../core/conversation.ts";
import { reportDroppedFields } from "../../core/dropped-fields.ts";
import type { SentFieldPaths } from "../../core/dropped-fields.ts";
import type { ChatBody, ChatMessage } from "../../core/core-request.ts";
import type { JsonObject, ChatCall, ProviderFailure } from "../../core/provider.ts";
import { pickFields } from "../../core/json-value.ts";
import { NINE_CHARACTER_ID_FORMAT, AcceptedToolCallIds } from "../../core/tool-calls.ts";
import type { RequestedTools } from "../../core/conversation.ts";

type Family = {
  readonly pattern: RegExp;
  /** Whether the models accept OpenAI's `json_schema`, `stop` and `strict`. */
  readonly acceptsOpenAiFields?: true;
  readonly efforts?: readonly string[];
  readonly hasThinkingSwitch?: true;
  readonly requiresNineCharacterIds?: true;
  /** The vector pooling. Never change it: vectors with different poolings can't be compared. */
  readonly pooling?: "cls";
};

const FAMILIES: readonly Family[] = [
  { pattern: /gpt-oss/, acceptsOpenAiFields: true, efforts: ["low", "medium", "high"] },
  { pattern: /glm-5\.3/, acceptsOpenAiFields: true, efforts: ["low", "high", "max"] },
  {
    pattern: /glm-5|deepseek-v4/,
    acceptsOpenAiFields: true,
    efforts: ["none", "low", "high", "max"],
  },
  { pattern: /kimi-k2\.5/, acceptsOpenAiFields: true, efforts: ["low", "medium", "high"] },
  { pattern: /kimi-k2\.6/, acceptsOpenAiFields: true, efforts: ["none", "high"] },
  { pattern: /qwen3\.8/, acceptsOpenAiFields: true, efforts: ["low", "medium", "xhigh"] },
  { pattern: /glm-4|nemotron|gemma-4/, acceptsOpenAiFields: true, hasThinkingSwitch: true },
  { pattern: /kimi|glm/, acceptsOpenAiFields: true },
  { pattern: /mistral/, requiresNineCharacterIds: true },
  { pattern: /bge-(small|base|large)/, pooling: "cls" },
];

const OTHER_FAMILY: Family = { pattern: /^/ };

export function getWorkersAiModelFamily(model: string): Family {
  return FAMILIES.find((family) => family.pattern.test(model)) ?? OTHER_FAMILY;
}

const ALL_EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/**
 * Returns the nearest supported effort, or null. Prefers the higher of two equally near efforts.
 * Returns "none" only if requested.
 */
function nearestEffort(requested: string, supported: readonly string[]): string | null {
  if (supported.includes(requested)) return requested;
  const distance = (effort: string) =>
    Math.abs(ALL_EFFORTS.indexOf(effort) - ALL_EFFORTS.indexOf(requested));
  let nearest: string | null = null;
  for (const effort of supported) {
    if (effort === "none") continue;
    if (nearest === null || distance(effort) <= distance(nearest)) nearest = effort;
  }
  return nearest;
}

const FORWARDED_FIELDS = [
  "frequency_penalty",
  "presence_penalty",
  "repetition_penalty",
  "seed",
  "temperature",
  "top_k",
  "top_p",
];

/** Returns a chat model's inputs, or a failure for images by URL and for several choices. */
export function toWorkersAiChatInputs(call: ChatCall): JsonObject | ProviderFailure {
  const { body, cap, stream, upstreamId } = call;
  if ((body.n ?? 1) > 1) return createUnsupportedFailure("Several choices", "n");
  const tools = parseTools(body);
  if ("kind" in tools) return tools;
  const isOpenAi = getWorkersAiModelFamily(upstreamId).acceptsOpenAiFields === true;
  const messages = messagesOf(body, upstreamId);
  if ("kind" in messages) return messages;
  const fields = isOpenAi ? [...FORWARDED_FIELDS, "stop"] : FORWARDED_FIELDS;
  const inputs = {
    messages,
    ...pickFields(body, fields),
    max_tokens: cap,
    ...(stream && { stream }),
    ...toolInputs(tools, isOpenAi),
    ...responseFormat(body.response_format, isOpenAi),
    ...reasoningFields(body.reasoning_effort, upstreamId),
  };
  reportDroppedFields(call, inputs, SENT_FIELD_PATHS);
  return inputs;
}

const SENT_FIELD_PATHS: SentFieldPaths = {
  ...Object.fromEntries([...FORWARDED_FIELDS, "stop"].map((field) => [field, [field]])),
  reasoning_effort: ["reasoning_effort", "chat_template_kwargs"],
};

function messagesOf(
  { messages }: ChatBody,
  model: string,
): readonly JsonObject[] | ProviderFailure {
  const nineCharacterIds =
    getWorkersAiModelFamily(model).requiresNineCharacterIds === true
      ? new AcceptedToolCallIds(NINE_CHARACTER_ID_FORMAT)
      : null;
  const idFor = (id: string): string => nineCharacterIds?.idFor(id) ?? id;
  const names = new Map<string, string>();
  const converted: JsonObject[] = [];
  for (const [index, message] of messages.entries()) {
    const problem = messageProblem(message, `messages[${index}]`);
    if (problem !== null) return problem;
    const functions = callsOf(message).filter((call) => call.type === "function");
    for (const call of functions) names.set(call.id, call.function.name);
    const resultCallId = message.role === "tool" ? message.tool_call_id : "";
    const nameField = message.name ?? names.get(resultCallId);
    converted.push({
      role: message.role === "developer" ? "system" : message.role,
      content: contentOf(message),
      ...(nameField !== undefined && { name: nameField }),
      ...(functions.length > 0 && {
        tool_calls: functions.map(({ id, function: { name, arguments: argumentsJson } }) => ({
          id: idFor(id),
          type: "function",
          function: { name, arguments: argumentsJson.trim() === "" ? "{}" : argumentsJson },
        })),
      }),
      ...(resultCallId !== "" && { tool_call_id: idFor(resultCallId) }),
    });
  }
  return converted;
}

function callsOf(message: ChatMessage) {
  return (message.role === "assistant" && message.tool_calls) || [];
}

function messageProblem(message: ChatMessage, place: string): ProviderFailure | null {
  if (usesLegacyFunctions(message)) return createUnsupportedFailure("Legacy function calls", place);
  const custom = callsOf(message).findIndex(({ type }) => type === "custom");
  return custom === -1
    ? imageProblem(message.content, place)
    : createUnsupportedFailure("Custom tool calls", `${place}.tool_calls[${custom}]`);
}

function contentOf(message: ChatMessage): unknown {
  const { content } = message;
  const hasImage = Array.isArray(content) && content.some(({ type }) => type === "image_url");
  if (hasImage) return content;
  const text = joinContentText(content as Parameters<typeof joinContentText>[0]);
  return text || (message.role === "assistant" && message.refusal) || "";
}

function imageProblem(content: ChatMessage["content"], place: string): ProviderFailure | null {
  if (!Array.isArray(content)) return null;
  for (const [at, part] of content.entries()) {
    if (part.type !== "image_url" || /^data:/i.test(part.image_url.url)) continue;
    return createRefusalFailure(
      "This model only supports images as data URLs.",
      `${place}.content[${at}].image_url`,
    );
  }
  return null;
}

/** Returns no tools for the choice `none`, because its effect isn't documented. */
function toolInputs({ list, choice }: RequestedTools, isOpenAi: boolean): JsonObject {
  if (list.length === 0 || choice === "none") return {};
  const tools = list.map((tool) => toOpenAiTool(tool, isOpenAi));
  if (choice === "auto") return { tools };
  const toolChoice = choice === "required" ? choice : { type: "function", function: choice };
  return { tools, tool_choice: toolChoice };
}

function responseFormat(format: ChatBody["response_format"], isOpenAi: boolean): JsonObject {
  if (format === undefined || format.type === "text") return {};
  if (format.type === "json_object") return { response_format: { type: "json_object" } };
  if (isOpenAi) return { response_format: format };
  const { schema = {} } = format.json_schema;
  return { response_format: { type: "json_schema", json_schema: schema } };
}

function reasoningFields(requested: ChatBody["reasoning_effort"], model: string): JsonObject {
  const { efforts = [], hasThinkingSwitch: thinkingSwitch } = getWorkersAiModelFamily(model);
  if (requested === undefined) return {};
  if (thinkingSwitch === true) {
    return { chat_template_kwargs: { enable_thinking: requested !== "none" } };
  }
  const effort = nearestEffort(requested, efforts);
  return effort === null ? {} : { reasoning_effort: effort };
}

export function workersAiIgnoresEffortNone(model: string): boolean {
  return getWorkersAiModelFamily(model).efforts?.includes("none") === false;
}
