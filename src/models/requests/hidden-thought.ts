/**
 * Estimated generation speed. Models generate 50 to 200 tokens per second, so the error is at most
 * a factor of two.
 */
const HIDDEN_TOKENS_A_SECOND = 100;

const SILENCE_MS = 1000;

export type ThinkingModel = {
  readonly mayThink: boolean;
  readonly summarizes: boolean;
  readonly askedMs: number;
};

export function hiddenTokens(ms: number): number {
  return (Math.max(0, ms) * HIDDEN_TOKENS_A_SECOND) / 1000;
}

export class HiddenReasoning {
  readonly #model: ThinkingModel;
  #nowMs: number;
  #sinceMs: number | null;
  #thoughtMs = 0;
  #isShown = false;

  constructor(model: ThinkingModel) {
    this.#model = model;
    this.#nowMs = model.askedMs;
    this.#sinceMs = model.mayThink ? model.askedMs : null;
  }

  get isPossible(): boolean {
    return this.#sinceMs !== null || (this.#model.mayThink && !this.#isShown);
  }

  tokensUntil(nowMs: number): number {
    const sinceMs = this.#silentSince(nowMs);
    return hiddenTokens(this.#thoughtMs + (sinceMs === null ? 0 : nowMs - sinceMs));
  }

  hear(nowMs: number): void {
    this.#sinceMs = this.#silentSince(nowMs);
    this.#nowMs = nowMs;
  }

  begin(): void {
    this.#isShown = false;
    this.#sinceMs ??= this.#nowMs;
  }

  showThought(): void {
    if (this.#model.summarizes) this.begin();
    else this.seal();
  }

  /**
   * Ends the estimate by time, because the client receives all of the reasoning and its size is
   * known.
   */
  seal(): void {
    this.#isShown = true;
    this.#sinceMs = null;
  }

  end(): void {
    if (this.#sinceMs !== null) this.#thoughtMs += this.#nowMs - this.#sinceMs;
    this.#sinceMs = null;
  }

  #silentSince(nowMs: number): number | null {
    const { mayThink, summarizes } = this.#model;
    const mayHide = mayThink && (summarizes || !this.#isShown);
    const isPaused = mayHide && nowMs - this.#nowMs > SILENCE_MS;
    return this.#sinceMs ?? (isPaused ? this.#nowMs : null);
  }
}
