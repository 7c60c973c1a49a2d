import { describe, expect, it } from "vitest";
import { runway } from "../../src/console/browser/lib/balance-curve.ts";
import { isCompleteSince, partsSince, rangeName } from "../../src/console/browser/lib/range.ts";
import { computeSpendTotals } from "../../src/console/browser/lib/spend-totals.ts";
import { cacheShares, stackGroups, sumUsageByGroup } from "../../src/console/browser/lib/spend.ts";
import type { DayRow } from "../../src/console/browser/lib/spend.ts";
import {
  dayName,
  daysBetween,
  monthStart,
  formatDuration,
  relativeTime,
} from "../../src/console/browser/lib/time.ts";

const NOW = Date.parse("2026-11-22T12:00:00Z");
const row = (day: string, cost: number, group: string | null = "m"): DayRow => {
  const tokens = { prompt_tokens: 0, cached_tokens: 0, completion_tokens: 0 };
  return { day, group, requests: 1, ...tokens, cost_micro: cost };
};

describe("a period in the console", () => {
  it.each([
    ["2026-10-01", "2026-10-31", "2026-10"],
    ["2026-12-01", "2026-12-31", "2026-12"],
    ["2026-11-22", "2026-11-22", "2026-11-22"],
    ["2026-11-01", "2026-11-22", "2026-11-01 to 2026-11-22"],
    ["2026-11-22T05", "2026-11-23T04", "2026-11-22T05 to 2026-11-23T04"],
  ])("from %s to %s has the name %s in files", (from, to, name) => {
    expect(rangeName({ from, to })).toBe(name);
  });

  it("counts as complete if it doesn't start before the first complete record", () => {
    const complete = "2026-11-20T09:30:00.000Z";
    expect(isCompleteSince(complete, { from: "2026-11-20" })).toBe(false);
    expect(isCompleteSince(complete, { from: "2026-11-21" })).toBe(true);
    expect(isCompleteSince(null, { from: "2026-11-20" })).toBe(true);
    expect(partsSince(complete, ["2026-11-19", "2026-11-20", "2026-11-21"])).toEqual([
      "2026-11-20",
      "2026-11-21",
    ]);
    expect(partsSince(complete, ["2026-11-20T08", "2026-11-20T09"])).toEqual(["2026-11-20T09"]);
  });
});

describe("the console's format of a time", () => {
  it.each([
    ["2026-11-22T11:59:58Z", "just now"],
    ["2026-11-22T11:59:20Z", "40 s ago"],
    ["2026-11-22T11:48:00Z", "12 min ago"],
    ["2026-11-22T09:00:00Z", "3 h ago"],
    ["2026-11-22T13:30:00Z", "in 1 h"],
    ["2026-11-20T12:00:00Z", "20 Nov"],
    ["2025-11-20T12:00:00Z", "20 Nov 2025"],
  ])("shows the time %s as %s", (time, text) => {
    expect(relativeTime(time, NOW)).toBe(text);
  });

  it("includes minutes, in the reader's time zone, in lists with many rows per day", () => {
    const at = new Date(2026, 9, 24, 9, 5).getTime();
    expect([relativeTime(at, NOW, true), relativeTime(at, NOW)]).toEqual([
      "24 Oct, 09:05",
      "24 Oct",
    ]);
    expect(relativeTime(NOW - 60_000, NOW, true)).toBe("1 min ago");
  });

  it("shows a request's latency as a duration", () => {
    expect([85, 1_234, 12_345, 125_000].map(formatDuration)).toEqual([
      "85 ms",
      "1.23 s",
      "12.3 s",
      "2 min",
    ]);
  });

  it("shows days in UTC, and finds the start of a month", () => {
    expect(daysBetween("2026-02-27", "2026-03-01")).toEqual([
      "2026-02-27",
      "2026-02-28",
      "2026-03-01",
    ]);
    expect([monthStart("2026-01-15"), monthStart("2026-01-15", 1)]).toEqual([
      "2026-01-01",
      "2025-12-01",
    ]);
    expect(dayName("2026-11-22")).toBe("22 Nov");
  });
});

describe("spend in the console", () => {
  it("appears in a chart as the largest groups and one group for the rest", () => {
    const rows = ["a", "b", "c", "d"].map((name, i) => row("2026-11-21", i + 1, name));
    const series = stackGroups(
      [...rows, row("2026-11-22", 10, "a")],
      ["2026-11-21", "2026-11-22"],
      {
        metric: "cost_micro",
        most: 2,
      },
    );
    expect(series).toEqual([
      { name: "a", values: [1, 10] },
      { name: "d", values: [4, 0] },
      { name: "other", values: [5, 0] },
    ]);
    expect(sumUsageByGroup([...rows, row("2026-11-22", 10, "a")])).toMatchObject([
      { group: "a", cost_micro: 11, requests: 2 },
      { group: "d", cost_micro: 4, requests: 1 },
      { group: "c", cost_micro: 3 },
      { group: "b", cost_micro: 2 },
    ]);
  });

  it("appears for this month next to last month's spend through the same day", () => {
    const rows = [
      row("2026-10-22", 5),
      row("2026-10-23", 100),
      row("2026-11-01", 7),
      row("2026-11-22", 2),
    ];
    expect(computeSpendTotals(rows, NOW)).toEqual({ today: 2, month: 9, lastMonthToDate: 5 });
  });

  it.each([
    ["No spending in the last 7 days", []],
    ["No spending in the last 7 days", [row("2026-11-14", 5)]],
    [
      "Lasts until 31 Jan if you spend as in the last 7 days ($0.000002 a day)",
      [row("2026-11-01", 1), row("2026-11-20", 10)],
    ],
    [
      "Lasts until 28 Nov if you spend as in the last 3 days ($0.000017 a day)",
      [row("2026-08-30", 1), row("2026-11-20", 50)], // Credits reads 90 days, Overview fewer
    ],
    ["Lasts until 24 Nov if you spend as today ($0.00005 a day)", [row("2026-11-22", 50)]],
    [
      "Lasts for more than a year if you spend as in the last 2 days ($0.000001 a day)",
      [row("2026-11-21", 0.1)],
    ],
  ])("determines how long the credits last: %s", (text, rows) => {
    expect(runway(100, rows, NOW)).toBe(text);
  });

  it("appears with the text 'No credits left' if no credits are left", () => {
    expect(runway(0, [row("2026-11-22", 50)], NOW)).toBe("No credits left");
  });

  it("appears with a share of cached tokens only for days that have prompts", () => {
    const cached = { ...row("2026-11-21", 1), prompt_tokens: 10, cached_tokens: 4 };
    expect(cacheShares([cached], ["2026-11-21", "2026-11-22"])).toEqual([0.4, null]);
  });
});
