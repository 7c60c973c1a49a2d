import { describe, expect, it } from "vitest";
import type { ProviderFailure } from "../../src/models/core/provider.ts";
import { isCooldownReason, RouteHealth } from "../../src/models/routing/route-health.ts";

const BAD_KEY: ProviderFailure = { kind: "disabled", reason: "401" };
const FAULT: ProviderFailure = { kind: "retry", reason: "500" };
const BLAMELESS: ProviderFailure = { kind: "retry", reason: "413", fault: "request" };
const REFUSED: ProviderFailure = { kind: "refused", reason: "400" };
const busy = (retryAfterMs?: number): ProviderFailure => ({
  kind: "overloaded",
  reason: "429",
  ...(retryAfterMs !== undefined && { retryAfterMs }),
});
const MINUTE = 60_000;

function fail(health: RouteHealth, failure: ProviderFailure, times: number, nowMs = 0): void {
  for (let at = 0; at < times; at++) health.recordFailure("up:m", "free", failure, nowMs);
}

describe("a route's health", () => {
  it("disables the route for a minute, then for twice as long up to ten minutes, until a success", () => {
    const health = new RouteHealth();
    const lengths: number[] = [];
    let nowMs = 0;
    for (let at = 0; at < 6; at++) {
      health.recordFailure("up:m", "free", BAD_KEY, nowMs);
      const out = health.requestPermit("up:m", nowMs);
      if (!isCooldownReason(out)) throw new Error("not in cooldown");
      expect(out.why).toBe("disabled");
      lengths.push((out.untilMs - nowMs) / MINUTE);
      nowMs = out.untilMs;
      expect(health.requestPermit("up:m", nowMs)).toBe("free");
    }
    expect(lengths).toEqual([1, 2, 4, 8, 10, 10]);
    health.recordSuccess("up:m", "free", nowMs);
    health.recordFailure("up:m", "free", BAD_KEY, nowMs);
    expect(health.requestPermit("up:m", nowMs)).toEqual({
      why: "disabled",
      untilMs: nowMs + MINUTE,
    });
  });

  it("disables the route for only a minute even after 20 concurrent failures", () => {
    const health = new RouteHealth();
    fail(health, BAD_KEY, 20);
    expect(health.requestPermit("up:m", MINUTE)).toBe("free");
  });

  it("pauses an overloaded route until its retry-after, up to a minute, without counting a failure", () => {
    const health = new RouteHealth();
    fail(health, busy(7000), 20);
    expect(health.requestPermit("up:m", 6999)).toEqual({ why: "overloaded", untilMs: 7000 });
    expect(health.requestPermit("up:m", 7000)).toBe("free");
    fail(health, busy(3_600_000), 20, 7000);
    expect(health.requestPermit("up:m", 7000 + MINUTE)).toBe("free");
  });

  it("opens the circuit after three overloads without a wait time, or after five failures", () => {
    for (const [failure, times] of [
      [busy(), 3],
      [busy(0), 3],
      [FAULT, 5],
    ] as const) {
      const health = new RouteHealth();
      fail(health, failure, times - 1);
      expect(health.requestPermit("up:m", 0)).toBe("free");
      fail(health, failure, 1);
      expect(health.requestPermit("up:m", 0)).toEqual({ why: "open", untilMs: 15_000 });
      expect(isCooldownReason(health.requestPermit("up:m", 15_000))).toBe(false);
      expect(isCooldownReason(health.requestPermit("up:m", 15_000))).toBe(true);
    }
  });

  it("opens the circuit after five streams of the route break off", () => {
    const health = new RouteHealth();
    for (let at = 0; at < 5; at++) {
      expect(health.requestPermit("up:m", 0)).toBe("free");
      health.recordSuccess("up:m", "free", 0);
      health.recordBrokenStream("up:m", 0);
    }
    expect(health.requestPermit("up:m", 0)).toEqual({ why: "open", untilMs: 15_000 });
  });

  it("never opens the circuit if the provider rejects the request or the gateway's key", () => {
    const health = new RouteHealth();
    fail(health, REFUSED, 100);
    expect(health.unavailableRoutes(0)).toEqual([]);
    fail(health, { ...BLAMELESS, retryAfterMs: 5000 }, 100);
    expect([health.unavailableRoutes(0), health.requestPermit("up:m", 0)]).toEqual([[], "free"]);
    fail(health, BAD_KEY, 100);
    expect(health.requestPermit("up:m", MINUTE)).toBe("free");
  });

  it("admits another probe after a probe that ended with a rejection, a wait or a wrong key", () => {
    for (const failure of [REFUSED, BLAMELESS, BAD_KEY, busy(500)]) {
      const health = new RouteHealth();
      fail(health, FAULT, 5);
      const probe = health.requestPermit("up:m", 15_000);
      if (isCooldownReason(probe)) throw new Error("in cooldown");
      health.recordFailure("up:m", probe, failure, 15_000);
      expect(isCooldownReason(health.requestPermit("up:m", 15_000 + MINUTE))).toBe(false);
    }
  });

  it("lists only routes in cooldown, each with its reason", () => {
    const health = new RouteHealth();
    health.recordSuccess("up:well", "free", 0);
    health.recordFailure("up:key", "free", BAD_KEY, 0);
    health.recordFailure("up:busy", "free", busy(20_000), 0);
    fail(health, FAULT, 5);
    expect(health.unavailableRoutes(10_000)).toEqual([
      { route: "up:key", state: "disabled", untilMs: MINUTE },
      { route: "up:busy", state: "overloaded", untilMs: 20_000 },
      { route: "up:m", state: "open", untilMs: 15_000 },
    ]);
    expect(health.unavailableRoutes(15_000).at(-1)).toMatchObject({
      route: "up:m",
      state: "half_open",
    });
    const probe = health.requestPermit("up:m", 15_000);
    if (isCooldownReason(probe)) throw new Error("in cooldown");
    health.recordSuccess("up:m", probe, 15_000);
    // Its minute has passed, so it is called again. Only a success proves its key.
    expect(health.unavailableRoutes(MINUTE)).toEqual([
      { route: "up:key", state: "disabled", untilMs: MINUTE },
    ]);
    health.recordSuccess("up:key", "free", MINUTE);
    expect(health.unavailableRoutes(MINUTE)).toEqual([]);
  });

  it("remembers only the last 1,000 routes", () => {
    const health = new RouteHealth();
    for (let at = 0; at < 2000; at++) health.recordFailure(`r${at}`, "free", BAD_KEY, 0);
    expect(health.unavailableRoutes(1)).toHaveLength(1000);
    expect(health.requestPermit("r999", 1)).toBe("free");
    expect(health.requestPermit("r1000", 1)).toMatchObject({ why: "disabled" });
  });
});
