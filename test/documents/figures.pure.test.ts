import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { parseBench, findingOf, parseReport } from "../../scripts/figures/measure.ts";
import { withMeasured } from "../../scripts/figures/page.ts";
import { ROWS } from "../../scripts/figures/rows.ts";

const STAMP = { date: "2026-11-21", commit: "abc1234" };
const others = (text: string) =>
  text.match(/^\| (?!6 )\d.*$/gm)?.map((line) => line.split(/ *\| */));
const report = (success: boolean, measured: object): string => {
  const assertionResults = [{ status: "passed", meta: { measured } }, { status: "skipped" }];
  return JSON.stringify({ success, testResults: [{ assertionResults }] });
};

it("docs/figures.md contains every figure with its target, and can be updated row by row", () => {
  const page = readFileSync(path.join(import.meta.dirname, "../../docs/figures.md"), "utf8");
  expect(withMeasured(page, new Map(), STAMP)).toBe(page);
  const written = withMeasured(page, new Map([[6, "a | b\nc\u00e9 | d"]]), STAMP);
  expect(written).toMatch(/^\| 6 +\| [^|]+\| a \/ b c \/ d +\| 60 +\| 2026-11-21 \| abc1234 +\|$/m);
  expect(others(written)).toEqual(others(page));
  expect(() => withMeasured("no markers", new Map(), STAMP)).toThrow("once each");
});

it("docs/figures.md contains only measurements of existing tests", () => {
  const root = path.join(import.meta.dirname, "../..");
  for (const source of ROWS.flatMap(({ sources }) => sources)) {
    if (!("tests" in source) || !source.tests.endsWith(".ts")) continue;
    const text = readFileSync(path.join(root, source.tests), "utf8");
    expect(text, source.tests).toContain(source.named ?? "");
  }
});

it("a row of docs/figures.md shows the sum of the measurements, or MISSED after a failed test", () => {
  const seen = parseReport(report(true, { operations: 0, forged: 1500 }));
  const row = ROWS[8];
  if (row === undefined) throw new Error("there is no row 9");
  expect(findingOf(row, [seen, seen], 2)).toEqual({
    words: "3,000 forged keys caused 0 Durable Object calls and D1 queries",
    isBad: false,
  });
  const failed = parseReport(report(false, { operations: 1, forged: 1500 }));
  expect(findingOf(row, [failed], 0)).toEqual({
    words: "MISSED: 1,500 forged keys caused 1 Durable Object calls and D1 queries",
    isBad: true,
  });
  expect(() => findingOf(row, [parseReport(report(true, { forged: 1 }))], 0)).toThrow("operations");
  const over = { name: "a", value: null, mark: "OVER" };
  expect(parseBench(JSON.stringify({ figures: [over] }))).toMatchObject({ isMissed: true });
});
