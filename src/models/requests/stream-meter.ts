import {
  isObject,
  listOf,
  objectOf,
  textOf,
  createObjectReader,
  parseStringLiteral,
} from "../core/json-value.ts";
import type { JsonObject, StreamEvent, ProviderFailure } from "../core/provider.ts";
import { estimateTokens } from "../../shared/tokens.ts";
import type { Usage } from "../../shared/usage.ts";
import type { Chunk, Delta } from "../core/chunk.ts";
import { joinOutputText } from "../core/chunk.ts";
import { HiddenReasoning } from "./hidden-reasoning.ts";
import type { ReasoningFacts } from "./hidden-reasoning.ts";
import { isCausedByRequest } from "../core/provider.ts";
import type { StreamWriter, ResponseStreamData } from "../core/endpoint-adapter.ts";
import { joinBytes } from "../../shared/http/bounded-body.ts";
import type { StreamEnding } from "./charge.ts";

/** Characters per token of encrypted reasoning, which is base64 of about four bytes per token. */
const ENCRYPTED_CHARACTERS_PER_TOKEN = 16 / 3;
const ENCRYPTED_FIELDS: ReadonlySet<string> = new Set([
  "signature",
  "thought_signature",
  "data",
  "encrypted_content",
]);

function encryptedReasoningTokens(sealed: unknown): number {
  return encryptedCharacters(sealed) / ENCRYPTED_CHARACTERS_PER_TOKEN;
}

const DEPTH_MAX = 3;

function encryptedCharacters(value: unknown, depth = DEPTH_MAX): number {
  if (depth === 0) return 0;
  let characters = 0;
  for (const one of listOf(value)) characters += encryptedCharacters(one, depth - 1);
  if (!isObject(value)) return characters;
  for (const [name, part] of Object.entries(value)) {
    if (ENCRYPTED_FIELDS.has(name)) characters += textOf(part).length;
    else if (typeof part === "object") characters += encryptedCharacters(part, depth - 1);
  }
  return characters;
}

type ReasoningSign = { readonly isThought: boolean; readonly sealed: number };

const typeReader = createObjectReader({ type: textOf });
const NO_REASONING_SIGN: ReasoningSign = { isThought: false, sealed: 0 };

function reasoningSignOf({ type, delta, content_block: block, item }: JsonObject): ReasoningSign {
  switch (type) {
    case "content_block_start":
    case "content_block_delta": {
      const part = isObject(block) ? block : objectOf(delta);
      if (!/thinking|signature/.test(typeReader(part).type)) return NO_REASONING_SIGN;
      return { isThought: true, sealed: encryptedReasoningTokens(part) };
    }
    case "response.output_item.added":
      return { isThought: typeReader(item).type === "reasoning", sealed: 0 };
    case "response.output_item.done": {
      const isThought = typeReader(item).type === "reasoning";
      return isThought ? { isThought, sealed: encryptedReasoningTokens(item) } : NO_REASONING_SIGN;
    }
    default:
      return textOf(type).startsWith("response.reasoning")
        ? { isThought: true, sealed: 0 }
        : NO_REASONING_SIGN;
  }
}

const COUNT_AFTER_CHARACTERS = 8192;

class TokenCounter {
  #counted = 0;
  #uncounted = "";

  add(text: string): void {
    this.#uncounted += text;
  }

  get tokens(): number {
    this.#counted += estimateTokens(this.#uncounted);
    this.#uncounted = "";
    return this.#counted;
  }

  isPast(tokens: number): boolean {
    return (this.#uncounted.length < COUNT_AFTER_CHARACTERS ? this.#counted : this.tokens) > tokens;
  }
}

const NON_REASONING_MODEL: ReasoningFacts = { mayThink: false, summarizes: false, askedMs: 0 };

export class StreamMeter {
  readonly #choices: number;
  readonly #finished = new Set<unknown>();
  readonly #text = new TokenCounter();
  readonly #thoughts = new TokenCounter();
  readonly #hidden: HiddenReasoning;
  #encryptedTokens = 0;
  usage: Usage | null = null;
  partial: Usage | null = null;
  finishReason: string | null = null;
  #isThought = false;

  constructor(choices: number, model: ReasoningFacts = NON_REASONING_MODEL) {
    this.#choices = choices;
    this.#hidden = new HiddenReasoning(model);
  }

