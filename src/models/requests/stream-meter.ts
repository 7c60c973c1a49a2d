import { textOfLiteral } from "../core/json-value.ts";
import { encryptedReasoningTokens, reasoningSignOf } from "../core/thought-signs.ts";
import { estimateTokens } from "../../shared/tokens.ts";
import type { Usage } from "../../shared/usage.ts";
import type { StreamEvent } from "../core/provider.ts";
import type { Chunk, Delta } from "../core/chunk.ts";
import { outputText } from "../core/output-text.ts";
import { HiddenReasoning } from "./hidden-reasoning.ts";
import type { ReasoningModel } from "./hidden-reasoning.ts";

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

const NON_REASONING_MODEL: ReasoningModel = { mayThink: false, summarizes: false, askedMs: 0 };

export class StreamMeter {
  readonly #choices: number;
  readonly #finished = new Set<unknown>();
  readonly #text = new TokenCounter();
  readonly #thoughts = new TokenCounter();
  readonly #hidden: HiddenReasoning;
  #encryptedTokens = 0;
  #usage: Usage | null = null;
  #partial: Usage | null = null;
  #finishReason: string | null = null;
  #isThought = false;

  constructor(choices: number, model: ReasoningModel = NON_REASONING_MODEL) {
    this.#choices = choices;
    this.#hidden = new HiddenReasoning(model);
  }

  get usage(): Usage | null {
    return this.#usage;
  }

  get partial(): Usage | null {
    return this.#partial;
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
    return this.#usage === null && this.#hidden.isPossible;
  }

  get finishReason(): string | null {
    return this.#finishReason;
  }

  get finished(): boolean {
    return this.#finished.size >= this.#choices;
  }

  exceeds(tokens: number): boolean {
    return this.#text.isPast(tokens) || this.#thoughts.isPast(tokens);
  }

  setUsage(usage: Usage, partial = false): void {
    this.#usage = partial ? null : usage;
    this.#partial = partial ? usage : null;
  }

  recordEvent(nowMs: number): void {
    this.#hidden.recordEvent(nowMs);
  }

  beginHiddenReasoning(): void {
    this.#hidden.beginHidden();
  }

  addText(json: string): void {
    this.#addOutput(json.includes("\\") ? textOfLiteral(json) : json.slice(1, -1), this.#isThought);
  }

  addNativeEvent({ event, text, finish }: Extract<StreamEvent, { kind: "native" }>): void {
    const { isThought, sealed } = reasoningSignOf(event);
    this.#isThought = isThought && text !== "";
    if (isThought) this.#hidden.beginHidden();
    this.#addOutput(text, isThought);
    this.#addEncrypted(sealed);
    if (finish === null) return;
    this.#finishReason ??= finish;
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
      this.#finishReason ??= reason;
      this.#finished.add(index);
    }
  }

  #addDelta(delta: Delta): void {
    if (!this.#isThought) return this.#addOutput(outputText(delta), false);
    const { reasoning_content: thought = "", ...spoken } = delta;
    this.#addOutput(thought, true);
    this.#addOutput(outputText(spoken), false);
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
