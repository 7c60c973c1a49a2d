import * as fc from "fast-check";
import { expect, it } from "vitest";
import { cpuOf, ratioOf } from "../../scripts/bench/figure.ts";
import type { CpuRound } from "../../scripts/bench/figure.ts";
import { quantile } from "../../scripts/quantile.ts";

const cpu = fc.double({ min: 50, max: 50_000, noNaN: true });
const slower = fc.double({ min: 1, max: 20, noNaN: true });
const round = fc.record({ floor: cpu, home: cpu });
const rounds = fc.array(round, { minLength: 1, maxLength: 21 });

it("a quantile lies between two values in proportion, whatever their order", () => {
  expect(quantile([40, 10, 30, 20], 0.5)).toBe(25);
  expect(quantile([40, 10, 30, 20], 0)).toBe(10);
  expect(quantile([40, 10, 30, 20], 1)).toBe(40);
  expect(quantile([7], 0.99)).toBe(7);
  expect(quantile([], 0.5)).toBeNaN();
});

it("a ratio is not moved by what slows a whole round down, however much", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(round, slower), { minLength: 1, maxLength: 21 }), (pairs) => {
      const calm = pairs.map(([one]) => one);
      const busy = pairs.map(([one, by]) => ({ floor: one.floor * by, home: one.home * by }));
      const ratio = ratioOf(calm, "home", "floor").value;
      expect(ratioOf(busy, "home", "floor").value / ratio).toBeCloseTo(1, 9);
    }),
  );
});

it("a ratio stays among the sound rounds' own as long as fewer than half are spoiled", () => {
  fc.assert(
    fc.property(rounds, fc.array(round, { maxLength: 20 }), (sound, more) => {
      const spoiled = more.slice(0, sound.length - 1);
      const ratios = sound.map(({ floor, home }) => home / floor);
      const { value } = ratioOf([...sound, ...spoiled], "home", "floor");
      expect(value).toBeGreaterThanOrEqual(Math.min(...ratios));
      expect(value).toBeLessThanOrEqual(Math.max(...ratios));
    }),
  );
});

it("the least is that of every slice, and of two places the ratio of theirs", () => {
  const measured: CpuRound[] = [
    { floor: 100, home: 330 },
    { floor: 110, home: 300 },
    { floor: 400, home: 900 },
  ];
  expect(cpuOf(measured, "home")).toEqual({ value: 330, least: 300, quartiles: [315, 615] });
  expect(ratioOf(measured, "home", "floor").least).toBe(3);
  expect(ratioOf(measured, "home", "floor").value).toBeCloseTo(300 / 110, 9);
});

it("a place that some round did not measure has no figure", () => {
  expect(ratioOf([{ floor: 1, home: 2 }, { floor: 1 }], "home", "floor").value).toBeNaN();
  expect(cpuOf([{ floor: 1 }], "peer").value).toBeNaN();
});
