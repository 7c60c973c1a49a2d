import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RegionSpeeds } from "../../src/events/metrics/region-speeds.ts";
import { RouteSpeeds } from "../../src/models/routing/route-times.ts";
import { publicPercentiles } from "../../src/shared/route-speed.ts";
import type { RouteSample, RouteSpeed } from "../../src/shared/route-speed.ts";

const MINUTE = 60_000;
const sampleOf = (orgId: string, latencyMs: number | null): RouteSample => {
  return { route: "a:m", orgId, latencyMs, tokensPerSecond: null };
};

function latencyOf(samples: readonly RouteSample[], nowMs = 0): RouteSpeed["latency"] | undefined {
  const speeds = new RegionSpeeds();
  for (const sample of samples) speeds.add([sample], 0);
  return speeds.all(nowMs)[0]?.latency;
}

const requests = fc.array(
  fc.record({ org: fc.integer({ min: 0, max: 4 }), ms: fc.option(fc.nat(5000)) }),
  { maxLength: 120, size: "max" },
);

describe("a region's measured speed of a route", () => {
  it("becomes public after 20 requests from 3 organizations, counting at most 10 per organization", () => {
    let shown = 0;
    const property = fc.property(requests, (sent) => {
      const measure = latencyOf(sent.map(({ org, ms }) => sampleOf(String(org), ms)));
      const newest = [0, 1, 2, 3, 4].map((one) => sent.filter(({ org }) => org === one).slice(-10));
      const counted = newest.flat().flatMap(({ ms }) => ms ?? []);
      const organizations = newest.filter((own) => own.some(({ ms }) => ms !== null)).length;
      expect(measure?.requests ?? 0).toBe(counted.length);
      const isPublic = counted.length >= 20 && organizations >= 3;
      const seen = publicPercentiles(measure);
      expect(seen !== null).toBe(isPublic);
      if (seen === null) return;
      shown++;
      const half = counted.toSorted((a, b) => a - b)[Math.ceil(counted.length / 2) - 1];
      expect(seen.p50).toBe(half);
      expect([seen.p50, seen.p75, seen.p90, seen.p99]).toEqual(
        [seen.p50, seen.p75, seen.p90, seen.p99].toSorted((a, b) => a - b),
      );
    });
    fc.assert(property, { numRuns: 300 });
    expect(shown).toBeGreaterThan(20);
  });

  it("expires 30 minutes after the requests", () => {
    const three = ["a", "b", "c"].map((org) => sampleOf(org, 5));
    expect(latencyOf(three, 30 * MINUTE - 1)?.percentiles?.p50).toBe(5);
    expect(latencyOf(three, 30 * MINUTE)).toBeUndefined();
  });

  it("counts at most 200 requests per route, for at most 500 routes", () => {
    const speeds = new RegionSpeeds();
    for (let n = 0; n < 600; n++) speeds.add([{ ...sampleOf("o", n), route: `r${n}` }], 0);
    for (let n = 0; n < 300; n++) speeds.add([sampleOf(`org ${n}`, n)], 0);
    const all = speeds.all(0);
    expect(all).toHaveLength(500);
    expect(all.find(({ route }) => route === "a:m")?.latency.requests).toBe(200);
  });
});

function speedOf(organizations: number): RouteSpeed {
  const percentiles = { p50: 7, p75: 8, p90: 9, p99: 9 };
  const measure = { requests: 20, organizations, percentiles };
  return { route: "a:m", latency: measure, throughput: measure };
}

describe("an isolate's order of routes by speed", () => {
  it("doesn't depend on another organization's requests", () => {
    const property = fc.property(requests, (sent) => {
      const own = new RouteSpeeds();
      const all = new RouteSpeeds();
      for (const { org, ms } of sent) {
        const at = { route: "a:m", orgId: String(org) };
        const served = { latencyMs: ms, streamMs: 1000, output: 20 + org };
        all.record(at, served);
        if (org === 0) own.record(at, served);
      }
      expect(all.speedOf("a:m", "0")).toEqual(own.speedOf("a:m", "0"));
    });
    fc.assert(property, { numRuns: 200 });
  });

  it("uses the region's speeds if they are public", () => {
    const times = new RouteSpeeds();
    times.setRegionSpeeds([speedOf(2)]);
    expect(times.speedOf("a:m", "0")).toEqual({ latencyMs: null, tokensPerSecond: null });
    times.setRegionSpeeds([speedOf(3)]);
    expect(times.speedOf("a:m", "0")).toEqual({ latencyMs: 7, tokensPerSecond: 7 });
  });

  it("reports each request's speed to the region once", () => {
    const times = new RouteSpeeds();
    times.record({ route: "a:m", orgId: "o" }, { latencyMs: 5, streamMs: 0, output: 0 });
    expect(times.takeSamples()).toEqual([sampleOf("o", 5)]);
    expect(times.takeSamples()).toEqual([]);
  });
});
