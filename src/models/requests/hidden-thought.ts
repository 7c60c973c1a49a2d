/**
 * The pace at which hidden output is estimated, in tokens per second. Providers' reasoning models write 50 to 200: the
 * estimate is at least half of the fastest and at most twice the slowest.
 */
const HIDDEN_TOKENS_A_SECOND = 100;

/** A silence of a model that may think counts as thinking from this length on. */
const SILENCE_MS = 1000;

/** A model as far as its thoughts are concerned. */
export type ThinkingModel = {
  readonly mayThink: boolean;
  /** Its provider shows at most a summary of its thoughts. */
  readonly summarizes: boolean;
  /** When the request was sent, by the clock of the stream. */
  readonly askedMs: number;
};

/** Returns the tokens that a model writes unseen in `ms`. */
export function hiddenTokens(ms: number): number {
  return (Math.max(0, ms) * HIDDEN_TOKENS_A_SECOND) / 1000;
}

/** The time in which a model may have thought without a sign of it. */
export class HiddenThought {
  readonly #model: ThinkingModel;
  #nowMs: number;
  /** Since when the model may be thinking; null while it writes. */
  #sinceMs: number | null;
  #thoughtMs = 0;
  #isShown = false;

  constructor(model: ThinkingModel) {
    this.#model = model;
    this.#nowMs = model.askedMs;
    this.#sinceMs = model.mayThink ? model.askedMs : null;
  }

  /** Reports whether there may be thoughts that neither arrived nor will. */
  get isPossible(): boolean {
    return this.#sinceMs !== null || (this.#model.mayThink && !this.#isShown);
  }

  /** Returns the tokens of the thoughts until `nowMs` that did not arrive. */
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

  /** A thought arrives as text: the whole thought, or a part of a summary. */
  showThought(): void {
    if (this.#model.summarizes) this.begin();
    else this.seal();
  }

  /** The thought arrives whole, so that its size counts instead of its time. */
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
    const isSilent = mayHide && nowMs - this.#nowMs > SILENCE_MS;
    return this.#sinceMs ?? (isSilent ? this.#nowMs : null);
  }
}
