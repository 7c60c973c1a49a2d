import { isObject, isShallow, hasTypeField, textOf } from "./json-value.ts";
import type { KnownFields } from "./json-value.ts";
import type { JsonObject, ProviderFailure } from "./provider.ts";
import type { Chunk, Delta, ToolCallDelta } from "./chunk.ts";
import { toFinishReason, isCutOffReason, createToolCallId } from "./output-part.ts";

const NESTING_MAX = 8;
/**
 * Returns OpenAI's finish reason, or null if the provider gave up. With tool calls, `stop` becomes
 * `tool_calls`, because clients run tools only for that reason.
 */
export function toChatFinishReason(raw: unknown, hasToolCalls: boolean): string | null {
  if (raw === "function_call") return raw;
  const reason = toFinishReason(textOf(raw));
  return reason === "stop" && hasToolCalls ? "tool_calls" : reason;
}

/**
 * Returns the failure of an incomplete response. With the finish reason `error`, the request may
 * have caused it.
 */
export function createIncompleteFailure(finish: unknown): ProviderFailure {
  return { kind: "retry", reason: "broken_off", ...(finish === "error" && { fault: "request" }) };
}

export type ChatMessageFields = KnownFields<"tool_calls" | "content" | "refusal">;
export type RawToolCall = KnownFields<"id" | "index" | "function" | "custom">;

/** Returns a choice's message in OpenAI's schema. Only `content` and `refusal` can be null. */
export function toResponseMessage(
  raw: JsonObject & ChatMessageFields,
  finish: string | null,
): Delta {
  const calls = (Array.isArray(raw.tool_calls) ? raw.tool_calls : []).filter(isObject);
  return {
    role: "assistant",
    content: readContentText(raw.content),
    refusal: readTextOrNull(raw.refusal),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => toToolCall(call, finish)) }),
    ...readExtraMessageFields(raw),
  };
}

export function readExtraMessageFields(raw: JsonObject): Delta {
  const {
    function_call: call,
    annotations,
    reasoning_content: thoughtText,
    reasoning,
    content,
  } = raw;
  const { reasoning_details: details } = raw;
  const reasoningText =
    readTextOrNull(thoughtText) ?? readTextOrNull(reasoning) ?? thinkingText(content) ?? "";
  return {
    ...(reasoningText !== "" && { reasoning_content: reasoningText }),
    ...(hasDetails(details) && { reasoning_details: details }),
    ...(isObject(call) && { function_call: readTexts(call, ["name", "arguments"]) }),
    ...(Array.isArray(annotations) && isShallow(annotations, NESTING_MAX) && { annotations }),
  };
}

function hasDetails(details: unknown): details is readonly JsonObject[] {
  return (
    Array.isArray(details) &&
    details.length > 0 &&
    details.every((detail) => isObject(detail) && hasTypeField(detail)) &&
    isShallow(details, NESTING_MAX)
  );
}

/** Returns Google's thought signature, which a client must send back with the tool call. */
export function readToolCallExtras({
  extra_content: extra,
}: JsonObject): Pick<ToolCallDelta, "extra_content"> {
  return isObject(extra) && isShallow(extra, NESTING_MAX) ? { extra_content: extra } : {};
}

export function readChoiceLogprobs({ logprobs }: JsonObject): JsonObject | null {
  return isObject(logprobs) && isShallow(logprobs, NESTING_MAX) ? logprobs : null;
}

export function readCustomToolCall(raw: JsonObject): NonNullable<ToolCallDelta["custom"]> {
  return readTexts(raw, ["name", "input"]);
}

function readTexts<Name extends string>(
  raw: JsonObject,
  names: readonly Name[],
): { readonly [N in Name]?: string } {
  const read: { [N in Name]?: string } = {};
  for (const name of names) {
    const value = raw[name];
    if (typeof value === "string") read[name] = value;
  }
  return read;
}

export function readContentText(raw: unknown): string | null {
  if (!Array.isArray(raw)) return readTextOrNull(raw);
  return raw.map((part) => textOf(toPart(part).text)).join("");
}

function toPart(raw: unknown): KnownFields<"text" | "thinking"> {
  return isObject(raw) ? raw : {};
}

function thinkingText(raw: unknown): string | null {
  if (!Array.isArray(raw)) return null;
  return raw.map((part) => readContentText(toPart(part).thinking) ?? "").join("");
}

/**
 * Reports whether a response is an error. Most hosts use the field `error`. Mistral and Cerebras
 * use top-level fields.
 */
export function hasErrorField(
  raw: KnownFields<"error" | "choices" | "data" | "object" | "message">,
): boolean {
  if (raw.error !== undefined && raw.error !== null) return true;
  if (raw.choices !== undefined || raw.data !== undefined) return false;
  return raw.object === "error" || typeof raw.message === "string";
}

/** Returns the fields that all chunks of a stream share. */
export function readChunkHead(raw: JsonObject): Omit<Chunk, "choices"> {
  return readTexts(raw, ["service_tier", "system_fingerprint"]);
}

/** Returns the provider's ID of a tool call, or a new ID. */
export function readToolCallId(raw: unknown): string {
  return typeof raw === "string" && raw !== "" ? raw : createToolCallId();
}

/** Returns tool arguments as JSON text. Some hosts send an object instead. */
export function toArgumentsText(raw: unknown): string {
  if (typeof raw === "string") return raw;
  return isObject(raw) ? JSON.stringify(raw) : "";
}

export function readTextOrNull(raw: unknown): string | null {
  return typeof raw === "string" ? raw : null;
}

function toToolCall(raw: RawToolCall, finish: string | null): ToolCallDelta {
  const id = readToolCallId(raw.id);
  if (isObject(raw.custom)) return { id, type: "custom", custom: readCustomToolCall(raw.custom) };
  const functionCall: KnownFields<"name" | "arguments"> = isObject(raw.function)
    ? raw.function
    : {};
  const argumentsValue = toArgumentsText(functionCall.arguments);
  return {
    id,
    type: "function",
    // A call without arguments gets "{}", because clients always parse them.
    function: {
      name: readTextOrNull(functionCall.name) ?? "",
      arguments: argumentsValue === "" && !isCutOffReason(finish) ? "{}" : argumentsValue,
    },
    ...readToolCallExtras(raw),
  };
}
