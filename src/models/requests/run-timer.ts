import { elapsedMs } from "../../shared/clock.ts";
import type { Failure } from "../../shared/failure.ts";
import { StopSource } from "../../shared/timers.ts";
import type { Timers } from "../../shared/timers.ts";

type RunLimits = {
  readonly deadlineMs: number;
  readonly drainMs: number;
  readonly now?: () => number;
};

type TimerReference = { run: RunTimer | null };

type StopReason = "deadline" | "drained" | "halted";

/**
 * Ends a run at its deadline or after a disconnect. After a disconnect, the gateway reads the
 * provider's response for up to `drainMs` to get the exact usage.
 */
export class RunTimer {
  readonly signal = new StopSource();
  readonly #selfReference: TimerReference;
  readonly #timers: Timers;
  readonly #drainMs: number;
  readonly #now: () => number;
  reason: StopReason | null = null;
  /** The failure for the client if a pause or the end of the client's key stopped the run. */
  halted: Failure | null = null;
  /** Time of the client's disconnect (Unix ms). Null while connected and after the response. */
  disconnectedAtMs: number | null = null;
  readonly #disconnectCallbacks: (() => void)[] = [];

  constructor(client: AbortSignal, timers: Timers, limits: RunLimits) {
    const timerReference: TimerReference = { run: this };
    this.#selfReference = timerReference;
    this.#timers = timers;
    this.#drainMs = limits.drainMs;
    this.#now = limits.now ?? elapsedMs;
    timers.after(limits.deadlineMs, () => {
      this.#end("deadline");
    });
    if (client.aborted) this.handleDisconnect();
    else watchDisconnect(client, timerReference);
  }

  get clientGone(): boolean {
    return this.disconnectedAtMs !== null;
  }

  whenClientGone(run: () => void): void {
    if (this.clientGone) run();
    else this.#disconnectCallbacks.push(run);
  }

  stop(): void {
    this.signal.abort();
  }

  halt(failure: Failure): void {
    if (this.reason === null) this.halted = failure;
    this.#end("halted");
  }

  handleDisconnect(): void {
    if (this.clientGone) return;
    this.disconnectedAtMs = this.#now();
    this.#timers.after(this.#drainMs, () => {
      this.#end("drained");
    });
    for (const run of this.#disconnectCallbacks) run();
  }

  /**
   * Releases this timer. Otherwise, the client's signal would keep the timer in memory until the
   * next full garbage collection.
   */
  close(): void {
    this.#selfReference.run = null;
  }

  #end(reason: StopReason): void {
    this.reason ??= reason;
    this.signal.abort();
  }
}

/** A separate function, because closures keep all captured variables of their scope in memory. */
function watchDisconnect(client: AbortSignal, timerReference: TimerReference): void {
  client.addEventListener("abort", () => timerReference.run?.handleDisconnect());
}
