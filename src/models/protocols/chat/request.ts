import { createRefusalFailure } from "../../core/conversation.ts";
import { reportUnsentFields } from "../../core/dropped-fields.ts";
import { readToolCallExtras } from "../../core/chat-message.ts";
import { isObject, pickFields, removeNulls } from "../../core/json-value.ts";
import type {
  ChatCall,
  EmbeddingsCall,
  JsonObject,
  ProviderCall,
  ProviderFailure,
} from "../../core/provider.ts";
import { getOpenRouterDetails, toPlainChatBody } from "./plain-body.ts";
import type { HostProfile, ReturnedField, FieldRule } from "./profile.ts";
import { DEFAULT_PDF_FILENAME } from "../../core/core-request.ts";
import type { ChatBody, ChatMessage } from "../../core/core-request.ts";
import type { AssistantToolCall } from "../../core/conversation.ts";

export type UpstreamRequest = { readonly body: JsonObject } | ProviderFailure;

export function toOpenAiChatRequest(call: ChatCall, profile: HostProfile): UpstreamRequest {
  const { plainStyle: plain, chatFields, chatExtras, requiredFields: implied = [] } = profile;
  if (chatFields.size === 0) return UNSUPPORTED;
  if (!chatFields.has("n") && (call.body.n ?? 1) > 1) {
    return createRefusalFailure("This model returns only one choice, so 'n' must be 1.", "n");
  }
  const source =
    plain === undefined ? { body: call.body } : toPlainChatBody(call.body, plain, call.upstreamId);
  if (!("body" in source)) return source;
  const body: Record<string, unknown> = { model: call.upstreamId, ...chatExtras };
  addFields(body, source.body, { call, profile, allowed: chatFields });
  for (const { models, whenField: beside, fields } of implied) {
    const isRequired = body[beside] !== undefined && models.test(call.upstreamId);
    if (isRequired) Object.assign(body, { ...fields, ...body });
  }
  body[profile.capField] = call.cap;
  if (call.stream) Object.assign(body, streamFlags(profile));
  return { body };
}

export function toOpenAiEmbeddingsRequest(
  call: EmbeddingsCall,
  profile: HostProfile,
): UpstreamRequest {
  const { embeddingFields: allowed, embeddingExtras } = profile;
  if (allowed.size === 0) return UNSUPPORTED;
  const body = { model: call.upstreamId, ...embeddingExtras };
  addFields(body, call.body, { call, profile, allowed });
  return { body };
}

const UNSUPPORTED: ProviderFailure = { kind: "disabled", reason: "unsupported" };

type FieldSelection = {
  readonly call: ProviderCall;
  readonly profile: HostProfile;
  readonly allowed: ReadonlySet<string>;
};

function addFields(
  body: Record<string, unknown>,
  source: JsonObject,
  { call, profile, allowed }: FieldSelection,
): void {
  const rules = rulesFor(call.upstreamId, call.body, profile);
  const unsentFields = new Set<string>();
  const isPlain = profile.plainStyle !== undefined; // Messages and tools are already converted.
  for (const [field, value] of Object.entries(source)) {
    const replaced = allowed.has(field) ? applyRules(field, value ?? null, rules) : null;
    if (replaced === null) unsentFields.add(field);
    if (replaced === null) continue;
    if (replaced !== value && isObject(replaced)) Object.assign(body, replaced);
    else {
      body[profile.nameByField?.[field] ?? field] = isPlain
        ? replaced
        : forwardField(field, replaced, profile);
    }
  }
  reportUnsentFields(
    call,
    (field) => !unsentFields.has(field),
    profile.plainStyle?.keepsCacheMarks,
  );
}

function streamFlags({ streamOptions }: HostProfile): JsonObject {
  return streamOptions === null
    ? { stream: true }
    : { stream: true, stream_options: streamOptions };
}

/**
 * Reports whether the provider's rules drop or replace the effort `none`, so that it has no effect.
 */
