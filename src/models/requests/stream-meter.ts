import { literalText } from "../core/json-value.ts";
import { estimateTokens } from "../../shared/tokens.ts";
import type { Usage } from "../../shared/usage.ts";
import type { NativeSaid } from "../core/provider.ts";
import type { Chunk } from "../core/chunk.ts";
import { outputText } from "../core/output-text.ts";

/** Text is counted in pieces of this many characters, not word by word. */
const COUNT_EVERY = 8192;

/** What a stream has used so far, for the charge and for knowing when it is over. Pure bookkeeping. */
export class StreamMeter {
  readonly #choices: number;
  readonly #finished = new Set<unknown>();
  #usage: Usage | null = null;
  #partial: Usage | null = null;
  #counted = 0;
  #uncounted = "";
  #finishReason: string | null = null;
  #isLeft = false;

  constructor(choices: number) {
    this.#choices = choices;
  }

  /** The client has left: what is said from now on is passed on to nobody, and not counted. */
  leave(): void {
    this.#isLeft = true;
  }

  /** The usage that the upstream reported for the whole answer, or null. */
  get usage(): Usage | null {
    return this.#usage;
  }

  /** The usage it reported last, when that was before the answer's end. */
  get partial(): Usage | null {
    return this.#partial;
  }

  /** Tokens of what was forwarded; an estimate, used only when no usage came. */
  get output(): number {
    this.#counted += estimateTokens(this.#uncounted);
    this.#uncounted = "";
    return Math.ceil(this.#counted);
  }

  get finishReason(): string | null {
    return this.#finishReason;
  }

  /** Every choice has given its finish_reason. */
  get finished(): boolean {
    return this.#finished.size >= this.#choices;
  }

  /** Whether more than so many tokens were forwarded; may notice it COUNT_EVERY characters late. */
  isPast(tokens: number): boolean {
    return (this.#uncounted.length < COUNT_EVERY ? this.#counted : this.output) > tokens;
  }

  report(usage: Usage, partial = false): void {
    this.#usage = partial ? null : usage;
    this.#partial = partial ? usage : null;
  }

  /** A text as a JSON string literal. */
  seeText(json: string): void {
    if (this.#isLeft) return;
    this.#uncounted += json.includes("\\") ? literalText(json) : json.slice(1, -1);
  }

  /** An event in the upstream's own wire: it has one choice. */
  seeNative({ said, finish }: NativeSaid): void {
    if (!this.#isLeft) this.#uncounted += said;
    if (finish === null) return;
    this.#finishReason ??= finish;
    this.#finished.add(0);
  }

  see({ choices }: Chunk): void {
    for (const { index, delta, finish_reason: reason } of choices) {
      if (!this.#isLeft) this.#uncounted += outputText(delta);
      if (reason === null) continue;
      this.#finishReason ??= reason;
      this.#finished.add(index);
    }
  }
}
