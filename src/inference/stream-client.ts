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
  readonly #now: () => number;
  #gone = false;
  /** Writes in progress (the pump's and a keep-alive's), and when the first of them began, ms. */
  #pending = 0;
  #pendingSince = 0;
  #lastWriteMs = 0;

  constructor(options: { left: () => void; now: () => number }) {
    const { readable, writable } = new IdentityTransformStream();
    this.readable = readable;
    this.#writer = writable.getWriter();
    this.#left = options.left;
    this.#now = options.now;
    this.#writer.closed.catch(() => {
      this.leave();
    });
  }

  /** How long the write in progress has been waiting for the reader, ms; 0 when none is. */
  get pendingMs(): number {
    return this.#pending === 0 ? 0 : Math.max(1, this.#now() - this.#pendingSince);
  }

  /** How long the last finished write waited for the reader, ms. */
  get lastWriteMs(): number {
    return this.#lastWriteMs;
  }

  /** Resolves when the reader took it, or when there is no reader any more. */
  async write(text: string): Promise<void> {
    if (this.#gone || text === "") return;
    const since = this.#now();
    if (this.#pending === 0) this.#pendingSince = since;
    this.#pending += 1;
    try {
      await this.#writer.write(encoder.encode(text));
    } catch {
      this.leave();
    } finally {
      this.#lastWriteMs = this.#now() - since;
      this.#pending -= 1;
    }
  }

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
