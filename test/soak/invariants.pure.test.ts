import { expect, it } from "vitest";
import { INVARIANTS, verdictsOf } from "./invariants.ts";
import { Log } from "./log.ts";
import { arrivals, faultPlan } from "./plan.ts";
import { exitCodeOf } from "./report.ts";
import type { Evidence, HeapSample, Mishap, Trace } from "./trace.ts";
import {
  estateOf,
  evidenceOf,
  idAt,
  disconnectedAt,
  logOf,
  range,
  rejectionOf,
  START,
  traceOf,
} from "./sample-trace.ts";

type Name = keyof typeof INVARIANTS;
type Run = Partial<Evidence>;

const ID = idAt(0);
const MIB = 1024 * 1024;
/** A row that is neither credit nor charge, which only the sum reveals. */
const STRAY = {
  seq: 2,
  kind: "other",
  amount_micro: 1,
  balance_micro: 1001,
  generation_id: null,
} as const;
const outbox = { region: "eu", waiting: 0, dead: 0, parked: 0 } as const;
const soon = { retryAfter: "1" };
const unreported = { id: ID, cost: null, usage: null };

/** Returns 40 memory samples of a process, one each second. `mib` returns the MiB of a sample. */
const life = (mib: (i: number) => number): Run => {
  const at = (i: number): HeapSample => {
    return { region: "eu", pid: 1, atMs: START + i * 1000, bytes: mib(i) * MIB };
  };
  return { heaps: range(40).map(at) };
};
const mishap = (event: string, ms: number): Run => {
  return { mishaps: [{ event, region: "us", atMs: START + ms, message: "{}" } satisfies Mishap] };
};
const charged = (trace: Trace, ...charges: [string, number][]): Run => {
  return { traces: [trace], estates: [estateOf(charges)] };
};
const estate = (more: Parameters<typeof estateOf>[1], ...charges: [string, number][]): Run => {
  return { estates: [estateOf(charges, more)] };
};
const one = (trace: Trace): Run => ({ traces: [trace] });
const late = (more: Partial<Trace> = {}): Run => one(traceOf({ sentMs: START + 101, ...more }));
const limited = logOf([], { key: null, whose: "limited", limit: 12 });
const answered = (trace: Trace): Run => ({ traces: [trace], stored: [limited] });
const amongNine = (...traces: Trace[]): Run => {
  return { traces: [...traces, ...range(9).map(() => traceOf({ sentMs: START - 60_000 }))] };
};
const gone = { code: "home_region_unreachable", region: "us", sentMs: START + 9000 } as const;
const slow = traceOf({ kind: "forged", sentMs: START + 9500, endedMs: START + 10_000 });
const refused = (code: string, more: Partial<Trace> = {}): Trace =>
  rejectionOf(503, "api_error", { code, sentMs: START + 9000, endedMs: START + 9010, ...more });
/** A trace of each event that a run of a minute must include. */
const met: readonly Trace[] = [
  traceOf(),
  disconnectedAt(0),
  rejectionOf(402, "insufficient_balance"),
  rejectionOf(429, "rate_limit_exceeded"),
  rejectionOf(429, "api_error", { code: "end_user_quota_exceeded" }),
  rejectionOf(401, "invalid_api_key", { kind: "forged" }),
  rejectionOf(502, "upstream_error"),
];
const forgedIn = (ms: number): Trace =>
  traceOf({ kind: "forged", status: 401, endedMs: START + ms });
const { done } = evidenceOf();

