import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { csvOf } from "../../src/console/browser/lib/csv.ts";
import {
  formatExact,
  formatCount,
  formatMicros,
  formatBalance,
  dollarsToMicros,
  formatPercent,
  formatShortCount,
  formatCharge,
} from "../../src/console/browser/lib/money.ts";

const dollarsOf = (text: string): number => Number(text.replaceAll(/[$,]/g, "").replace("−", "-"));

describe("the console's format of an amount of money", () => {
  it.each([
    [12_400_000, "$12.40", "$12.40"],
    [12, "$0.000012", "$0.000012"],
    [1, "$0.000001", "$0.000001"],
    [0, "$0.00", "$0.00"],
    [1_239_999, "$1.239999", "$1.24"],
    [12_345, "$0.012345", "$0.013"],
    [9_960, "$0.00996", "$0.01"],
    [123_456, "$0.123456", "$0.13"],
    [999_976, "$0.999976", "$1.00"], // the sign-up credits after a small charge
    [12_345_678, "$12.34", "$12.35"],
    [12_400_500_000, "$12,400.50", "$12,400.50"],
    [-1_239_999, "−$1.239999", "−$1.24"],
    [-12_573, "−$0.012573", "−$0.013"], // as in the list of requests
  ])("shows %i micro-credits as %s if available and as %s if spent", (micros, kept, gone) => {
    expect([formatBalance(micros), formatCharge(micros)]).toEqual([kept, gone]);
  });

  it("rounds available credits down but never to zero, and spent credits up, each by at most 10 %", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10 ** 13 }), (micros) => {
        const [low, high] = [
          dollarsOf(formatBalance(micros)) * 1e6,
          dollarsOf(formatCharge(micros)) * 1e6,
        ];
        expect(low).toBeGreaterThan(0);
        expect(low).toBeLessThanOrEqual(micros + 0.01);
        expect(high).toBeGreaterThanOrEqual(micros - 0.01);
        expect(high - low).toBeLessThanOrEqual(micros / 10 + 0.01);
      }),
    );
  });

  it("shows the exact amount in a tooltip", () => {
    expect(formatMicros(12_345_678)).toBe("12,345,678 micro-credits ($12.345678)");
    expect([1_074, 12_345_678, 0, 374.25].map(formatExact)).toEqual([
      "$0.001074",
      "$12.345678",
      "$0.000000",
      "$0.00037425",
    ]);
    expect(dollarsToMicros(0.000_007)).toBe(7);
  });
});

describe("the console's format of a number", () => {
  it.each([
    [0, "0"],
    [999, "999"],
    [12_499, "12.4k"],
    [999_999, "999k"],
    [3_190_000, "3.1M"],
  ])("shows %i tokens as %s", (count, text) => {
    expect(formatShortCount(count)).toBe(text);
  });

  it("separates groups of three digits with commas", () => {
    expect([formatCount(1_204), formatCount(1_000_000), formatCount(12)]).toEqual([
      "1,204",
      "1,000,000",
      "12",
    ]);
  });

  it("shows a share as 0 % or 100 % only if the share is exact", () => {
    expect([0, 0.004, 0.126, 0.996, 1].map(formatPercent)).toEqual([
      "0%",
      "<1%",
      "13%",
      ">99%",
      "100%",
    ]);
  });
});

describe("a CSV export of the console", () => {
  it("quotes values where necessary, and keeps spreadsheets from running values as formulas", () => {
    expect(csvOf([["a,b", 'say "hi"', "=1+1", -5, null, true]])).toBe(
      `"a,b","say ""hi""",'=1+1,-5,,true\r\n`,
    );
  });
});
