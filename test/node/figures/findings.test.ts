import { describe, expect, it } from "vitest";
import * as rows from "../../../scripts/figures/from-tests.ts";
import type { TestedRow } from "../../../scripts/figures/from-tests.ts";
import { modelFinding } from "../../../scripts/figures/mutants.ts";
import type { RanTest } from "../../../scripts/figures/programs.ts";

function ran(measured: RanTest["measured"], more: Partial<RanTest> = {}): RanTest {
  return { file: "a.test.ts", fullName: "a", title: "a", hasPassed: true, measured, ...more };
}

const races = { races: 60, requests: 960, served: 210, overspend: 0, belowZero: 0 };
const flights = { flights: 200, doubled: 50, reordered: 53, repeated: 0 };
const load = { requests: 900, organizations: 12, ledgerOff: 0, bookOff: 0, openHolds: 0 };
const paid = { ...load, shortfall: 0, charges: 600, estimated: 180 };
const ratios = { ours: 1, "fixed window": 2, "sliding counter": 2, "token bucket": 1.99 };
const pressed = { limit: 60, most: 60, admitted: 120, asked: 700 };
const evicted = { evictedAdmitted: 60, offered: 300, evictions: 4 };
const underLoad = { keys: 60, asked: 900, admitted: 0, p50: 40, p99: 170, max: 170 };
const cut = ran({ keys: 5, asked: 25, admitted: 0 });
const points = ran({ points: 2000 });
const left = { clients: 2, charged: 2, estimated: 1, p50: 4, p95: 4, bias: -4, reportedWorst: 0 };
const forged = { forged: 600, operations: 0 };
const inputs = [
  ran({ inputs: 1000, faults: 0 }),
  ran({ inputs: 500, faults: 0, answers: 500, internal: 0 }),
];
const kills = { kills: 20, answered: 100, lost: 0, stranded: 20 };
const cell = ran({}, { title: "alarm x D1 down: ten failures" });
const none = ran({}, { title: "flush to D1 x home unreachable: n/a: nothing goes there" });

/** What makes each row's target met, and what, changed alone, makes it missed. */
const TARGETS: readonly (readonly [
  row: TestedRow,
  good: readonly RanTest[],
  bad: readonly (readonly RanTest[])[],
])[] = [
  [
    rows.RACES,
    [ran(races)],
    [
      [ran({ ...races, overspend: 1 })],
      [ran({ ...races, belowZero: 1 })],
      [ran({ ...races, served: 0 })],
      [ran({ ...races, served: 960 })], // nobody was refused: no race
    ],
  ],
  [
    rows.SETTLEMENTS,
    [ran(flights)],
    [[ran({ ...flights, repeated: 1 })], [ran({ ...flights, doubled: 0 })]],
  ],
  [
    rows.LEDGERS,
    [ran(paid)],
    [
      [ran({ ...paid, ledgerOff: 1 })],
      [ran({ ...paid, bookOff: 1 })],
      [ran({ ...paid, openHolds: 1 })],
      [ran({ ...paid, charges: 0 })],
    ],
  ],
  [rows.SHORTFALLS, [ran(paid)], [[ran({ ...paid, shortfall: 1 })]]],
  [
    rows.LIMIT,
    [ran(ratios), ran(pressed)],
    [
      [ran({ ...ratios, ours: 61 / 60 }), ran(pressed)],
      [ran(ratios), ran({ ...pressed, most: 61 })],
      [ran(ratios), ran({ ...pressed, admitted: 60 })], // never again
      [ran(pressed)],
    ],
  ],
  [
    rows.EVICTIONS,
    [ran(evicted)],
    [[ran({ ...evicted, evictedAdmitted: 61 })], [ran({ ...evicted, evictedAdmitted: 59 })]],
  ],
  [
    rows.REVOCATIONS,
    [ran(underLoad), cut],
    [
      [ran({ ...underLoad, admitted: 1 }), cut],
      [ran(underLoad), ran({ ...cut.measured, admitted: 1 })],
      [ran({ ...underLoad, p99: 1001 }), cut],
      [ran(underLoad)],
      [cut],
    ],
  ],
  [
    rows.LEAVING,
    [points, ran(left)],
    [[points, ran({ ...left, charged: 1 })], [points], [ran(left)]],
  ],
  [
    rows.FORGED,
    [ran(forged)],
    [[ran({ ...forged, operations: 1 })], [ran({ ...forged, forged: 0 })]],
  ],
  [
    rows.FUZZING,
    inputs,
    [
      [...inputs, ran({ answers: 700, internal: 1 }, { file: "b" })],
      [...inputs, ran({ inputs: 10, faults: 1 })],
    ],
  ],
  [rows.KILLS, [ran(kills)], [[ran({ ...kills, lost: 1 })], [ran({ ...kills, kills: 0 })]]],
  [rows.MATRIX, [cell, none], [[cell, { ...cell, hasPassed: false }], [none]]],
];

