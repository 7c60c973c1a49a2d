import { readFileSync } from "node:fs";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AXIS_LABEL_FORMATS, createAxis } from "../../src/console/browser/lib/axis.ts";
import type { ChartUnit } from "../../src/console/browser/lib/axis.ts";
import { layOutChart } from "../../src/console/browser/lib/plot-shape.ts";
import { daysBetween } from "../../src/console/browser/lib/time.ts";

const UNITS = Object.keys(AXIS_LABEL_FORMATS) as ChartUnit[];
const widthOf = (text: string): number => 7 * text.length;
const days = daysBetween("2028-02-01", "2028-03-01");

function shapeOfValues(values: readonly (number | null)[], unit: ChartUnit = "spend") {
  const named = days.slice(0, values.length);
  return layOutChart(
    { days: named, series: [{ label: "a", slot: 0, values }], kind: "bars", unit },
    600,
    widthOf,
  );
}

const part = (slot: number) => ({ label: String(slot), slot, values: [6e6, 4e6] });

describe("the axis of a chart", () => {
  it("shows two to six ticks with the same unit and number of decimals, from $0.000001 to $250,000", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 250_000_000_000 }),
        fc.constantFrom(...UNITS.filter((unit) => unit !== "share")),
        (max, unit) => {
          const { ticks, labels, high } = createAxis([max, 0, max / 2], unit);
          expect(ticks.length).toBeGreaterThanOrEqual(2);
          expect(ticks.length).toBeLessThanOrEqual(6);
          expect(ticks[0]).toBe(0);
          expect(high).toBeGreaterThanOrEqual(max);
          expect(new Set(labels).size).toBe(labels.length);
          const forms = labels.map((label) =>
            label.replace(/^[−$]*[\d,\u2009]+/, "").replaceAll(/\d/g, "0"),
          );
          expect(new Set(forms).size).toBe(1);
        },
      ),
    );
  });

  it("labels each tick with the exact value", () => {
    expect(
      createAxis([250_000e6], "spend")
        .labels.at(-1)
        ?.replaceAll(/[,\u2009]/g, ""),
    ).toBe("$300000");
    expect(createAxis([1], "spend").labels).toEqual(["$0.000000", "$0.000001"]);
    expect(createAxis([940], "ms").labels).toEqual(["0.0 s", "0.5 s", "1.0 s"]);
    expect(createAxis([80], "ms").labels.at(-1)).toBe("80 ms");
    expect(createAxis([0.4], "share").labels).toEqual(["0%", "10%", "20%", "30%", "40%"]);
    expect(createAxis([12_400], "count").labels).toEqual(["0k", "5k", "10k", "15k"]);
    expect(createAxis([-5e6, 10e6], "balance").labels).toEqual(["−$5", "$0", "$5", "$10"]);
  });

  it("breaks if a value is more than five times the 95th percentile", () => {
    const values = [...Array.from({ length: 20 }, () => 10e6), 250_000e6];
    expect(createAxis(values, "spend").high).toBeLessThan(50e6);
    const { breaks, numbers } = shapeOfValues(values);
    expect(breaks).toEqual([20]);
    expect(numbers.map(({ text }) => text)).toEqual([AXIS_LABEL_FORMATS.spend(250_000e6)]);
    expect(shapeOfValues(values.slice(0, 20)).breaks).toEqual([]);
  });
});

describe("the shape of a chart", () => {
  it("reserves space for the widest label", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 250_000_000_000 }), { minLength: 1, maxLength: 30 }),
        (values) => {
          const { left, ticks, marks } = shapeOfValues(values);
          for (const { text } of ticks) expect(widthOf(text)).toBeLessThan(left);
          for (const { top, height } of marks) {
            expect(height).toBeGreaterThanOrEqual(1);
            expect(top).toBeGreaterThanOrEqual(32);
          }
        },
      ),
    );
  });

  it("shows a single value as one labeled bar", () => {
    expect(shapeOfValues([null, 12e6, null])).toMatchObject({
      marks: [{ index: 1, series: 0 }],
      numbers: [{ index: 1, text: "$12.00" }],
    });
  });

  it("separates the parts of a bar by one pixel", () => {
    const { marks } = layOutChart(
      { days: days.slice(0, 2), series: [part(0), part(1)], kind: "bars", unit: "spend" },
      600,
      widthOf,
    );
    const [lower, , upper] = marks;
    expect((lower?.top ?? 0) - (upper?.top ?? 0) - (upper?.height ?? 0)).toBeCloseTo(1);
  });
});

const luminance = (color: string): number => {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const share = Number.parseInt(color.slice(at, at + 2), 16) / 255;
    return share <= 0.039_28 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};

describe("each color of a chart's series", () => {
  const tokens = readFileSync("src/console/browser/tokens.css", "utf8");
  const pair = (name: string): readonly string[] =>
    new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(tokens)?.slice(1) ?? [];
  it.each([0, 1, 2, 3, 4, 5, "other"])("contrasts at least 3:1 with the background: %s", (slot) => {
    for (const scheme of [0, 1]) {
      const [color = "", surface = ""] = [pair(`series-${slot}`)[scheme], pair("surface")[scheme]];
      const [dark = 0, light = 0] = [luminance(color), luminance(surface)].toSorted(
        (a, b) => a - b,
      );
      expect((light + 0.05) / (dark + 0.05)).toBeGreaterThanOrEqual(3);
    }
  });
});
