import { describe, expect, it } from "vitest";
import { recordMeasured } from "../measured.ts";
import * as registers from "./rate-limiters.ts";
import type { RateLimiter } from "./rate-limiters.ts";

const { PATTERNS, RATE_LIMITERS, worstMinute, worstRatio, mostWithin } = registers;
const LIMIT = 60;
const worst = (make: (limit: number) => RateLimiter, pattern: string): number =>
  worstMinute(make(LIMIT), PATTERNS[pattern]?.(LIMIT) ?? []);
const at = (...times: number[]) => times.map((time) => ({ from: time, to: time }));

describe("the counter of maximum admissions in any 60 s", () => {
  it("checks every window of 60 s, wherever the window starts", () => {
    expect(mostWithin(at(0, 59_999, 60_000))).toBe(2);
    expect(mostWithin(at(0, 30_000, 60_000, 89_999, 90_000))).toBe(3);
    expect(mostWithin(at(5, 5, 5, 70_000))).toBe(3);
    expect(mostWithin([])).toBe(0);
  });

  it("counts only admissions that are certainly in the window", () => {
    const [early, late] = [
      { from: 0, to: 10 },
      { from: 59_990, to: 60_005 },
    ];
    expect(mostWithin([early, late])).toBe(1);
    expect(mostWithin([early, { ...late, to: 59_999 }])).toBe(2);
  });
});

describe("rate limiters under equal traffic patterns", () => {
  it.each(Object.keys(PATTERNS))(
    "admit exactly 60 requests in any 60 s with the gateway's limiter, under %s",
    (pattern) => {
      expect(worst(registers.exactLog, pattern)).toBe(LIMIT);
    },
  );

  it("admit twice the limit at the edges of a fixed window", () => {
    expect(worst(registers.fixedWindow, "constant flood")).toBe(60);
    expect(worst(registers.fixedWindow, "idle, burst at a window's end, flood")).toBe(120);
    expect(worst(registers.fixedWindow, "bursts at edges")).toBe(120);
  });

  it("admit nearly twice the limit with a sliding counter after a burst at a window's end", () => {
    expect(worst(registers.slidingCounter, "constant flood")).toBe(60);
    const most = worst(registers.slidingCounter, "idle, burst at a window's end, flood");
    expect(most).toBeGreaterThanOrEqual(115);
    expect(most).toBeLessThan(120);
  });

  it("admit nearly twice the limit with a full token bucket", () => {
    expect(worst(registers.tokenBucket, "constant flood")).toBeGreaterThanOrEqual(118);
    expect(worst(registers.tokenBucket, "constant flood")).toBeLessThanOrEqual(120);
  });

  it("reach at most the limit with the gateway's limiter, and twice the limit with a fixed window", () => {
    const ratios = Object.entries(RATE_LIMITERS).map(([name, make]) => [name, worstRatio(make)]);
    recordMeasured(Object.fromEntries(ratios) as Record<string, number>);
    expect(worstRatio(registers.exactLog)).toBe(1);
    expect(worstRatio(registers.fixedWindow)).toBe(2);
    expect(worstRatio((limit) => registers.exactLog(limit + 1))).toBeGreaterThan(1);
  });
});
