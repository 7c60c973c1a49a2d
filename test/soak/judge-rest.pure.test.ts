import { describe, expect, it } from "vitest";
import { judgeMemory as memoryOf, judgeResidue } from "../../scripts/soak/judge-limits.ts";
import type { MemorySample } from "../../scripts/soak/judge-limits.ts";
import { judgeExpiries, judgeRest } from "../../scripts/soak/judge-money.ts";
import type { Trace } from "../../scripts/soak/trace.ts";
import { estateOf, range, START, traceOf } from "./a-run.ts";

const MIB = 1024 * 1024;
const OUTBOX = { region: "eu", waiting: 0, dead: 0, parked: 0 } as const;
const UNDER_LOAD = {
  depths: [{ openHolds: 7, oldestHoldMs: 900, waiting: 3, oldestMessageMs: 800 }],
  holdMaxMs: 1000,
};

const expiredAt = (ms: number, ranIn: "eu" | "us" = "eu") => [
  { orgId: "org", limit: null, granted: [], expired: [{ grantedMs: START + ms, ranIn }] },
];

/** A life of 40 samples, one a second, of so many MiB: the EU's heap unless told otherwise. */
function life(
  of: { pid: number; fromS?: number; region?: "us"; what?: "process" },
  mib: (i: number) => number,
): MemorySample[] {
  const { pid, fromS = 0, region = "eu", what = "heap" } = of;
  return range(40).map((i) => {
    return { what, region, pid, atMs: START + (fromS + i) * 1000, bytes: mib(i) * MIB };
  });
}

const load = {
  fromMs: START - 20_000,
  untilMs: START + 80_000,
  sent: 80,
  leftOut: 20,
  refused: 50,
  drowned: 5,
};
const judgeMemory = (samples: readonly MemorySample[]) => memoryOf(samples, load);

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
  const kill = { region: "eu", fromMs: START, untilMs: START + 500 } as const;
  const killed = { restarts: [kill], traces: [] };
  const none = { restarts: [], traces: [] };
  const brokenWith = (trace: Trace, ms: number) =>
    judgeExpiries(expiredAt(ms), { restarts: [kill], traces: [trace] }, load).broken.length;

  it.each([-10_000, 0, 500])("is intact for one that was granted %i ms after the kill", (ms) => {
    const { broken, figure } = judgeExpiries(expiredAt(ms), killed, load);
    expect(broken).toEqual([]);
    expect(figure).toBe("1 expired, 1 restarts, which excuse 11 % of eu's and 0 % of us's run");
  });

  it.each([-10_001, 501])("is broken by one of %i ms after it", (ms) => {
    expect(judgeExpiries(expiredAt(ms), killed, load).broken).toHaveLength(1);
    expect(judgeExpiries(expiredAt(ms), none, load).broken).toHaveLength(1);
  });

  it("is broken by one whose request ran in the region that lived on", () => {
    expect(judgeExpiries(expiredAt(0, "us"), killed, load).broken).toHaveLength(1);
  });

  it("is not judged on a machine too slow for its load, and broken on any other", () => {
    const strangers = [...expiredAt(501), ...expiredAt(0, "us")];
    expect(judgeExpiries(strangers, killed, load).broken).toHaveLength(2);
    expect(judgeExpiries(strangers, killed, { ...load, leftOut: 21 })).toMatchObject({
      broken: [],
      notJudged: "the machine is too slow: 21 of 101 requests were left out",
    });
    expect(judgeExpiries(strangers, killed, { ...load, drowned: 6 }).broken).toEqual([]);
  });

  it("is intact for one as old as a request that its region still ran when it was killed", () => {
    const old = traceOf({ sentMs: START - 16_000, endedMs: START });
    expect([brokenWith(old, -16_000), brokenWith(old, -16_001)]).toEqual([0, 1]);
    expect(brokenWith({ ...old, endedMs: START - 1 }, -16_000)).toBe(1);
    expect(brokenWith({ ...old, region: "us" }, -16_000)).toBe(1);
  });

  it("says how much is excused, what two kills excuse counted once", () => {
    const second = { region: "eu", fromMs: START + 5000, untilMs: START + 5500 } as const;
    const last = { region: "eu", fromMs: START + 79_000, untilMs: START + 90_000 } as const;
    const { figure } = judgeExpiries([], { restarts: [last, second, kill], traces: [] }, load);
    expect(figure).toContain("excuse 27 % of eu's"); // -10 to 5.5 s, and 69 to 80 s
  });
});

