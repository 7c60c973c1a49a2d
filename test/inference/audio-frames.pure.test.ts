import { describe, expect, it } from "vitest";
import { audioSecondsMax } from "../../src/models/core/audio-seconds.ts";

/** Files whose few bytes are hours of silence, and whose headers state nothing or too little. */

const text = (value: string): number[] => [...new TextEncoder().encode(value)];
const big = (value: number, bytes = 4): number[] =>
  Array.from({ length: bytes }, (_, at) => Math.floor(value / 256 ** (bytes - 1 - at)) % 256);
const repeat = (count: number, one: readonly number[]): number[] =>
  Array.from({ length: count }, () => one).flat();
const seconds = (bytes: readonly number[]): number => audioSecondsMax(new Uint8Array(bytes));

function crc8(bytes: readonly number[]): number {
  return bytes.reduce((sum, byte) => {
    let next = sum ^ byte;
    for (let bit = 0; bit < 8; bit++) next = ((next << 1) ^ (next & 128 ? 7 : 0)) & 255;
    return next;
  }, 0);
}

function flacFrame([sizes = 0, ...more]: readonly number[]): number[] {
  const header = [0xff, 0xf8, sizes, 0, 0, ...more];
  return [...header, crc8(header), 0, 0, 0, 0];
}

/** A FLAC file of one stated sample and these frames, each with a block size and rate by code. */
function flac(frames: readonly (readonly number[])[]): number[] {
  const head = [...text("fLaC"), 0x80, 0, 0, 34, ...repeat(10, [0])];
  const info = [...big(8000 * 4096), ...big(1), ...repeat(16, [0])];
  return [...head, ...info, ...frames.flatMap(flacFrame)];
}

function page(type: number, packets: readonly (readonly number[])[]): number[] {
  const lengths = packets.map(({ length }) => length);
  return [
    ...text("OggS"),
    0,
    type,
    ...repeat(20, [0]),
    lengths.length,
    ...lengths,
    ...packets.flat(),
  ];
}
const OPUS = page(2, [text("OpusHead")]);
const VORBIS = page(2, [
  [1, ...text("vorbis"), ...repeat(5, [0]), 0x40, 0x1f, 0, 0, ...repeat(12, [0]), 0xd8],
]);

const box = (name: string, ...parts: readonly (readonly number[])[]): number[] => {
  const data = parts.flat();
  return [...big(data.length + 8), ...text(name), ...data];
};
const FTYP = box("ftyp", text("M4A "));
const STSD = box("stsd", big(0), big(1), big(16), text("mp4a"));
const samples = (count: number): number[] => box("stsz", big(0), big(1), big(count));
const track = (...boxes: readonly (readonly number[])[]): number[] =>
  box("moov", box("trak", box("mdia", box("minf", box("stbl", ...boxes)))));
const header = (name: string, length: number): number[] =>
  box(name, big(0), big(0), big(0), big(1000), big(length), big(0));

const element = (id: readonly number[], data: readonly number[]): number[] => [
  ...id,
  0x40 + (data.length >> 8),
  data.length & 255,
  ...data,
];
const [EBML, SEGMENT, CLUSTER] = [
  [0x1a, 0x45, 0xdf, 0xa3, 0x80],
  [0x18, 0x53, 0x80, 0x67, 0xff],
  [0x1f, 0x43, 0xb6, 0x75, 0xff],
];
const TRACK = element([0x16, 0x54, 0xae, 0x6b], element([0xae], element([0x86], text("A_OPUS"))));
const LACED = element([0xa3], [0x81, 0, 0, 0x84, 255, 7]);

