/**
 * Bounds of a compressed file's duration by its frames. A header may state less than a decoder
 * finds, and silence needs almost no bytes.
 */

/** The longest frame of any codec: FLAC, 65,536 samples at 8 kHz. */
const FRAME_S = 8.2;
/** AAC with 2,048 samples at 7,350 Hz. */
const AAC_S = 0.28;
const OPUS_S = 0.12;
const DEPTH_MAX = 8;
/**
 * A file of 20 MiB with more parts counts as endless, because reading them all would block the
 * isolate for seconds.
 */
const PARTS_MAX = 500_000;

/** Returns at least the seconds of all frames and of the header's durations, or 0 if unknown. */
export function framesSecondsMax(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (hasText(bytes, 0, "fLaC") && bytes.length > 26) return flacSeconds(bytes, view);
  if (hasText(bytes, 0, "OggS")) return oggSeconds(bytes, view);
  if (bytes.length >= 8 && MP4_STARTS.has(nameAt(view, 4))) return mp4Seconds(view);
  if (bytes.length >= 4 && view.getUint32(0) === EBML) return matroskaSeconds(bytes, view);
  return isAdts(bytes, 0) ? adtsFrames(bytes) * AAC_S : 0;
}

const FLAC_RATES = [0, 88.2, 176.4, 192, 8, 16, 22.05, 24, 32, 44.1, 48, 96];

/** Every frame starts with a header that has its own checksum. */
function flacSeconds(bytes: Uint8Array, view: DataView): number {
  const rate = view.getUint32(18) >>> 12;
  let seconds = 0;
  let parts = 0;
  for (let at = bytes.indexOf(0xff); at !== -1; at = bytes.indexOf(0xff, at + 1)) {
    if (parts++ > PARTS_MAX) return Infinity;
    if (((bytes[at + 1] ?? 0) & 0xfe) === 0xf8) seconds += flacFrame(bytes, at, rate);
  }
  return seconds;
}

function flacFrame(bytes: Uint8Array, start: number, rate: number): number {
  const [sizes = 0, , number = 0] = bytes.subarray(start + 2, start + 5);
  const [block, speed] = [sizes >> 4, sizes & 15];
  const blockAt = start + 4 + Math.max(1, Math.clz32(~(number << 24)));
  const rateAt = blockAt + (BLOCK_BYTES[block] ?? 0);
  const end = rateAt + (RATE_BYTES[speed] ?? 0);
  if (speed === 15 || crc8(bytes.subarray(start, end)) !== bytes[end]) return 0;
  const samples = rateAt > blockAt ? unsigned(bytes, blockAt, rateAt) + 1 : blockOf(block);
  const known = speed === 0 ? rate : (FLAC_RATES[speed] ?? 0) * 1000;
  const hertz = speed > 11 ? unsigned(bytes, rateAt, end) * (SPEEDS[speed - 12] ?? 0) : known;
  return samples / Math.max(1, hertz);
}

/** Bytes of a block size and of a rate, by their codes. */
const BLOCK_BYTES: Readonly<Record<number, number>> = { 6: 1, 7: 2 };
const RATE_BYTES: Readonly<Record<number, number>> = { 12: 1, 13: 2, 14: 2 };
const SPEEDS = [1000, 1, 10];

function blockOf(code: number): number {
  if (code > 7) return 256 << (code - 8);
  if (code === 1) return 192;
  return code === 0 ? 0 : 576 << (code - 2);
}

function crc8(bytes: Uint8Array): number {
  let sum = 0;
  for (const byte of bytes) {
    sum ^= byte;
    for (let bit = 0; bit < 8; bit++) sum = (sum & 128 ? (sum << 1) ^ 7 : sum << 1) & 255;
  }
  return sum;
}

/** Counts the packets of all pages, also of pages within pages. */
function oggSeconds(bytes: Uint8Array, view: DataView): number {
  let packets = 0;
  let longest = 0;
  let parts = 0;
  for (let at = bytes.indexOf(0x4f); at !== -1; at = bytes.indexOf(0x4f, at + 1)) {
    if (parts++ > PARTS_MAX) return Infinity;
    if (!hasText(bytes, at, "OggS")) continue;
    const data = at + 27 + (bytes[at + 26] ?? 0);
    parts += (data - at) >> 5;
    for (let i = at + 27; i < data; i++) if ((bytes[i] ?? 255) < 255) packets++;
    packets += bytes[data - 1] === 255 ? 1 : 0;
    const isFirst = ((bytes[at + 5] ?? 0) & 2) !== 0;
    if (isFirst) longest = Math.max(longest, packetSeconds(bytes, view, data));
  }
  return packets * (longest === 0 ? FRAME_S : longest);
}

