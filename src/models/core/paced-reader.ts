import { elapsedMs } from "../../shared/clock.ts";
import { joinBytes } from "../../shared/http/bounded-body.ts";

/** Minimum ms per FILE_READ_BYTES. Limits all files of an isolate together to 64 MB/s. */
const READ_MS = 1;
const READ_MS_MIN = 0.25;
const WAIT_MS_MAX = 1000;

/** Limits how fast an isolate reads files, because large files would delay other requests. */
export class FileReadPacer {
  #freeAtMs = 0;

  /** Waits until more of a file can be read. `bytes` is the size of the file's last read. */
  waitAfter(bytes: number): Promise<void> {
    const nowMs = elapsedMs();
    const hasMovedBack = this.#freeAtMs - nowMs > WAIT_MS_MAX; // The clock moved back.
    const startMs = hasMovedBack ? nowMs : Math.max(nowMs, this.#freeAtMs);
    this.#freeAtMs = startMs + Math.max(READ_MS_MIN, (READ_MS * bytes) / FILE_READ_BYTES);
    const waitMs = startMs - nowMs;
    if (waitMs < 1) return Promise.resolve();
    return new Promise((resolve) => {
      setTimeout(resolve, waitMs);
    });
  }
}

const STREAM_READ_BYTES = 4 * 1024;
/** Bytes per read of a file or image. The number is large, because each read has a fixed cost. */
export const FILE_READ_BYTES = 64 * 1024;
/** Maximum unread bytes to buffer. When the buffer is full, the upstream waits. */
export const BUFFERED_BYTES_MAX = 16 * 1024;

type ReadPart = { readonly done: boolean; readonly value?: Uint8Array | undefined };
type BodyReader = {
  readAtLeast(bytes: number, buffer: Uint8Array): Promise<ReadPart>;
  cancel(): Promise<void>;
};
declare const IdentityTransformStream: new () => {
  readonly readable: { getReader(options: { readonly mode: "byob" }): BodyReader };
  readonly writable: WritableStream<Uint8Array>;
};

/** A response body to read piece by piece. */
export type ByteSource = {
  /** Waits for data. Returns null at the end. Rejects when the connection breaks. */
  read(): Promise<Uint8Array | null>;
  /**
   * Lets the runtime buffer data. Calls `wake` when the body ends or breaks, or the buffer is full.
   * Returns false if the caller needn't wait.
   */
  startBuffering(wake: () => void): boolean;
  cancel(): void;
};

/**
 * A response body that the runtime buffers. The body is split into two streams: reading and
 * discarding one buffers its data for the other.
 */
export class BufferedBody implements ByteSource {
  readonly #fileBytes: number | null;
  #reusableBuffer: ArrayBufferLike | null = null;
  #body: ReadableStream<Uint8Array>;
  #reader: ReadableStreamBYOBReader | ReadableStreamDefaultReader<Uint8Array>;
  #drainReader: BodyReader | null = null;
  #isDraining = false;
  #isOver = false;

  /**
   * `fileBytes` is the size of each read of a file. The next read overwrites the returned bytes.
   */
  constructor(body: ReadableStream<Uint8Array>, fileBytes: number | null = null) {
    this.#fileBytes = fileBytes;
    this.#body = body;
    this.#reader = readerOf(body);
  }

  read(): Promise<Uint8Array | null> {
    const reader = this.#reader;
    if (!(reader instanceof ReadableStreamBYOBReader)) return reader.read().then(bytesOf);
    if (this.#fileBytes === null) {
      return reader.read(new Uint8Array(STREAM_READ_BYTES)).then(bytesOf);
    }
    const buffer = this.#reusableBuffer ?? new ArrayBuffer(this.#fileBytes);
    return reader.read(new Uint8Array(buffer)).then(this.#keepBuffer);
  }

  readonly #keepBuffer = (readPart: ReadPart): Uint8Array | null => {
    const bytes = bytesOf(readPart);
    this.#reusableBuffer = bytes === null ? null : bytes.buffer;
    return bytes;
  };

  startBuffering(wake: () => void): boolean {
    if (this.#isOver || !(this.#reader instanceof ReadableStreamBYOBReader)) return false;
    if (this.#isDraining) return true;
    this.#drainReader ??= this.#split();
    void this.#fillBuffer(this.#drainReader).then(wake);
    return true;
  }

  async #fillBuffer(bodyReader: BodyReader): Promise<void> {
    this.#isDraining = true;
    try {
      const { done, value } = await bodyReader.readAtLeast(
        BUFFERED_BYTES_MAX,
        new Uint8Array(BUFFERED_BYTES_MAX),
      );
      this.#isOver ||= done || (value?.byteLength ?? 0) < BUFFERED_BYTES_MAX;
    } catch {
      this.#isOver = true;
    }
    this.#isDraining = false;
  }

  cancel(): void {
    this.#isOver = true;
    this.#reader.cancel().catch(ignoreError); // The body is already broken.
    this.#drainReader?.cancel().catch(ignoreError);
  }

  #split(): BodyReader {
    this.#reader.releaseLock();
    const [half, rest] = this.#body.tee();
    this.#body = half;
    this.#reader = readerOf(half);
    const { readable, writable } = new IdentityTransformStream();
    rest.pipeTo(writable).catch(ignoreError); // The stream's readers get the error.
    return readable.getReader({ mode: "byob" });
  }
}

function readerOf(body: ReadableStream<Uint8Array>) {
  try {
    return body.getReader({ mode: "byob" });
  } catch {
    return body.getReader();
  }
}

function bytesOf({ done, value }: ReadPart): Uint8Array | null {
  return done ? null : (value ?? null);
}

function ignoreError(): void {}

const GATHERED_BYTES_MAX = 64 * 1024;

type Waiter = {
  readonly resolve: (bytes: Uint8Array | null) => void;
  readonly reject: (reason: unknown) => void;
};

const FAST_AFTER_READS = 2;

/**
 * Forwards a body's data about every `paceMs`, because each chunk has a fixed cost. After a longer
 * pause and at the end, forwards data immediately.
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

  /** Must not be called before the previous call has finished. */
  next(): Promise<Uint8Array | null> {
    return new Promise((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#serve();
    });
  }

  /** Reads the rest of a finished body to free the connection. */
  finish(): void {
    if (!this.#isReading && !this.#isOver) this.#read();
  }

  cancel(): void {
    if (this.#isOver) return;
    if (this.#waiter === null || this.#isReading || !this.#isFast) return this.#stop();
    this.#read();
    setTimeout(() => this.#stop(), 0); // First reads the data that the runtime has buffered.
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
    return waitedMs >= this.paceMs || waitedMs < 0; // Negative if the clock moved back.
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
