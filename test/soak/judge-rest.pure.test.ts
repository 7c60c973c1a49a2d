import { describe, expect, it } from "vitest";
import {
  judgeExpiries,
  judgeMemory,
  judgeResidue,
  judgeRest,
} from "../../scripts/soak/judge-rest.ts";
import type { MemorySample } from "../../scripts/soak/judge-rest.ts";
import { estateOf, range, START } from "./a-run.ts";

const MIB = 1024 * 1024;
const OUTBOX = { region: "eu", waiting: 0, dead: 0, parked: 0 } as const;
const UNDER_LOAD = {
  depths: [{ atMs: START, openHolds: 7, oldestHoldMs: 900, waiting: 3, oldestMessageMs: 800 }],
  holdMaxMs: 1000,
};

const expiredAt = (ms: number) => [
  { orgId: "org", limit: null, granted: [], expired: [START + ms] },
];

/** A life of 40 samples, one a second, of so many MiB. */
const life = (pid: number, fromS: number, mib: (i: number) => number): MemorySample[] =>
  range(40).map((i) => ({
    region: "eu",
    pid,
    atMs: START + (fromS + i) * 1000,
    bytes: mib(i) * MIB,
  }));

describe("no open hold, nothing in an outbox", () => {
  it("is intact at rest, and says what stood open under load", () => {
    expect(judgeRest([estateOf([])], [OUTBOX], UNDER_LOAD)).toMatchObject({
      broken: [],
      figure: "under load at most 7 holds (oldest 0.9 s), 3 messages (oldest 0.8 s)",
    });
  });

  it.each<[string, Parameters<typeof judgeRest>, string]>([
    [
      "a hold",
      [[estateOf([], { openHolds: 1, held: 9 })], [], UNDER_LOAD],
      "org: 1 holds of 9 micros open",
    ],
    ["a micro held by none", [[estateOf([], { held: 1 })], [], UNDER_LOAD], "0 holds of 1 micros"],
    ["a message", [[], [{ ...OUTBOX, waiting: 1 }], UNDER_LOAD], "1 messages wait"],
    ["a dead message", [[], [{ ...OUTBOX, dead: 1 }], UNDER_LOAD], "1 dead"],
    ["a parked message", [[], [{ ...OUTBOX, parked: 1 }], UNDER_LOAD], "1 parked"],
    [
      "a hold older than holds live",
      [[], [], { ...UNDER_LOAD, holdMaxMs: 899 }],
      "open for 900 ms",
    ],
  ])("is broken by %s", (_name, given, words) => {
    expect(judgeRest(...given).broken.join("\n")).toContain(words);
  });
});

describe("holds expire only where a region was killed", () => {
  const restarts = [{ region: "eu", fromMs: START, untilMs: START + 500 }] as const;

  it.each([-10_000, 0, 500])("is intact for one that was granted %i ms after the kill", (ms) => {
    expect(judgeExpiries(expiredAt(ms), restarts, 10_000).broken).toEqual([]);
  });

  it.each([-10_001, 501])("is broken by one of %i ms after it", (ms) => {
    expect(judgeExpiries(expiredAt(ms), restarts, 10_000).broken).toHaveLength(1);
    expect(judgeExpiries(expiredAt(ms), [], 10_000).broken).toHaveLength(1);
  });
});

describe("no growth", () => {
  const rested = { region: "us", alarms: 2, objects: 2, limiters: 5, keys: 5 } as const;

  it("is broken by an alarm that spins at rest and by limiters of keys that were never made", () => {
    expect(judgeResidue([rested]).broken).toEqual([]);
    expect(judgeResidue([{ ...rested, alarms: 3 }]).broken).toEqual([
      "us: 3 alarms of 2 objects at rest",
    ]);
    expect(judgeResidue([{ ...rested, limiters: 6 }]).broken).toEqual(["us: 6 limiters of 5 keys"]);
  });
});

describe("memory flat", () => {
  it("is intact while it swings, and whatever it does before it is warm", () => {
    const samples = life(1, 0, (i) => (i < 10 ? 40 + i * 20 : 250 + (i % 5) * 20));
    expect(judgeMemory(samples)).toMatchObject({
      broken: [],
      figure: "eu 290 MiB -> 290 MiB in 39.0 s",
    });
  });

  it("is broken by growth that goes on", () => {
    expect(judgeMemory(life(1, 0, (i) => 200 + i * 8)).broken).toEqual([
      "eu: grew from 320 MiB to 480 MiB",
    ]);
  });

  it("takes each process for itself, and judges the longest life", () => {
    const short = life(1, 0, () => 100).slice(0, 20);
    expect(judgeMemory([...short, ...life(2, 20, () => 400)]).broken).toEqual([]);
    expect(judgeMemory([...short, ...life(2, 20, (i) => 200 + i * 8)]).broken).toHaveLength(1);
  });

  it("is not proven by a few samples", () => {
    const few = life(1, 0, () => 100).slice(0, 4);
    expect(judgeMemory(few).broken).toEqual(["eu: no life long enough to judge"]);
  });
});
