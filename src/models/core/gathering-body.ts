/** What is read at once; a read that fills it says that there may be more. */
export const READ_BYTES = 4 * 1024;
/** So much gathers in the runtime ahead of who reads; then the upstream is slowed. */
export const AHEAD_BYTES = 16 * 1024;

type Filled = { readonly done: boolean; readonly value?: Uint8Array | undefined };
/** Only workerd has these; elsewhere, where scripts run adapters, nobody asks to gather. */
type Drain = {
  readAtLeast(bytes: number, buffer: Uint8Array): Promise<Filled>;
  cancel(): Promise<void>;
};
declare const IdentityTransformStream: new () => {
  readonly readable: { getReader(options: { readonly mode: "byob" }): Drain };
  readonly writable: WritableStream<Uint8Array>;
};

/** A body to be read in pieces, one read at a time. */
export type ByteSource = {
  /**
   * What came since the last read, at most `READ_BYTES`; waits where nothing did. Null at the end; rejects
   * when the connection broke.
   */
  read(): Promise<Uint8Array | null>;
  /**
   * From now on the runtime takes in what comes while nobody reads, while no read is under way; `wake` is called
   * when the body ends or breaks, or when so much has gathered that it takes in no more until the next call.
   * False where there is nothing to wait for: the body is over, or the runtime cannot gather it.
   */
  gather(wake: () => void): boolean;
  /** Ends the body: a read that waits answers null. Again: nothing. */
  cancel(): void;
};

/**
 * The body of a response. To gather, it is split: one half is drained by the runtime into a buffer that nobody looks
 * at, so that the other half has all that came, in one read, without a turn of ours for each network chunk. (A
 * read of many bytes from a half itself would hold the other back: the runtime asks for as many at once.)
 */
export class GatheringBody implements ByteSource {
  #body: ReadableStream<Uint8Array>;
  #reader: ReadableStreamBYOBReader | ReadableStreamDefaultReader<Uint8Array>;
  #drain: Drain | null = null;
  #isDraining = false;
  #isOver = false;

  constructor(body: ReadableStream<Uint8Array>) {
    this.#body = body;
    this.#reader = readerOf(body);
  }

  read(): Promise<Uint8Array | null> {
    const reader = this.#reader;
    const read =
      reader instanceof ReadableStreamBYOBReader
        ? reader.read(new Uint8Array(READ_BYTES))
        : reader.read();
    return read.then(bytesOf);
  }

  gather(wake: () => void): boolean {
    if (this.#isOver || !(this.#reader instanceof ReadableStreamBYOBReader)) return false;
    if (this.#isDraining) return true;
    this.#drain ??= this.#split();
    void this.#fill(this.#drain).then(wake);
    return true;
  }

  /** Until so much has gathered, or the body is over. Never rejects: who reads hears why a body broke. */
  async #fill(drain: Drain): Promise<void> {
    this.#isDraining = true;
    try {
      const { done, value } = await drain.readAtLeast(AHEAD_BYTES, new Uint8Array(AHEAD_BYTES));
      this.#isOver ||= done || (value?.byteLength ?? 0) < AHEAD_BYTES;
    } catch {
      this.#isOver = true;
    }
    this.#isDraining = false;
  }

  cancel(): void {
    this.#isOver = true;
    this.#reader.cancel().catch(ignore); // already broken: nothing is left to end
    this.#drain?.cancel().catch(ignore);
  }

  #split(): Drain {
    this.#reader.releaseLock();
    const [half, rest] = this.#body.tee();
    this.#body = half;
    this.#reader = readerOf(half);
    const { readable, writable } = new IdentityTransformStream();
    rest.pipeTo(writable).catch(ignore); // broken: who reads hears of it
    return readable.getReader({ mode: "byob" });
  }
}

/** The runtime's own streams can be read into a buffer; those made in JavaScript need not. */
function readerOf(body: ReadableStream<Uint8Array>) {
  try {
    return body.getReader({ mode: "byob" });
  } catch {
    return body.getReader();
  }
}

function bytesOf({ done, value }: Filled): Uint8Array | null {
  return done ? null : (value ?? null);
}

function ignore(): void {
  // what ends a body has nobody to tell
}