/** Runs that keep and runs that break each invariant. */
const RUNS: Readonly<Record<Name, readonly [intact: readonly Run[], broken: readonly Run[]]>> = {
  ledgers: [
    [estate({}, [ID, 40])],
    [
      estate({ balance: 961 }, [ID, 40]),
      estate({ credited: 999 }),
      estate({}, [ID, 1001]),
      estate({ ledger: estateOf([[ID, 1]]).ledger.toReversed() }),
      estate({ ledger: [...estateOf([]).ledger, STRAY] }),
    ],
  ],
  books: [
    [estate({})],
    [
      estate({ book: 999 }),
      estate({ book: null }),
      estate({ differences: ["sum: expected 1, found 2"] }),
    ],
  ],
  rest: [
    [{ ...estate({}), outboxes: [outbox] }],
    [
      estate({ openHolds: 1 }),
      estate({ held: 1 }),
      ...["waiting", "dead", "parked"].map((what) => ({ outboxes: [{ ...outbox, [what]: 1 }] })),
    ],
  ],
  charges: [
    [
      charged(traceOf({ id: ID }), [ID, 40]),
      charged(disconnectedAt(0), [idAt(2), 5]),
      charged(traceOf({ fate: "left", ...unreported }), [ID, 60]),
      charged(traceOf({ id: ID, shape: "mock/flaky", cost: 60 }), [ID, 60]),
      charged(traceOf({ fate: "left", ...unreported })), // the region was killed meanwhile
    ],
    [
      charged(traceOf({ id: ID }), [ID, 40], [ID, 40]),
      charged(traceOf({ id: ID }), [ID, 41]),
      charged(traceOf({ id: ID })),
      charged(traceOf({ id: ID, cost: null }), [ID, 0]),
      charged(traceOf({ id: ID, usage: { input: 10, output: 16 } }), [ID, 40]),
      charged(traceOf({ id: ID, kind: "read", cost: null }), [ID, 40]),
      charged(rejectionOf(503, "api_error", { id: ID }), [ID, 40]),
      { ...charged(traceOf({ fate: "left", ...unreported })), windows: [] },
      charged(traceOf({ id: ID, orgId: "two" }), [ID, 40]),
      charged(disconnectedAt(100), [idAt(99), 5]),
      charged(disconnectedAt(100), [idAt(101), 5], [idAt(102), 5]),
    ],
  ],
  revocations: [
    [
      one(traceOf({ sentMs: START + 99 })),
      late({ keyId: "another" }),
      late({ status: 401 }),
      late({ status: 503 }),
    ],
    [200, 402, 429].map((status) => late({ status })),
  ],
  limits: [
    [{ stored: [logOf([...range(60), 60_000])] }],
    [
      { stored: [logOf([...range(60), 59_999])] },
      { traces: range(61).map((i) => traceOf({ sentMs: START + i * 900 })), stored: [logOf([])] },
      { stored: [logOf([1, 2], { key: null, limit: 1 })] },
      {
        ...one(rejectionOf(429, "rate_limit_exceeded", { isAdmitted: false })),
        stored: [logOf([])],
      },
    ],
  ],
  answers: [
    [
      traceOf(),
      disconnectedAt(0),
      disconnectedAt(0, { fate: "broken", endedMs: START + 900 }),
      rejectionOf(401, "invalid_api_key", { kind: "forged", keyId: null }),
      rejectionOf(401, "invalid_api_key"),
      rejectionOf(402, "insufficient_balance", { orgId: "dry" }),
      rejectionOf(429, "rate_limit_exceeded", soon),
      rejectionOf(429, "rate_limit_exceeded", {
        orgId: "limited",
        isOrganizationLimit: true,
        ...soon,
      }),
      rejectionOf(429, "api_error", { code: "end_user_quota_exceeded", user: "bob" }),
      rejectionOf(502, "upstream_error", { forced: "failure" }),
      rejectionOf(502, "upstream_error", { endedMs: START + 20_000 }),
      rejectionOf(503, "api_error", { code: "upstream_overloaded", forced: "overload", ...soon }),
      rejectionOf(503, "api_error", { code: "storage_unavailable", ...soon }),
      rejectionOf(404, "invalid_request_error", { kind: "wrong", shape: "unknown model" }),
      traceOf({ fate: "cut", forced: "break" }),
    ].map(answered),
    [
      rejectionOf(500, "api_error"),
      rejectionOf(502, "upstream_error", { endedMs: START + 19_999 }),
      rejectionOf(503, "api_error", { code: "overloaded" }),
      rejectionOf(503, "api_error", { code: "overloaded", retryAfter: "3600" }),
      rejectionOf(503, "api_error", { code: "misconfigured", ...soon }),
      rejectionOf(503, "api_error", { code: "upstream_overloaded", ...soon }),
      rejectionOf(503, "api_error", { keyId: null, code: "overloaded", ...soon }),
      rejectionOf(401, "invalid_api_key", { keyId: "live" }),
      rejectionOf(402, "insufficient_balance"),
      rejectionOf(429, "rate_limit_exceeded"),
      rejectionOf(429, "rate_limit_exceeded", { isOrganizationLimit: true, ...soon }),
      rejectionOf(429, "api_error", { code: "end_user_quota_exceeded", user: "ann" }),
      rejectionOf(404, "invalid_request_error"),
      traceOf({ kind: "forged", keyId: null }),
      traceOf({ fate: "cut" }),
      traceOf({ fate: "mute" }),
      traceOf({ fate: "stuck" }),
      disconnectedAt(10_000, { fate: "broken" }),
      disconnectedAt(0, { fate: "broken", region: "us" }),
    ].map(answered),
  ],
  mishaps: [
    [mishap("settle_unknown", 30_500)],
    [
      mishap("settle_unknown", 30_501),
      mishap("settlement_unsaved", -1),
      ...["exception", "settle_without_hold", "uncaught"].map((event) => mishap(event, 100)),
    ],
  ],
  unavailable: [
    [
      amongNine(refused("storage_unavailable", { sentMs: START + 6500 })),
      amongNine(refused("home_region_unreachable", { region: "us", sentMs: START + 6500 })),
      amongNine(refused("overloaded")),
      amongNine(refused("x", { ...gone, endedMs: START + 11_000 }), slow),
    ],
    [
      amongNine(refused("storage_unavailable", { sentMs: START + 6501 })),
      amongNine(refused("x", { ...gone, endedMs: START + 10_999 }), slow),
      amongNine(refused("home_region_unreachable", { sentMs: START + 6500 })),
      amongNine(traceOf(), ...range(4).map(() => refused("overloaded", { sentMs: START }))),
    ],
  ],
  memory: [
    [life((i) => (i < 10 ? i : 10 + (i % 5))), life((i) => 8 + i / 6), {}],
    [life((i) => 8 + i / 4)],
  ],
  reach: [
    [{ traces: met }],
    [
      ...met.map((_, i) => ({ traces: met.toSpliced(i, 1) })),
      { traces: met, revocations: new Map() },
      ...(["aborts", "book outages", "link cuts", "kills"] as const).map((what) => {
        return { traces: met, done: { ...done, [what]: 0 } };
      }),
    ],
  ],
};