const CASES = TARGETS.map(([row, good, bad]) => ({ number: row.row, row, good, bad }));
describe.each(CASES)("row $number", ({ row, good, bad }) => {
  const isMet = (tests: readonly RanTest[]) => rows.testedFinding(row, tests).isMet;

  it("is met by what it should be", () => {
    expect(rows.testedFinding(row, good)).toMatchObject({ row: row.row, isMet: true });
  });

  it("is missed by each fault alone, by any test that fails and by none", () => {
    expect(bad.map(isMet)).toEqual(bad.map(() => false));
    expect(isMet([])).toBe(false);
    const failing = ran({}, { hasPassed: false });
    expect(isMet([...good, failing])).toBe(false);
    expect(rows.testedFinding(row, [...good, failing]).measured).toContain("1 of");
  });
});

it("row 1 is met by every run, every rule and every changed line, and missed by each fault alone", () => {
  const whole = ran({}, { title: "never overspend, never charge twice, in 5000 runs (I1)" });
  const title = "a repeated hold";
  const fullName = `the model objects when a guard is taken away: ${title}`;
  const guard = ran({}, { fullName, title });
  const all = { all: 24, survivors: [] };
  expect(modelFinding([whole, guard], all)).toMatchObject({ row: 1, isMet: true });
  const bad = [
    modelFinding([whole, guard], { all: 24, survivors: ["the limit"] }),
    modelFinding([whole, { ...guard, hasPassed: false }], all),
    modelFinding([{ ...whole, hasPassed: false }, guard], all),
    modelFinding([whole], all),
    modelFinding([whole, guard], { all: 0, survivors: [] }),
  ];
  expect(bad.map(({ isMet }) => isMet)).toEqual(bad.map(() => false));
});

describe("what is shown", () => {
  it("fuzz: answers of the whole application are counted once a file", () => {
    const same = [ran({ answers: 100, internal: 0 }), ran({ answers: 300, internal: 0 })];
    const other = ran({ inputs: 5, answers: 40, internal: 0 }, { file: "b" });
    const { values } = rows.testedFinding(rows.FUZZING, [...same, other]);
    expect(values["answers"]).toBe(340);
  });

  it("leaving: errors of estimates, and whether they are over or under", () => {
    const { measured } = rows.testedFinding(rows.LEAVING, [points, ran(left)]);
    expect(measured).toContain("1 by usage, off by 0.0 %, 1 by estimate, off by p50 4.0 %");
    expect(measured).toContain("(under in the median)");
  });

  it("leaving: the offsets of a test that fails are not settled", () => {
    const failing = ran({ points: 2000 }, { hasPassed: false });
    const { measured } = rows.testedFinding(rows.LEAVING, [points, failing, ran(left)]);
    expect(measured).toContain("50.00 % of 4,000 byte offsets");
  });
});
