/** Why a run was stopped from our side. */
export type StopReason = "deadline" | "drained";

/**
 * The two ends a run may meet from outside: its total deadline, and a client that left. After the
 * client left the upstream is read on for `drainMs`, so that the exact usage can still come; the
 * platform ends waitUntil at 30 s.
 */
export class RunTimer {
  readonly #stop = new AbortController();
  readonly #deadline: ReturnType<typeof setTimeout>;
  readonly #drainMs: number;
  #drain: ReturnType<typeof setTimeout> | null = null;
  #reason: StopReason | null = null;
  #gone = false;

  constructor(client: AbortSignal, limits: { deadlineMs: number; drainMs: number }) {
    this.#drainMs = limits.drainMs;
    this.#deadline = setTimeout(() => {
      this.#end("deadline");
    }, limits.deadlineMs);
    if (client.aborted) this.clientLeft();
    else {
      client.addEventListener("abort", () => {
        this.clientLeft();
      });
    }
  }

  /** Aborted when the run must stop asking upstream. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get reason(): StopReason | null {
    return this.#reason;
  }

  get clientGone(): boolean {
    return this.#gone;
  }

  /** Starts the drain; again: nothing. */
  clientLeft(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#drain = setTimeout(() => {
      this.#end("drained");
    }, this.#drainMs);
  }

  close(): void {
    clearTimeout(this.#deadline);
    clearTimeout(this.#drain);
  }

  #end(reason: StopReason): void {
    this.#reason ??= reason;
    this.#stop.abort(new Error(reason));
  }
}
