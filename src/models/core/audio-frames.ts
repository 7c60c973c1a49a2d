import {
  AAC_FRAME_S_MAX,
  hasTextAt,
  getMaxMatroskaFrameSeconds,
  getMaxMp4FrameSeconds,
  getMaxOggFrameSeconds,
} from "./audio-codecs.ts";

const DEPTH_MAX = 8;
/**
 * Maximum frames and boxes to read. Files with more count as infinitely long, because reading them
 * would block the isolate for seconds.
 */
const PARTS_MAX = 500_000;

/**
 * Returns an upper bound of a compressed file's seconds, from its frames and headers. Returns
 * Infinity for an unknown format, because its size doesn't limit its duration.
 */
export function computeMaxSecondsByFrames(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (hasTextAt(bytes, 0, "fLaC") && bytes.length > 26) return flacSeconds(bytes, view);
  if (hasTextAt(bytes, 0, "OggS")) return oggSeconds(bytes, view);
  if (isMp4(bytes)) return mp4Seconds(view);
  if (bytes.length >= 4 && view.getUint32(0) === EBML) return matroskaSeconds(bytes, view);
  return isAdts(bytes, 0) ? computeMaxAdtsSeconds(bytes) : Infinity;
}

const FLAC_RATES = [0, 88.2, 176.4, 192, 8, 16, 22.05, 24, 32, 44.1, 48, 96];

/** Adds up the frames' seconds. A valid checksum identifies a frame header. */
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
  const samples = rateAt > blockAt ? readUnsigned(bytes, blockAt, rateAt) + 1 : blockSize(block);
  const known = speed === 0 ? rate : (FLAC_RATES[speed] ?? 0) * 1000;
  const hertz = speed > 11 ? readUnsigned(bytes, rateAt, end) * (SPEEDS[speed - 12] ?? 0) : known;
  return samples / Math.max(1, hertz);
}

/** Byte length of a FLAC frame header's block size or sample rate, by that field's code. */
const BLOCK_BYTES: Readonly<Record<number, number>> = { 6: 1, 7: 2 };
const RATE_BYTES: Readonly<Record<number, number>> = { 12: 1, 13: 2, 14: 2 };
const SPEEDS = [1000, 1, 10];

