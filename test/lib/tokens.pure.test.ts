import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { getEncoding } from "js-tiktoken";
import { expect, it } from "vitest";
import { CL100K_FACTOR, O200K_FACTOR } from "../../src/models/catalog/entry.ts";
import { estimateTokensForDisplay } from "../../src/shared/close-tokens.ts";
import { estimateTokens, utf8Bytes } from "../../src/shared/tokens.ts";
import { effortFor } from "../effort.ts";
import { HUMAN_RIGHTS_TEXTS } from "../fixtures/human-rights.ts";

const O200K_BASE = getEncoding("o200k_base");
const TOKENIZERS = [
  { factor: O200K_FACTOR, encoding: O200K_BASE },
  { factor: CL100K_FACTOR, encoding: getEncoding("cl100k_base") },
];

/**
 * Returns the minimum part of a text's real token count that its estimate covers, for either
 * tokenizer.
 */
function shareOf(text: string): number {
  const shares = TOKENIZERS.map(
    ({ factor, encoding }) =>
      (estimateTokens(text) * factor + 2) / Math.max(1, encoding.encode(text, [], []).length),
  );
  return Math.min(...shares);
}

it("estimateTokens counts words, numbers, spaces, lines and signs by the published rules", () => {
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

it("estimateTokens detects base64, hex and IDs, with one and a half letters per token", () => {
  const hex = "0123456789abcdef".repeat(10);
  expect(estimateTokens(hex)).toBe(100); // 160 / 1.6
  const base64 = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0".repeat(5);
  expect(estimateTokens(base64)).toBe(Math.ceil(base64.length / 1.4));
  expect(estimateTokens("a-perfectly-ordinary-slug")).toBeLessThan(12);
});

it("estimateTokens counts a run of blanks by the run's length, as tokenizers do", () => {
  const runs: readonly (readonly [string, number])[] = [
    ["\n".repeat(2000), 125],
    ["\r".repeat(2000), 2000],
    ["\r\n".repeat(1000), 250],
    [" ".repeat(2000), 125],
    ["\t".repeat(2000), 125],
    [" \t".repeat(1000), 2000],
  ];
  expect(runs.map(([text]) => [text, estimateTokens(text)])).toEqual(runs);
});

const WORDS =
  "The quick brown fox jumps över den lazy Hund, naïve façade; Привет мир! Καλημέρα κόσμε. 中文文本测试，这是。 日本語のテキスト 한국어 문장 שלום עולם مرحبا बच्चे สวัสดี tiếng Việt 😀🎉👩‍👩‍👧 const x = { a: [1, 2.5] };".split(
    " ",
  );
/** Tokenizers need quadratic time for a long run. */
const LENGTH = effortFor(60, 400);
/** Returns a run of one character, or of several of its kind. */
const run = (characters: string) => {
  const one = fc.constantFrom(...Array.from(characters));
  const size = { minLength: 1, maxLength: LENGTH };
  return fc.oneof(
    fc.tuple(one, fc.integer({ min: 1, max: LENGTH })).map(([unit, times]) => unit.repeat(times)),
    fc.array(one, size).map((units) => units.join("")),
  );
};
const ORDINARY = [
  fc.array(fc.constantFrom(...WORDS), { maxLength: 60 }).map((words) => words.join(" ")),
  fc.base64String({ maxLength: LENGTH }),
  run(" "),
  run("\t"),
  run("\n"),
  run("\r\n"),
  run(" \t\r\n"),
  run("0123456789"),
  run("abcdefghijklmnopqrstuvwxyz"),
  run("ABCDEFabcdef"),
  run(".,;:!?-=_*#/\\|(){}[]<>\"'`~@$%^&+"),
  run("的一是不了人我在有他这为之大来以个中上们"),
  run("あいうえおカキクケコ"),
  run("한국어문장을씁니다"),
  run("😀🎉🚀❤👍🔥"),
];

it("estimateTokens returns more than a third of a real tokenizer's count for any text", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(...ORDINARY), { maxLength: 6 }), (pieces) => {
      expect(shareOf(pieces.join(""))).toBeGreaterThan(1 / 3);
    }),
    { numRuns: effortFor(100, 2000) },
  );
});

it("estimateTokens returns more than a quarter of a real tokenizer's count for characters of any script", () => {
  const noise = fc.string({ unit: "binary", maxLength: LENGTH }).map((text) => text.toWellFormed());
  const script = fc.integer({ min: 1, max: 0x1fff }).map((block) => block * 16);
  const letters = fc
    .tuple(script, fc.array(fc.integer({ min: 0, max: 15 }), { maxLength: LENGTH }))
    .map(([from, picks]) =>
      String.fromCodePoint(...picks.map((pick) => from + pick)).toWellFormed(),
    );
  fc.assert(
    fc.property(fc.oneof(noise, letters, ...ORDINARY), (text) => {
      expect(shareOf(text)).toBeGreaterThan(0.25);
    }),
    { numRuns: effortFor(100, 2000) },
  );
});

it("estimateTokens returns at least a seventh of the number of characters and at most the number of bytes", () => {
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

const FILES = [
  "src/money/wallet/rules/ledger.ts",
  "src/shared/tokens.ts",
  "src/console/browser/app.tsx",
  "src/console/browser/style.css",
  "migrations/0001_schema.sql",
  "docs/security.md",
  "docs/errors.md",
  "wrangler.toml",
];

it("estimateTokens is within 15 % of a real tokenizer for prose in many languages and many kinds of code", () => {
  const files = FILES.map((name) => [name, readFileSync(name, "utf8").slice(0, 12_000)] as const);
  for (const [name, text] of [...Object.entries(HUMAN_RIGHTS_TEXTS), ...files]) {
    const ratio = estimateTokensForDisplay(text) / O200K_BASE.encode(text, [], []).length;
    expect([name, ratio > 0.85 && ratio < 1.15 ? "near" : ratio]).toEqual([name, "near"]);
  }
});

it("estimateTokens is equally exact for a long text even though it counts only parts of the text", () => {
  const prose = readFileSync("docs/security.md", "utf8");
  const long = [prose, ...Object.values(HUMAN_RIGHTS_TEXTS), prose].join("\n").repeat(12);
  const ratio =
    estimateTokensForDisplay(long) /
    (estimateTokensForDisplay(long.slice(0, 60_000)) * (long.length / 60_000));
  expect(ratio).toBeGreaterThan(0.9);
  expect(ratio).toBeLessThan(1.1);
  expect(estimateTokensForDisplay(" ".repeat(200_000))).toBeGreaterThan(0);
});

it("utf8Bytes counts bytes like the UTF-8 encoder, even for lone surrogates", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" }), (a, b) => {
      expect(utf8Bytes(a + b)).toBe(new TextEncoder().encode(a + b).length);
    }),
  );
  for (const text of ["\ud800", "\ud800a", "\udc00\ud800", "x\ud83d"]) {
    expect(utf8Bytes(text)).toBe(new TextEncoder().encode(text).length);
  }
});
