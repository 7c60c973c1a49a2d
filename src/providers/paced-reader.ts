import { joinBytes } from "../http/join-bytes.ts";
import { elapsedMs } from "../lib/clock.ts";

/** Gathered bytes wait no longer once there are so many. */
const GATHERED_BYTES_MAX = 64 * 1024;

type Read = { readonly done: true } | { readonly done: false; readonly value: Uint8Array };
type Waiter = {
  readonly resolve: (bytes: Uint8Array | null) => void;
  readonly reject: (reason: unknown) => void;
};

/**
 * A body, handed on at most once in `paceMs`: what comes later than that after the last bytes is handed
 * on at once, what comes sooner is gathered until then. A chunk costs by how often it is decoded, written
 * and waited for, not by its bytes. With 0, each chunk is handed on as it comes.
 */
export class PacedReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  /** 0 at first: the caller says from when on. */
  paceMs = 0;
  #gathered: Uint8Array[] = [];
  #length = 0;
  #handedOnMs = 0;
  #isReading = false;
  #isTimed = false;
  #isOver = false;
  #broken: { readonly reason: unknown } | null = null;
  #waiter: Waiter | null = null;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader();
  }

  /** The bytes that came, null at the end of the body; rejects when the connection broke. One at a time. */
  next(): Promise<Uint8Array | null> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#serve();
    });
  }

  /** Reads to the end of a body that is over: its connection can serve again. */
  finish(): void {
    if (!this.#isReading && !this.#isOver) this.#read();
  }

  /** Ends the body. Who waits is still handed what was gathered. */
  cancel(): void {
    this.#isOver = true;
    this.#reader.cancel().catch(() => undefined); // already broken: nothing is left to end
    this.#serve();
  }

  #serve(): void {
    if (this.#waiter === null) return;
    if (this.#length > 0 && this.#isDue()) return this.#handOn();
    if (this.#isOver) return this.#end();
    if (!this.#isReading) this.#read();
    if (this.#length > 0) this.#wakeLater();
  }

  #isDue(): boolean {
    if (this.#isOver || this.#length >= GATHERED_BYTES_MAX) return true;
    const waitedMs = elapsedMs() - this.#handedOnMs;
    return waitedMs >= this.paceMs || waitedMs < 0; // a clock that stepped back
  }

  #read(): void {
    this.#isReading = true;
    this.#reader.read().then(this.#came, this.#broke);
  }

  readonly #came = (read: Read): void => {
    this.#isReading = false;
    if (read.done) this.#isOver = true;
    else {
      this.#gathered.push(read.value);
      this.#length += read.value.byteLength;
    }
    this.#serve();
  };

  readonly #broke = (reason: unknown): void => {
    this.#isReading = false;
    this.#isOver = true;
    this.#broken = { reason };
    this.#serve();
  };

  #wakeLater(): void {
    if (this.#isTimed) return;
    this.#isTimed = true;
    setTimeout(
      () => {
        this.#isTimed = false;
        this.#serve();
      },
      this.#handedOnMs + this.paceMs - elapsedMs(),
    );
  }

  #handOn(): void {
    const bytes = joinBytes(this.#gathered, this.#length);
    this.#gathered = [];
    this.#length = 0;
    this.#handedOnMs = elapsedMs();
    this.#answered()?.resolve(bytes);
  }

  #end(): void {
    const waiter = this.#answered();
    if (this.#broken === null) waiter?.resolve(null);
    else waiter?.reject(this.#broken.reason);
  }

  #answered(): Waiter | null {
    const waiter = this.#waiter;
    this.#waiter = null;
    return waiter;
  }
}
