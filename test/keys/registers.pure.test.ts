import { describe, expect, it } from "vitest";
import { measured } from "../measured.ts";
import * as registers from "./registers.ts";
import type { Register } from "./registers.ts";

const { PATTERNS, REGISTERS, worstMinute, worstRatio, mostWithin } = registers;
const LIMIT = 60;
const worst = (make: (limit: number) => Register, pattern: string): number =>
  worstMinute(make(LIMIT), PATTERNS[pattern]?.(LIMIT) ?? []);
const at = (...times: number[]) => times.map((time) => ({ from: time, to: time }));

describe("the maximum admissions in any 60 s", () => {
  it("cover every window of 60 s, wherever it starts", () => {
    expect(mostWithin(at(0, 59_999, 60_000))).toBe(2);
    expect(mostWithin(at(0, 30_000, 60_000, 89_999, 90_000))).toBe(3);
    expect(mostWithin(at(5, 5, 5, 70_000))).toBe(3);
    expect(mostWithin([])).toBe(0);
  });

  it("include only admissions that are certainly in the window", () => {
    const [early, late] = [
      { from: 0, to: 10 },
      { from: 59_990, to: 60_005 },
    ];
    expect(mostWithin([early, late])).toBe(1);
    expect(mostWithin([early, { ...late, to: 59_999 }])).toBe(2);
  });
});

describe("rate limiters on the same patterns", () => {
  it.each(Object.keys(PATTERNS))(
    "reach but never exceed 60 for our limiter under %s",
    (pattern) => {
      expect(worst(registers.exactLog, pattern)).toBe(LIMIT);
    },
  );

  it("reach double the limit at the edges of a fixed window", () => {
    expect(worst(registers.fixedWindow, "constant flood")).toBe(60);
    expect(worst(registers.fixedWindow, "idle, burst at a window's end, flood")).toBe(120);
    expect(worst(registers.fixedWindow, "bursts at edges")).toBe(120);
  });

  it("reach nearly double for a sliding counter after a burst at a window's end", () => {
    expect(worst(registers.slidingCounter, "constant flood")).toBe(60);
    const most = worst(registers.slidingCounter, "idle, burst at a window's end, flood");
    expect(most).toBeGreaterThanOrEqual(115);
    expect(most).toBeLessThan(120);
  });

  it("reach the limit of one more minute for a full token bucket", () => {
    expect(worst(registers.tokenBucket, "constant flood")).toBeGreaterThanOrEqual(118);
    expect(worst(registers.tokenBucket, "constant flood")).toBeLessThanOrEqual(120);
  });

  it("rank by their worst result in all patterns and both limits", () => {
    const ratios = Object.entries(REGISTERS).map(([name, make]) => [name, worstRatio(make)]);
    measured(Object.fromEntries(ratios) as Record<string, number>);
    expect(worstRatio(registers.exactLog)).toBe(1);
    expect(worstRatio(registers.fixedWindow)).toBe(2);
    expect(worstRatio((limit) => registers.exactLog(limit + 1))).toBeGreaterThan(1);
  });
});
