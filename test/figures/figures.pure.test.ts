import { readFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { withMeasured } from "../../scripts/figures/page.ts";
import { ROWS } from "../../scripts/figures/rows.ts";
import { benchSeen, findingOf, reportSeen } from "../../scripts/figures/run.ts";
import type { Seen } from "../../scripts/figures/run.ts";

const STAMP = { date: "2026-11-21", commit: "abc1234" };
const [BEGIN, END] = ["<!-- figures: begin -->", "<!-- figures: end -->"];
type Figures = Readonly<Record<string, number>>;
const reportOf = (status: string, ...assertionResults: object[]): string =>
  JSON.stringify({ testResults: [{ status, assertionResults }] });
const othersOf = (text: string): string[][] =>
  text
    .split("\n")
    .filter((line) => /^\| (?!6 )\d/.test(line))
    .map((line) => line.split(/ *\| */));
const seenOf = (figures: Figures, more: Partial<Seen> = {}): Seen => {
  return { figures: Object.entries(figures), tests: 1, failed: 0, ...more };
};

const timesAt = (place: string): Figures =>
  Object.fromEntries(
    ["JSON, total", "stream, first byte", "stream, total"].flatMap((moment) =>
      ["p50", "p99"].map((share) => [`${place}: ${moment}, ${share}, over direct`, 2.5] as const),
    ),
  );
const hot = {
  "others' first byte, p99, alone": 60,
  "others' first byte, p99, beside": 66,
  "others' first byte, p99, rise": 19.9,
  "others' total, p99, alone": 60,
  "others' total, p99, beside": 66,
  "others' total, p99, rise": 3,
  "others not served": 0,
  "hot one's shed": 71,
};
const kneeOf = (which: string): Figures => {
  return {
    [`knee ${which}, rate`]: 700,
    [`knee ${which}, p50 at it`]: 3,
    [`knee ${which}, p99 at it`]: 12,
  };
};

/** What meets each row's target, and what, changed alone, misses it. */
const TARGETS: readonly (readonly [good: Figures, ...bad: Figures[]])[] = [
  [{ runs: 5000, guards: 57 }, { runs: 0 }, { guards: 0 }],
  [
    { races: 60, requests: 960, served: 210, overspend: 0, belowZero: 0 },
    { overspend: 1 },
    { belowZero: 1 },
    { served: 0 },
    { served: 960 }, // nobody was refused: no race
  ],
  [
    { flights: 200, doubled: 50, reordered: 53, repeated: 0 },
    { repeated: 1 },
    { doubled: 0 },
    { flights: 0 },
  ],
  [
    { requests: 900, organizations: 12, ledgerOff: 0, bookOff: 0, openHolds: 0, charges: 600 },
    { ledgerOff: 1 },
    { bookOff: 1 },
    { openHolds: 1 },
    { charges: 0 },
  ],
  [
    {
      ours: 1,
      "fixed window": 2,
      "sliding counter": 2,
      "token bucket": 2,
      limit: 60,
      most: 60,
      admitted: 120,
      asked: 700,
    },
    { ours: 61 / 60 },
    { most: 61 },
    { admitted: 60 }, // never again
  ],
  [
    { evictedAdmitted: 60, offered: 300, evictions: 4 },
    { evictedAdmitted: 61 },
    { evictedAdmitted: 59 },
    { evictions: 0 },
  ],
  [
    {
      keys: 60,
      asked: 900,
      admitted: 0,
      p50: 40,
      p99: 170,
      max: 170,
      askedCut: 25,
      admittedCut: 0,
    },
    { admitted: 1 },
    { admittedCut: 1 },
    { p99: 1001 },
    { asked: 0 },
    { askedCut: 0 },
  ],
  [
    {
      points: 2000,
      clients: 2,
      charged: 2,
      estimated: 1,
      p50: 4,
      p95: 4,
      bias: -4,
      reportedWorst: 0,
    },
    { charged: 1 },
    { points: 0 },
  ],
  [{ forged: 600, operations: 0 }, { operations: 1 }, { forged: 0 }],
  [
    { ...timesAt("home"), ...timesAt("peer") },
    { "home: stream, first byte, p50, over direct": 3.01 },
  ],
  [{ ...kneeOf("in all"), ...kneeOf("of one organisation") }],
  [
    { inputs: 1500, faults: 0, answers: 500, internal: 0 },
    { internal: 1 },
    { faults: 1 },
    { answers: 0 },
  ],
  [{ kills: 20, answered: 100, lost: 0, stranded: 20 }, { lost: 1 }, { kills: 0 }],
  [{}],
  [
    { requests: 900, organizations: 12, shortfall: 0, charges: 600, estimated: 180 },
    { shortfall: 1 },
    { charges: 0 },
  ],
  [
    hot,
    { "others' first byte, p99, rise": 20.1 },
    { "others' total, p99, rise": 20.1 },
    { "hot one's shed": 0 },
    { "others not served": 1 },
  ],
];

describe.each(ROWS.map((row, i) => [i + 1, row] as const))("row %i", (number, row) => {
  const [good = {}, ...bad] = TARGETS[number - 1] ?? [];

  it("is met by what it should be, and missed by each fault alone", () => {
    const finding = findingOf(row, [seenOf(good)], 0);
    expect(finding).toMatchObject({ isBad: false });
    expect(finding.words).not.toMatch(/MISSED|not measured|NaN|undefined/);
    for (const one of bad) {
      const missed = findingOf(row, [seenOf({ ...good, ...one })], 0);
      expect(missed.words, JSON.stringify(one)).toMatch(/^MISSED: /);
      expect(missed.isBad).toBe(row.isAim !== true);
    }
  });

  it("is missed by a test that fails, and not measured without any of its figures", () => {
    const failing = findingOf(row, [seenOf(good, { failed: 1, tests: 3 })], 0);
    expect(failing.words).toMatch(/^MISSED: .*; 1 of 3 tests failed$/);
    for (const name of Object.keys(good)) {
      const { [name]: _, ...others } = good;
      expect(findingOf(row, [seenOf(others)], 0)).toEqual({
        words: `not measured: nothing said ${name}`,
        isBad: true,
      });
    }
  });
});

it("figures of several sources are summed; a timed row says how busy the machine was, no other does", () => {
  const [races, revocations] = [ROWS[1], ROWS[6]];
  const [good = {}] = TARGETS[1] ?? [];
  if (races === undefined || revocations === undefined) throw new Error("a row is missing");
  expect(findingOf(races, [seenOf(good), seenOf(good)], 1.26).words).toBe(
    "0 micros in 120 races of 16 at once; 420 of 1920 served, balance below zero by 0",
  );
  expect(findingOf(revocations, [seenOf(TARGETS[6]?.[0] ?? {})], 1.26).words).toMatch(
    / \(other programs kept 1\.3 cores busy\)$/,
  );
});

it("a report has the tests that ran, and a file that could not be loaded as one that failed", () => {
  const passed = { status: "passed", meta: { measured: { points: 3 } } };
  expect(
    reportSeen(reportOf("failed", passed, { status: "failed" }, { status: "skipped" })),
  ).toEqual({
    figures: [["points", 3]],
    tests: 2,
    failed: 1,
  });
  expect(reportSeen(reportOf("failed"))).toMatchObject({ tests: 1, failed: 1 });
  expect(() => reportSeen(reportOf("passed"))).toThrow("no test ran");
  expect(benchSeen('{"figures":[{"name":"a","value":null}]}').figures).toEqual([["a", NaN]]);
  expect(() => benchSeen('{"rows":[]}')).toThrow("figures");
});

it("docs/figures.md has every row with its target and command, and stays as it is written", () => {
  const page = readFileSync(path.join(import.meta.dirname, "../../docs/figures.md"), "utf8");
  expect(withMeasured(page, new Map(), STAMP)).toBe(page);
  const written = withMeasured(page, new Map([[6, "a | b\nc\u00e9 | d"]]), STAMP);
  expect(written).toMatch(
    /^\| 6 +\| [^|]+\| a \/ b c \/ d +\| 60 +\| 2026-11-21 \| abc1234 +\| `/m,
  );
  expect(othersOf(written)).toEqual(othersOf(page));
});

it.each(["", BEGIN, `${END}\n${BEGIN}`, `${BEGIN}\n${BEGIN}\n${END}`])(
  "a page without its two markers, %j, is refused",
  (page) => {
    expect(() => withMeasured(page, new Map(), STAMP)).toThrow("once each");
  },
);
