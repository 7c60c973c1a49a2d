import type { Chunk, ChunkChoice, CompletionChoice, Delta } from "./chunk.ts";
import type { ChatMessage } from "./core-request.ts";
import { isObject, isTyped, textOf } from "./json-value.ts";
import type { JsonObject, KnownFields } from "./json-value.ts";
import { NO_THOUGHTS, isSealedThoughts, sealThoughts, unsealThoughts } from "./stored-thoughts.ts";

/**
 * Reasoning in OpenRouter's format: `reasoning`, and in `reasoning_details` its text and the
 * providers' data. The data is sealed, so that a client can't alter it by joining pieces.
 */
const TEXT = "reasoning.text";
const SEALED = "reasoning.encrypted";
/** Clients discard unsigned text without a format. */
const UNSIGNED = "unknown";

export function openRouterChunk(chunk: Chunk): Chunk {
  const choices = chunk.choices.map((choice): ChunkChoice => {
    return { ...choice, delta: withReasoning(choice.delta) };
  });
  return { ...chunk, choices };
}

/** Returns a completion's choices. Invalid ones stay unchanged. */
export function openRouterChoices({ choices }: KnownFields<"choices">): unknown {
  if (!Array.isArray(choices)) return choices;
  return choices.map((choice: CompletionChoice) =>
    isObject(choice?.message) ? { ...choice, message: withReasoning(choice.message) } : choice,
  );
}

function withReasoning(delta: Delta): Delta {
  const { reasoning_content: text = "", reasoning_details: details = [] } = delta;
  if (text === "" && details.length === 0) return delta;
  const isHosts = details.some(({ type }) => type === TEXT);
  const spoken = { type: TEXT, text, format: UNSIGNED, index: 0 };
  return {
    ...delta,
    ...(text !== "" && { reasoning: text }),
    reasoning_details: [
      ...(text === "" || isHosts ? [] : [spoken]),
      ...details.map((detail) => (isHostDetail(detail) ? detail : sealed(detail))),
    ],
  };
}

function isHostDetail(detail: JsonObject): boolean {
  return typeIn(detail).startsWith("reasoning.");
}

function sealed(detail: JsonObject): JsonObject {
  const data = sealThoughts({ ...NO_THOUGHTS, details: [detail] });
  return { type: SEALED, data, format: UNSIGNED, index: 1 };
}

/** Returns messages with the gateway's fields for reasoning that clients send back. */
export function withOwnThoughts(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const isAny = messages.some(
    (message) =>
      message.role === "assistant" &&
      ((message.reasoning ?? null) !== null || message.reasoning_details?.some(isOurs) === true),
  );
  return isAny ? messages.map(ownThoughts) : messages;
}

function ownThoughts(message: ChatMessage): ChatMessage {
  if (message.role !== "assistant") return message;
  const { reasoning, reasoning_details: given, ...rest } = message;
  const details = given ?? [];
  const spoken = details.map((one) => (isUnsigned(one) ? textIn(one) : "")).join("");
  const text = message.reasoning_content ?? reasoning ?? spoken;
  const kept = details.flatMap((detail): readonly Detail[] => {
    if (isUnsigned(detail)) return [];
    return isSeal(detail) ? unsealed(detail) : [detail];
  });
  return {
    ...rest,
    ...(text !== "" && { reasoning_content: text }),
    ...(kept.length > 0 && {
      reasoning_details: kept,
    }),
  };
}

type Detail = JsonObject & { readonly type: string };
const textIn = ({ text }: JsonObject): string => textOf(text);
const typeIn = ({ type }: JsonObject): string => textOf(type);
const unsealed = ({ data }: JsonObject): readonly Detail[] =>
  (unsealThoughts(textOf(data))?.details ?? []).filter(isTyped);
const isOurs = (detail: JsonObject): boolean => isUnsigned(detail) || isSeal(detail);

function isUnsigned({ type, format, signature }: JsonObject): boolean {
  return type === TEXT && format === UNSIGNED && (signature ?? null) === null;
}

function isSeal({ type, data }: JsonObject): boolean {
  return type === SEALED && isSealedThoughts(textOf(data));
}
