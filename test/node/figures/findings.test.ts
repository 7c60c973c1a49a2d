import { describe, expect, it } from "vitest";
import * as tests from "../../../scripts/figures/from-tests.ts";
import { invalidKeyFinding } from "../../../scripts/figures/invalid-keys.ts";
import { leavingFinding } from "../../../scripts/figures/leaving.ts";
import { evictionFinding, minuteFinding } from "../../../scripts/figures/register-load.ts";
import { loadFindings } from "../../../scripts/figures/mixed-load.ts";
import { modelFinding } from "../../../scripts/figures/mutate.ts";
import { recoveryFinding } from "../../../scripts/figures/outage.ts";
import { raceFinding } from "../../../scripts/figures/races.ts";
import type { Finding } from "../../../scripts/figures/rows.ts";
import type { RanTest } from "../../../scripts/figures/vitest-report.ts";

function ran(measured: RanTest["measured"], more: Partial<RanTest> = {}): RanTest {
  return { file: "a.test.ts", fullName: "a", title: "a", hasPassed: true, measured, ...more };
}
const failing = ran({}, { hasPassed: false });

const flights = ran({ flights: 200, doubled: 50, reordered: 53, repeated: 0 });
const underLoad = ran({ keys: 60, asked: 900, admitted: 0, p50: 40, p99: 170, max: 170 });
const cut = ran({ keys: 5, asked: 25, admitted: 0 });
const inputs = [
  ran({ inputs: 1000, faults: 0 }),
  ran({ inputs: 500, faults: 0, answers: 500, internal: 0 }),
];
const cell = ran({}, { title: "alarm x D1 down: ten failures" });
const none = ran({}, { title: "flush to D1 x home unreachable: n/a: nothing goes there" });
const whole = ran({}, { title: "never overspend, never charge twice, in 5000 runs (I1)" });
const guard = ran(
  {},
  {
    fullName: "the model objects when a guard is taken away: a repeated hold",
    title: "a repeated hold",
  },
);
const race = { credits: 100, used: 99, served: 3, lowest: 1 };
const others = { "fixed window": 2, "token bucket": 1.99 };
const real = { most: 60, admitted: 120, asked: 700 };
const points = [ran({ points: 2000 })];
const left = [
  { billed: 100, sent: 100, isEstimated: false },
  { billed: 96, sent: 100, isEstimated: true },
];
const standing = {
  ledger: 70,
  balance: 70,
  book: 70,
  openHolds: 0,
  shortfall: 0,
  charges: 10,
  estimated: 3,
};
const loaded = (more: object, row: 4 | 15): Finding | undefined =>
  loadFindings([standing, { ...standing, ...more }], 100).find((one) => one.row === row);
const refused = { counted: 600, operations: 0, perSecond: 2000.4 };