/** Returns the longest packet of the codec whose first header is at `at`. */
function packetSeconds(bytes: Uint8Array, view: DataView, at: number): number {
  if (hasText(bytes, at, "OpusHead")) return OPUS_S;
  if (!hasText(bytes, at, "\u0001vorbis") || at + 29 > bytes.length) return FRAME_S;
  return 2 ** ((bytes[at + 28] ?? 0) >> 4) / 2 / Math.max(1, view.getUint32(at + 12, true));
}

const MP4_STARTS = new Set(["ftyp", "styp", "moov", "moof", "mdat", "free", "skip", "wide"]);
const MP4_BOXES = new Set(["moov", "trak", "mdia", "minf", "stbl", "moof", "traf", "edts", "mvex"]);
const MP4_CODECS = new Map([
  ["mp4a", AAC_S],
  ["Opus", OPUS_S],
]);

type Mp4 = { boxes: number; frames: number; longest: number; seconds: number; scale: number };

/** Uses the longest of frames, stated durations and edit lists, which can repeat sound. */
function mp4Seconds(view: DataView): number {
  const found: Mp4 = { boxes: 0, frames: 0, longest: 0, seconds: 0, scale: 1 };
  readBoxes(view, { from: 0, to: view.byteLength, depth: 0 }, found);
  return Math.max(found.seconds, found.frames * (found.longest === 0 ? FRAME_S : found.longest));
}

type Span = { readonly from: number; readonly to: number; readonly depth: number };

function readBoxes(view: DataView, { from, to, depth }: Span, found: Mp4): void {
  if (depth > DEPTH_MAX) found.seconds = Infinity;
  for (let at = from; at + 8 <= to && found.seconds < Infinity;) {
    if (found.boxes++ > PARTS_MAX) found.seconds = Infinity;
    const size = view.getUint32(at);
    const isLong = size === 1 && at + 16 <= to;
    const whole = isLong ? Number(view.getBigUint64(at + 8)) : size;
    const [data, end] = [at + (isLong ? 16 : 8), whole < 8 ? to : Math.min(to, at + whole)];
    const name = nameAt(view, at + 4);
    if (MP4_BOXES.has(name)) readBoxes(view, { from: data, to: end, depth: depth + 1 }, found);
    else if (end - data >= 8) readBox(view, { name, data, end }, found);
    at = Math.max(end, at + 8);
  }
}

type Box = {
  readonly isWide: boolean;
  readonly at: (offset: number) => number;
  /** A number of 8 bytes in wide boxes, else of 4. */
  readonly length: (offset: number) => number;
};

function readBox(
  view: DataView,
  { name, data, end }: { readonly name: string; readonly data: number; readonly end: number },
  found: Mp4,
): void {
  const isWide = view.getUint8(data) === 1;
  const at = (offset: number): number =>
    data + offset + 4 <= end ? view.getUint32(data + offset) : 0;
  const length = (offset: number): number =>
    isWide ? at(offset) * 2 ** 32 + at(offset + 4) : at(offset);
  const box = { isWide, at, length };
  if (name === "mvhd") found.scale = Math.max(1, at(isWide ? 20 : 12));
  if (name === "stsd") {
    const codec = end - data >= 16 ? nameAt(view, data + 12) : "";
    found.longest = Math.max(found.longest, MP4_CODECS.get(codec) ?? FRAME_S);
  }
  found.frames += at(MP4_COUNTS[name] ?? Infinity);
  found.seconds = Math.max(found.seconds, lengthOf(name, box, { bytes: end - data, found }));
}

/** The positions at which the boxes of samples have their number. */
const MP4_COUNTS: Readonly<Record<string, number>> = { stsz: 8, stz2: 8, trun: 4 };
const UNKNOWN = new Set([2 ** 32 - 1, 2 ** 64]);

function lengthOf(
  name: string,
  { isWide, at, length }: Box,
  { bytes, found }: { readonly bytes: number; readonly found: Mp4 },
): number {
  if (name === "mvhd" || name === "mdhd") {
    const [scale, ticks] = isWide ? [at(20), length(24)] : [at(12), length(16)];
    return UNKNOWN.has(ticks) ? 0 : ticks / Math.max(1, scale);
  }
  if (name !== "elst") return 0;
  const step = isWide ? 20 : 12;
  let sum = 0;
  for (let i = 8; i + step <= Math.min(bytes, 8 + at(4) * step); i += step) sum += length(i);
  return sum / found.scale;
}

