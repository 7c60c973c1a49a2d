const READ_BYTES_FIRST = 16 * 1024;
const READ_BYTES_MAX = 1024 * 1024;

/**
 * Returns a response's text, or null above `bytesMax` after decompression. Throws if the connection
 * breaks.
 */
export async function readBoundedText(
  response: Response,
  bytesMax: number,
): Promise<string | null> {
  // The declared length limits an uncompressed body, so one native read suffices.
  const declaredLength = response.headers.get("content-length");
  if (declaredLength !== null && !response.headers.has("content-encoding")) {
    if (Number(declaredLength) <= bytesMax) return response.text();
  }
  if (response.body === null) return "";
  const reader = response.body.getReader({ mode: "byob" });
  const pieces = new Utf8PieceDecoder();
  let text = "";
  let bytes = 0;
  for (let size = READ_BYTES_FIRST; ; size = Math.min(READ_BYTES_MAX, size * 4)) {
    // A native read fills the whole buffer unless the body ends.
    const { done, value } = await readFull(reader, size);
    bytes += value?.byteLength ?? 0;
    if (bytes > bytesMax) {
      ignoreRejection(reader.cancel());
      return null;
    }
    text += pieces.decode(value);
    if (done) return text + pieces.end();
  }
}

const PART_BYTES = 256 * 1024;

/** Passes a body's parts to `onPart` until it returns a result. Returns this result, or null. */
export async function readBodyParts<T>(
  body: ReadableStream<Uint8Array>,
  onPart: (part: Uint8Array) => T | null,
): Promise<T | null> {
  const reader = body.getReader({ mode: "byob" });
  for (;;) {
    const { done, value } = await readFull(reader, PART_BYTES);
    const result = value === undefined || value.byteLength === 0 ? null : onPart(value);
    if (result !== null) {
      ignoreRejection(reader.cancel());
      return result;
    }
    if (done) return null;
  }
}

type ReadPart = { readonly done: boolean; readonly value?: Uint8Array | undefined };
type Reader = {
  read(buffer: Uint8Array): Promise<ReadPart>;
  readAtLeast?(bytes: number, buffer: Uint8Array): Promise<ReadPart>;
};

async function readFull(reader: Reader, size: number): Promise<ReadPart> {
  const buffer = new Uint8Array(size);
  if (reader.readAtLeast === undefined) return reader.read(buffer);
  const { done, value } = await reader.readAtLeast(size, buffer);
  return { done: done || (value?.byteLength ?? 0) < size, value };
}

export function discardBody(response: Response): void {
  if (response.body !== null) ignoreRejection(response.body.cancel());
}

function ignoreRejection(work: Promise<unknown>): void {
  work.catch(() => undefined);
}

const BYTE_ORDER_MARK = "\ufeff";

/**
 * Decodes UTF-8 from pieces that can split characters. Drops one byte order mark at the start.
 * workerd's TextDecoder would drop one per piece.
 */
export class Utf8PieceDecoder {
  readonly #decoder = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
  #hasText = false;

  decode(bytes: Uint8Array | undefined): string {
    return this.#withoutByteOrderMark(this.#decoder.decode(bytes, { stream: true }));
  }

  end(): string {
    return this.#withoutByteOrderMark(this.#decoder.decode());
  }

  #withoutByteOrderMark(text: string): string {
    if (this.#hasText || text === "") return text;
    this.#hasText = true;
    return text.startsWith(BYTE_ORDER_MARK) ? text.slice(BYTE_ORDER_MARK.length) : text;
  }
}

export function joinBytes(pieces: readonly Uint8Array[], length: number): Uint8Array {
  const [first] = pieces;
  if (first !== undefined && first.byteLength === length) return first;
  const all = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.byteLength;
  }
  return all;
}
