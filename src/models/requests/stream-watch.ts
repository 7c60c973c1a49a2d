import type { NumberVars } from "../../shared/config/config.ts";
import type { EventStream, StreamEvent } from "../core/provider.ts";
import type { RunTimer } from "./run-timer.ts";

const encoder = new TextEncoder();

/**
 * The client's end of a stream. It is an IdentityTransformStream, because only its writes fail after a
 * disconnect, so that the pump can read on and settle (a JS TransformStream in waitUntil is killed during a
 * write). Writing never throws, and does nothing after a disconnect.
 */
export class StreamClient {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #left: () => void;
  #gone = false;
  /** Writes begun and finished, by the pump and by keep-alives. */
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

  /** How long a write had waited for the reader at the last observation, in ms; 0 without one. */
  get pendingMs(): number {
    return this.#pendingMs;
  }

  /** Records the time in ms, now and then instead of at each write. */
  observe(nowMs: number): void {
    const isSame = this.#begun > this.#finished && this.#finished === this.#observed.finished;
    this.#pendingMs = isSame ? this.#pendingMs + nowMs - this.#observed.atMs : 0;
    this.#observed = { finished: this.#finished, atMs: nowMs };
  }

  /**
   * Writes. It resolves when the reader took it or is gone. It is not an async function, because each await
   * would be one more turn per chunk.
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

  async end(text: string): Promise<void> {
    await this.write(text);
    if (this.#gone) return;
    this.#gone = true; // nothing more is written
    await this.#writer.close().catch(() => {
      this.#left();
    });
  }

  /** Treats the client as gone, and frees a waiting write. */
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
  readonly ping: () => string;
  readonly now: () => number;
  readonly numbers: NumberVars;
};

/**
 * A slow tick beside the pump instead of a timer per chunk: it watches for a silent upstream, a stuck reader,
 * the keep-alive and the run's end. Stopping cancels the upstream, which ends the pump's read. Times count
 * only while we run: during a stall nothing is read or written, and a late tick shows it.
 */
export class StreamWatch {
  readonly #watched: Watched;
  readonly #tick: ReturnType<typeof setInterval>;
  readonly #tickMs: number;
  /** The time in which we ran, in ms. A tick counts at most its interval. */
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

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Whether we ended it because it was silent for too long. */
  get silent(): boolean {
    return this.#silent;
  }

  /** Records an event of the upstream. `last`: the last content, if it had any. */
  heard(last?: StreamEvent): void {
    this.#hasHeard = true;
    this.#hasBegun = true;
    if (last !== undefined) this.#isThinking = last.kind === "thinking";
  }

  sent(): void {
    this.#hasSent = true;
  }

  /** Limits the wait for the rest once everything important came. */
  linger(ms: number): void {
    this.#lingerUntilMs = Math.min(this.#lingerUntilMs, this.#ran() + ms);
  }

  close(): void {
    clearInterval(this.#tick);
  }

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

  /** Returns the longest allowed silence in ms. */
  #silenceMs(): number {
    const { UPSTREAM_IDLE_MS, UPSTREAM_THINKING_MS, UPSTREAM_FIRST_MS, KEEP_ALIVE_MS } =
      this.#watched.numbers;
    // a stream that is handed on before its first event has had KEEP_ALIVE_MS already
    if (!this.#hasBegun) return Math.max(UPSTREAM_IDLE_MS, UPSTREAM_FIRST_MS - KEEP_ALIVE_MS);
    return this.#isThinking ? Math.max(UPSTREAM_IDLE_MS, UPSTREAM_THINKING_MS) : UPSTREAM_IDLE_MS;
  }

  /** Returns the ms in which we ran until now. */
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
