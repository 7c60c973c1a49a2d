import { describe, expect, it } from "vitest";
import * as programs from "../../../scripts/figures/from-bench.ts";
import { readReport } from "../../../scripts/figures/programs.ts";
import type { Finding } from "../../../scripts/figures/table.ts";

const times = (place: string): object[] =>
  ["JSON, first byte", "JSON, total", "stream, first byte", "stream, total"].flatMap((what, i) =>
    ["p50", "p99"].map((share, j) => ({
      name: `${place}: ${what}, ${share}, over direct`,
      value: i + 1 + j / 10,
      unit: "ms",
    })),
  );
const printed = (...figures: object[]): programs.Figures =>
  programs.readFigures(JSON.stringify({ figures, rounds: {} }));

const knee = (which: string, rate: number): object[] => [
  { name: `knee ${which}, rate`, value: rate },
  { name: `knee ${which}, p50 at it`, value: 3.21 },
  { name: `knee ${which}, p99 at it`, value: 123.4 },
];
type Change = Readonly<Partial<Record<"firstByte" | "whole" | "shed" | "refused", number>>>;
const hot = ({ firstByte = 19.9, whole = 3, shed = 71.2, refused = 0 }: Change): Finding => {
  const rises = { "first byte": firstByte, total: whole };
  const figures = Object.entries(rises).flatMap(([moment, rise]) => [
    { name: `others' ${moment}, p99, alone`, value: 60 },
    { name: `others' ${moment}, p99, beside`, value: 66.04 },
    { name: `others' ${moment}, p99, rise`, value: rise },
  ]);
  const rest = [
    { name: "others not served", value: refused },
    { name: "hot one's shed", value: shed },
  ];
  return programs.hotFinding(printed(...figures, ...rest));
};
const ran = { fullName: "group a test", title: "a test", failureMessages: [] };
const report = (results: object[], status = "passed"): string =>
  JSON.stringify({ testResults: [{ name: "/x/a.test.ts", status, assertionResults: results }] });

describe("figures that npm run bench prints", () => {
  it("are the added latency, at home and at a peer", () => {
    const finding = programs.latencyFinding(printed(...times("home"), ...times("peer")));
    const each = "JSON 2.0 / 2.1, stream first byte 3.0 / 3.1, stream total 4.0 / 4.1";
    expect(finding).toMatchObject({
      isMet: true,
      measured: `p50 / p99 in ms, home: ${each}; peer: ${each}`,
    });
  });

  it("over the budget miss it; those that are not there are said to be unknown", () => {
    const slow = { name: "home: stream, first byte, p50, over direct", value: 3.01 };
    const finding = programs.latencyFinding(printed(slow));
    expect(finding.isMet).toBe(false);
    expect(finding.measured).toContain("stream first byte 3.0 / ?");
    expect(programs.latencyFinding(printed())).toMatchObject({ isMet: null, values: {} });
  });

  it("are the knees, of many and of one", () => {
    const both = [...knee("in all", 700.4), ...knee("of one organisation", 640)];
    expect(programs.kneeFinding(printed(...both)).measured).toMatch(
      /^700 req\/s \(p50 3\.2, p99 123 ms\) in all; 640 req\/s \(p50 3\.2, p99 123 ms\) of one/,
    );
    expect(programs.kneeFinding(printed(...knee("in all", 700))).measured).toMatch(/^not measured/);
  });

  it("that are none are refused", () => {
    expect(() => programs.readFigures("npm error")).toThrow("JSON");
    expect(() => programs.readFigures('{"rows":[]}')).toThrow("figures");
  });
});

describe("a report of vitest", () => {
  it("has the tests that ran with what they measured, and not those that did not", () => {
    const text = report([
      { ...ran, status: "passed", meta: { measured: { points: 3 } } },
      { ...ran, status: "failed", meta: {} },
      { ...ran, status: "skipped", meta: {} },
    ]);
    expect(readReport(text)).toEqual([
      {
        file: "/x/a.test.ts",
        fullName: "group a test",
        title: "a test",
        hasPassed: true,
        measured: { points: 3 },
      },
      {
        file: "/x/a.test.ts",
        fullName: "group a test",
        title: "a test",
        hasPassed: false,
        measured: {},
      },
    ]);
  });

  it("counts a file that could not be loaded as a test that failed", () => {
    expect(readReport(report([], "failed"))).toMatchObject([{ hasPassed: false }]);
    expect(readReport(report([]))).toEqual([]);
  });
});

describe("figures that npm run bench -- --hot prints", () => {
  it("are the rises of the others' p99, each at most 20 %, all served, while the hot one is shed", () => {
    expect(hot({})).toMatchObject({
      row: 16,
      isMet: true,
      measured:
        "first byte +19.9 % (60.0 to 66.0 ms), whole +3.0 % (60.0 to 66.0 ms); median of 5 paired runs, 71 % of the hot one's shed",
    });
    expect(hot({ whole: -3 }).measured).toContain("whole -3.0 %");
    const bad = [{ firstByte: 20.1 }, { whole: 20.1 }, { shed: 0 }, { refused: 1 }];
    expect(bad.map((one) => hot(one).isMet)).toEqual([false, false, false, false]);
  });

  it("without a rise are not measured", () => {
    expect(programs.hotFinding(printed()).measured).toMatch(/^not measured/);
  });
});