it.each(Object.keys(RUNS) as Name[])(
  "the soak test's check of %s accepts valid runs, and finds each planted fault",
  (name) => {
    const [intact, broken] = RUNS[name];
    const judged = (run: Run) => INVARIANTS[name].judge(evidenceOf(run)).broken;
    for (const [i, run] of intact.entries()) expect(judged(run), `intact ${i}`).toEqual([]);
    for (const [i, run] of broken.entries()) expect(judged(run), `broken ${i}`).not.toEqual([]);
  },
);

it("the soak test exits with 1 for a run that breaks a rule, and otherwise with 0", () => {
  const codeOf = (run: Run): number => exitCodeOf({ verdicts: verdictsOf(evidenceOf(run)) });
  const seen = { id: ID, keyId: "another" };
  const minute = { fromMs: START, untilMs: START + 59_999, leftOut: 0 };
  const forged = rejectionOf(401, "invalid_api_key", { kind: "forged", keyId: null });
  const whole = { load: minute, ...charged(traceOf(seen), [ID, 40]) };
  const calm: Run = { ...whole, traces: [traceOf(seen), forged] };
  expect(codeOf(calm)).toBe(0);
  for (const run of [estate({ held: 1 }), mishap("exception", 0), life((i) => 8 + i / 4)]) {
    expect(codeOf({ ...calm, ...run })).toBe(1);
  }
});

/**
 * Returns the verdicts that a run couldn't reach because `drowned` of 80 forged keys were rejected
 * late.
 */
const unjudged = (drowned: number, leftOut: number) => {
  const traces = range(80).map((i) => forgedIn(i < drowned ? 500 : 499));
  const run = evidenceOf({ traces, load: { ...evidenceOf().load, leftOut } });
  return verdictsOf(run).filter(({ notJudged }) => notJudged !== undefined);
};

it("the soak test skips time checks on a machine that is too slow", () => {
  expect(unjudged(8, 20)).toEqual([]);
  for (const verdicts of [unjudged(9, 0), unjudged(0, 21)]) {
    expect(verdicts.map(({ promise }) => promise)).toEqual([
      INVARIANTS.unavailable.promise,
      INVARIANTS.reach.promise,
    ]);
    for (const { broken, notJudged } of verdicts) {
      expect([broken, notJudged]).toEqual([[], expect.stringContaining("too slow")]);
    }
  }
});

it("the soak test finds errors in the logs of Workers and of the runtime", () => {
  const log = new Log();
  const lines = [
    '{"event":"request","status":200}',
    '{"event":"exception","name":"TypeError"}',
    "Uncaught (in promise) TypeError: x is not a function",
    '{"event":"alert","alert":"x","why":"uncaught"}',
    "NOSENTRY uncaught exception of the cache",
  ];
  for (const message of lines) log.take("eu", { level: "error", message });
  expect(log.mishaps.map(({ message }) => message)).toEqual(lines.slice(1, 3));
});

it("the soak test derives the same requests and faults from the same seed, with every fault in both regions", () => {
  const plan = { seed: 7, rate: 60, durationMs: 120_000 };
  const requests = [...arrivals(plan)];
  const leaving = requests.filter(({ leave }) => leave !== null);
  expect(JSON.stringify([...arrivals(plan)])).toEqual(JSON.stringify(requests));
  expect(requests.length / (60 * 120)).toBeGreaterThan(1.1);
  expect(leaving.length / requests.length).toBeGreaterThan(0.2);
  for (const durationMs of [10_000, 120_000]) {
    const faults = faultPlan(7, durationMs);
    expect(faultPlan(7, durationMs)).toEqual(faults);
    const places = new Set(faults.map(({ what, region }) => `${what} ${region}`));
    expect(places.size).toBe(12);
    expect(faults.every(({ atMs }) => atMs < durationMs)).toBe(true);
  }
});
