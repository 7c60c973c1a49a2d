import * as fc from "fast-check";
import { expect, it } from "vitest";
import { balanceCurve, lastsUntil } from "../../src/console/browser/lib/balance-curve.ts";
import { DAY, daysBetween, utcDay } from "../../src/console/browser/lib/time.ts";

const START = Date.parse("2028-02-01T00:00:00Z"); // the period includes a leap day
const days = daysBetween(utcDay(START), utcDay(START + 59 * DAY));

it("the balance curve computes the balance at the end of each day from all changes, in any order", () => {
  const moved = fc.array(
    fc.record({ day: fc.constantFrom(...days), micros: fc.integer({ min: -1e9, max: 1e9 }) }),
  );
  fc.assert(
    fc.property(moved, fc.integer({ min: 0, max: 1e12 }), (rows, before) => {
      const now = before + rows.reduce((sum, { micros }) => sum + micros, 0);
      const curve = balanceCurve(now, rows, days);
      const ends = days.map((day) =>
        rows.reduce((sum, row) => (row.day <= day ? sum + row.micros : sum), before),
      );
      expect(curve).toEqual(ends);
    }),
  );
});

it("the runway ends on the last day that the money covers fully, and is null without spending", () => {
  expect(lastsUntil(10, 3, START)).toBe(utcDay(START + 3 * DAY));
  expect(lastsUntil(0, 3, START)).toBe(utcDay(START));
  expect(lastsUntil(10, 0, START)).toBeNull();
  expect(lastsUntil(1e15, 1, START)).toBeNull();
});
