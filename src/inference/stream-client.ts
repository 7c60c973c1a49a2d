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
