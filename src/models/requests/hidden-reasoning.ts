/**
 * Estimated generation speed. Models generate 50 to 200 tokens per second, so the error is at most
 * a factor of two.
 */
const HIDDEN_TOKENS_PER_SECOND = 100;

const SILENCE_MS = 1000;

/** The facts for estimating reasoning that the provider doesn't send. */
export type ReasoningFacts = {
  readonly mayThink: boolean;
  readonly summarizes: boolean;
  readonly askedMs: number;
};

export function estimateHiddenReasoningTokens(ms: number): number {
  return (Math.max(0, ms) * HIDDEN_TOKENS_PER_SECOND) / 1000;
}

/** Estimates the reasoning that a provider bills but doesn't send. */
export class HiddenReasoning {
  readonly #model: ReasoningFacts;
  #lastEventMs: number;
  #hiddenSinceMs: number | null;
  #hiddenMs = 0;
  #isShown = false;

  constructor(model: ReasoningFacts) {
    this.#model = model;
    this.#lastEventMs = model.askedMs;
    this.#hiddenSinceMs = model.mayThink ? model.askedMs : null;
  }

  get isPossible(): boolean {
    return this.#hiddenSinceMs !== null || (this.#model.mayThink && !this.#isShown);
  }

  tokensUntil(nowMs: number): number {
    const sinceMs = this.#silentSince(nowMs);
    return estimateHiddenReasoningTokens(this.#hiddenMs + (sinceMs === null ? 0 : nowMs - sinceMs));
  }

  recordEvent(nowMs: number): void {
    this.#hiddenSinceMs = this.#silentSince(nowMs);
    this.#lastEventMs = nowMs;
  }

  beginHidden(): void {
    this.#isShown = false;
    this.#hiddenSinceMs ??= this.#lastEventMs;
  }

  showThought(): void {
    if (this.#model.summarizes) this.beginHidden();
    else this.stopEstimating();
  }

  /** Stops estimating by time, because the size of the received reasoning is known. */
  stopEstimating(): void {
    this.#isShown = true;
    this.#hiddenSinceMs = null;
  }

  endHidden(): void {
    if (this.#hiddenSinceMs !== null) this.#hiddenMs += this.#lastEventMs - this.#hiddenSinceMs;
    this.#hiddenSinceMs = null;
  }

  #silentSince(nowMs: number): number | null {
    const { mayThink, summarizes } = this.#model;
    const mayHide = mayThink && (summarizes || !this.#isShown);
    const isPaused = mayHide && nowMs - this.#lastEventMs > SILENCE_MS;
    return this.#hiddenSinceMs ?? (isPaused ? this.#lastEventMs : null);
  }
}
