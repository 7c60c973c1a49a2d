import type { NumberVars } from "../config.ts";
import type { EventStream } from "../providers/provider.ts";
import type { RunTimer } from "./run-timer.ts";
import type { StreamClient } from "./stream-client.ts";

const TICK_MS_MAX = 1000;
const TICK_MS_MIN = 10;

type Watched = {
  readonly events: EventStream;
  readonly timer: RunTimer;
  readonly client: StreamClient;
  /** What is sent to keep a silent stream alive. */
  readonly ping: () => string;
  readonly now: () => number;
  readonly numbers: NumberVars;
};

/**
 * One slow tick beside the pump instead of a timer per chunk: a silent upstream, a stuck reader, the
 * keep-alive, the run's end. To stop means to cancel the upstream, which ends the read that
 * the pump waits in. Reader and upstream are timed by the time in which we ran: while we stand still,
 * nobody is read or written to, and a tick that comes late says so.
 */
export class StreamWatch {
  readonly #watched: Watched;
  readonly #tick: ReturnType<typeof setInterval>;
  readonly #tickMs: number;
  /** The time in which we ran: a tick counts for no longer than it should have been. And until when it is counted. */
  #ranMs = 0;
  #countedMs: number;
  #heardMs = 0;
  #sentMs: number;
  /** Since the last tick. */
  #hasHeard = false;
  #hasSent = false;
  #lingerUntilMs = Infinity;
  #stopped = false;

  constructor(watched: Watched) {
    this.#watched = watched;
    this.#countedMs = watched.now();
    this.#sentMs = this.#countedMs;
    const { UPSTREAM_IDLE_MS, KEEP_ALIVE_MS, READER_STUCK_MS } = watched.numbers;
    const tickMs = Math.min(UPSTREAM_IDLE_MS, KEEP_ALIVE_MS, READER_STUCK_MS) / 4;
    this.#tickMs = Math.max(TICK_MS_MIN, Math.min(TICK_MS_MAX, tickMs));
    this.#tick = setInterval(() => {
      this.#check();
    }, this.#tickMs);
    watched.timer.signal.addEventListener("abort", () => {
      this.#stop();
    });
    if (watched.timer.signal.aborted) this.#stop();
  }

  /** True when it was we who ended the upstream. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** The upstream sent something. */
  heard(): void {
    this.#hasHeard = true;
  }

  /** The client was sent something. */
  sent(): void {
    this.#hasSent = true;
  }

  /** All that matters came: wait for the rest only so long. */
  linger(ms: number): void {
    this.#lingerUntilMs = Math.min(this.#lingerUntilMs, this.#ran() + ms);
  }

  close(): void {
    clearInterval(this.#tick);
  }

  #check(): void {
    const { client, numbers, ping } = this.#watched;
    const ranMs = this.#ran();
    const nowMs = this.#countedMs;
    client.observe(ranMs);
    if (this.#hasHeard) this.#heardMs = ranMs;
    if (this.#hasSent) this.#sentMs = nowMs;
    this.#hasHeard = false;
    this.#hasSent = false;
    const waiting = client.pendingMs;
    if (waiting > numbers.READER_STUCK_MS) client.leave();
    if (waiting > 0) this.#heardMs = ranMs;
    else if (ranMs - this.#heardMs > numbers.UPSTREAM_IDLE_MS) this.#stop();
    else if (nowMs - this.#sentMs >= numbers.KEEP_ALIVE_MS) {
      this.#sentMs = nowMs;
      void client.write(ping());
    }
    if (ranMs > this.#lingerUntilMs) this.#stop();
  }

  /** Ms in which we ran, until now. */
  #ran(): number {
    const nowMs = this.#watched.now();
    this.#ranMs += Math.max(0, Math.min(nowMs - this.#countedMs, this.#tickMs));
    this.#countedMs = nowMs;
    return this.#ranMs;
  }

  #stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#watched.events.cancel();
  }
}
