import { elapsedMs } from "../../shared/clock.ts";
import { Stop } from "../../shared/timers.ts";
import type { StopSignal, Timers } from "../../shared/timers.ts";

/** In ms: how long a run may take in all, and how long its upstream is read on after the client left. */
type RunLimits = {
  readonly deadlineMs: number;
  readonly drainMs: number;
  readonly now?: () => number;
};

type Listening = { run: RunTimer | null };

/** Why a run was stopped from our side. */
type StopReason = "deadline" | "drained";

/**
 * The two ends a run may meet from outside: its total deadline, and a client that left. After the
 * client left the upstream is read on for `drainMs`, so that the exact usage can still come; the
 * platform ends waitUntil at 30 s.
 */
export class RunTimer {
  readonly #stop = new Stop();
  /** What the client's signal knows of the run: nothing once it is over, for the platform keeps signals for long. */
  readonly #listening: Listening;
  readonly #timers: Timers;
  readonly #drainMs: number;
  readonly #now: () => number;
  #reason: StopReason | null = null;
  #leftMs: number | null = null;
  readonly #whenGone: (() => void)[] = [];

  constructor(client: AbortSignal, timers: Timers, limits: RunLimits) {
    const listening: Listening = { run: this };
    this.#listening = listening;
    this.#timers = timers;
    this.#drainMs = limits.drainMs;
    this.#now = limits.now ?? elapsedMs;
    timers.after(limits.deadlineMs, () => {
      this.#end("deadline");
    });
    if (client.aborted) this.clientLeft();
    else listen(client, listening);
  }

  /** Aborted when the run must stop asking upstream. */
  get signal(): StopSignal {
    return this.#stop;
  }

  get reason(): StopReason | null {
    return this.#reason;
  }

  get clientGone(): boolean {
    return this.#leftMs !== null;
  }

  /** When the client left, by `now`; null while it is there, or has its answer. */
  get leftMs(): number | null {
    return this.#leftMs;
  }

  /** Calls back once the client has left, at once if it already has. */
  whenClientGone(run: () => void): void {
    if (this.clientGone) run();
    else this.#whenGone.push(run);
  }

  /** Ends whatever still works upstream: nobody waits for it any more. */
  stop(): void {
    this.#stop.abort();
  }

  /** Starts the drain; again: nothing. */
  clientLeft(): void {
    if (this.clientGone) return;
    this.#leftMs = this.#now();
    this.#timers.after(this.#drainMs, () => {
      this.#end("drained");
    });
    for (const run of this.#whenGone) run();
  }

  /**
   * The run is over. The platform's signal is kept until the next full collection, and with it whatever
   * listens to it: a run with all that it holds.
   */
  close(): void {
    this.#listening.run = null;
  }

  #end(reason: StopReason): void {
    this.#reason ??= reason;
    this.#stop.abort();
  }
}

/** By itself: functions made in one scope share what any of them names, as the constructor's do the run. */
function listen(client: AbortSignal, listening: Listening): void {
  client.addEventListener("abort", () => listening.run?.clientLeft());
}
