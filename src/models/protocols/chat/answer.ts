import { createEmbeddingList, isBase64Floats, isVector } from "../../core/embedding-batches.ts";
import {
  toResponseMessage,
  createIncompleteFailure,
  readChunkHead,
  toChatFinishReason,
  readChoiceLogprobs,
} from "../../core/chat-message.ts";
import type { ChatMessageFields } from "../../core/chat-message.ts";
import { isObject, listOf } from "../../core/json-value.ts";
import type { KnownFields } from "../../core/json-value.ts";
import { readInputUsage, readUsage, findRawUsage } from "../../core/openai-usage.ts";
import type { UsageDifferences } from "../../core/openai-usage.ts";
import type { CompletionChoice } from "../../core/chunk.ts";
import { joinOutputTextOfChoices, addUsageToFailure } from "../../core/frame-reader.ts";
import { countEmbeddingInputs } from "../../core/embeddings.ts";
import type {
  ProviderResponse,
  EmbeddingsCall,
  JsonObject,
  ProviderFailure,
} from "../../core/provider.ts";

/** Converts a completion. Returns null if it is invalid, or a failure if a choice is incomplete. */
export function readChatCompletion(
  raw: JsonObject & KnownFields<"choices">,
  shape: UsageDifferences = {},
): ProviderResponse | ProviderFailure | null {
  const rawChoices = raw.choices;
  if (!Array.isArray(rawChoices) || rawChoices.length === 0) return null;
  const usage = readUsage(findRawUsage(raw, shape), shape);
  const choices: CompletionChoice[] = [];
  let brokenChoice: ProviderFailure | null = null;
  for (const [position, rawChoice] of rawChoices.entries()) {
    if (!isObject(rawChoice)) return null;
    const choice: RawChoice = rawChoice;
    if (!isObject(choice.message)) return null;
    const converted = toChatChoice(choice, choice.message, position);
    choices.push(converted);
    if (converted.finish_reason === null) {
      brokenChoice ??= createIncompleteFailure(choice.finish_reason);
    }
  }
  const body = { ...readChunkHead(raw), choices };
  if (brokenChoice !== null) {
    return addUsageToFailure(brokenChoice, { usage, text: joinOutputTextOfChoices(body) });
  }
  return { body, usage };
}

type RawChoice = JsonObject & KnownFields<"index" | "message" | "finish_reason">;

export function readEmbeddings(
  raw: KnownFields<"data" | "usage">,
  call: EmbeddingsCall,
): ProviderResponse | null {
  if (!Array.isArray(raw.data) || raw.data.length !== countEmbeddingInputs(call.body)) return null;
  const vectors = new Map<number, unknown>();
  for (const [position, rawItem] of raw.data.entries()) {
    const item: KnownFields<"embedding" | "index"> = isObject(rawItem) ? rawItem : {};
    if (!isEmbedding(item.embedding)) return null;
    vectors.set(getItemIndex(item, position), item.embedding);
  }
  const data = raw.data.map((_, index) => vectors.get(index));
  return data.includes(undefined) ? null : createEmbeddingList(data, readInputUsage(raw.usage));
}

function toChatChoice(
  raw: RawChoice,
  fields: JsonObject & ChatMessageFields,
  position: number,
): CompletionChoice {
  const finish_reason = toChatFinishReason(
    raw.finish_reason,
    listOf(fields.tool_calls).some(isObject),
  );
  return {
    index: getItemIndex(raw, position),
    message: toResponseMessage(fields, finish_reason),
    logprobs: readChoiceLogprobs(raw),
    finish_reason,
  };
}

/** Returns an item's index, or its position if the provider omits the index. */
export function getItemIndex({ index }: KnownFields<"index">, position: number): number {
  return typeof index === "number" && Number.isSafeInteger(index) ? index : position;
}

function isEmbedding(raw: unknown): boolean {
  return typeof raw === "string" ? raw !== "" && isBase64Floats(raw) : isVector(raw);
}
