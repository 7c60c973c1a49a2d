import { hasTextAt } from "./audio-codecs.ts";
import {
  computeMaxAdtsSeconds,
  computeMaxSecondsByFrames,
  isHiddenMp4,
  isMp4,
} from "./audio-frames.ts";

/** Minimum bytes per second: 8 kbit/s for MP3, 4 kbit/s for other formats. */
const MP3_BYTE_RATE_MIN = 1000;
const OTHER_BYTE_RATE_MIN = 500;
/**
 * The sample rate of Opus in Hz. Also used for Vorbis: at a lower rate, the file's size limits the
 * duration.
 */
const OPUS_SAMPLE_RATE = 48_000;
/** The number of seconds that stands for an unbounded duration. */
export const UNBOUNDED_AUDIO_SECONDS = 1_000_000;
const ID3_TAGS_MAX = 8;
const ZEROS_MAX = 65_536;

/**
 * Returns an upper bound of a file's seconds: the longest of the durations by header, by frames,
 * and by size at the format's lowest rate. Headers and tags can be wrong.
 */
export function computeMaxAudioSeconds(file: Uint8Array): number {
  const audio = removeTags(file);
  const maximumSeconds = file.length / lowestRate(audio);
  const seconds = Math.max(secondsInHeader(audio), secondsByFrames(audio), maximumSeconds);
  return Math.min(UNBOUNDED_AUDIO_SECONDS, Math.ceil(seconds));
}

/**
 * Returns the seconds of all frames. Other bytes can precede the first frame only in MPEG audio and
 * AAC.
 */
function secondsByFrames(audio: Uint8Array): number {
  if (isHiddenMp4(audio)) return Infinity;
  if (isWav(audio)) return 0;
  if (isMp4(audio)) return computeMaxSecondsByFrames(audio);
  return isMpeg(audio) || hasTextAt(audio, 0, "ID3")
    ? computeMaxAdtsSeconds(audio)
    : computeMaxSecondsByFrames(audio);
}

function removeTags(bytes: Uint8Array): Uint8Array {
  let rest = bytes;
  for (let tags = 0; tags < ID3_TAGS_MAX; tags++) rest = removeId3(rest);
  return rest;
}

function removeId3(bytes: Uint8Array): Uint8Array {
  const digits = bytes.subarray(6, 10);
  if (!hasTextAt(bytes, 0, "ID3") || digits.some((digit) => digit > 127)) return bytes;
  const end = digits.reduce((sum, digit) => sum * 128 + digit, 0) + 10;
  return end > bytes.length ? bytes : bytes.subarray(end);
}

function lowestRate(audio: Uint8Array): number {
  if (isWav(audio)) return wavRate(audio);
  const isMp3 = isMpeg(audio) && ((audio[firstByte(audio) + 1] ?? 0) & 6) === 2;
  return isMp3 ? MP3_BYTE_RATE_MIN : OTHER_BYTE_RATE_MIN;
}

function isWav(audio: Uint8Array): boolean {
  return hasTextAt(audio, 0, "RIFF") && hasTextAt(audio, 8, "WAVE");
}

function isMpeg(audio: Uint8Array): boolean {
  const at = firstByte(audio);
  const next = audio[at + 1] ?? 0;
  return audio[at] === 0xff && (next & 0xe0) === 0xe0 && (next & 6) !== 0;
}

function firstByte(audio: Uint8Array): number {
  const start = audio.subarray(0, ZEROS_MAX);
  return Math.max(
    0,
    start.findIndex((byte) => byte !== 0),
  );
}

function wavRate(bytes: Uint8Array): number {
  const view = viewOf(bytes);
  let lowest = Infinity;
  let at = 12;
  while (at + 8 <= bytes.length) {
    const end = at + 8 + view.getUint32(at + 4, true);
    const isFormat = hasTextAt(bytes, at, "fmt ");
    if (isFormat) lowest = Math.min(lowest, wavFormatRate(bytes.subarray(at + 8, end)));
    at = end + (end % 2);
  }
  return lowest === Infinity ? OTHER_BYTE_RATE_MIN : lowest;
}

/** Maximum bytes per second: 8 channels of 32 bits at 192 kHz. Higher stated rates are ignored. */
const PCM_BYTE_RATE_MAX = 192_000 * 8 * 4;
/** Codecs whose frames have the stated size: PCM and its logarithmic forms. */
const PCM_CODECS: ReadonlySet<number> = new Set([1, 3, 6, 7]);
/** Minimum bytes per sample of compressed codecs: two kinds of ADPCM, and GSM. */
const SAMPLE_BYTES_MIN: Readonly<Record<number, number>> = { 0x02: 0.5, 0x11: 0.25, 0x31: 0.2 };
const MP3 = 0x55;
const EXTENSIBLE = 0xfffe;
const CODEC_AT = 24;

function wavFormatRate(format: Uint8Array): number {
  if (format.length < 16) return 0;
  const view = viewOf(format);
  const isExtended = view.getUint16(0, true) === EXTENSIBLE && format.length >= CODEC_AT + 2;
  const codec = view.getUint16(isExtended ? CODEC_AT : 0, true);
  if (codec === MP3) return OTHER_BYTE_RATE_MIN;
  const [channels, bits] = [view.getUint16(2, true), view.getUint16(14, true)];
  const frame = Math.min(view.getUint16(12, true), Math.ceil((channels * bits) / 8));
  const rate =
    view.getUint32(4, true) * (PCM_CODECS.has(codec) ? frame : (SAMPLE_BYTES_MIN[codec] ?? 0));
  if (rate > PCM_BYTE_RATE_MAX) return OTHER_BYTE_RATE_MIN;
  return PCM_CODECS.has(codec) ? Math.max(1, rate) : rate;
}

/**
 * Returns the seconds that FLAC's header or Ogg's last page states, or 0. A FLAC file written to a
 * pipe states no duration.
 */
function secondsInHeader(bytes: Uint8Array): number {
  const view = viewOf(bytes);
  if (hasTextAt(bytes, 0, "fLaC") && bytes.length > 26) {
    const rate = view.getUint32(18) >>> 12;
    const samples = ((bytes[21] ?? 0) & 15) * 2 ** 32 + view.getUint32(22);
    return rate === 0 ? 0 : samples / rate;
  }
  return hasTextAt(bytes, 0, "OggS") ? oggSeconds(bytes, view) : 0;
}

/**
 * Returns the seconds up to the last page that has an end position. A page in which no packet ends
 * has the position -1.
 */
function oggSeconds(bytes: Uint8Array, view: DataView): number {
  for (let at = bytes.length - 14; at >= 0; at--) {
    const samples = hasTextAt(bytes, at, "OggS") ? view.getBigInt64(at + 6, true) : -1n;
    if (samples >= 0n) return Number(samples) / OPUS_SAMPLE_RATE;
  }
  return 0;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
