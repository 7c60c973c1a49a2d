export type EventStreamFrame = {
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Uint8Array;
};

const PRELUDE_BYTES = 12;
const CRC_BYTES = 4;
/** Maximum size of a frame, in bytes. AWS limits payloads to 16 MiB. */
export const FRAME_BYTES_MAX = 16 * 1024 * 1024;

/** Bytes of a header's value by type (0 to 9). Null if its length comes first, in two bytes. */
const VALUE_BYTES = [0, 0, 1, 2, 4, 8, null, null, 8, 16];
const STRING_TYPE = 7;

/**
 * Decodes `application/vnd.amazon.eventstream` (smithy.io, "Amazon Event Stream Specification"):
 * big-endian frames of `u32 total | u32 headers | u32 CRC of both | headers | payload | u32 CRC of
 * all before`.
 */
export class FrameDecoder {
  #parts: Uint8Array[] = [];
  #bufferedBytes = 0;
  #neededBytes = PRELUDE_BYTES;
  #broken = false;
  #overflowed = false;

  get broken(): boolean {
    return this.#broken;
  }

  get overflowed(): boolean {
    return this.#overflowed;
  }

  push(bytes: Uint8Array): EventStreamFrame[] {
    if (this.#broken || bytes.length === 0) return [];
    this.#parts.push(bytes);
    this.#bufferedBytes += bytes.length;
    const frames: EventStreamFrame[] = [];
    while (this.#bufferedBytes >= this.#neededBytes && !this.#broken) {
      const buffered = this.#joinParts();
      const frameBytes = totalBytes(buffered);
      this.#overflowed = frameBytes !== null && frameBytes > FRAME_BYTES_MAX;
      if (frameBytes === null || this.#overflowed) this.#broken = true;
      else if (buffered.length < frameBytes) this.#neededBytes = frameBytes;
      else this.#takeFrame(buffered, frameBytes, frames);
    }
    return frames;
  }

  #takeFrame(bytes: Uint8Array, frameBytes: number, frames: EventStreamFrame[]): void {
    const frame = parseFrame(bytes.subarray(0, frameBytes));
    if (frame === null) this.#broken = true;
    else frames.push(frame);
    this.#bufferedBytes -= frameBytes;
    this.#parts = this.#bufferedBytes === 0 ? [] : [bytes.subarray(frameBytes)];
    this.#neededBytes = PRELUDE_BYTES;
  }

  #joinParts(): Uint8Array {
    const [first] = this.#parts;
    if (this.#parts.length === 1 && first !== undefined) return first;
    const joined = new Uint8Array(this.#bufferedBytes);
    let at = 0;
    for (const part of this.#parts) {
      joined.set(part, at);
      at += part.length;
    }
    this.#parts = [joined];
    return joined;
  }
}

function totalBytes(bytes: Uint8Array): number | null {
  const view = viewOf(bytes);
  const total = view.getUint32(0);
  const headers = view.getUint32(4);
  const isLongEnough = total >= PRELUDE_BYTES + headers + CRC_BYTES;
  return isLongEnough && view.getUint32(8) === crc32(bytes.subarray(0, 8)) ? total : null;
}

function parseFrame(bytes: Uint8Array): EventStreamFrame | null {
  const view = viewOf(bytes);
  const end = bytes.length - CRC_BYTES;
  if (view.getUint32(end) !== crc32(bytes.subarray(0, end))) return null;
  const payloadAt = PRELUDE_BYTES + view.getUint32(4);
  const headers = parseHeaders(bytes.subarray(PRELUDE_BYTES, payloadAt));
  return headers && { headers, payload: bytes.subarray(payloadAt, end) };
}

function parseHeaders(bytes: Uint8Array): ReadonlyMap<string, string> | null {
  const headers = new Map<string, string>();
  const view = viewOf(bytes);
  const text = new TextDecoder();
  let at = 0;
  while (at < bytes.length) {
    const nameAt = at + 1;
    const typeAt = nameAt + view.getUint8(at);
    const type = bytes[typeAt];
    const fixedBytes = type === undefined ? undefined : VALUE_BYTES[type];
    if (fixedBytes === undefined) return null;
    const valueAt = typeAt + (fixedBytes === null ? 3 : 1);
    if (valueAt > bytes.length) return null;
    at = valueAt + (fixedBytes ?? view.getUint16(typeAt + 1));
    if (at > bytes.length) return null;
    if (type !== STRING_TYPE) continue;
    const name = text.decode(bytes.subarray(nameAt, typeAt));
    headers.set(name, text.decode(bytes.subarray(valueAt, at)));
  }
  return headers;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Computes CRC-32 as in gzip (ISO 3309, reflected polynomial 0xedb88320). */
export function crc32(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) crc = (CRC_TABLE[(crc ^ byte) & 0xff] ?? 0) ^ (crc >>> 8);
  return ~crc >>> 0;
}

const CRC_TABLE = Int32Array.from({ length: 256 }, (_, byte) => {
  let entry = byte;
  for (let bit = 0; bit < 8; bit++) entry = (entry >>> 1) ^ (entry & 1 ? 0xedb88320 : 0);
  return entry;
});
