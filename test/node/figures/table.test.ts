import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import { withBusyCores } from "../../../scripts/figures/run.ts";
import {
  commandOf,
  missed,
  ROWS,
  unmeasured,
  withFindings,
} from "../../../scripts/figures/table.ts";

const STAMP = { date: "2026-11-21", commit: "abc1234" };
const [BEGIN, END] = ["<!-- figures: begin -->", "<!-- figures: end -->"];
const finding = { row: 6, measured: "60", isMet: true, values: { admitted: 60 } };

it("docs/figures.md has the table, with every row, its command and its target", () => {
  const readme = readFileSync(path.join(import.meta.dirname, "../../../docs/figures.md"), "utf8");
  const table = readme.slice(readme.indexOf(BEGIN), readme.indexOf(END));
  const lines = table.split("\n").filter((line) => /^\| \d+ /.test(line));
  expect(lines).toHaveLength(ROWS.length);
  for (const [i, { number, figure, target }] of ROWS.entries()) {
    const cells = lines[i]?.split("|").map((cell) => cell.trim()) ?? [];
    expect([cells[1], cells[2], cells[4]]).toEqual([String(number), figure, target]);
    expect(cells[7]).toBe(`\`${commandOf(number)}\``);
    const isMeasured = cells[3] !== "not measured yet";
    expect([/^\d{4}-\d\d-\d\d$/.test(cells[5] ?? ""), cells[6] !== ""]).toEqual([
      isMeasured,
      isMeasured,
    ]);
  }
  expect(withFindings(readme, [], STAMP)).toBe(readme); // as it is written, so it stays
});

it("what was found stays within its cell", () => {
  const wild = { ...finding, measured: "a | b\nc\u00e9 | d" };
  const table = withFindings(`${BEGIN}\n${END}`, [wild], STAMP);
  const line = table.split("\n").find((one) => one.startsWith("| 6 ")) ?? "";
  expect(line).toMatch(/^\| 6 +\| [^|]+\| a \/ b c \/ d +\| 60 +\| 2026-11-21 \| abc1234 \| `/);
  expect(line.split("|")).toHaveLength(9);
});

it.each([
  ["no markers", ""],
  ["one marker", BEGIN],
  ["the wrong order", `${END}\n${BEGIN}`],
  ["a marker twice", `${BEGIN}\n${BEGIN}\n${END}`],
])("%s in the page is refused", (_what, readme) => {
  expect(() => withFindings(readme, [], STAMP)).toThrow("once each");
});

it("a run has failed when an exact target is missed, or any row has no figure, and not for any other miss", () => {
  const exact = ROWS.filter(({ isAim }) => isAim !== true).map(({ number }) => number);
  expect(exact).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 15]);
  for (const { number } of ROWS) {
    const isExact = exact.includes(number);
    expect(missed([{ ...finding, row: number }])).toEqual([]);
    expect(missed([{ ...finding, row: number, isMet: false }])).toEqual(isExact ? [number] : []);
    expect(missed([unmeasured(number, "it broke")])).toEqual([number]);
  }
});

it("what was timed beside other programs says so, what the system itself does is no word", () => {
  expect(withBusyCores("2 ms", 1.26)).toBe("2 ms (other programs kept 1.3 cores busy)");
  expect(withBusyCores("2 ms", 0.19)).toBe("2 ms");
});
