import type { NumberVars } from "../../shared/config/config.ts";
import type { EventStream, StreamEvent } from "../core/provider.ts";
import type { RunTimer } from "./run-timer.ts";

const encoder = new TextEncoder();

/**
 * The client's end of a stream. An IdentityTransformStream, because it is the one stream whose writes
 * fail when the client is gone, so that the pump can read on and settle (reference: a JS
 * TransformStream in waitUntil is killed in mid-write). Writing never throws; after the client left it
 * does nothing.
 */
export class StreamClient {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #left: () => void;
  #gone = false;
  /** Writes begun and finished: the pump's, and now and then a keep-alive's. */
  #begun = 0;
  #finished = 0;
  #observed = { finished: -1, atMs: 0 };
  #pendingMs = 0;

  constructor(options: { readonly left: () => void }) {
    const { readable, writable } = new IdentityTransformStream();
    this.readable = readable;
    this.#writer = writable.getWriter();
    this.#left = options.left;
    this.#writer.closed.catch(() => {
      this.leave();
    });
  }

  /** How long a write had been waiting for the reader when it was last observed, ms; 0 when none had. */
  get pendingMs(): number {
    return this.#pendingMs;
  }

  /** Takes note of the time, in ms of any clock, now and then instead of at each write. */
  observe(nowMs: number): void {
    const isSame = this.#begun > this.#finished && this.#finished === this.#observed.finished;
    this.#pendingMs = isSame ? this.#pendingMs + nowMs - this.#observed.atMs : 0;
    this.#observed = { finished: this.#finished, atMs: nowMs };
  }

  /**
   * Resolves when the reader took it, or when there is no reader any more. Not an async function: each
   * of its awaits would be one more turn for every chunk.
   */
  write(text: string): Promise<void> {
    if (this.#gone || text === "") return Promise.resolve();
    this.#begun += 1;
    return this.#writer.write(encoder.encode(text)).then(this.#wrote, this.#lost);
  }

  readonly #wrote = (): void => {
    this.#finished += 1;
  };

  readonly #lost = (): void => {
    this.#finished += 1;
    this.leave();
  };

  /** Ends the response after `text`. */
  async end(text: string): Promise<void> {
    await this.write(text);
    if (this.#gone) return;
    this.#gone = true; // nothing more is written, and there is nobody to leave
    await this.#writer.close().catch(() => {
      this.#left();
    });
  }

  /** The client is gone, or is treated as gone: frees a write that waits for it. */
  leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#left();
    this.#writer.abort(new Error("client left")).catch(() => undefined);
  }
}

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
  #isThinking = false;
  #hasBegun = false;
  #lingerUntilMs = Infinity;
  #stopped = false;
  #silent = false;

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

  /** True when that was because it had said nothing for too long. */
  get silent(): boolean {
    return this.#silent;
  }

  /** The upstream sent something; `last`: what it said last, if it was more than a sign of life. */
  heard(last?: StreamEvent): void {
    this.#hasHeard = true;
    this.#hasBegun = true;
    if (last !== undefined) this.#isThinking = last.kind === "thinking";
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

  /** Nothing more is wanted of the upstream. */
  stop(): void {
    this.#stop();
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
    else if (ranMs - this.#heardMs > this.#silenceMs()) this.#stop("silent");
    else if (nowMs - this.#sentMs >= numbers.KEEP_ALIVE_MS) {
      this.#sentMs = nowMs;
      void client.write(ping());
    }
    if (ranMs > this.#lingerUntilMs) this.#stop();
  }

  /** For so long an upstream may say nothing. */
  #silenceMs(): number {
    const { UPSTREAM_IDLE_MS, UPSTREAM_THINKING_MS, UPSTREAM_FIRST_MS, KEEP_ALIVE_MS } =
      this.#watched.numbers;
    // a stream that is handed on before its first event has had KEEP_ALIVE_MS already
    if (!this.#hasBegun) return Math.max(UPSTREAM_IDLE_MS, UPSTREAM_FIRST_MS - KEEP_ALIVE_MS);
    return this.#isThinking ? Math.max(UPSTREAM_IDLE_MS, UPSTREAM_THINKING_MS) : UPSTREAM_IDLE_MS;
  }

  /** Ms in which we ran, until now. */
  #ran(): number {
    const nowMs = this.#watched.now();
    this.#ranMs += Math.max(0, Math.min(nowMs - this.#countedMs, this.#tickMs));
    this.#countedMs = nowMs;
    return this.#ranMs;
  }

  #stop(why: "silent" | null = null): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#silent = why === "silent";
    this.#watched.events.cancel();
  }
}