describe("no growth", () => {
  const rested = { region: "us", alarms: 2, objects: 2, registers: 5, keys: 5 } as const;

  it("is broken by an alarm that spins at rest and by registers of keys that were never made", () => {
    expect(judgeResidue([rested]).broken).toEqual([]);
    expect(judgeResidue([{ ...rested, alarms: 3 }]).broken).toEqual([
      "us: 3 alarms of 2 objects at rest",
    ]);
    expect(judgeResidue([{ ...rested, registers: 6 }]).broken).toEqual([
      "us: 6 registers of 5 keys",
    ]);
  });
});

describe("memory flat", () => {
  const flat = life({ pid: 1 }, () => 40);
  const ofAll = (eu: readonly MemorySample[]): MemorySample[] => [
    ...eu,
    ...life({ pid: 9, what: "process" }, () => 300),
    ...life({ pid: 8, region: "us" }, () => 40),
    ...life({ pid: 8, region: "us", what: "process" }, () => 300),
  ];

  it("is intact while it swings, and whatever it does before it is warm", () => {
    const warming = life({ pid: 1 }, (i) => (i < 10 ? i : 10 + (i % 5)));
    const { broken, figure } = judgeMemory(ofAll(warming));
    expect(broken).toEqual([]);
    expect(figure).toContain("eu heap 12.0 MiB -> 12.0 MiB in 39.0 s, eu process 300.0 MiB");
  });

  it("is broken by a heap that grows on by over 4 MiB and a quarter", () => {
    expect(judgeMemory(ofAll(life({ pid: 1 }, (i) => 8 + i / 4))).broken).toEqual([
      "eu heap: grew from 11.6 MiB to 16.6 MiB",
    ]);
    expect(judgeMemory(ofAll(life({ pid: 1 }, (i) => 8 + i / 6))).broken).toEqual([]);
  });

  it("is broken by a process that doubles", () => {
    const doubling = life({ pid: 3, what: "process" }, (i) => 50 + i * 12);
    const others = ofAll(flat).filter(({ region, what }) => region === "us" || what === "heap");
    expect(judgeMemory([...others, ...doubling]).broken).toEqual([
      "eu process: grew from 224.0 MiB to 464.0 MiB",
    ]);
  });

  it("takes each process for itself, and judges the longest life", () => {
    const short = life({ pid: 1 }, () => 100).slice(0, 20);
    const next = life({ pid: 2, fromS: 20 }, () => 400);
    expect(judgeMemory(ofAll([...short, ...next])).broken).toEqual([]);
    const leak = life({ pid: 2, fromS: 20 }, (i) => 8 + i);
    expect(judgeMemory(ofAll([...short, ...leak])).broken).toHaveLength(1);
  });

  it("is not proven by a few samples of a process, or by none", () => {
    const unknown = ["eu process: no life long enough to judge"];
    const others = ofAll(flat).filter(({ region, what }) => region === "us" || what === "heap");
    const few = life({ pid: 3, what: "process" }, () => 100).slice(0, 4);
    expect(judgeMemory([...others, ...few]).broken).toEqual(unknown);
    expect(judgeMemory(others).broken).toEqual(unknown);
    // on a machine too slow for its load that says nothing; growth does on any
    const slow = { ...load, leftOut: 21 };
    expect(memoryOf(others, slow)).toMatchObject({ broken: [], notJudged: expect.any(String) });
    const doubling = life({ pid: 3, what: "process" }, (i) => 50 + i * 12);
    expect(memoryOf([...others, ...doubling], slow).broken).toHaveLength(1);
  });

  it("says so when a heap is not known", () => {
    const { broken, figure } = judgeMemory(ofAll([]));
    expect(broken).toEqual([]);
    expect(figure).toContain("eu heap not known, eu process 300.0 MiB");
  });
});
