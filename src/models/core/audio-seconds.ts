/** Lowest bytes per second: MP3 at 8 kbit/s, others at 4 kbit/s. PCM rates are in the header. */
const MP3_BYTES = 1000;
const OTHER_BYTES = 500;
const HEADER_BYTES = 4096;
/**
 * Sample rate of Opus timestamps. Vorbis at a lower rate lasts longer than computed, but the byte
 * count bounds it.
 */
const OGG_RATE = 48_000;
/** Longer than any provider accepts. */
const SECONDS_MAX = 1_000_000;

/**
 * Returns the maximum length of an audio file in seconds: the larger of its header's and its bytes
 * at the format's lowest rate, because headers can be false.
 */
export function audioSecondsMax(file: Uint8Array): number {
  const bytes = withoutId3(file);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const seconds = Math.max(lengthInHeader(bytes, view), bytes.length / lowestRate(bytes, view));
  return Math.min(SECONDS_MAX, Math.ceil(seconds));
}

function withoutId3(bytes: Uint8Array): Uint8Array {
  if (!hasText(bytes, 0, "ID3") || bytes.length < 10) return bytes;
  const size = bytes.subarray(6, 10).reduce((sum, byte) => sum * 128 + (byte & 127), 0);
  return bytes.subarray(10 + size);
}

function lowestRate(bytes: Uint8Array, view: DataView): number {
  if (hasText(bytes, 0, "RIFF") && hasText(bytes, 8, "WAVE")) return wavRate(bytes, view);
  const isMp3 = bytes[0] === 0xff && ((bytes[1] ?? 0) & 0xe6) === 0xe2;
  return isMp3 ? MP3_BYTES : OTHER_BYTES;
}

const PCM: ReadonlySet<number> = new Set([1, 3, 0xfffe]);

function wavRate(bytes: Uint8Array, view: DataView): number {
  const at = placeOf(bytes.subarray(0, HEADER_BYTES), "fmt ") + 8;
  if (at < 8 || at + 16 > bytes.length) return OTHER_BYTES;
  if (!PCM.has(view.getUint16(at, true))) return OTHER_BYTES;
  const [channels, bits] = [view.getUint16(at + 2, true), view.getUint16(at + 14, true)];
  const frame = Math.min(view.getUint16(at + 12, true), Math.ceil((channels * bits) / 8));
  return Math.max(1, view.getUint32(at + 4, true) * frame);
}

/** Returns the seconds from a FLAC header or the last Ogg page; 0 for other formats. */
function lengthInHeader(bytes: Uint8Array, view: DataView): number {
  if (hasText(bytes, 0, "fLaC") && bytes.length > 26) {
    const rate = view.getUint32(18) >>> 12;
    const samples = ((bytes[21] ?? 0) & 15) * 2 ** 32 + view.getUint32(22);
    return rate === 0 ? 0 : samples / rate;
  }
  if (!hasText(bytes, 0, "OggS")) return 0;
  const page = lastPage(bytes);
  return page + 14 > bytes.length ? 0 : Number(view.getBigUint64(page + 6, true)) / OGG_RATE;
}

function lastPage(bytes: Uint8Array): number {
  let at = bytes.length - 4;
  while (at > 0 && !hasText(bytes, at, "OggS")) at -= 1;
  return at;
}

function placeOf(bytes: Uint8Array, text: string): number {
  for (let at = 0; at < bytes.length; at++) if (hasText(bytes, at, text)) return at;
  return -1;
}

function hasText(bytes: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}
