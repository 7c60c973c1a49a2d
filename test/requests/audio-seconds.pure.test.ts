import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { computeMaxAudioSeconds } from "../../src/models/core/audio-seconds.ts";

const RATE = 16_000;

type FrameHeader = {
  readonly bytes?: number;
  readonly rate?: number;
  readonly frame?: number;
  readonly format?: number;
  readonly codec?: number;
};

function chunk(name: string, data: Uint8Array, length = data.length): number[] {
  const size = new Uint8Array(new Uint32Array([length]).buffer);
  return [...new TextEncoder().encode(name), ...size, ...data, ...(data.length % 2 ? [0] : [])];
}

function format({
  rate = RATE,
  frame = 2,
  format: formatCode = 1,
  codec,
}: FrameHeader = {}): number[] {
  const data = new Uint8Array(codec === undefined ? 16 : 40);
  const view = new DataView(data.buffer);
  view.setUint16(0, formatCode, true);
  view.setUint16(2, 1, true);
  view.setUint32(4, rate, true);
  view.setUint16(12, frame, true);
  view.setUint16(14, 16, true);
  if (codec !== undefined) view.setUint16(24, codec, true);
  return chunk("fmt ", data);
}

/** A WAV file of 16-bit mono samples, with other values in its header and other chunks before and after. */
function wav(seconds: number, header: FrameHeader = {}, [before, after]: readonly number[][] = []) {
  const data = new Uint8Array(seconds * RATE * 2);
  const head = new TextEncoder().encode("RIFF0000WAVE");
  const tail = chunk("data", new Uint8Array(), header.bytes ?? data.length);
  const parts = [head, before ?? [], format(header), tail, data, after ?? []];
  const file = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    file.set(part, at);
    at += part.length;
  }
  return file;
}

/**
 * Returns an MP3 file with 10,000 bytes of sound after a tag, whose length has four digits of 7
 * bits.
 */
function tagged(size: readonly number[], tag = 256): Uint8Array {
  const file = new Uint8Array(10 + tag + 10_000);
  file.set([0x49, 0x44, 0x33, 4, 0, 0, ...size]);
  file.set([0xff, 0xfb], 10 + tag);
  return file;
}

function flac(samples: number, rate = 48_000): Uint8Array {
  const file = new Uint8Array(100);
  const view = new DataView(file.buffer);
  file.set(new TextEncoder().encode("fLaC"));
  view.setUint32(18, rate * 2 ** 12);
  view.setUint32(22, samples);
  return file;
}

/** An Ogg file whose later pages end after these seconds; -1 if no packet ends in a page. */
function ogg(...ends: readonly number[]): Uint8Array {
  const file = new Uint8Array(50 + ends.length * 50);
  for (const [index, seconds] of [0, ...ends].entries()) {
    file.set(new TextEncoder().encode("OggS"), index * 50);
    if (index === 0) file.set(new TextEncoder().encode("OpusHead"), 27);
    const samples = BigInt(seconds < 0 ? -1 : seconds * 48_000);
    new DataView(file.buffer).setBigInt64(index * 50 + 6, samples, true);
  }
  return file;
}

const FAST = format({ rate: 4_000_000_000 });

describe("computeMaxAudioSeconds", () => {
  it.each([
    ["a WAV file", wav(30), 31],
    ["a WAV file whose header declares fewer bytes", wav(30, { bytes: 1 }), 31],
    ["a WAV file whose header declares larger frames", wav(30, { frame: 60_000 }), 31],
    ["a GSM WAV file", wav(1, { format: 0x31 }), 11],
    ["a µ-law WAV file", wav(1, { format: 7 }), 2],
    ["a µ-law WAV file at 1 Hz", wav(1, { format: 7, rate: 1 }), 16_022],
    ["a WAV file with another codec", wav(1, { format: 0x50 }), 1_000_000],
    ["a WAV file with the GUID of PCM", wav(30, { format: 0xfffe, codec: 1 }), 31],
    [
      "a WAV file with the GUID of another codec",
      wav(1, { format: 0xfffe, codec: 0x50 }),
      1_000_000,
    ],
    ["a WAV file without the GUID of its codec", wav(1, { format: 0xfffe }), 1_000_000],
    [
      "a WAV file with a format in another chunk",
      wav(30, {}, [chunk("LIST", new Uint8Array([0, ...FAST]))]),
      31,
    ],
    ["a WAV file with an absurd format first", wav(30, {}, [FAST]), 1921],
    ["a WAV file with a slower format last", wav(30, { rate: 160_000 }, [[], format()]), 31],
    ["a WAV file with an absurd rate", wav(1, { rate: 4_000_000_000 }), 65],
    ["an MP3 file at 8 kbit/s", new Uint8Array(10_000).fill(0xfb).fill(0xff, 0, 1), 10],
    ["a silent FLAC file", flac(48_000 * 600), 600],
    ["a FLAC file without a length", flac(0), 1],
    ["an Ogg file with long pages", ogg(900), 900],
    ["an Ogg file whose last page ends no packet", ogg(900, -1), 900],
    ["an Ogg file without a known length", ogg(-1, -1), 1],
    ["an Ogg file that breaks off within a page", ogg(900, 901).subarray(0, 110), 900],
    ["bytes of an unknown format", new Uint8Array(50_000), 1_000_000],
  ])("returns the maximum seconds of %s", (_, file, seconds) => {
    expect(computeMaxAudioSeconds(file)).toBe(seconds);
  });

  it("reads an MP3 file from the end of its tags, and counts the tags as sound", () => {
    expect(computeMaxAudioSeconds(tagged([0, 0, 2, 0]))).toBe(11);
  });

  it.each([
    ["longer than the file", [127, 127, 127, 127]],
    ["written in bytes with the high bit", [0, 0, 130, 0]],
  ])("ignores the length of a tag that is %s", (_, size) => {
    expect(computeMaxAudioSeconds(tagged(size))).toBe(21);
  });

  it("counts the bytes within a tag as sound", () => {
    const tag = 40_000;
    expect(computeMaxAudioSeconds(tagged([0, 2, 56, 64], tag))).toBe(51);
  });

  it("returns a whole number for any bytes, never below the minimum for the number of bytes", () => {
    const head = fc.constantFrom("", "fLaC", "OggS", "ID3", "RIFF0000WAVEfmt ", "OggSOggS");
    fc.assert(
      fc.property(head, fc.uint8Array({ maxLength: 300 }), (text, bytes) => {
        const seconds = computeMaxAudioSeconds(
          new Uint8Array([...new TextEncoder().encode(text), ...bytes]),
        );
        expect(Number.isSafeInteger(seconds) && seconds >= 0 && seconds <= 1_000_000).toBe(true);
      }),
    );
  });
});
