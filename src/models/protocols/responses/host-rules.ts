import { isObject, listOf, objectOf, textOf } from "../../core/json-value.ts";
import type { KnownFields } from "../../core/json-value.ts";
import type { JsonObject, ProviderFailure } from "../../core/provider.ts";
import type { Usage } from "../../../shared/usage.ts";
import { readUsage } from "../../core/openai-usage.ts";
import { parseStreamFailure } from "../../core/upstream-failure.ts";

export type RawResponse = JsonObject &
  KnownFields<"output" | "usage" | "status" | "incomplete_details" | "error">;
export type RawResponsesItem = JsonObject &
  KnownFields<
    | "type"
    | "role"
    | "status"
    | "call_id"
    | "name"
    | "arguments"
    | "input"
    | "content"
    | "summary"
    | "encrypted_content"
  >;
type RawPart = JsonObject & KnownFields<"type" | "text" | "refusal" | "logprobs" | "annotations">;
export type RawEvent = JsonObject &
  KnownFields<
    "type" | "response" | "item" | "delta" | "output_index" | "annotation" | "logprobs" | "error"
  >;

export function readItems(list: unknown): readonly RawResponsesItem[] {
  return listOf(list).filter(isObject);
}

export function readParts(list: unknown): readonly RawPart[] {
  return listOf(list).filter(isObject);
}

/** Matches models that accept tools only in the Responses API. */
export const RESPONSES_ONLY_MODEL_PATTERN = /^gpt-6\.1(?!\d)/;
export const REASONING_MODEL_PATTERN = /^(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))/;
export const MODELS_WITHOUT_MINIMAL_EFFORT = /^gpt-(?:5\.\d|[6-9])/;
export const RESPONSES_OUTPUT_CAP_MIN = 16;

type Counts = KnownFields<
  "input_tokens" | "output_tokens" | "input_tokens_details" | "output_tokens_details"
>;
type RawError = KnownFields<"error" | "code" | "type" | "message" | "param">;

/** Reads `usage`. Input includes cached tokens, and output includes reasoning. */
export function readResponsesUsage(raw: unknown): Usage | null {
  const usage: Counts = objectOf(raw);
  return readUsage({
    prompt_tokens: usage.input_tokens,
    completion_tokens: usage.output_tokens,
    prompt_tokens_details: usage.input_tokens_details,
    completion_tokens_details: usage.output_tokens_details,
  });
}

const ABOUT_REQUEST =
  /^(?:invalid_|image_|empty_image|unsupported_|failed_to_download_image|cyber_|bio_|content_)/;

export function parseResponsesApiFailure(
  raw: JsonObject & RawError,
  secret: string | undefined,
): ProviderFailure {
  const nestedError = objectOf(raw.error);
  const error: RawError = Object.keys(nestedError).length > 0 ? nestedError : raw;
  const code = textOf(error.code);
  const errorType = textOf(error.type) === "error" ? "" : textOf(error.type);
  const type = ABOUT_REQUEST.test(code) ? "invalid_request_error" : errorType;
  const { message, param } = error;
  return parseStreamFailure({ error: { message, param, code, type } }, secret);
}

export function parseResponsesFinishReason(
  response: RawResponse,
): "stop" | "length" | "content_filter" | null {
  if (response.status === "completed") return "stop";
  if (response.status !== "incomplete") return null;
  const { reason }: KnownFields<"reason"> = objectOf(response.incomplete_details);
  return reason === "content_filter" ? "content_filter" : "length";
}

const REASONING = "openai.reasoning";

/**
 * Converts a reasoning item to an entry of `reasoning_details`. Returns null without encrypted
 * content, because OpenAI would reject the item later.
 */
export function toReasoningDetail(item: RawResponsesItem): JsonObject | null {
  const { encrypted_content: encrypted } = item;
  if (typeof encrypted !== "string" || encrypted === "") return null;
  return { type: REASONING, summary: listOf(item.summary), encrypted_content: encrypted };
}

/**
 * Converts an entry of `reasoning_details` to a reasoning item. Returns null for another provider's
 * entry.
 */
export function toReasoningItem(detail: RawResponsesItem): JsonObject | null {
  const { type, encrypted_content: encrypted } = detail;
  if (type !== REASONING || textOf(encrypted) === "") return null;
  return { type: "reasoning", summary: listOf(detail.summary), encrypted_content: encrypted };
}
