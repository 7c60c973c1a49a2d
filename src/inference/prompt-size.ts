import { estimateTokens, utf8Bytes } from "../lib/tokens.ts";
import type { Model } from "../catalog/model.ts";
import type { ChatBody } from "./chat-request.ts";
import type { ChatMessage } from "./message-schema.ts";
import type { EmbeddingsBody } from "./embeddings-request.ts";

const MESSAGE_OVERHEAD = 8;
const REQUEST_OVERHEAD = 16;
/** What a prompt is told of tools, or of a schema, beside their text. */
const TOOLS_TOKENS = 350;
const INPUT_OVERHEAD = 4;
/** Below this many bytes the hard bound is the estimate too: short texts are where estimates err most. */
const SHORT_PROMPT_BYTES = 512;

/**
 * A prompt's size in tokens, three ways. `bound` can never be passed: a byte-level BPE token is at
 * least one UTF-8 byte, images by the model's fixed bound. `estimate` is what it takes at most in
 * practice (reference: measured multipliers per tokenizer). `likely` is the best guess, for a charge
 * when the upstream reported no usage.
 */
export type PromptSize = {
  readonly bound: number;
  readonly estimate: number;
  readonly likely: number;
  /** Any of it may be kept in a cache for an hour, which costs twice the input. */
  readonly hourCache?: true;
};

export function chatPromptSize(body: ChatBody, model: Model): PromptSize {
  const tally = new Tally();
  for (const message of body.messages) tally.message(message, model);
  for (const field of [body.tools, body["functions"], body.response_format]) {
    if (field === undefined) continue;
    tally.overhead += model.toolsTokens ?? TOOLS_TOKENS;
    tally.text(JSON.stringify(field));
  }
  tally.overhead += REQUEST_OVERHEAD;
  return tally.size(model.estimateFactor);
}

export function embeddingsPromptSize(body: EmbeddingsBody, model: Model): PromptSize {
  const tally = new Tally();
  const inputs = typeof body.input === "string" ? [body.input] : body.input;
  for (const input of inputs) {
    if (typeof input === "number") tally.tokens += 1;
    else if (typeof input === "string") tally.text(input);
    else tally.tokens += input.length;
    if (typeof input !== "number") tally.overhead += INPUT_OVERHEAD;
  }
  return tally.size(model.estimateFactor);
}

/** True when a message holds an image. */
export function hasImages(body: ChatBody): boolean {
  return body.messages.some(
    (message) =>
      Array.isArray(message.content) && message.content.some((part) => part.type === "image_url"),
  );
}

type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "refusal"; readonly refusal: string }
  | { readonly type: "image_url" };

class Tally {
  overhead = 0;
  /** Tokens that are known exactly or only by a fixed bound: token arrays, images. */
  tokens = 0;
  #bytes = 0;
  #estimate = 0;

  text(text: string): void {
    this.#bytes += utf8Bytes(text);
    this.#estimate += estimateTokens(text);
  }

  message(message: ChatMessage, model: Model): void {
    this.overhead += MESSAGE_OVERHEAD;
    if (typeof message.content === "string") this.text(message.content);
    else this.parts(message.content ?? [], model);
    if (message.name) this.text(message.name);
    if (message.role === "tool") this.text(message.tool_call_id);
    if (message.role !== "assistant") return;
    this.text(message.reasoning_content ?? "");
    this.text(message.refusal ?? "");
    const { tool_calls: calls, function_call: call, reasoning_details: details } = message;
    for (const part of [calls, call, details]) {
      if (part) this.text(JSON.stringify(part));
    }
  }

  parts(parts: readonly Part[], model: Model): void {
    for (const part of parts) {
      if (part.type === "text") this.text(part.text);
      else if (part.type === "refusal") this.text(part.refusal);
      else this.tokens += model.imageTokens;
    }
  }

  size(factor: number): PromptSize {
    const fixed = this.overhead + this.tokens;
    const bound = this.#bytes + fixed;
    const short = this.#bytes <= SHORT_PROMPT_BYTES;
    return {
      bound,
      estimate: short ? bound : Math.min(bound, Math.ceil(this.#estimate * factor) + fixed),
      likely: Math.min(bound, Math.ceil(this.#estimate) + fixed),
    };
  }
}