describe("the maximum duration of a file that lies", () => {
  it.each([
    ["FLAC frames of 4,096 samples at 8 kHz", flac(repeat(1000, [1]).map(() => [0xc4])), 513],
    ["FLAC frames at the stream's rate", flac(repeat(100, [1]).map(() => [0xc0])), 52],
    ["FLAC frames with a size and rate of their own", flac([[0x7d, 0xff, 0xff, 0, 1]]), 65_536],
    [
      "Ogg pages of one-byte Opus packets",
      [
        ...OPUS,
        ...repeat(
          50,
          page(
            0,
            repeat(255, [1]).map(() => [8]),
          ),
        ),
      ],
      1531,
    ],
    [
      "Ogg pages of one-byte Vorbis packets",
      [
        ...VORBIS,
        ...page(
          0,
          repeat(200, [1]).map(() => [0]),
        ),
      ],
      103,
    ],
    ["Ogg pages of an unknown codec", [...page(2, [text("Speex")]), ...page(0, [[0], [0]])], 25],
    ["MP4 samples that share their bytes", [...FTYP, ...track(STSD, samples(100_000))], 28_001],
    ["MP4 samples of an unknown codec", [...FTYP, ...track(samples(100))], 820],
    ["an MP4 header with a duration", [...FTYP, ...box("moov", header("mvhd", 900_000))], 900],
    [
      "an MP4 track with a longer duration",
      [...FTYP, ...box("moov", box("trak", box("mdia", header("mdhd", 7_000_000))))],
      7000,
    ],
    [
      "an MP4 edit list that repeats its sound",
      [
        ...FTYP,
        ...box(
          "moov",
          header("mvhd", 1),
          box(
            "trak",
            box(
              "edts",
              box("elst", big(0), big(3), repeat(3, [...big(60_000), ...big(0), ...big(1)])),
            ),
          ),
        ),
      ],
      180,
    ],
    [
      "MP4 fragments",
      [
        ...FTYP,
        ...track(STSD),
        ...repeat(3, box("moof", box("traf", box("trun", big(0), big(1000))))),
      ],
      841,
    ],
    [
      "WebM blocks with many frames",
      [...EBML, ...SEGMENT, ...TRACK, ...CLUSTER, ...repeat(20, LACED)],
      615,
    ],
    [
      "WebM blocks in groups",
      [
        ...EBML,
        ...SEGMENT,
        ...TRACK,
        ...CLUSTER,
        ...repeat(9, element([0xa0], element([0xa1], [0x81, 0, 0, 4, 99]))),
      ],
      108,
    ],
    [
      "WebM clusters with late times",
      [...EBML, ...SEGMENT, ...CLUSTER, ...element([0xe7], big(500_000))],
      533,
    ],
    [
      "a WebM header with a duration",
      [
        ...EBML,
        ...SEGMENT,
        ...element([0x15, 0x49, 0xa9, 0x66], element([0x44, 0x89], [0x49, 0x74, 0x24, 0])),
      ],
      1000,
    ],
    ["ADTS frames", repeat(100, [0xff, 0xf1, 0x6c, 0x40, 1, 0, 0]), 29],
  ])("covers %s", (_, file, most) => {
    expect(seconds(file)).toBe(most);
  });

  it("ends for boxes in boxes, at the most expensive duration", () => {
    let boxes: number[] = [];
    for (let depth = 0; depth < 40; depth++) boxes = box("moov", boxes);
    expect(seconds([...FTYP, ...boxes])).toBe(1_000_000);
  });

  it("stays below the bytes' own bound for ordinary speech", () => {
    const opus = page(
      0,
      repeat(50, [1]).map(() => repeat(80, [7])),
    );
    expect(seconds([...OPUS, ...repeat(60, opus)])).toBeLessThan(500);
    const blocks = repeat(60, element([0xa3], [0x81, 0, 0, 0, ...repeat(160, [7])]));
    expect(seconds([...EBML, ...SEGMENT, ...TRACK, ...CLUSTER, ...blocks])).toBeLessThan(23);
  });
});

describe("a file of 20 MiB with millions of tiny parts", () => {
  it.each([
    ["FLAC", flac([]), [0xff, 0xf8]],
    ["Ogg", OPUS, [...text("OggS"), ...repeat(22, [0]), 255]],
    ["MP4", box("ftyp", text("M4A "), big(0)), [...big(8), ...text("skip")]],
    ["WebM", big(0x1a45dfa3), [0x80, 0x80]],
    ["AAC", [0xff, 0xf1], [0xff, 0xff]],
  ] as const)("counts as endless: %s", (_, start, part) => {
    const file = new Uint8Array(20 * 1_048_576);
    file.set(part);
    for (let length = part.length; length < file.length; length *= 2) {
      file.copyWithin(length, 0, length);
    }
    file.set(start);
    expect(audioSecondsMax(file)).toBe(1_000_000);
  });
});
