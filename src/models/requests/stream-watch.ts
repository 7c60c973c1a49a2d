import type { NumericConfigVariables } from "../../shared/config/config.ts";
import type { ResponseStreamData } from "../core/endpoint-adapter.ts";
import type { EventStream, StreamEvent } from "../core/provider.ts";
import type { RunTimer } from "./run-timer.ts";

const encoder = new TextEncoder();

/**
 * The client's side of a stream. Writes never throw. Uses an IdentityTransformStream, because in
 * waitUntil the platform ends a JavaScript TransformStream during a write.
 */
export class StreamClient {
  readonly readable: ReadableStream<Uint8Array>;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #onDisconnect: () => void;
  #isClosed = false;
  #startedWrites = 0;
  #finishedWrites = 0;
  #observed = { finished: -1, atMs: 0 };
  pendingMs = 0;

  constructor(options: { readonly left: () => void }) {
    const { readable, writable } = new IdentityTransformStream();
    this.readable = readable;
    this.#writer = writable.getWriter();
    this.#onDisconnect = options.left;
    this.#writer.closed.catch(() => {
      this.disconnect();
    });
  }

  /**
   * Updates the age of the pending write. Called at intervals, because reading the clock for each
   * write costs more.
   */
  updatePendingMs(nowMs: number): void {
    const hasNotMoved =
      this.#startedWrites > this.#finishedWrites &&
      this.#finishedWrites === this.#observed.finished;
    this.pendingMs = hasNotMoved ? this.pendingMs + nowMs - this.#observed.atMs : 0;
    this.#observed = { finished: this.#finishedWrites, atMs: nowMs };
  }

  /**
   * Resolves when the client has received the text or disconnected. Not an async function, because
   * each await adds a microtask per chunk.
   */
  write(written: ResponseStreamData): Promise<void> {
    if (this.#isClosed || written.length === 0) return Promise.resolve();
    this.#startedWrites += 1;
    const bytes = typeof written === "string" ? encoder.encode(written) : written;
    return this.#writer.write(bytes).then(this.#handleWritten, this.#handleWriteError);
  }

  readonly #handleWritten = (): void => {
    this.#finishedWrites += 1;
  };

  readonly #handleWriteError = (): void => {
    this.#finishedWrites += 1;
    this.disconnect();
  };

  /**
   * Writes the last part and closes the response. If `last` is null, aborts the connection instead.
   */
  async end(last: ResponseStreamData | null): Promise<void> {
    await this.write(last ?? "");
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (last === null) return this.#abort("incomplete");
    await this.#writer.close().catch(() => {
      this.#onDisconnect();
    });
  }

  disconnect(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#onDisconnect();
    this.#abort("client left");
  }

  #abort(why: string): void {
    this.#writer.abort(new Error(why)).catch(() => undefined);
  }
}

const TICK_MS_MAX = 1000;
const TICK_MS_MIN = 10;

type WatchOptions = {
  readonly events: EventStream;
  readonly lateMs?: number | undefined;
  readonly timer: RunTimer;
  readonly client: StreamClient;
  readonly ping: () => string;
  readonly now: () => number;
  readonly numbers: NumericConfigVariables;
};

/**
 * Regularly checks for a silent provider, a stuck client and a due keep-alive. Stopping cancels the
 * provider's stream. The time in which the isolate was paused doesn't count.
 */
export class StreamWatch {
  readonly #watched: WatchOptions;
  readonly #tick: ReturnType<typeof setInterval>;
  readonly #tickMs: number;
  #ranMs = 0;
  #countedMs: number;
  #lastEventMs = 0;
  #lastWriteMs: number;
  #hasNewEvent = false;
  #hasNewWrite = false;
  #isThinking = false;
  #hasBegun = false;
  #lingerUntilMs = Infinity;
  stopped = false;
  silent = false;

  constructor(options: WatchOptions) {
    this.#watched = options;
    this.#countedMs = options.now();
    this.#lastWriteMs = this.#countedMs;
    const { UPSTREAM_IDLE_MS, KEEP_ALIVE_MS, READER_STUCK_MS } = options.numbers;
    const tickMs = Math.min(UPSTREAM_IDLE_MS, KEEP_ALIVE_MS, READER_STUCK_MS) / 4;
    this.#tickMs = Math.max(TICK_MS_MIN, Math.min(TICK_MS_MAX, tickMs));
    this.#tick = setInterval(() => {
      this.#check();
    }, this.#tickMs);
    options.timer.signal.addEventListener("abort", () => {
      this.stop();
    });
    if (options.timer.signal.aborted) this.stop();
  }

  recordEvent(last?: StreamEvent): void {
    this.#hasNewEvent = true;
    this.#hasBegun = true;
    if (last !== undefined) this.#isThinking = last.kind === "thinking";
  }

  recordWrite(): void {
    this.#hasNewWrite = true;
  }

  stopAfter(ms: number): void {
    this.#lingerUntilMs = Math.min(this.#lingerUntilMs, this.#updateRunTime() + ms);
  }

  close(): void {
    clearInterval(this.#tick);
  }

  #check(): void {
    const { client, numbers, ping } = this.#watched;
    const ranMs = this.#updateRunTime();
    const nowMs = this.#countedMs;
    client.updatePendingMs(ranMs);
    if (this.#hasNewEvent) this.#lastEventMs = ranMs;
    if (this.#hasNewWrite) this.#lastWriteMs = nowMs;
    this.#hasNewEvent = false;
    this.#hasNewWrite = false;
    const pendingMs = client.pendingMs;
    if (pendingMs > numbers.READER_STUCK_MS) client.disconnect();
    if (pendingMs > 0) this.#lastEventMs = ranMs;
    else if (ranMs - this.#lastEventMs > this.#silenceMs()) this.stop("silent");
    else if (nowMs - this.#lastWriteMs >= numbers.KEEP_ALIVE_MS) {
      this.#lastWriteMs = nowMs;
      void client.write(ping());
    }
    if (ranMs > this.#lingerUntilMs) this.stop();
  }

  #silenceMs(): number {
    const { numbers, lateMs = 0 } = this.#watched;
    const { UPSTREAM_IDLE_MS, UPSTREAM_THINKING_MS } = numbers;
    if (!this.#hasBegun) return Math.max(UPSTREAM_IDLE_MS, lateMs);
    return this.#isThinking ? Math.max(UPSTREAM_IDLE_MS, UPSTREAM_THINKING_MS) : UPSTREAM_IDLE_MS;
  }

  #updateRunTime(): number {
    const nowMs = this.#watched.now();
    this.#ranMs += Math.max(0, Math.min(nowMs - this.#countedMs, this.#tickMs));
    this.#countedMs = nowMs;
    return this.#ranMs;
  }

  stop(why: "silent" | null = null): void {
    if (this.stopped) return;
    this.stopped = true;
    this.silent = why === "silent";
    this.#watched.events.cancel();
  }
}
