import { describe, expect, it } from "vitest";
import { computeMaxAudioSeconds } from "../../src/models/core/audio-seconds.ts";

/**
 * Audio files whose few bytes are hours of silence, and whose headers state nothing or too little.
 */

const text = (value: string): number[] => [...new TextEncoder().encode(value)];
const big = (value: number, bytes = 4): number[] =>
  Array.from({ length: bytes }, (_, at) => Math.floor(value / 256 ** (bytes - 1 - at)) % 256);
const repeat = (count: number, one: readonly number[]): number[] =>
  Array.from({ length: count }, () => one).flat();
const seconds = (bytes: readonly number[]): number => computeMaxAudioSeconds(new Uint8Array(bytes));

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
/** A descriptor of an `esds` box. */
const descriptor = (tag: number, data: readonly number[]): number[] => [tag, data.length, ...data];
const esds = (type: number, config: readonly number[]): number[] => {
  const decoder = descriptor(4, [type, ...repeat(12, [0]), ...descriptor(5, config)]);
  return box("esds", big(0), descriptor(3, [0, 1, 0, ...decoder, ...descriptor(6, [2])]));
};
const entries = (...all: readonly (readonly number[])[]): number[] =>
  box("stsd", big(0), big(all.length), ...all);
const entry = (name: string, ...boxes: readonly (readonly number[])[]): number[] =>
  box(name, repeat(28, [0]), ...boxes);
const [LC, MP4_AAC] = [[0x12, 0x10], 0x40];
const STSD = entries(entry("mp4a", esds(MP4_AAC, LC)));
const samples = (count: number): number[] => box("stsz", big(0), big(1), big(count));
const track = (...boxes: readonly (readonly number[])[]): number[] =>
  box("moov", box("trak", box("mdia", box("minf", box("stbl", ...boxes)))));
const SAMPLES = track(STSD, samples(100_000));
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

