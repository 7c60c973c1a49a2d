import type { NumberVars } from "../../shared/config/config.ts";
import type { StreamData } from "../core/endpoint-adapter.ts";
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
  readonly #left: () => void;
  #gone = false;
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

  get pendingMs(): number {
    return this.#pendingMs;
  }

  /**
   * Updates the age of the pending write. Called at intervals, because a clock read per write costs
   * more.
   */
  observe(nowMs: number): void {
    const hasNotMoved = this.#begun > this.#finished && this.#finished === this.#observed.finished;
    this.#pendingMs = hasNotMoved ? this.#pendingMs + nowMs - this.#observed.atMs : 0;
    this.#observed = { finished: this.#finished, atMs: nowMs };
  }

  /**
   * Resolves when the client has received the text or disconnected. Not an async function, because
   * each await adds a microtask per chunk.
   */
  write(written: StreamData): Promise<void> {
    if (this.#gone || written.length === 0) return Promise.resolve();
    this.#begun += 1;
    const bytes = typeof written === "string" ? encoder.encode(written) : written;
    return this.#writer.write(bytes).then(this.#wrote, this.#lost);
  }

  readonly #wrote = (): void => {
    this.#finished += 1;
  };

  readonly #lost = (): void => {
    this.#finished += 1;
    this.leave();
  };

  /** Writes the last part and closes the response. With null, aborts the connection instead. */
  async end(last: StreamData | null): Promise<void> {
    await this.write(last ?? "");
    if (this.#gone) return;
    this.#gone = true;
    if (last === null) return this.#break("incomplete");
    await this.#writer.close().catch(() => {
      this.#left();
    });
  }

  leave(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#left();
    this.#break("client left");
  }

  #break(why: string): void {
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
  readonly numbers: NumberVars;
};

/**
 * Regularly checks for a silent provider, a stuck client and a due keep-alive. Stopping cancels the
 * provider's stream. Time in which the isolate was paused doesn't count.
 */
export class StreamWatch {
  readonly #watched: WatchOptions;
  readonly #tick: ReturnType<typeof setInterval>;
  readonly #tickMs: number;
  #ranMs = 0;
  #countedMs: number;
  #heardMs = 0;
  #sentMs: number;
  #hasHeard = false;
  #hasSent = false;
  #isThinking = false;
  #hasBegun = false;
  #lingerUntilMs = Infinity;
  #stopped = false;
  #silent = false;

  constructor(options: WatchOptions) {
    this.#watched = options;
    this.#countedMs = options.now();
    this.#sentMs = this.#countedMs;
    const { UPSTREAM_IDLE_MS, KEEP_ALIVE_MS, READER_STUCK_MS } = options.numbers;
    const tickMs = Math.min(UPSTREAM_IDLE_MS, KEEP_ALIVE_MS, READER_STUCK_MS) / 4;
    this.#tickMs = Math.max(TICK_MS_MIN, Math.min(TICK_MS_MAX, tickMs));
    this.#tick = setInterval(() => {
      this.#check();
    }, this.#tickMs);
    options.timer.signal.addEventListener("abort", () => {
      this.#stop();
    });
    if (options.timer.signal.aborted) this.#stop();
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  get silent(): boolean {
    return this.#silent;
  }

  heard(last?: StreamEvent): void {
    this.#hasHeard = true;
    this.#hasBegun = true;
    if (last !== undefined) this.#isThinking = last.kind === "thinking";
  }

  sent(): void {
    this.#hasSent = true;
  }

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
    const pendingMs = client.pendingMs;
    if (pendingMs > numbers.READER_STUCK_MS) client.leave();
    if (pendingMs > 0) this.#heardMs = ranMs;
    else if (ranMs - this.#heardMs > this.#silenceMs()) this.#stop("silent");
    else if (nowMs - this.#sentMs >= numbers.KEEP_ALIVE_MS) {
      this.#sentMs = nowMs;
      void client.write(ping());
    }
    if (ranMs > this.#lingerUntilMs) this.#stop();
  }

  #silenceMs(): number {
    const { numbers, lateMs = 0 } = this.#watched;
    const { UPSTREAM_IDLE_MS, UPSTREAM_THINKING_MS } = numbers;
    if (!this.#hasBegun) return Math.max(UPSTREAM_IDLE_MS, lateMs);
    return this.#isThinking ? Math.max(UPSTREAM_IDLE_MS, UPSTREAM_THINKING_MS) : UPSTREAM_IDLE_MS;
  }

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