  /**
   * Estimated output tokens, including encrypted reasoning. Used only if the provider reports no
   * usage.
   */
  get output(): number {
    return Math.ceil(this.#text.tokens + Math.max(this.#thoughts.tokens, this.#encryptedTokens));
  }

  thoughtUntil(nowMs: number): number {
    const hiddenTokens = this.#encryptedTokens + this.#hidden.tokensUntil(nowMs) * this.#choices;
    return Math.ceil(Math.max(this.#thoughts.tokens, hiddenTokens));
  }

  outputUntil(nowMs: number): number {
    return Math.ceil(this.#text.tokens) + this.thoughtUntil(nowMs);
  }

  get mayHide(): boolean {
    return this.usage === null && this.#hidden.isPossible;
  }

  get finished(): boolean {
    return this.#finished.size >= this.#choices;
  }

  exceeds(tokens: number): boolean {
    return this.#text.isPast(tokens) || this.#thoughts.isPast(tokens);
  }

  setUsage(usage: Usage, partial = false): void {
    this.usage = partial ? null : usage;
    this.partial = partial ? usage : null;
  }

  recordEvent(nowMs: number): void {
    this.#hidden.recordEvent(nowMs);
  }

  beginHiddenReasoning(): void {
    this.#hidden.beginHidden();
  }

  addText(json: string): void {
    this.#addOutput(
      json.includes("\\") ? parseStringLiteral(json) : json.slice(1, -1),
      this.#isThought,
    );
  }

  addNativeEvent({ event, text, finish }: Extract<StreamEvent, { kind: "native" }>): void {
    const { isThought, sealed } = reasoningSignOf(event);
    this.#isThought = isThought && text !== "";
    if (isThought) this.#hidden.beginHidden();
    this.#addOutput(text, isThought);
    this.#addEncrypted(sealed);
    if (finish === null) return;
    this.finishReason ??= finish;
    this.#finished.add(0);
  }

  addChunk({ choices }: Chunk): void {
    for (const { index, delta, finish_reason: reason } of choices) {
      this.#isThought = (delta.reasoning_content ?? "") !== "";
      this.#addDelta(delta);
      this.#addEncrypted(
        encryptedReasoningTokens(delta.reasoning_details) + encryptedTokensOfCalls(delta),
      );
      if (reason === null) continue;
      this.finishReason ??= reason;
      this.#finished.add(index);
    }
  }

  #addDelta(delta: Delta): void {
    if (!this.#isThought) return this.#addOutput(joinOutputText(delta), false);
    const { reasoning_content: thought = "", ...spoken } = delta;
    this.#addOutput(thought, true);
    this.#addOutput(joinOutputText(spoken), false);
  }

  #addOutput(text: string, isThought: boolean): void {
    if (text === "") return;
    (isThought ? this.#thoughts : this.#text).add(text);
    if (isThought) this.#hidden.showThought();
    else this.#hidden.endHidden();
  }

  #addEncrypted(tokens: number): void {
    if (tokens === 0) return;
    this.#encryptedTokens += tokens;
    this.#hidden.stopEstimating();
  }
}

function encryptedTokensOfCalls({ tool_calls: calls = [] }: Delta): number {
  return calls.reduce((tokens, call) => tokens + encryptedReasoningTokens(call.extra_content), 0);
}

type DigestContext = {
  readonly meter: StreamMeter;
  readonly writer: StreamWriter;
  failure: ProviderFailure | null;
};

/**
 * Counts the usage of a batch of events and converts them to the client's format. Stops at the
 * event that ends the stream.
 */
export function convertEvents(
  streaming: DigestContext,
  batch: readonly StreamEvent[],
): { readonly written: ResponseStreamData; readonly over: StreamEnding | null } {
  const { meter } = streaming;
  let written: ResponseStreamData = "";
  for (const event of batch) {
    if (event.kind === "error") {
      streaming.failure = event.failure;
      return { written, over: isCausedByRequest(event.failure) ? "provoked" : "failed" };
    }
    if (event.kind === "end") return { written, over: chooseEnding(meter, "complete") };
    if (event.kind === "usage") meter.setUsage(event.usage, event.partial);
    else if (event.kind === "thinking") meter.beginHiddenReasoning();
    else written = joinStreamData(written, writeEvent(streaming, event));
  }
  return { written, over: null };
}

type OutputEvent = Extract<StreamEvent, { kind: "chunk" | "text" | "native" | "piece" | "audio" }>;

function writeEvent({ meter, writer }: DigestContext, event: OutputEvent): ResponseStreamData {
  switch (event.kind) {
    case "chunk":
      meter.addChunk(event.chunk);
      return writer.chunk(event.chunk);
    case "text":
      meter.addText(event.json);
      return writer.text(event.index, event.json);
    case "native":
      meter.addNativeEvent(event);
      return writer.native?.(event.event) ?? "";
    case "piece":
      return writer.piece?.(event) ?? "";
    case "audio":
      return writer.audio?.(event.bytes) ?? "";
  }
}

/** Returns `complete` if every choice has finished, or else the fallback. */
export function chooseEnding(meter: StreamMeter, fallbackEnding: StreamEnding): StreamEnding {
  return meter.finished ? "complete" : fallbackEnding;
}

const encoder = new TextEncoder();

export function joinStreamData(
  one: ResponseStreamData,
  next: ResponseStreamData,
): ResponseStreamData {
  if (typeof one === "string" && typeof next === "string") return one + next;
  if (one.length === 0) return next;
  if (next.length === 0) return one;
  const parts = [one, next].map((part) => (typeof part === "string" ? encoder.encode(part) : part));
  return joinBytes(
    parts,
    parts.reduce((sum, { length }) => sum + length, 0),
  );
}
