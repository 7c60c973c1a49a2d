import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  countTokens,
  cutToTokens,
  splitJsonFragments,
  splitIntoTokens,
  splitIntoWords,
} from "../../../src/models/providers/sandbox/tokens.ts";

const utf8 = new TextEncoder();
const texts = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc
    .array(
      fc.constantFrom(
        "a",
        "Z",
        "7",
        " ",
        "\n",
        "  ",
        ".",
        "-",
        "я",
        "в ",
        "é",
        "世",
        "か",
        "🌍",
        "한",
      ),
    )
    .map((parts) => parts.join("")),
  fc.lorem({ maxCount: 30 }),
);

it("the sandbox's tokens, words and JSON fragments each add up to the original text", () => {
  fc.assert(
    fc.property(texts, (text) => {
      expect(splitIntoTokens(text).join("")).toBe(text);
      expect(splitIntoWords(text).join("")).toBe(text);
      expect(splitJsonFragments(text).join("")).toBe(text);
    }),
  );
});

it("the sandbox counts at least one token and at most one per UTF-8 byte, and 0 for an empty text", () => {
  expect(countTokens("")).toBe(0);
  fc.assert(
    fc.property(texts, (text) => {
      fc.pre(text !== "");
      expect(countTokens(text)).toBeGreaterThanOrEqual(1);
      expect(countTokens(text)).toBeLessThanOrEqual(utf8.encode(text).length);
      expect(countTokens(text)).toBe(splitIntoTokens(text).length);
    }),
  );
});

it("the sandbox counts at most 15 % more tokens than the estimate", () => {
  fc.assert(
    fc.property(texts, (text) => {
      expect(countTokens(text)).toBeLessThanOrEqual(1 + Math.ceil(estimate(text) * 1.15));
    }),
    { numRuns: 2000 },
  );
  for (const text of ["я ".repeat(100), "a я ".repeat(100), "a-".repeat(100), "a1".repeat(100)]) {
    expect(countTokens(text)).toBeLessThanOrEqual(Math.ceil(estimate(text) * 1.15));
  }
});

it("the sandbox cuts a text to the longest prefix that fits the cap", () => {
  fc.assert(
    fc.property(texts, fc.nat(12), (text, cap) => {
      const cut = cutToTokens(text, cap);
      expect(text.startsWith(cut)).toBe(true);
      expect(countTokens(cut)).toBe(Math.min(cap, countTokens(text)));
    }),
  );
});

it("the sandbox splits no token, word or piece inside a surrogate pair", () => {
  const text = "🌍".repeat(50);
  for (const piece of [
    ...splitIntoTokens(text),
    ...splitIntoWords(text),
    ...splitJsonFragments(text),
  ]) {
    expect(piece.isWellFormed()).toBe(true);
  }
});

it("the sandbox counts a long run of white space in linear time", () => {
  const text = ` ${" \n".repeat(500_000)}x${" ".repeat(500_000)}`;
  expect(countTokens(text)).toBe(1);
  expect(splitIntoWords(text)).toHaveLength(2);
});

/** The gateway's estimate by its published rules, at the low end of their ranges. */
function estimate(text: string): number {
  let sum = 0;
  for (const run of text.match(/\S+/g) ?? []) {
    if (run.length >= 20 && /^[A-Za-z0-9+/=_-]+$/.test(run)) {
      const digits = run.replace(/\D/g, "").length;
      sum += digits * 12 >= run.length ? run.length / 1.6 : classes(run);
    } else sum += classes(run);
  }
  return sum;
}

function classes(run: string): number {
  let sum = 0;
  for (const [part] of run.matchAll(/[A-Za-z]+|\d+|[!-~]+|[^!-~]/gu)) {
    if (/[A-Za-z]/.test(part)) sum += 1 + Math.max(0, Math.ceil((part.length - 7) / 4));
    else if (/\d/.test(part)) sum += Math.ceil(part.length / 3);
    else if (/[!-~]/.test(part)) sum += part.length === 1 ? 0.95 : Math.ceil(part.length / 2);
    else sum += 1 / 2.6;
  }
  return sum;
}
