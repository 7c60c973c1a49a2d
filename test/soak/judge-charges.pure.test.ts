import { describe, expect, it } from "vitest";
import { judgeCharges } from "../../scripts/soak/judge-money.ts";
import type { Estate } from "../../scripts/soak/judge-money.ts";
import type { Trace } from "../../scripts/soak/trace.ts";
import { estateOf, idAt, leftAt, refusalOf, START, traceOf } from "./a-run.ts";

const [ID, OTHER] = [idAt(0), idAt(1)];
type Charged = [traces: Trace[], estates: Estate[]];
const NO_LOSSES = { kills: [], afterMs: 29_000 };

const LEFT = traceOf({ id: ID, fate: "left", cost: null, usage: null });

/** How often the promise is broken by a client that left for nothing, where a region was killed then. */
function brokenBy(fromMs: number, untilMs: number): number {
  const kills = [{ region: "us", fromMs: START + fromMs, untilMs: START + untilMs }] as const;
  return judgeCharges([LEFT], [estateOf([])], { kills, afterMs: 29_000 }).broken.length;
}

describe("nothing charged twice, wrongly or for nothing", () => {
  const whole = traceOf({ id: ID });
  const told = estateOf([[ID, 40]]);

  it("is intact for an answer that cost what it said, and for clients that left", () => {
    const traces = [
      whole,
      leftAt(100),
      leftAt(200),
      traceOf({ id: OTHER, fate: "left", cost: null }),
    ];
    const estate = estateOf([
      [ID, 40],
      [OTHER, 60],
      [idAt(202), 5],
    ]);
    expect(judgeCharges(traces, [estate], NO_LOSSES)).toMatchObject({
      broken: [],
      figure:
        "3 charges, 1 told to the micro, 1 of them recomputed; " +
        "1 of clients that left an answer, 1 of clients that left unanswered",
    });
  });

  it.each<[string, Charged, string]>([
    [
      "the same request twice",
      [
        [whole],
        [
          estateOf([
            [ID, 40],
            [ID, 40],
          ]),
        ],
      ],
      `request ${ID} of org was charged 2 times`,
    ],
    ["a micro more than told", [[whole], [estateOf([[ID, 41]])]], "told 40, charged 41 micros"],
    ["an answer without a charge", [[whole], [estateOf([])]], "answered whole, never charged"],
    [
      "an untold stream of nothing",
      [[traceOf({ id: ID, cost: null })], [estateOf([[ID, 0]])]],
      "charged 0 micros",
    ],
    [
      "a refusal that was charged",
      [[refusalOf(503, "api_error", { id: ID })], [told]],
      "answered 503, charged 40 micros",
    ],
    [
      "a read that was charged",
      [[traceOf({ id: ID, kind: "read", cost: null })], [told]],
      "answered 200, charged 40 micros",
    ],
    [
      "a price that is not its usage's",
      [[traceOf({ id: ID, usage: { input: 10, output: 16 } })], [told]],
      "told 40 micros, its usage costs 42",
    ],
    [
      "a client that left after the first byte and paid nothing",
      [[LEFT], [estateOf([])]],
      "left after its first byte, never charged",
    ],
    [
      "a client that left after the first byte for 0 micros",
      [[LEFT], [estateOf([[ID, 0]])]],
      "left after its first byte, charged 0 micros",
    ],
    [
      "a client that left, charged to another",
      [[LEFT], [{ ...told, orgId: "two" }]],
      "charged to two",
    ],
    ["another organisation's charge", [[whole], [{ ...told, orgId: "two" }]], "charged to two"],
    ["a charge that nobody sent", [[], [told]], "sent by nobody"],
    [
      "a charge of a request that had an answer",
      [
        [whole],
        [
          estateOf([
            [ID, 40],
            [OTHER, 1],
          ]),
        ],
      ],
      "sent by nobody",
    ],
    [
      "a charge from before its request",
      [[leftAt(100)], [estateOf([[idAt(99), 5]])]],
      "sent by nobody",
    ],
    [
      "two charges of one client that left",
      [
        [leftAt(100)],
        [
          estateOf([
            [idAt(101), 5],
            [idAt(102), 5],
          ]),
        ],
      ],
      "sent by nobody",
    ],
    [
      "a client of another organisation that left",
      [[leftAt(0, { orgId: "two" })], [estateOf([[ID, 5]])]],
      "sent by nobody",
    ],
  ])("is broken by %s", (_name, given, words) => {
    expect(judgeCharges(...given, NO_LOSSES).broken.join("\n")).toContain(words);
  });

  it.each<[string, Trace]>([
    ["before the first byte", { ...LEFT, firstByteMs: null }],
    ["an upstream that breaks off", { ...LEFT, forced: "break" }],
    ["what costs nothing", { ...LEFT, kind: "read" }],
  ])("demands nothing of a client that left %s", (_name, trace) => {
    expect(judgeCharges([trace], [estateOf([])], NO_LOSSES).broken).toEqual([]);
  });

  it("demands nothing of a client that left while a region died, or just before", () => {
    expect([brokenBy(-500, 0), brokenBy(5, 6), brokenBy(29_012, 30_000)]).toEqual([0, 0, 0]);
    expect([brokenBy(-500, -1), brokenBy(29_013, 30_000)]).toEqual([1, 1]);
  });

  it.each([
    ["sandbox/echo stream", 40],
    ["mock/flaky", 60],
    ["mock/embed", 7],
  ])("rounds the price of %s up, once", (shape, cost) => {
    const usage = { input: 10, output: 15 };
    const trace = (price: number) => traceOf({ id: ID, shape, usage, cost: price });
    expect(judgeCharges([trace(cost)], [estateOf([[ID, cost]])], NO_LOSSES).broken).toEqual([]);
    for (const price of [cost - 1, cost + 1]) {
      expect(
        judgeCharges([trace(price)], [estateOf([[ID, price]])], NO_LOSSES).broken,
      ).toHaveLength(1);
    }
  });

  it("gives each charge of clients that left the request that no other charge can have", () => {
    // Both may have the earlier charge; the later one can only be of the request that ended later.
    const traces = [leftAt(0, { endedMs: START + 60_000 }), leftAt(0)];
    const charges = estateOf([
      [idAt(4), 5],
      [idAt(50_000), 5],
    ]);
    expect(judgeCharges(traces, [charges], NO_LOSSES).broken).toEqual([]);
  });
});
