import type { Chunk, ChunkChoice, CompletionChoice, Delta } from "./chunk.ts";
import type { ChatMessage } from "./core-request.ts";
import { isObject, hasTypeField, textOf } from "./json-value.ts";
import type { JsonObject, KnownFields } from "./json-value.ts";
import {
  NO_THOUGHTS,
  isSerializedThoughts,
  serializeThoughts,
  parseThoughts,
} from "./stored-thoughts.ts";

/**
 * Type of reasoning text in OpenRouter's format. The text is in `reasoning` and
 * `reasoning_details`. The provider's data is in `reasoning_details` as one opaque string, because
 * clients join and change other data.
 */
const TEXT_TYPE = "reasoning.text";
const ENCRYPTED_TYPE = "reasoning.encrypted";
/** Format of reasoning without a signature. Clients discard unsigned text that has no format. */
const UNSIGNED_FORMAT = "unknown";

const CONVERTERS = { openrouter: addReasoning, none: removeReasoning };

/** The format of a response's reasoning: OpenRouter's fields, or none. */
export type ReasoningFormat = keyof typeof CONVERTERS;

/** Converts a chunk's reasoning. Removes choices that contain nothing but reasoning. */
export function formatChunkReasoning(chunk: Chunk, format: ReasoningFormat): Chunk {
  const choices = chunk.choices.flatMap((choice): ChunkChoice[] => {
    const delta = CONVERTERS[format](choice.delta);
    const isOnly = delta !== choice.delta && Object.keys(delta).length === 0;
    return isOnly && choice.finish_reason === null ? [] : [{ ...choice, delta }];
  });
  return { ...chunk, choices };
}

/** Converts the reasoning of a completion's choices. Returns invalid choices unchanged. */
export function formatReasoning(
  { choices }: KnownFields<"choices">,
  format: ReasoningFormat,
): unknown {
  if (!Array.isArray(choices)) return choices;
  return choices.map((choice: CompletionChoice) =>
    isObject(choice?.message) ? { ...choice, message: CONVERTERS[format](choice.message) } : choice,
  );
}

function addReasoning(delta: Delta): Delta {
  const { reasoning_content: text = "", reasoning_details: details = [] } = delta;
  if (text === "" && details.length === 0) return delta;
  const hasHostText = details.some(({ type }) => type === TEXT_TYPE);
  const textDetail = { type: TEXT_TYPE, text, format: UNSIGNED_FORMAT, index: 0 };
  return {
    ...delta,
    ...(text !== "" && { reasoning: text }),
    reasoning_details: [
      ...(text === "" || hasHostText ? [] : [textDetail]),
      ...details.map((detail) => (isHostDetail(detail) ? detail : sealDetail(detail))),
    ],
  };
}

function removeReasoning(delta: Delta): Delta {
  const { reasoning_content: _, reasoning_details: __, ...rest } = delta;
  return rest;
}

function isHostDetail(detail: JsonObject): boolean {
  return detailType(detail).startsWith("reasoning.");
}

function sealDetail(detail: JsonObject): JsonObject {
  const data = serializeThoughts({ ...NO_THOUGHTS, details: [detail] });
  return { type: ENCRYPTED_TYPE, data, format: UNSIGNED_FORMAT, index: 1 };
}

/** Converts reasoning that clients send back in OpenRouter's format to the gateway's own fields. */
export function restoreReasoning(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const isAny = messages.some(
    (message) =>
      message.role === "assistant" &&
      ((message.reasoning ?? null) !== null || message.reasoning_details?.some(isOurs) === true),
  );
  return isAny ? messages.map(restoreThoughts) : messages;
}

function restoreThoughts(message: ChatMessage): ChatMessage {
  if (message.role !== "assistant") return message;
  const { reasoning, reasoning_details: sentDetails, ...rest } = message;
  const details = sentDetails ?? [];
  const textDetail = details.map((one) => (isUnsigned(one) ? detailText(one) : "")).join("");
  const text = message.reasoning_content ?? reasoning ?? textDetail;
  const kept = details.flatMap((detail): readonly Detail[] => {
    if (isUnsigned(detail)) return [];
    return isSealedDetail(detail) ? unsealDetails(detail) : [detail];
  });
  return {
    ...rest,
    ...(text !== "" && { reasoning_content: text }),
    ...(kept.length > 0 && { reasoning_details: kept }),
  };
}

type Detail = JsonObject & { readonly type: string };
const detailText = ({ text }: JsonObject): string => textOf(text);
const detailType = ({ type }: JsonObject): string => textOf(type);
const unsealDetails = ({ data }: JsonObject): readonly Detail[] =>
  (parseThoughts(textOf(data))?.details ?? []).filter(hasTypeField);
const isOurs = (detail: JsonObject): boolean => isUnsigned(detail) || isSealedDetail(detail);

function isUnsigned({ type, format, signature }: JsonObject): boolean {
  return type === TEXT_TYPE && format === UNSIGNED_FORMAT && (signature ?? null) === null;
}

function isSealedDetail({ type, data }: JsonObject): boolean {
  return type === ENCRYPTED_TYPE && isSerializedThoughts(textOf(data));
}
