import { expect, it } from "vitest";
import { readBoundedText, Utf8PieceDecoder } from "../../src/shared/http/bounded-body.ts";
import { SseDecoder } from "../../src/shared/http/server-sent-events.ts";

const MARK = "\ufeff";
const WORDS = `a${MARK}\u{1f600}${MARK}${MARK}`;
const encoder = new TextEncoder();

/** Returns the bytes in two pieces for every position, and byte by byte. */
function everyCut(whole: Uint8Array): Uint8Array[][] {
  const halves = Array.from(whole, (_, at) => [whole.subarray(0, at), whole.subarray(at)]);
  return [...halves, [whole], Array.from(whole, (_, at) => whole.subarray(at, at + 1))];
}

/** The text without and with byte order marks before it. */
const FORMS = [WORDS, MARK + WORDS, MARK + MARK + WORDS].map((whole) => ({
  whole,
  text: whole.startsWith(MARK) ? whole.slice(1) : whole,
}));

it.each(FORMS)("the UTF-8 decoder drops only one byte order mark at the start: %j", (form) => {
  for (const parts of everyCut(encoder.encode(form.whole))) {
    const pieces = new Utf8PieceDecoder();
    const text = parts.map((part) => pieces.decode(part)).join("") + pieces.end();
    expect(JSON.stringify(text)).toBe(JSON.stringify(form.text));
  }
});

it("the UTF-8 decoder replaces an incomplete character at the end with U+FFFD", () => {
  const pieces = new Utf8PieceDecoder();
  expect(pieces.decode(Uint8Array.of(0xe2, 0x82)) + pieces.end()).toBe("\ufffd");
});

it.each(["", MARK])(
  "the UTF-8 decoder keeps an event's U+FEFF after the text %j, wherever the stream is split",
  (mark) => {
    for (const parts of everyCut(encoder.encode(`${mark}data: ${WORDS}\n\n`))) {
      const decoder = new SseDecoder();
      expect(parts.flatMap((part) => decoder.push(part))).toEqual([WORDS]);
    }
  },
);

it("the UTF-8 decoder keeps a U+FEFF inside a body, even at the boundary of two reads", async () => {
  for (const letters of [0, 1024, 16 * 1024, 16 * 1024 - 3, (16 + 64) * 1024]) {
    for (const mark of ["", MARK]) {
      const text = "a".repeat(letters) + MARK + "b";
      const sent = new Response(encoder.encode(mark + text)).body;
      const read = await readBoundedText(new Response(sent), 1024 * 1024);
      expect([letters, read?.length]).toEqual([
        letters,
        mark === "" && letters === 0 ? 1 : text.length,
      ]);
    }
  }
});
