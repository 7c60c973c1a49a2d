import { describe, expect, it } from "vitest";
import { recordMeasured } from "../measured.ts";
import * as registers from "./rate-limiters.ts";
import type { RateLimiter } from "./rate-limiters.ts";

const { PATTERNS, RATE_LIMITERS, worstMinute, worstRatio, mostWithin } = registers;
const LIMIT = 60;
const worst = (make: (limit: number) => RateLimiter, pattern: string): number =>
  worstMinute(make(LIMIT), PATTERNS[pattern]?.(LIMIT) ?? []);
const at = (...times: number[]) => times.map((time) => ({ from: time, to: time }));

describe("the counter of the most admissions in any 60 s", () => {
  it("checks every 60 s window, whenever the window starts", () => {
    expect(mostWithin(at(0, 59_999, 60_000))).toBe(2);
    expect(mostWithin(at(0, 30_000, 60_000, 89_999, 90_000))).toBe(3);
    expect(mostWithin(at(5, 5, 5, 70_000))).toBe(3);
    expect(mostWithin([])).toBe(0);
  });

  it("counts only admissions that are certain to be in the window", () => {
    const [early, late] = [
      { from: 0, to: 10 },
      { from: 59_990, to: 60_005 },
    ];
    expect(mostWithin([early, late])).toBe(1);
    expect(mostWithin([early, { ...late, to: 59_999 }])).toBe(2);
  });
});

describe("a comparison of rate limiters", () => {
  it.each(Object.keys(PATTERNS))(
    "shows that the gateway's limiter admits exactly 60 requests in any 60 s, under %s",
    (pattern) => {
      expect(worst(registers.exactLog, pattern)).toBe(LIMIT);
    },
  );

  it("shows that a fixed window admits twice the limit at the window's edges", () => {
    expect(worst(registers.fixedWindow, "constant flood")).toBe(60);
    expect(worst(registers.fixedWindow, "idle, burst at a window's end, flood")).toBe(120);
    expect(worst(registers.fixedWindow, "bursts at edges")).toBe(120);
  });

  it("shows that a sliding counter admits nearly twice the limit after a burst at a window's end", () => {
    expect(worst(registers.slidingCounter, "constant flood")).toBe(60);
    const most = worst(registers.slidingCounter, "idle, burst at a window's end, flood");
    expect(most).toBeGreaterThanOrEqual(115);
    expect(most).toBeLessThan(120);
  });

  it("shows that a full token bucket admits nearly twice the limit", () => {
    expect(worst(registers.tokenBucket, "constant flood")).toBeGreaterThanOrEqual(118);
    expect(worst(registers.tokenBucket, "constant flood")).toBeLessThanOrEqual(120);
  });

  it("shows that the gateway's limiter admits at most the limit, and a fixed window twice the limit", () => {
    const ratios = Object.entries(RATE_LIMITERS).map(([name, make]) => [name, worstRatio(make)]);
    recordMeasured(Object.fromEntries(ratios) as Record<string, number>);
    expect(worstRatio(registers.exactLog)).toBe(1);
    expect(worstRatio(registers.fixedWindow)).toBe(2);
    expect(worstRatio((limit) => registers.exactLog(limit + 1))).toBeGreaterThan(1);
  });
});
