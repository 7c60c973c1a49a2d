import { joinBytes } from "../../shared/http/bounded-body.ts";
import { elapsedMs } from "../../shared/clock.ts";
import { STREAM_READ_BYTES } from "./buffered-body.ts";
import type { ByteSource } from "./buffered-body.ts";

const GATHERED_BYTES_MAX = 64 * 1024;

type Waiter = {
  readonly resolve: (bytes: Uint8Array | null) => void;
  readonly reject: (reason: unknown) => void;
};

const FAST_AFTER_READS = 2;

/**
 * Forwards a body about once per `paceMs`, because each chunk has a fixed cost. After a longer
 * pause, forwards data immediately. Data never waits longer than `paceMs`, or after the end of the
 * body.
 */
export class PacedBodyReader {
  readonly #source: ByteSource;
  paceMs = 0;
  #gathered: Uint8Array[] = [];
  #length = 0;
  #lastForwardMs = -Infinity;
  #readStartedMs = 0;
  #streak = 0;
  #isFast = false;
  #isHeld = false;
  #hasMore = false;
  #isReading = false;
  #isTimed = false;
  #isOver = false;
  #error: { readonly reason: unknown } | null = null;
  #waiter: Waiter | null = null;

  constructor(source: ByteSource) {
    this.#source = source;
  }

  /** Must not be called again before the previous call has finished. */
  next(): Promise<Uint8Array | null> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#serve();
    });
  }

  /** Reads the rest of a finished body, which frees the connection. */
  finish(): void {
    if (!this.#isReading && !this.#isOver) this.#read();
  }

  cancel(): void {
    if (this.#isOver) return;
    if (this.#waiter === null || this.#isReading || !this.#isFast) return this.#stop();
    this.#read();
    setTimeout(() => this.#stop(), 0); // after reading the data that the runtime has buffered
  }

  #stop(): void {
    this.#isOver = true;
    this.#source.cancel();
    this.#serve();
  }

  #serve(): void {
    if (this.#waiter === null) return;
    const isDue = this.#isDue();
    if (this.#length > 0 && isDue) return this.#forward();
    if (this.#isOver) return this.#end();
    const stopsReading = !isDue && !this.#isReading && this.#isFast && !this.#hasMore;
    if (stopsReading && this.#source.startBuffering(this.#forwardNow)) {
      this.#isHeld = this.#length > 0;
      return this.#wakeLater();
    }
    if (!this.#isReading) this.#read();
    if (this.#length > 0) this.#wakeLater();
  }

  #isDue(): boolean {
    if (this.#isOver || this.#length >= GATHERED_BYTES_MAX) return true;
    const waitedMs = elapsedMs() - this.#lastForwardMs;
    return waitedMs >= this.paceMs || waitedMs < 0; // negative if the clock went back
  }

  #read(): void {
    this.#isReading = true;
    this.#readStartedMs = elapsedMs();
    this.#source.read().then(this.#handleData, this.#handleError);
  }

  readonly #handleData = (bytes: Uint8Array | null): void => {
    this.#isReading = false;
    if (bytes === null) this.#isOver = true;
    else this.#add(bytes);
    this.#serve();
  };

  #add(bytes: Uint8Array): void {
    const wasThere = elapsedMs() - this.#readStartedMs < this.paceMs / 2;
    if (this.#hasMore && wasThere) this.#lastForwardMs = -Infinity;
    if (this.#isDue()) this.#isFast &&= wasThere;
    else this.#isFast = this.#streak >= FAST_AFTER_READS;
    this.#hasMore = false;
    this.#gathered.push(bytes);
    this.#length += bytes.byteLength;
  }

  readonly #handleError = (reason: unknown): void => {
    this.#isReading = false;
    this.#isOver = true;
    this.#error = { reason };
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
      this.#lastForwardMs + this.paceMs - elapsedMs(),
    );
  }

  readonly #forwardNow = (): void => {
    this.#lastForwardMs = -Infinity;
    this.#serve();
  };

  #forward(): void {
    const bytes = joinBytes(this.#gathered, this.#length);
    this.#streak = this.#gathered.length > 1 || this.#isFast ? this.#streak + 1 : 0;
    this.#hasMore = this.#isHeld || this.#gathered.at(-1)?.byteLength === STREAM_READ_BYTES;
    this.#isHeld = false;
    this.#gathered = [];
    this.#length = 0;
    this.#lastForwardMs = elapsedMs();
    this.#takeWaiter()?.resolve(bytes);
  }

  #end(): void {
    const waiter = this.#takeWaiter();
    if (this.#error === null) waiter?.resolve(null);
    else waiter?.reject(this.#error.reason);
  }

  #takeWaiter(): Waiter | null {
    const waiter = this.#waiter;
    this.#waiter = null;
    return waiter;
  }
}
