import { elapsedMs } from "./clock.ts";

/** Runs something after so many ms; what it returns takes it back. */
export type After = (ms: number, run: () => void) => () => void;

/** `After` with a platform timer of its own. */
export const afterTimeout: After = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => {
    clearTimeout(timer);
  };
};

/** The platform timer is set at most so far ahead: of a request's deadlines hardly one is nearer. */
const TICK_MS = 1000;
type Due = { readonly atMs: number; readonly run: () => void };

/**
 * The many deadlines of one request on one platform timer, which is set anew only for an earlier one: a
 * request has half a dozen that never fire, and whoever ends it takes them all back at once. It goes off
 * within a second and looks what is due, so that the usual deadlines need no timer of their own.
 */
export class Timers {
  readonly #due = new Set<Due>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #armedMs = Infinity;

  readonly after: After = (ms, run) => {
    const due = { atMs: elapsedMs() + ms, run };
    this.#due.add(due);
    this.#arm(due.atMs);
    return () => {
      this.#due.delete(due);
    };
  };

  /** Takes everything back. */
  close(): void {
    this.#due.clear();
    this.#disarm();
    this.#armedMs = -Infinity; // nothing is armed any more
  }

  #arm(atMs: number): void {
    if (atMs >= this.#armedMs) return;
    this.#disarm();
    const nowMs = elapsedMs();
    this.#armedMs = Math.min(atMs, nowMs + TICK_MS);
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, this.#armedMs - nowMs));
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #fire(): void {
    this.#armedMs = Infinity;
    const nowMs = elapsedMs();
    const late = [...this.#due].filter((due) => due.atMs <= nowMs);
    for (const due of late) this.#due.delete(due);
    const next = Math.min(...[...this.#due].map((due) => due.atMs));
    if (next !== Infinity) this.#arm(next);
    for (const due of late) due.run();
  }
}

/** The value of `work`, or a throw after `limitMs`. The work itself goes on: what it does must be repeatable. */
export function within<T>(
  work: Promise<T>,
  limitMs: number,
  after: After = afterTimeout,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false; // then nothing is taken back: who answers so late may do it for somebody else
    const cancel = after(limitMs, () => {
      isLate = true;
      reject(new Error(`no answer within ${limitMs} ms`));
    });
    const last =
      <V>(act: (value: V) => void) =>
      (value: V): void => {
        if (isLate) return;
        cancel();
        act(value);
      };
    work.then(last(resolve), last(reject));
  });
}

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