/** What makes each row's target met, and what, changed alone, makes it missed. */
const TARGETS: readonly (readonly [
  row: number,
  good: () => Finding,
  bad: readonly (() => Finding)[],
])[] = [
  [
    1,
    () => modelFinding([whole, guard], { all: 24, survivors: [] }),
    [
      () => modelFinding([whole, guard], { all: 24, survivors: ["the limit"] }),
      () => modelFinding([whole, { ...guard, hasPassed: false }], { all: 24, survivors: [] }),
      () => modelFinding([{ ...whole, hasPassed: false }, guard], { all: 24, survivors: [] }),
      () => modelFinding([whole], { all: 24, survivors: [] }),
      () => modelFinding([whole, guard], { all: 0, survivors: [] }),
    ],
  ],
  [
    2,
    () => raceFinding([race, race]),
    [
      () => raceFinding([race, { ...race, used: 101 }]),
      () => raceFinding([race, { ...race, lowest: -1 }]),
      () => raceFinding([{ ...race, served: 0 }]),
      () => raceFinding([{ ...race, served: 16 }]), // nobody was refused: no race
    ],
  ],
  [
    3,
    () => tests.settlementFinding([flights]),
    [
      () => tests.settlementFinding([ran({ ...flights.measured, repeated: 1 })]),
      () => tests.settlementFinding([ran({ ...flights.measured, doubled: 0 })]),
      () => tests.settlementFinding([{ ...flights, hasPassed: false }]),
      () => tests.settlementFinding([]),
    ],
  ],
  [
    5,
    () => minuteFinding({ ours: 1, ...others }, real),
    [
      () => minuteFinding({ ours: 61 / 60, ...others }, real),
      () => minuteFinding({ ours: 1, ...others }, { ...real, most: 61 }),
      () => minuteFinding({ ours: 1, ...others }, { ...real, admitted: 60 }), // never again
    ],
  ],
  [
    6,
    () => evictionFinding(60, 300),
    [() => evictionFinding(61, 300), () => evictionFinding(59, 300)],
  ],
  [
    7,
    () => tests.revocationFinding([underLoad, cut]),
    [
      () => tests.revocationFinding([ran({ ...underLoad.measured, admitted: 1 }), cut]),
      () => tests.revocationFinding([underLoad, ran({ ...cut.measured, admitted: 1 })]),
      () => tests.revocationFinding([ran({ ...underLoad.measured, p99: 1001 }), cut]),
      () => tests.revocationFinding([underLoad]),
      () => tests.revocationFinding([cut]),
      () => tests.revocationFinding([underLoad, { ...cut, hasPassed: false }]),
    ],
  ],
  [
    8,
    () => leavingFinding(points, left, 2),
    [
      () => leavingFinding([{ ...ran({ points: 2000 }), hasPassed: false }], left, 2),
      () => leavingFinding([...points, failing], left, 2),
      () => leavingFinding(points, left, 3), // one was never charged
      () => leavingFinding([], left, 2),
    ],
  ],
  [
    9,
    () => invalidKeyFinding(refused),
    [
      () => invalidKeyFinding({ ...refused, operations: 1 }),
      () => invalidKeyFinding({ ...refused, counted: 0 }),
    ],
  ],
  [
    12,
    () => tests.fuzzFinding(inputs),
    [
      () => tests.fuzzFinding([...inputs, ran({ answers: 700, internal: 1 }, { file: "b" })]),
      () => tests.fuzzFinding([...inputs, ran({ inputs: 10, faults: 1 })]),
      () => tests.fuzzFinding([...inputs, failing]),
      () => tests.fuzzFinding([]),
    ],
  ],
  [
    14,
    () => tests.matrixFinding([cell, none]),
    [
      () => tests.matrixFinding([cell, { ...cell, hasPassed: false }]),
      () => tests.matrixFinding([cell, failing]),
      () => tests.matrixFinding([none]),
    ],
  ],
];

describe.each(TARGETS)("row %i", (row, good, bad) => {
  it("is met by what it should be", () => {
    expect(good()).toMatchObject({ row, isMet: true });
  });

  it("is missed by each fault alone", () => {
    expect(bad.map((one) => one().isMet)).toEqual(bad.map(() => false));
  });
});

describe("rows 4 and 15", () => {
  it("are met where ledger, balance and book agree and everything was paid", () => {
    expect([loaded({}, 4)?.isMet, loaded({}, 15)?.isMet]).toEqual([true, true]);
    expect(loaded({}, 15)?.measured).toMatch(/^0 micros; 30\.0 % of 20 charges/);
  });

  it.each([
    [{ ledger: 71 }, 4],
    [{ book: 69 }, 4],
    [{ book: null }, 4],
    [{ openHolds: 1 }, 4],
    [{ shortfall: 1 }, 15],
  ] as const)("%o misses row %i", (fault, row) => {
    expect(loaded(fault, row)?.isMet).toBe(false);
  });

  it("faults of two organisations do not even out", () => {
    const off = [
      { ...standing, ledger: 71 },
      { ...standing, ledger: 69 },
    ];
    expect(loadFindings(off, 100)[0]).toMatchObject({ isMet: false, values: { ledgerOff: 2 } });
  });
});

describe("what is shown", () => {
  it("fuzz: answers of the whole application are counted once a file", () => {
    const same = [ran({ answers: 100, internal: 0 }), ran({ answers: 300, internal: 0 })];
    const other = ran({ inputs: 5, answers: 40, internal: 0 }, { file: "b" });
    expect(tests.fuzzFinding([...same, other]).values["answers"]).toBe(340);
  });

  it("leaving: errors of estimates alone, and whether they are over or under", () => {
    const { measured, values } = leavingFinding(points, left, 2);
    expect(measured).toContain("1 by usage, off by 0.0 %, 1 by estimate, off by p50 4.0 %");
    expect(measured).toContain("(under in the median)");
    expect(values).toMatchObject({ p50: 4, p95: 4, bias: -4, reportedWorst: 0 });
  });

  it("recovery has no target", () => {
    const seen = {
      homeServes: 25,
      peerServes: 35,
      everythingSettled: 261,
      oldestHold: 10_100,
      flights: 12,
      whole: 12,
    };
    const { isMet, measured } = recoveryFinding(seen);
    expect(isMet).toBeNull();
    expect(measured).toContain(
      "serves after 25 ms, the peer after 35 ms, all is settled after 0.3 s",
    );
    expect(measured).toContain("oldest hold 10.1 s");
  });
});