describe("the maximum duration of an audio file with false lengths", () => {
  it.each([
    ["FLAC frames of 4,096 samples at 8 kHz", flac(repeat(1000, [1]).map(() => [0xc4])), 513],
    ["FLAC frames at the stream's rate", flac(repeat(100, [1]).map(() => [0xc0])), 52],
    ["FLAC frames with their own size and rate", flac([[0x7d, 0xff, 0xff, 0, 1]]), 65_536],
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
    ["MP4 samples that share bytes", [...FTYP, ...track(STSD, samples(100_000))], 28_001],
    [
      "MP4 whose first box has the size of a frame of MP3",
      [...big(0xffe2), ...text("ftyp"), ...repeat(0xffe2 - 8, [0]), ...SAMPLES],
      28_001,
    ],
    [
      "an MP4 header with a duration",
      [...FTYP, ...track(STSD), ...box("moov", header("mvhd", 900_000))],
      900,
    ],
    [
      "an MP4 track with a longer duration",
      [
        ...FTYP,
        ...track(STSD),
        ...box("moov", box("trak", box("mdia", header("mdhd", 7_000_000)))),
      ],
      7000,
    ],
    [
      "an MP4 edit list that repeats a sound",
      [
        ...FTYP,
        ...track(STSD),
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
      [...EBML, ...SEGMENT, ...TRACK, ...CLUSTER, ...element([0xe7], big(500_000))],
      533,
    ],
    [
      "a WebM header with a duration",
      [
        ...EBML,
        ...SEGMENT,
        ...TRACK,
        ...element([0x15, 0x49, 0xa9, 0x66], element([0x44, 0x89], [0x49, 0x74, 0x24, 0])),
      ],
      1000,
    ],
    ["ADTS frames", repeat(100, [0xff, 0xf1, 0x6c, 0x40, 1, 0, 0]), 29],
    ["ADTS frames of four blocks", repeat(100, [0xff, 0xf1, 0x6c, 0x40, 1, 0, 3]), 113],
    [
      "ADTS frames after a frame of MP3",
      [0xff, 0xfb, ...repeat(100, [0xff, 0xf1, 0, 0, 0, 0, 0])],
      29,
    ],
  ])("covers the actual duration of %s", (_, file, most) => {
    expect(seconds(file)).toBe(most);
  });

  it("equals 1,000,000 s for a file of nested boxes", () => {
    let boxes: number[] = [];
    for (let depth = 0; depth < 40; depth++) boxes = box("moov", boxes);
    expect(seconds([...FTYP, ...boxes])).toBe(1_000_000);
  });

  it("stays far below the maximum for the file's size if the file contains ordinary speech", () => {
    const opus = page(
      0,
      repeat(50, [1]).map(() => repeat(80, [7])),
    );
    expect(seconds([...OPUS, ...repeat(60, opus)])).toBeLessThan(500);
    const blocks = repeat(60, element([0xa3], [0x81, 0, 0, 0, ...repeat(160, [7])]));
    expect(seconds([...EBML, ...SEGMENT, ...TRACK, ...CLUSTER, ...blocks])).toBeLessThan(23);
  });
});

const matroska = (codec: string, config: readonly number[] = []): number[] => {
  const set = config.length === 0 ? [] : element([0x63, 0xa2], config);
  const tracks = element(
    [0x16, 0x54, 0xae, 0x6b],
    element([0xae], [...element([0x86], text(codec)), ...set]),
  );
  return [...EBML, ...SEGMENT, ...tracks, ...CLUSTER, ...LACED];
};
const mp4 = (...all: readonly (readonly number[])[]): number[] => [
  ...FTYP,
  ...track(entries(...all), samples(2)),
];
/** AAC at an explicit rate of 1 Hz, stated first, in its extension, or after it. */
const SLOW_AAC = [
  [0x17, 0x80, 0, 0, 0x90],
  [0x2a, 0x17, 0x80, 0, 0, 0x80],
  [0x12, 0x10, 0x56, 0xe5, 0xf8, 0, 0, 8],
];

/** An AudioSpecificConfig with object type 36 and a low rate. */
const ALS = [0xf8, 0x96, 0x40, 0];
const SILENT = [...FTYP, ...SAMPLES];
/** A track whose samples are in another box, which some programs search. */
const hidden = (name: string): number[] => box("moov", STSD, box(name, track(samples(20_000_000))));

describe("the duration of an audio file", () => {
  it.each<readonly [string, readonly number[]]>([
    ["AMR", text("#!AMR\n")],
    ["CAF", text("caff")],
    ["AIFF", text("FORM0000AIFF")],
    ["no format", repeat(99, [7])],
    ["a file of zeros", repeat(99, [0])],
    ["FLAC in Ogg", page(2, [[0x7f, ...text("FLAC")]])],
    ["Speex in Ogg", [...page(2, [text("Speex   ")]), ...page(0, [[0], [0]])]],
    [
      "an Ogg stream without a first page",
      [...OPUS, ...page(0, [[0x7f, ...text("FLAC")]]).with(14, 1)],
    ],
    ["PCM in MP4", mp4(entry("sowt"))],
    ["FLAC in MP4", mp4(entry("fLaC"))],
    ["ALAC next to AAC in MP4", mp4(entry("mp4a", esds(MP4_AAC, LC)), entry("alac"))],
    ["AMR in MP4", mp4(entry("samr"))],
    ["E-AC-3 in MP4, whose frames can be tiny", mp4(entry("ec-3"))],
    ["E-AC-3 in Matroska", matroska("A_EAC3")],
    ["AAC in MP4 without its configuration", mp4(entry("mp4a"))],
    ["another codec in an esds box", mp4(entry("mp4a", esds(0xdd, LC)))],
    ["MP4 without a track", FTYP],
    [
      "MP4 with a compressed header",
      [...mp4(entry("mp4a", esds(MP4_AAC, LC))), ...box("moov", box("cmov", big(0), big(0)))],
    ],
    ["MPEG-4 ALS in MP4", mp4(entry("mp4a", esds(MP4_AAC, ALS)))],
    ["ALS in an extension of AAC", mp4(entry("mp4a", esds(MP4_AAC, [0x2b, 0x92, 0x7c, 0x80])))],
    ...["meta", "tapt", "ilst", "wave", "sinf", "schi"].map(
      (name) => [`a track in a box '${name}'`, [...FTYP, ...hidden(name)]] as const,
    ),
    ["MP4 after the start of FLAC", [...text("fLaC"), ...hidden("free").slice(4)]],
    ["MP4 after the start of WAV", [...text("RIFFmoovWAVE"), ...repeat(99, [0])]],
    ["MP4 after a box that looks like MP3", [...big(12), 0xff, 0xe2, 0, 0, ...big(0), ...SILENT]],
    ...SLOW_AAC.map(
      (config) => ["AAC at 1 Hz in MP4", mp4(entry("mp4a", esds(MP4_AAC, config)))] as const,
    ),
    ...SLOW_AAC.map((config) => ["AAC at 1 Hz in Matroska", matroska("A_AAC", config)] as const),
    ["PCM in Matroska", matroska("A_PCM/INT/LIT")],
    ["FLAC in Matroska", matroska("A_FLAC")],
    ["AAC in Matroska without its configuration", matroska("A_AAC")],
    ["Vorbis in Matroska without its headers", matroska("A_VORBIS")],
    ["Matroska without a track", [...EBML, ...SEGMENT, ...CLUSTER, ...LACED]],
  ])("counts as 1,000,000 s if the file's size doesn't limit the duration: %s", (_, file) => {
    expect(seconds(file)).toBe(1_000_000);
  });

  it.each([
    ["AAC in MP4", mp4(entry("mp4a", esds(MP4_AAC, LC)), entry("avc1"))],
    ["HE-AAC in MP4", mp4(entry("mp4a", esds(MP4_AAC, [0x2b, 0x92, 0x08, 0])))],
    ["MP3 in MP4", mp4(entry("mp4a", esds(0x6b, [0, 0])))],
    ["Opus in MP4", mp4(entry("Opus"))],
    ["AAC in Matroska", matroska("A_AAC", LC)],
    ["Opus next to video in Matroska", [...matroska("V_VP9"), ...TRACK]],
    ["Vorbis in Matroska", matroska("A_VORBIS", [2, 30, 30, ...VORBIS.slice(28)])],
  ])("counts as less than 200 s if the file's size limits the duration: %s", (_, file) => {
    expect(seconds(file)).toBeLessThan(200);
  });
});

describe("an audio file of 20 MiB with millions of tiny parts", () => {
  it.each([
    ["FLAC", flac([]), [0xff, 0xf8]],
    ["Ogg", OPUS, [...text("OggS"), ...repeat(22, [0]), 255]],
    ["MP4", box("ftyp", text("M4A "), big(0)), [...big(8), ...text("skip")]],
    ["WebM", big(0x1a45dfa3), [0x80, 0x80]],
    ["AAC", [0xff, 0xf1], [0xff, 0xff]],
  ] as const)("counts as an endless file: %s", (_, start, part) => {
    const file = new Uint8Array(20 * 1_048_576);
    file.set(part);
    for (let length = part.length; length < file.length; length *= 2) {
      file.copyWithin(length, 0, length);
    }
    file.set(start);
    expect(computeMaxAudioSeconds(file)).toBe(1_000_000);
  });
});