function blockSize(code: number): number {
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

function oggSeconds(bytes: Uint8Array, view: DataView): number {
  const streams = new Set<number>();
  let packets = 0;
  let longest = 0;
  let parts = 0;
  for (let at = bytes.indexOf(0x4f); at !== -1; at = bytes.indexOf(0x4f, at + 1)) {
    if (parts++ > PARTS_MAX) return Infinity;
    if (!hasTextAt(bytes, at, "OggS\0") || at + 27 > bytes.length) continue;
    const data = at + 27 + (bytes[at + 26] ?? 0);
    parts += (data - at) >> 5;
    packets += countPackets(bytes.subarray(at + 27, data));
    const stream = view.getUint32(at + 14);
    const isFirst = ((bytes[at + 5] ?? 0) & 2) !== 0 || !streams.has(stream);
    streams.add(stream);
    if (isFirst) longest = Math.max(longest, getMaxOggFrameSeconds(bytes, data));
  }
  return longest === 0 ? Infinity : packets * longest;
}

function countPackets(lengths: Uint8Array): number {
  let packets = lengths.at(-1) === 255 ? 1 : 0;
  for (const length of lengths) if (length < 255) packets++;
  return packets;
}

const ENTRIES_MAX = 64;
const MP4_STARTS = new Set(["ftyp", "styp", "moov", "moof", "mdat", "free", "skip", "wide"]);
const MP4_BOXES = new Set(
  "moov trak mdia minf stbl moof traf edts mvex dinf udta tref gmhd".split(" "),
);

/** Boxes that normally contain no sound. Some programs still search these boxes for sound. */
const MP4_OTHERS = new Set("meta tapt ilst wave sinf schi".split(" "));
const MP4_SOUND = ["trak", "traf", "stsd", "stsz", "stz2", "trun"];

type Mp4Facts = { boxes: number; frames: number; longest: number; seconds: number; scale: number };

/**
 * Returns the longest duration (in seconds) by frames, by headers or by edit lists. Edit lists can
 * repeat audio.
 */
function mp4Seconds(view: DataView): number {
  const found: Mp4Facts = { boxes: 0, frames: 0, longest: 0, seconds: 0, scale: 1 };
  readBoxes(view, { from: 0, to: view.byteLength, depth: 0 }, found);
  return found.longest === 0 ? Infinity : Math.max(found.seconds, found.frames * found.longest);
}

type Span = { readonly from: number; readonly to: number; readonly depth: number };

function readBoxes(view: DataView, { from, to, depth }: Span, found: Mp4Facts): void {
  if (depth > DEPTH_MAX) found.seconds = Infinity;
  for (let at = from; at + 8 <= to && found.seconds < Infinity;) {
    if (found.boxes++ > PARTS_MAX) found.seconds = Infinity;
    const size = view.getUint32(at);
    const isLong = size === 1 && at + 16 <= to;
    const fullSize = isLong ? Number(view.getBigUint64(at + 8)) : size;
    const [data, end] = [at + (isLong ? 16 : 8), fullSize < 8 ? to : Math.min(to, at + fullSize)];
    const name = readBoxName(view, at + 4);
    if (MP4_BOXES.has(name)) readBoxes(view, { from: data, to: end, depth: depth + 1 }, found);
    else if (end - data >= 8) readBox(view, { name, data, end }, found);
    at = Math.max(end, at + 8);
  }
}

function containsSound(view: DataView, from: number, to: number): boolean {
  const text = new TextDecoder("latin1").decode(
    new Uint8Array(view.buffer, view.byteOffset + from, to - from),
  );
  return MP4_SOUND.some((name) => text.includes(name));
}

export function isMp4(bytes: Uint8Array): boolean {
  if (bytes.length < 8) return false;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const size = view.getUint32(0);
  return MP4_STARTS.has(readBoxName(view, 4)) && (size < 2 || size <= bytes.length);
}

const PROBE_BYTES = 2 ** 20;
const MP4_NAMES = new Set([...MP4_STARTS, ..."pnot udta ediw junk pict uuid prfl".split(" ")]);

/**
 * Reports whether a file starts with other data but contains MP4 boxes. FFmpeg accepts such a file.
 */
export function isHiddenMp4(bytes: Uint8Array): boolean {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0; at + 16 <= Math.min(bytes.length, PROBE_BYTES);) {
    const shortSize = view.getUint32(at) || bytes.length - at;
    const size = shortSize === 1 ? Number(view.getBigUint64(at + 8)) : shortSize;
    const isBox = size >= (shortSize === 1 ? 16 : 8);
    if (isBox && MP4_NAMES.has(readBoxName(view, at + 4))) return !isMp4(bytes);
    at += isBox ? size : 4;
  }
  return false;
}

type Box = {
  readonly isWide: boolean;
  readonly at: (offset: number) => number;
  readonly length: (offset: number) => number;
};

function readBox(
  view: DataView,
  { name, data, end }: { readonly name: string; readonly data: number; readonly end: number },
  found: Mp4Facts,
): void {
  const isWide = view.getUint8(data) === 1;
  const at = (offset: number): number =>
    data + offset + 4 <= end ? view.getUint32(data + offset) : 0;
  const length = (offset: number): number =>
    isWide ? at(offset) * 2 ** 32 + at(offset + 4) : at(offset);
  const box = { isWide, at, length };
  if (name === "mvhd") found.scale = Math.max(1, at(isWide ? 20 : 12));
  if (name === "stsd") found.longest = Math.max(found.longest, entriesSeconds(view, data + 8, end));
  // The duration is unlimited if the file has a compressed box, or a box that only some programs
  // read as sound.
  const isHidden = name === "cmov" || (MP4_OTHERS.has(name) && containsSound(view, data, end));
  if (isHidden) found.seconds = Infinity;
  found.frames += at(MP4_COUNTS[name] ?? Infinity);
  found.seconds = Math.max(found.seconds, mediaSeconds(name, box, { bytes: end - data, found }));
}