export function ignoresEffortNoneByProfile(profile: HostProfile, upstreamId: string): boolean {
  const body = { reasoning_effort: "none" };
  const sent = applyRules("reasoning_effort", "none", rulesFor(upstreamId, body, profile));
  return sent === null || (typeof sent === "string" && sent !== "none");
}

function rulesFor(
  upstreamId: string,
  body: JsonObject,
  { rules = [] }: HostProfile,
): readonly FieldRule[] {
  return rules.filter(
    ({ models, unless }) =>
      models?.test(upstreamId) !== false && (unless === undefined || body[unless[0]] !== unless[1]),
  );
}

function applyRules(field: string, value: unknown, rules: readonly FieldRule[]): unknown {
  const rule = rules.find(({ fields }) => fields.includes(field));
  if (rule === undefined) return value;
  if (rule.values === undefined) return null;
  const isMappedValue = typeof value === "string" && Object.hasOwn(rule.values, value);
  return isMappedValue ? rule.values[value] : value;
}

/** Removes fields that coding agents send but strict hosts reject with 400. */
function forwardField(field: string, value: unknown, profile: HostProfile): unknown {
  if (field === "messages") {
    return (value as ChatBody["messages"]).map((message) => forwardMessage(message, profile));
  }
  return field === "tools" ? (value as Tool[]).map(forwardTool) : value;
}

function forwardMessage(message: ChatMessage, profile: HostProfile): JsonObject {
  const { acceptsDeveloperRole: developerRole } = profile;
  const { role, content } = message;
  const parts = Array.isArray(content) ? content.map(forwardPart) : content;
  return {
    role: role === "developer" && !developerRole ? "system" : role,
    ...(parts !== undefined && { content: parts }),
    ...pickFields(message, ["name", "refusal", "tool_call_id"]),
    ...(role === "assistant" && forwardAssistantFields(message, profile)),
  };
}

function forwardAssistantFields(
  message: Extract<ChatMessage, { role: "assistant" }>,
  { returnedFields: returned = [] }: HostProfile,
): JsonObject {
  const { tool_calls: calls, function_call: legacyCall } = message;
  const { reasoning_content: reasoning, reasoning_details: reasoningDetails } = message;
  const details = getOpenRouterDetails(reasoningDetails);
  const isReturned = (field: ReturnedField): boolean => returned.includes(field);
  return {
    ...(reasoning && isReturned("reasoning_content") && { reasoning_content: reasoning }),
    ...(reasoning && isReturned("reasoning") && { reasoning: reasoning }),
    ...(details.length > 0 && isReturned("reasoning_details") && { reasoning_details: details }),
    ...(calls && {
      tool_calls: calls.map((call) => forwardCall(call, isReturned("extra_content"))),
    }),
    ...(legacyCall && { function_call: pickFields(legacyCall, ["name", "arguments"]) }),
  };
}
type Part = Exclude<NonNullable<ChatMessage["content"]>, string>[number];

function forwardPart(part: Part): JsonObject {
  const { type } = part;
  switch (type) {
    case "text":
      return { type, text: part.text };
    case "refusal":
      return { type, refusal: part.refusal };
    case "image_url":
      return { type, image_url: removeNulls(part.image_url) };
    case "file":
      return { type, file: { filename: DEFAULT_PDF_FILENAME, ...removeNulls(part.file) } };
  }
}

function forwardCall(call: AssistantToolCall, sendsExtras: boolean): JsonObject {
  const { id, type } = call;
  return type === "function"
    ? {
        id,
        type,
        function: pickFields(call.function, ["name", "arguments"]),
        ...(sendsExtras && readToolCallExtras(call)),
      }
    : { id, type, custom: pickFields(call.custom, ["name", "input"]) };
}

type Tool = NonNullable<ChatBody["tools"]>[number];

function forwardTool(tool: Tool): JsonObject {
  const { type } = tool;
  return type === "function"
    ? { type, function: pickFields(tool.function, ["name", "description", "parameters", "strict"]) }
    : { type, custom: pickFields(tool.custom, ["name", "description", "format"]) };
}
