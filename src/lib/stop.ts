/** What ends work early: an `AbortSignal` is one. */
export type StopSignal = {
  readonly aborted: boolean;
  addEventListener(type: "abort", run: () => void): void;
  removeEventListener(type: "abort", run: () => void): void;
};

/**
 * A signal that never leaves this isolate's own code: what a request listens to before it is over costs
 * a set of functions here, where the platform's `AbortController`, `any` and listeners cost native calls.
 */
export class Stop implements StopSignal {
  readonly #listeners = new Set<() => void>();
  #aborted = false;

  get aborted(): boolean {
    return this.#aborted;
  }

  addEventListener(_type: "abort", run: () => void): void {
    if (!this.#aborted) this.#listeners.add(run);
  }

  removeEventListener(_type: "abort", run: () => void): void {
    this.#listeners.delete(run);
  }

  /** Tells everybody, once. */
  abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    for (const run of this.#listeners) run();
    this.#listeners.clear();
  }
}