function entriesSeconds(view: DataView, from: number, end: number): number {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, end);
  let longest = 0;
  let entries = 0;
  for (let at = from; at < end;) {
    const size = at + 8 <= end ? view.getUint32(at) : 0;
    if (size < 8 || entries++ > ENTRIES_MAX) return Infinity;
    const entry = bytes.subarray(at + 8, at + size);
    longest = Math.max(longest, getMaxMp4FrameSeconds(readBoxName(view, at + 4), entry));
    at += size;
  }
  return longest;
}

const MP4_COUNTS: Readonly<Record<string, number>> = { stsz: 8, stz2: 8, trun: 4 };
const UNKNOWN_TICKS = new Set([2 ** 32 - 1, 2 ** 64]);

function mediaSeconds(
  name: string,
  { isWide, at, length }: Box,
  { bytes, found }: { readonly bytes: number; readonly found: Mp4Facts },
): number {
  if (name === "mvhd" || name === "mdhd") {
    const [scale, ticks] = isWide ? [at(20), length(24)] : [at(12), length(16)];
    return UNKNOWN_TICKS.has(ticks) ? 0 : ticks / Math.max(1, scale);
  }
  if (name !== "elst") return 0;
  const step = isWide ? 20 : 12;
  let sum = 0;
  for (let i = 8; i + step <= Math.min(bytes, 8 + at(4) * step); i += step) sum += length(i);
  return sum / found.scale;
}

const EBML = 0x1a45dfa3;
const TRACK = 0xae;
const MASTER_IDS = new Set([
  0x18538067, 0x1f43b675, 0x1549a966, 0x1654ae6b, 0xa0, 0x6d80, 0x6240,
]).add(TRACK);
const [SCALE, DURATION, TIMESTAMP, CODEC] = [0x2ad7b1, 0x4489, 0xe7, 0x86];
const [CONFIG, ENCODED] = [0x63a2, 0x5032];
const READ_ELEMENTS = new Set([SCALE, DURATION, TIMESTAMP, CODEC, CONFIG, ENCODED]);
const BLOCK_IDS = new Set([0xa1, 0xa3]);
/** Maximum time of a Matroska block relative to its cluster, in ticks. */
const BLOCK_TICKS = 2 ** 15;

type MatroskaFacts = {
  frames: number;
  longest: number;
  ticks: number;
  scale: number;
  codec: string;
  config: Uint8Array;
};

/**
 * Returns a WebM or Matroska file's maximum seconds. If an element's size exceeds the file, reads
 * the element's content as elements.
 */
function matroskaSeconds(bytes: Uint8Array, view: DataView): number {
  const start = { frames: 0, longest: 0, ticks: 0, scale: 1_000_000 };
  const found: MatroskaFacts = { ...start, codec: "", config: NO_CONFIG };
  let parts = 0;
  for (let at = 0; at < bytes.length;) {
    if (parts++ > PARTS_MAX) return Infinity;
    const id = readVariableNumber(bytes, at, 4);
    const size = readVariableNumber(bytes, at + id.length, 8);
    const data = at + id.length + size.length;
    const mark = 2 ** (7 * size.length);
    const end = size.value === mark * 2 - 1 ? Infinity : data + size.value - mark;
    const isRead = id.length > 0 && size.length > 0;
    const isWhole = isRead && end <= bytes.length;
    if (id.value === TRACK) endTrack(found);
    if (BLOCK_IDS.has(id.value)) found.frames += countFrames(bytes, data);
    if (isWhole) readElement(view, { id: id.value, data, end }, found);
    const next = isWhole && !MASTER_IDS.has(id.value) ? end : data;
    at = isRead ? next : at + 1;
  }
  return matroskaDuration(found);
}

