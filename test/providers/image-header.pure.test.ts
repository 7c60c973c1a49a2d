import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readImageHeader } from "../../src/models/core/image-edit.ts";
import { pngOf } from "../fixtures/pictures.ts";

const ascii = (text: string): number[] => Array.from(text, (one) => one.charCodeAt(0));
const big = (value: number): number[] => [(value >> 8) & 255, value & 255];
const little = (value: number, bytes: number): number[] =>
  Array.from({ length: bytes }, (_, at) => (value >> (8 * at)) & 255);

const EXIF = [0xff, 0xe1, ...big(8), ...ascii("Exif\0\0")];
const HUFFMAN = [0xff, 0xc4, ...big(4), 0, 0];

function jpegOf(width: number, height: number, frame = 0xc0): Uint8Array {
  const start = [0xff, frame, ...big(8), 8, ...big(height), ...big(width), 3];
  return new Uint8Array([0xff, 0xd8, ...EXIF, 0xff, ...HUFFMAN, ...start]);
}

function webpOf(kind: string, data: readonly number[]): Uint8Array {
  return new Uint8Array([
    ...ascii("RIFF"),
    0,
    0,
    0,
    0,
    ...ascii(`WEBP${kind}`),
    0,
    0,
    0,
    0,
    ...data,
  ]);
}

const lossy = (width: number, height: number) =>
  webpOf("VP8 ", [0, 0, 0, 0x9d, 0x01, 0x2a, ...little(width, 2), ...little(height, 2), 0, 0]);
const lossless = (width: number, height: number) =>
  webpOf("VP8L", [0x2f, ...little((width - 1) | ((height - 1) << 14), 4)]);
const extended = (width: number, height: number) =>
  webpOf("VP8X", [0, 0, 0, 0, ...little(width - 1, 3), ...little(height - 1, 3), 0, 0]);

const IMAGES = [
  ["PNG", "image/png", pngOf],
  ["JPEG", "image/jpeg", jpegOf],
  ["progressive JPEG", "image/jpeg", (w: number, h: number) => jpegOf(w, h, 0xc2)],
  ["lossy WebP", "image/webp", lossy],
  ["lossless WebP", "image/webp", lossless],
  ["extended WebP", "image/webp", extended],
] as const;
const side = fc.integer({ min: 1, max: 16_383 });

describe("the parser of image headers", () => {
  it.each(IMAGES)("returns the size of a %s", (_, type, make) => {
    fc.assert(
      fc.property(side, side, (width, height) => {
        expect(readImageHeader(make(width, height))).toEqual({ type, width, height });
      }),
    );
  });

  it.each(IMAGES)("returns no size for a %s that ends early", (_, __, make) => {
    const whole = make(300, 200);
    const minLength = whole.findIndex((_byte, at) => readImageHeader(whole.slice(0, at)) !== null);
    for (let at = 0; at < (minLength === -1 ? whole.length : minLength); at += 1) {
      expect(readImageHeader(whole.slice(0, at)), String(at)).toBeNull();
    }
    expect(minLength === -1 || minLength > 20).toBe(true);
  });

  it.each([
    ["no bytes", []],
    ["a GIF", ascii("GIF89a\u0001\u0000\u0001\u0000 with more bytes than a header has")],
    [
      "a JPEG whose scan comes before its frame",
      [0xff, 0xd8, 0xff, 0xda, ...big(2), ...jpegOf(9, 9)],
    ],
    [
      "a WebP with another chunk",
      Array.from(
        webpOf(
          "ALPH",
          Array.from({ length: 20 }, () => 1),
        ),
      ),
    ],
  ])("returns no size for %s", (_, bytes) => {
    expect(readImageHeader(new Uint8Array(bytes))).toBeNull();
  });

  it("returns no size if the width or height is zero", () => {
    expect(readImageHeader(pngOf(0, 5))).toBeNull();
    expect(readImageHeader(jpegOf(5, 0))).toBeNull();
  });

  it("never throws, whatever the bytes", () => {
    const magic = fc.constantFrom([], [0xff, 0xd8, 0xff], ascii("RIFF0000WEBPVP8 "), [0x89, 0x50]);
    fc.assert(
      fc.property(magic, fc.uint8Array({ maxLength: 200 }), (head, rest) => {
        const found = readImageHeader(new Uint8Array([...head, ...rest]));
        expect(found === null || (found.width > 0 && found.height > 0)).toBe(true);
      }),
    );
  });
});
