import { joinBytes } from "../../shared/http/bounded-body.ts";
import { elapsedMs } from "../../shared/clock.ts";
import { READ_BYTES } from "./gathering-body.ts";
import type { ByteSource } from "./gathering-body.ts";

/** Gathered bytes wait no longer once there are so many. */
const GATHERED_BYTES_MAX = 64 * 1024;

type Waiter = {
  readonly resolve: (bytes: Uint8Array | null) => void;
  readonly reject: (reason: unknown) => void;
};

/** After so many times that more than one chunk was handed on together, a body is read only when its bytes are due. */
const FAST_AFTER = 2;

/**
 * A body, handed on about once in `paceMs`: what comes later than that after the last bytes is handed on at
 * once, what comes sooner when that time is over. A chunk costs by how often it is read, decoded, written and
 * waited for, not by its bytes: one that stays fast is left to gather in the runtime between. Nothing waits
 * longer than `paceMs`, nor once the body has ended. With 0, each chunk is handed on as it comes.
 */
export class PacedReader {
  readonly #source: ByteSource;
  /** 0 at first: the caller says from when on. */
  paceMs = 0;
  #gathered: Uint8Array[] = [];
  #length = 0;
  /** Long ago: what is there is due. */
  #handedOnMs = -Infinity;
  #askedMs = 0;
  /** How often, one time after the other, more came than one chunk. */
  #streak = 0;
  /** The next bytes are read when they are due; false again once a read had to wait for them. */
  #isFast = false;
  /** What is gathered here is handed on before the runtime was asked what came since. */
  #isHeld = false;
  /** There may be more already: it is read at once, and handed on if it is there. */
  #hasMore = false;
  #isReading = false;
  #isTimed = false;
  #isOver = false;
  #broken: { readonly reason: unknown } | null = null;
  #waiter: Waiter | null = null;

  constructor(source: ByteSource) {
    this.#source = source;
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

  /** Ends the body. Who waits is still handed what was there. */
  cancel(): void {
    if (this.#isOver) return;
    if (this.#waiter === null || this.#isReading || !this.#isFast) return this.#stop();
    this.#read();
    setTimeout(() => this.#stop(), 0); // what has gathered in the runtime is read before
  }

  #stop(): void {
    this.#isOver = true;
    this.#source.cancel();
    this.#serve();
  }

  #serve(): void {
    if (this.#waiter === null) return;
    const isDue = this.#isDue();
    if (this.#length > 0 && isDue) return this.#handOn();
    if (this.#isOver) return this.#end();
    const leaves = !isDue && !this.#isReading && this.#isFast && !this.#hasMore;
    if (leaves && this.#source.gather(this.#hurry)) {
      this.#isHeld = this.#length > 0;
      return this.#wakeLater();
    }
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
    this.#askedMs = elapsedMs();
    this.#source.read().then(this.#came, this.#broke);
  }

  readonly #came = (bytes: Uint8Array | null): void => {
    this.#isReading = false;
    if (bytes === null) this.#isOver = true;
    else this.#take(bytes);
    this.#serve();
  };

  #take(bytes: Uint8Array): void {
    const wasThere = elapsedMs() - this.#askedMs < this.paceMs / 2;
    if (this.#hasMore && wasThere) this.#handedOnMs = -Infinity;
    if (this.#isDue()) this.#isFast &&= wasThere;
    else this.#isFast = this.#streak >= FAST_AFTER;
    this.#hasMore = false;
    this.#gathered.push(bytes);
    this.#length += bytes.byteLength;
  }

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

  /** Nothing is to be waited for. */
  readonly #hurry = (): void => {
    this.#handedOnMs = -Infinity;
    this.#serve();
  };

  #handOn(): void {
    const bytes = joinBytes(this.#gathered, this.#length);
    this.#streak = this.#gathered.length > 1 || this.#isFast ? this.#streak + 1 : 0;
    this.#hasMore = this.#isHeld || this.#gathered.at(-1)?.byteLength === READ_BYTES;
    this.#isHeld = false;
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