const EBML = 0x1a45dfa3;
const MASTERS = new Set([0x18538067, 0x1f43b675, 0x1549a966, 0x1654ae6b, 0xae, 0xa0]);
const [SCALE, DURATION, TIMESTAMP, CODEC] = [0x2ad7b1, 0x4489, 0xe7, 0x86];
const READ = new Set([SCALE, DURATION, TIMESTAMP, CODEC]);
const BLOCKS = new Set([0xa1, 0xa3]);
/** A block's time relative to its cluster, in ticks. */
const BLOCK_TICKS = 2 ** 15;

type Matroska = { frames: number; longest: number; ticks: number; scale: number };

/** Reads WebM and Matroska. An element that doesn't fit is read as others inside it. */
function matroskaSeconds(bytes: Uint8Array, view: DataView): number {
  const found: Matroska = { frames: 0, longest: 0, ticks: 0, scale: 1_000_000 };
  let parts = 0;
  for (let at = 0; at < bytes.length;) {
    if (parts++ > PARTS_MAX) return Infinity;
    const id = numberAt(bytes, at, 4);
    const size = numberAt(bytes, at + id.length, 8);
    const data = at + id.length + size.length;
    const mark = 2 ** (7 * size.length);
    const end = size.value === mark * 2 - 1 ? Infinity : data + size.value - mark;
    const isRead = id.length > 0 && size.length > 0;
    const isWhole = isRead && end <= bytes.length;
    if (BLOCKS.has(id.value)) found.frames += framesIn(bytes, data);
    if (isWhole) readElement(view, { id: id.value, data, end }, found);
    const next = isWhole && !MASTERS.has(id.value) ? end : data;
    at = isRead ? next : at + 1;
  }
  const { frames, longest, ticks, scale } = found;
  return Math.max((ticks * scale) / 1e9, frames * (longest === 0 ? FRAME_S : longest));
}

function readElement(
  view: DataView,
  { id, data, end }: { readonly id: number; readonly data: number; readonly end: number },
  found: Matroska,
): void {
  if (!READ.has(id)) return;
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  if (id === SCALE) found.scale = unsigned(bytes, data, end);
  if (id === CODEC) found.longest = Math.max(found.longest, codecSeconds(bytes, data));
  const start = id === TIMESTAMP ? unsigned(bytes, data, end) + BLOCK_TICKS : 0;
  const duration = id === DURATION ? float(view, data, end - data) : 0;
  found.ticks = Math.max(found.ticks, start, duration);
}

/** Reads a number that starts with its own length, including the length's mark. */
function numberAt(
  bytes: Uint8Array,
  at: number,
  most: number,
): { readonly length: number; readonly value: number } {
  const length = Math.clz32(bytes[at] ?? 0) - 23;
  if (length > most || at + length > bytes.length) return { length: 0, value: 0 };
  return { length, value: unsigned(bytes, at, at + length) };
}

function unsigned(bytes: Uint8Array, from: number, to: number): number {
  let sum = 0;
  for (let at = from; at < to; at++) sum = sum * 256 + (bytes[at] ?? 0);
  return sum;
}

function float(view: DataView, at: number, length: number): number {
  if (length === 4) return view.getFloat32(at) || 0;
  return length === 8 ? view.getFloat64(at) || 0 : 0;
}

function codecSeconds(bytes: Uint8Array, at: number): number {
  if (hasText(bytes, at, "A_OPUS")) return OPUS_S;
  return hasText(bytes, at, "V_") ? 0 : FRAME_S;
}

/** Returns the frames of a block, up to 256 with lacing. */
function framesIn(bytes: Uint8Array, at: number): number {
  const { length } = numberAt(bytes, at, 8);
  const isLaced = ((bytes[at + length + 2] ?? 0) & 6) !== 0;
  return isLaced ? (bytes[at + length + 3] ?? 0) + 1 : 1;
}

function isAdts(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0xff && ((bytes[at + 1] ?? 0) & 0xf6) === 0xf0;
}

function adtsFrames(bytes: Uint8Array): number {
  let frames = 0;
  let parts = 0;
  for (let at = 0; at !== -1; at = bytes.indexOf(0xff, at + 1)) {
    if (parts++ > PARTS_MAX) return Infinity;
    if (isAdts(bytes, at)) frames++;
  }
  return frames;
}

function nameAt(view: DataView, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((index) => view.getUint8(at + index)));
}

export function hasText(bytes: Uint8Array, at: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}
