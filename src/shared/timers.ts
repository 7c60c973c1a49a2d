import { elapsedMs } from "./clock.ts";

/** A function that calls `run` after `ms`. Its result cancels the call. */
export type TimerFunction = (ms: number, run: () => void) => () => void;

/** The platform's timer. */
export const afterTimeout: TimerFunction = (ms, run) => {
  const timer = setTimeout(run, ms);
  return () => {
    clearTimeout(timer);
  };
};

const TICK_MS_MAX = 1000;
type Deadline = { readonly atMs: number; readonly run: () => void };

/** One request's deadlines. They share a platform timer, because most never fire. */
export class Timers {
  readonly #deadlines = new Set<Deadline>();
  #timer: ReturnType<typeof setTimeout> | null = null;
  #armedMs = Infinity;
  readonly #recordDelay: (delayMs: number, nowMs: number) => void;

  /** `recordDelay` receives the platform timer's delay about once a second. */
  constructor(recordDelay: (delayMs: number, nowMs: number) => void = () => {}) {
    this.#recordDelay = recordDelay;
  }

  readonly after: TimerFunction = (ms, run) => {
    const due = { atMs: elapsedMs() + ms, run };
    this.#deadlines.add(due);
    this.#arm(due.atMs);
    return () => {
      this.#deadlines.delete(due);
    };
  };

  close(): void {
    this.#deadlines.clear();
    this.#disarm();
    this.#armedMs = -Infinity; // makes `#arm` ignore later calls
  }

  #arm(atMs: number): void {
    if (atMs >= this.#armedMs) return;
    this.#disarm();
    const nowMs = elapsedMs();
    this.#armedMs = Math.min(atMs, nowMs + TICK_MS_MAX);
    this.#timer = setTimeout(() => this.#fire(), Math.max(0, this.#armedMs - nowMs));
  }

  #disarm(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #fire(): void {
    const nowMs = elapsedMs();
    this.#recordDelay(nowMs - this.#armedMs, nowMs);
    this.#armedMs = Infinity;
    const dueTimers = [...this.#deadlines].filter((due) => due.atMs <= nowMs);
    for (const due of dueTimers) this.#deadlines.delete(due);
    const next = Math.min(...[...this.#deadlines].map((due) => due.atMs));
    if (next !== Infinity) this.#arm(next);
    for (const due of dueTimers) due.run();
  }
}

/**
 * Returns the result of `work`, or throws after `limitMs`. `work` continues, so it must be safe to
 * repeat.
 */
export function withTimeout<T>(
  work: Promise<T>,
  limitMs: number,
  after: TimerFunction = afterTimeout,
): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const cancel = after(limitMs, () => {
      isLate = true;
      reject(new Error(`no answer within ${limitMs} ms`));
    });
    const once =
      <V>(act: (value: V) => void) =>
      (value: V): void => {
        if (isLate) return;
        cancel();
        act(value);
      };
    work.then(once(resolve), once(reject));
  });
}

/** The part of `AbortSignal` that the gateway uses. */
export type StopSignal = {
  readonly aborted: boolean;
  addEventListener(type: "abort", run: () => void): void;
  removeEventListener(type: "abort", run: () => void): void;
};

/** A signal like `AbortSignal`, but cheaper to create. */
export class StopSource implements StopSignal {
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

  abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    for (const run of this.#listeners) run();
    this.#listeners.clear();
  }
}
