export const STREAM_READ_BYTES = 4 * 1024;
/** Bytes per read of a file or an image. It is large, because each read has a fixed cost. */
export const FILE_READ_BYTES = 64 * 1024;
/** Maximum bytes to buffer before the reader takes them. After that, the upstream has to wait. */
export const BUFFERED_AHEAD_BYTES = 16 * 1024;

type ReadPart = { readonly done: boolean; readonly value?: Uint8Array | undefined };
type BodyReader = {
  readAtLeast(bytes: number, buffer: Uint8Array): Promise<ReadPart>;
  cancel(): Promise<void>;
};
declare const IdentityTransformStream: new () => {
  readonly readable: { getReader(options: { readonly mode: "byob" }): BodyReader };
  readonly writable: WritableStream<Uint8Array>;
};

export type ByteSource = {
  /** Waits for data. Returns null at the end. Rejects when the connection breaks. */
  read(): Promise<Uint8Array | null>;
  /**
   * Lets the runtime buffer data. Calls `wake` when the body ends or breaks, or the buffer is full.
   * Returns false if there is nothing to wait for.
   */
  startBuffering(wake: () => void): boolean;
  cancel(): void;
};

/**
 * A response body that is split into two streams, so that the runtime buffers data. The bytes of
 * one stream are discarded as they arrive. One read of the other then returns all buffered data.
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
   * `fileBytes` is the size of each read of a file. All reads of a file use one buffer, so the next
   * read overwrites the bytes.
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
        BUFFERED_AHEAD_BYTES,
        new Uint8Array(BUFFERED_AHEAD_BYTES),
      );
      this.#isOver ||= done || (value?.byteLength ?? 0) < BUFFERED_AHEAD_BYTES;
    } catch {
      this.#isOver = true;
    }
    this.#isDraining = false;
  }

  cancel(): void {
    this.#isOver = true;
    this.#reader.cancel().catch(ignoreError); // already broken
    this.#drainReader?.cancel().catch(ignoreError);
  }

  #split(): BodyReader {
    this.#reader.releaseLock();
    const [half, rest] = this.#body.tee();
    this.#body = half;
    this.#reader = readerOf(half);
    const { readable, writable } = new IdentityTransformStream();
    rest.pipeTo(writable).catch(ignoreError); // readers see the error
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
