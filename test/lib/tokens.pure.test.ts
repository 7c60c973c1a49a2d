import * as fc from "fast-check";
import { expect, it } from "vitest";
import { estimateTokens, utf8Bytes } from "../../src/lib/tokens.ts";

it("counts words, numbers, spaces, lines and signs by the published rules", () => {
  const cases: readonly (readonly [string, number])[] = [
    ["", 0],
    ["word", 1],
    ["letters", 1],
    ["lettersx", 2],
    ["lettersxxxxx", 3],
    ["two words", 2],
    ["camelCase", 2],
    ["123", 1],
    ["1234", 2],
    ["a 12", 3], // a number after a space costs one more
    ["a                b", 3], // 16 spaces: 1
    ["a\n\n\nb", 3],
    [".", 1], // 0.95, rounded up
    ["a....b", 4],
    ["éèàü", 4], // 3.6
    ["привет", 3], // 6 / 2.6
    ["שלום", 3], // 0.75 each
    ["かな", 2],
    ["한국", 2],
    ["中文字", 3],
    ["😀", 3],
  ];
  expect(cases.map(([text]) => [text, estimateTokens(text)])).toEqual(cases);
});

it("sees through base64, hex and ids, where letters per token drop to one and a half", () => {
  const hex = "0123456789abcdef".repeat(10);
  expect(estimateTokens(hex)).toBe(100); // 160 / 1.6
  const base64 = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0".repeat(5);
  expect(estimateTokens(base64)).toBe(Math.ceil(base64.length / 1.4));
  expect(estimateTokens("a-perfectly-ordinary-slug")).toBeLessThan(12);
});

it("never falls below a seventh of the characters nor above the bytes, however text is put together", () => {
  const piece = fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.base64String({ maxLength: 60 }),
    fc.stringMatching(/^[a-zA-Z]{0,30}$/),
    fc.stringMatching(/^[0-9.,;{}"]{0,30}$/),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 20 }), (pieces) => {
      const text = pieces.join("").replaceAll(/\s/g, "");
      const estimate = estimateTokens(text);
      expect(estimate).toBeGreaterThanOrEqual(Array.from(text).length / 7);
      expect(estimate).toBeLessThanOrEqual(utf8Bytes(text));
    }),
  );
});

it("bytes are those of the encoder, lone surrogates included", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" }), (a, b) => {
      expect(utf8Bytes(a + b)).toBe(new TextEncoder().encode(a + b).length);
    }),
  );
  for (const text of ["\ud800", "\ud800a", "\udc00\ud800", "x\ud83d"]) {
    expect(utf8Bytes(text)).toBe(new TextEncoder().encode(text).length);
  }
});
