import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { audioSecondsMax } from "../../src/models/core/audio-seconds.ts";

const RATE = 16_000;

/** A WAV file of 16-bit mono samples, with other values in its header. */
function wav(seconds: number, told: { bytes?: number; frame?: number; format?: number } = {}) {
  const data = seconds * RATE * 2;
  const file = new Uint8Array(44 + data);
  const view = new DataView(file.buffer);
  file.set(new TextEncoder().encode("RIFF0000WAVEfmt "));
  view.setUint16(20, told.format ?? 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, RATE, true);
  view.setUint16(32, told.frame ?? 2, true);
  view.setUint16(34, 16, true);
  view.setUint32(40, told.bytes ?? data, true);
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

function ogg(seconds: number): Uint8Array {
  const file = new Uint8Array(200);
  const page = new TextEncoder().encode("OggS");
  file.set(page);
  file.set(page, 150);
  new DataView(file.buffer).setBigUint64(156, BigInt(seconds * 48_000), true);
  return file;
}

describe("audioSecondsMax", () => {
  it.each([
    ["a WAV file", wav(30), 31],
    ["a WAV file whose header tells fewer bytes", wav(30, { bytes: 1 }), 31],
    ["a WAV file whose header tells larger frames", wav(30, { frame: 60_000 }), 31],
    ["a WAV file of another codec", wav(1, { format: 0x31 }), 65],
    ["an MP3 file at 8 kbit/s", new Uint8Array(10_000).fill(0xfb).fill(0xff, 0, 1), 10],
    ["a silent FLAC file", flac(48_000 * 600), 600],
    ["a FLAC file without a length", flac(0), 1],
    ["an Ogg file with long pages", ogg(900), 900],
    ["bytes of an unknown format", new Uint8Array(50_000), 100],
  ])("bounds %s", (_, file, seconds) => {
    expect(audioSecondsMax(file)).toBe(seconds);
  });

  it("ignores the tags before an MP3 file", () => {
    const file = new Uint8Array(10 + 256 + 10_000);
    file.set([0x49, 0x44, 0x33, 4, 0, 0, 0, 0, 2, 0]);
    file.set([0xff, 0xfb], 266);
    expect(audioSecondsMax(file)).toBe(10);
  });

  it("returns a whole number for any bytes, at least by their number", () => {
    const head = fc.constantFrom("", "fLaC", "OggS", "ID3", "RIFF0000WAVEfmt ", "OggSOggS");
    fc.assert(
      fc.property(head, fc.uint8Array({ maxLength: 300 }), (text, bytes) => {
        const seconds = audioSecondsMax(
          new Uint8Array([...new TextEncoder().encode(text), ...bytes]),
        );
        expect(Number.isSafeInteger(seconds) && seconds >= 0 && seconds <= 1_000_000).toBe(true);
      }),
    );
  });
});
