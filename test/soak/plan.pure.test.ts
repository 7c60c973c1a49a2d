import { expect, it } from "vitest";
import { arrivals, faultPlan } from "../../scripts/soak/plan.ts";

const MINUTES_2 = 120_000;
const load = (seed: number) => [...arrivals({ seed, rate: 60, durationMs: MINUTES_2 })];

it("the same seed plans the same requests and faults, another one others", () => {
  expect(load(7)).toEqual(load(7));
  expect(load(8)).not.toEqual(load(7));
  expect(faultPlan(7, MINUTES_2)).toEqual(faultPlan(7, MINUTES_2));
  expect(faultPlan(8, MINUTES_2)).not.toEqual(faultPlan(7, MINUTES_2));
});

it("requests come at the rate that was asked for, and storms on top of it", () => {
  const planned = load(7);
  const ofStorms = (sender: string): number => {
    const times = planned.filter((one) => one.sender === sender).map(({ atMs }) => atMs);
    return Math.max(
      ...times.map((at) => times.filter((one) => one >= at && one < at + 1000).length),
    );
  };
  expect(planned.length).toBeGreaterThan(60 * 120);
  expect(planned.length).toBeLessThan(60 * 120 * 1.3);
  for (const sender of ["forger", "dry", "small", "users"]) {
    expect(ofStorms(sender), sender).toBeGreaterThan(50);
  }
});

it("30 % of those who pay leave: at once, before the first byte, at it, in mid-stream", () => {
  const paid = load(7).filter(({ shape }) => ["json", "stream", "embeddings"].includes(shape.kind));
  const leaves = paid.flatMap(({ leave }) => (leave === null ? [] : [leave]));
  expect(leaves.length / paid.length).toBeCloseTo(0.3, 1);
  const count = (of: (leave: (typeof leaves)[number]) => boolean): number =>
    leaves.filter(of).length;
  const share = leaves.length / 20;
  expect(count((one) => "afterMs" in one && one.afterMs === 0)).toBeGreaterThan(share);
  expect(count((one) => "afterMs" in one && one.afterMs > 0)).toBeGreaterThan(share);
  expect(count((one) => "afterBytes" in one && one.afterBytes === 1)).toBeGreaterThan(share);
  expect(count((one) => "afterBytes" in one && one.afterBytes > 1)).toBeGreaterThan(share);
});

it.each([10_000, MINUTES_2, 600_000])("in %i ms both regions meet every fault", (durationMs) => {
  const plan = faultPlan(7, durationMs);
  for (const what of ["abort", "book", "link", "kill", "revoke"]) {
    const regions = plan.filter((fault) => fault.what === what).map(({ region }) => region);
    expect([...new Set(regions)].toSorted(), what).toEqual(["eu", "us"]);
  }
  expect(plan.every(({ atMs }) => atMs < durationMs)).toBe(true);
  const kills = plan.filter(({ what }) => what === "kill").map(({ atMs }) => atMs);
  expect(Math.max(...kills)).toBeLessThan(durationMs * 0.51); // memory is judged on the life after it
});
