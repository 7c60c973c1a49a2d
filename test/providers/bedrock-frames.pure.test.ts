import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import {
  FrameDecoder,
  ConverseReader,
  createConverseStreamReader,
} from "../../src/models/protocols/converse/converse-stream.ts";
import type { EventStreamFrame } from "../../src/models/protocols/converse/converse-stream.ts";
import {
  encodeFrame,
  encodeHeader,
  joinBytes,
  encodeRawFrame,
  withLengthPrefix,
  zeroFrame,
} from "../fixtures/event-stream.ts";

const NONE = new Uint8Array(0);
const ONE = encodeFrame([[":event-type", "one"]], Uint8Array.of(1, 2, 3));
const TWO = encodeFrame(
  [
    [":event-type", "two"],
    ["more", "世界"],
  ],
  NONE,
);

function read(parts: readonly Uint8Array[]): { frames: EventStreamFrame[]; decoder: FrameDecoder } {
  const decoder = new FrameDecoder();
  const frames = parts.flatMap((part) => decoder.push(part));
  return { frames, decoder };
}

const plain = (frames: readonly EventStreamFrame[]) =>
  frames.map(({ headers, payload }) => [[...headers], [...payload]]);

it("the reader of Bedrock frames returns frames in order, however the bytes are split", () => {
  const bytes = joinBytes([ONE, TWO, ONE]);
  const whole = plain(read([bytes]).frames);
  expect(whole).toEqual([
    [[[":event-type", "one"]], [1, 2, 3]],
    [
      [
        [":event-type", "two"],
        ["more", "世界"],
      ],
      [],
    ],
    [[[":event-type", "one"]], [1, 2, 3]],
  ]);
  fc.assert(
    fc.property(fc.array(fc.nat(bytes.length)), (cuts) => {
      const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
      const parts = at.slice(1).map((end, index) => bytes.subarray(at[index], end));
      expect(plain(read(parts).frames)).toEqual(whole);
    }),
  );
});

it("the reader of Bedrock frames skips headers that aren't text", () => {
  const lengths = [0, 0, 1, 2, 4, 8, null, null, 8, 16];
  const others = lengths.flatMap((length, type) =>
    type === 7
      ? []
      : [
          encodeHeader(
            `h${type}`,
            type,
            length === null ? withLengthPrefix("ab") : new Uint8Array(length),
          ),
        ],
  );
  const headers = joinBytes([...others, encodeHeader("last", 7, withLengthPrefix("here"))]);
  expect(plain(read([encodeRawFrame(headers, NONE)]).frames)).toEqual([[[["last", "here"]], []]]);
});

function isBroken(bytes: Uint8Array): boolean {
  const { frames, decoder } = read([ONE, bytes, ONE]);
  return decoder.broken && frames.length === 1;
}

describe("a Bedrock frame with damaged bytes", () => {
  it("fails if any bit is flipped", () => {
    for (let bit = 0; bit < TWO.length * 8; bit++) {
      const bytes = TWO.slice();
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(isBroken(bytes), `bit ${bit}`).toBe(true);
    }
  });

  it("fails if the frame exceeds 16 MiB, is smaller than its parts, or lacks header bytes", () => {
    expect(isBroken(zeroFrame(16 * 1024 * 1024 + 1, 0))).toBe(true);
    expect(isBroken(zeroFrame(15, 0))).toBe(true);
    expect(isBroken(zeroFrame(32, 17))).toBe(true);
    expect(isBroken(zeroFrame(32, 0))).toBe(false);
  });

  it.each([
    ["an unknown type", encodeHeader("a", 10, NONE)],
    ["a name that exceeds its bounds", Uint8Array.of(9, 97)],
    ["a length that exceeds its bounds", joinBytes([encodeHeader("a", 7, NONE), Uint8Array.of(0)])],
    [
      "a value that exceeds its bounds",
      joinBytes([encodeHeader("a", 7, NONE), Uint8Array.of(0, 9, 97)]),
    ],
    ["a fixed value that exceeds its bounds", encodeHeader("a", 9, new Uint8Array(15))],
  ])("fails with a header of %s", (_, headers) => {
    expect(isBroken(encodeRawFrame(headers, NONE))).toBe(true);
  });
});

it("the reader of Bedrock frames copies a frame at most twice, even if it arrives in many pieces", () => {
  const payload = new Uint8Array(1024 * 1024);
  const bytes = encodeFrame([], payload);
  const decoder = new FrameDecoder();
  const copies = vi.spyOn(Uint8Array.prototype, "set");
  const frames: EventStreamFrame[] = [];
  for (let at = 0; at < bytes.length; at += 100) {
    frames.push(...decoder.push(bytes.subarray(at, at + 100)));
  }
  const copied = copies.mock.calls.reduce((sum, [from]) => sum + from.length, 0);
  copies.mockRestore();
  expect(frames.length).toBe(1);
  expect(copied).toBeLessThanOrEqual(bytes.length * 2);
});

it("the reader of Bedrock frames never throws or hangs, whatever the bytes", () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 64 }),
    fc.constantFrom(ONE, TWO, ONE.subarray(0, 13)),
    fc.uint8Array({ maxLength: 40 }).map((headers) => encodeRawFrame(headers, NONE)),
    fc
      .tuple(
        fc.constantFrom(
          "messageStart",
          "contentBlockStart",
          "contentBlockDelta",
          "messageStop",
          "metadata",
          "x",
        ),
        fc.jsonValue(),
      )
      .map(([type, value]) =>
        encodeFrame([[":event-type", type]], new TextEncoder().encode(JSON.stringify(value))),
      ),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const reader = createConverseStreamReader(new ConverseReader("json", []));
      const events = [...pieces.flatMap((bytes) => reader.push(bytes)), ...reader.flush()];
      const last = events.findIndex(({ kind }) => kind === "end" || kind === "error");
      expect(last === -1 || last === events.length - 1).toBe(true);
    }),
    { numRuns: 1000 },
  );
});