function matroskaDuration(found: MatroskaFacts): number {
  endTrack(found);
  const { frames, longest, ticks, scale } = found;
  return longest === 0 ? Infinity : Math.max((ticks * scale) / 1e9, frames * longest);
}

const NO_CONFIG = new Uint8Array();

function endTrack(found: MatroskaFacts): void {
  found.longest = Math.max(found.longest, getMaxMatroskaFrameSeconds(found.codec, found.config));
  found.codec = "";
  found.config = NO_CONFIG;
}

function readElement(
  view: DataView,
  { id, data, end }: { readonly id: number; readonly data: number; readonly end: number },
  found: MatroskaFacts,
): void {
  if (!READ_ELEMENTS.has(id)) return;
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  if (id === SCALE) found.scale = readUnsigned(bytes, data, end);
  if (id === CODEC && found.codec !== "") endTrack(found);
  if (id === CODEC) found.codec = readText(bytes, data, end);
  if (id === CONFIG) found.config = bytes.subarray(data, end);
  // A compressed codec configuration can't be read, so no maximum duration is known.
  if (id === ENCODED && (readUnsigned(bytes, data, end) & 2) !== 0) found.longest = Infinity;
  const start = id === TIMESTAMP ? readUnsigned(bytes, data, end) + BLOCK_TICKS : 0;
  const duration = id === DURATION ? readFloat(view, data, end - data) : 0;
  found.ticks = Math.max(found.ticks, start, duration);
}

const NAME_BYTES = 32;

function readText(bytes: Uint8Array, from: number, to: number): string {
  const text = new TextDecoder().decode(bytes.subarray(from, Math.min(to, from + NAME_BYTES)));
  return text.replace(/\0+$/, "");
}

/** Reads a number whose first byte states its length. Keeps the bit that marks the length. */
function readVariableNumber(
  bytes: Uint8Array,
  at: number,
  most: number,
): { readonly length: number; readonly value: number } {
  const length = Math.clz32(bytes[at] ?? 0) - 23;
  if (length > most || at + length > bytes.length) return { length: 0, value: 0 };
  return { length, value: readUnsigned(bytes, at, at + length) };
}

function readUnsigned(bytes: Uint8Array, from: number, to: number): number {
  let sum = 0;
  for (let at = from; at < to; at++) sum = sum * 256 + (bytes[at] ?? 0);
  return sum;
}

function readFloat(view: DataView, at: number, length: number): number {
  if (length === 4) return view.getFloat32(at) || 0;
  return length === 8 ? view.getFloat64(at) || 0 : 0;
}

/** Counts the frames in a block. A laced block can contain 256 frames. */
function countFrames(bytes: Uint8Array, at: number): number {
  const { length } = readVariableNumber(bytes, at, 8);
  const isLaced = ((bytes[at + length + 2] ?? 0) & 6) !== 0;
  return isLaced ? (bytes[at + length + 3] ?? 0) + 1 : 1;
}

function isAdts(bytes: Uint8Array, at: number): boolean {
  return bytes[at] === 0xff && ((bytes[at + 1] ?? 0) & 0xf6) === 0xf0;
}

/** Returns the maximum duration of AAC audio in seconds, with four blocks in each ADTS frame. */
export function computeMaxAdtsSeconds(bytes: Uint8Array): number {
  let blocks = 0;
  let parts = 0;
  for (let at = 0; at !== -1; at = bytes.indexOf(0xff, at + 1)) {
    if (parts++ > PARTS_MAX) return Infinity;
    if (isAdts(bytes, at)) blocks += ((bytes[at + 6] ?? 0) & 3) + 1;
  }
  return blocks * AAC_FRAME_S_MAX;
}

function readBoxName(view: DataView, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((index) => view.getUint8(at + index)));
}
