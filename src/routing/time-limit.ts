import type { After, StopSignal } from "../lib/timers.ts";
import { afterTimeout } from "../lib/timers.ts";

/** What ends work early: its time, by these timers, or the signal. */
type Ends = { readonly signal: StopSignal; readonly after?: After };

/** The time that one piece of work may take; it can stand still, and begins anew after that. */
export class TimeLimit {
  readonly #ms: number;
  readonly #ends: Ends;
  #cancel: (() => void) | null = null;
  /** Ends the work that is under way. */
  #giveUp: (() => void) | null = null;
  #isPaused = false;

  constructor(ms: number, ends: Ends) {
    this.#ms = ms;
    this.#ends = ends;
  }

  /** The time stands still, also before the work is given. */
  pause(): void {
    this.#isPaused = true;
    this.#stop();
  }

  /** After a pause the whole time begins; without one nothing happens. */
  resume(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#start();
  }

  /** The work's value, or null when its time passes or the signal fires first. Leaves no timer behind. */
  of<T>(work: Promise<T>): Promise<T | null> {
    const { signal } = this.#ends;
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        this.#giveUp = null;
        this.#stop();
        signal.removeEventListener("abort", giveUp);
      };
      const giveUp = (): void => {
        settle();
        resolve(null);
      };
      this.#giveUp = giveUp;
      signal.addEventListener("abort", giveUp);
      if (!this.#isPaused) this.#start();
      if (signal.aborted) giveUp();
      work.then(resolve, reject).finally(settle);
    });
  }

  #start(): void {
    const { after = afterTimeout } = this.#ends;
    if (this.#giveUp !== null) this.#cancel = after(this.#ms, this.#giveUp);
  }

  #stop(): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}
