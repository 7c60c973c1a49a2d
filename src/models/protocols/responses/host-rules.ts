import type { Usage } from "../../../shared/usage.ts";
import { listOf, objectOf, textOf } from "../../core/json-value.ts";
import { readUsage } from "../../core/chat-usage.ts";
import type { Named } from "../../core/json-value.ts";
import type { JsonObject, ProviderFailure } from "../../core/provider.ts";
import { streamFailure } from "../../core/upstream-failure.ts";
import type { RawItem, RawResponse } from "./raw.ts";

/** Models that take tools over Responses alone: they are asked over it always. */
export const RESPONSES_ONLY = /^gpt-6\.1(?!\d)/;
/** Models that reason unless they are told not to. */
export const REASONING_MODELS = /^(?:o\d|gpt-(?:[5-9]|\d\d)(?!.*chat))/;
/** Those that do not know the effort `minimal`. */
export const LOW_IS_LEAST = /^gpt-(?:5\.\d|[6-9])/;
/** Responses takes no smaller `max_output_tokens`. */
export const CAP_MIN = 16;

type Counts = Named<
  "input_tokens" | "output_tokens" | "input_tokens_details" | "output_tokens_details"
>;
type Complained = Named<"error" | "code" | "type" | "message" | "param">;

/** A response's `usage`: input includes what was cached, output includes reasoning. Null without one. */
export function responseUsage(raw: unknown): Usage | null {
  const usage: Counts = objectOf(raw);
  return readUsage({
    prompt_tokens: usage.input_tokens,
    completion_tokens: usage.output_tokens,
    prompt_tokens_details: usage.input_tokens_details,
    completion_tokens_details: usage.output_tokens_details,
  });
}

/** Codes of an error inside a response that are about what was asked. */
const ABOUT_REQUEST =
  /^(?:invalid_|image_|empty_image|unsupported_|failed_to_download_image|cyber_|bio_|content_)/;

/** The failure that `error` of a response, or an event `error`, means. `secret` is our key there. */
export function responseFailure(
  raw: JsonObject & Complained,
  secret: string | undefined,
): ProviderFailure {
  const inner = objectOf(raw.error);
  const error: Complained = Object.keys(inner).length > 0 ? inner : raw;
  const code = textOf(error.code);
  // an event's own `type` is "error"
  const said = textOf(error.type) === "error" ? "" : textOf(error.type);
  const type = ABOUT_REQUEST.test(code) ? "invalid_request_error" : said;
  const { message, param } = error;
  return streamFailure({ error: { message, param, code, type } }, secret);
}

/** Why an answer ended, in chat's words; null where it did not end well. */
export function finishOf(response: RawResponse): "stop" | "length" | "content_filter" | null {
  if (response.status === "completed") return "stop";
  if (response.status !== "incomplete") return null;
  const { reason }: Named<"reason"> = objectOf(response.incomplete_details);
  return reason === "content_filter" ? "content_filter" : "length";
}

const REASONING = "openai.reasoning";

/** The `reasoning_details` of a reasoning item; null for one that could not be sent back. */
export function reasoningDetail(item: RawItem): JsonObject | null {
  const { encrypted_content: encrypted } = item;
  if (typeof encrypted !== "string" || encrypted === "") return null;
  return { type: REASONING, summary: listOf(item.summary), encrypted_content: encrypted };
}

/** The item that a client's `reasoning_details` stands for; null for other providers'. */
export function reasoningItem(detail: RawItem): JsonObject | null {
  const { type, encrypted_content: encrypted } = detail;
  if (type !== REASONING || textOf(encrypted) === "") return null;
  return { type: "reasoning", summary: listOf(detail.summary), encrypted_content: encrypted };
}
