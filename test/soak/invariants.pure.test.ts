import { describe, expect, it } from "vitest";
import * as answers from "../../scripts/soak/judge-answers.ts";
import * as limits from "../../scripts/soak/judge-limits.ts";
import * as money from "../../scripts/soak/judge-money.ts";
import { Log } from "../../scripts/soak/log.ts";
import { arrivals, faultPlan } from "../../scripts/soak/plan.ts";
import type { Trace, Verdict } from "../../scripts/soak/trace.ts";
import { estateOf, idAt, leftAt, logOf, range, refusalOf, START, traceOf } from "./a-run.ts";

const ID = idAt(0);
const MIB = 1024 * 1024;
const kill = { what: "kill", region: "eu", fromMs: START, untilMs: START + 500 } as const;
const parties: answers.Parties = {
  dry: new Set(["dry"]),
  capped: new Set(["org bob"]),
  limited: new Set(["limited"]),
  revocations: new Map([["key", { deletingMs: START, deletedMs: START + 100 }]]),
  runMaxMs: 20_000,
};
const load: answers.Load = {
  fromMs: START - 20_000,
  untilMs: START + 80_000,
  sent: 80,
  leftOut: 20,
  refused: 50,
  drowned: 5,
};
const outbox = { region: "eu", waiting: 0, dead: 0, parked: 0 } as const;
const soon = { retryAfter: "1" };

/** A life of 40 samples, one a second, of so many MiB. */
const life = (mib: (i: number) => number): limits.HeapSample[] =>
  range(40).map((i) => {
    return { region: "eu", pid: 1, atMs: START + i * 1000, bytes: mib(i) * MIB };
  });
const mishap = (event: string, ms: number): answers.Mishap => {
  return { event, region: "us", atMs: START + ms, message: "{}" };
};
const met = { "answers of 200": 5, "forged keys refused": 2, "keys revoked": 1, kills: 1 };

const losses = { kills: [], afterMs: 29_000 };
const charges = (trace: Trace, ...charged: [string, number][]): Verdict =>
  money.judgeCharges([trace], [estateOf(charged)], losses);
const answered = (trace: Trace): Verdict => answers.judgeAnswers([trace], [kill], parties);
const unavailable = (trace: Trace, more: readonly Trace[] = []): Verdict =>
  answers.judgeUnavailable(
    [trace, ...range(9).map(() => traceOf({ sentMs: START - 60_000 })), ...more],
    [kill],
  );
const gone = { code: "home_region_unreachable", region: "us", sentMs: START + 9000 } as const;
const slow = traceOf({ kind: "forged", sentMs: START + 9500, endedMs: START + 10_000 });
const refused = (code: string, more: Partial<Trace> = {}): Trace =>
  refusalOf(503, "api_error", { code, sentMs: START + 9000, endedMs: START + 9010, ...more });
const late = (more: Partial<Trace> = {}): Trace => traceOf({ sentMs: START + 101, ...more });

/** Of each invariant: what leaves it intact, and what breaks it, each alone. */
const INVARIANTS: Readonly<Record<string, readonly [intact: Verdict[], broken: Verdict[]]>> = {
  "sum of the ledger = balance = credits - charges": [
    [money.judgeLedgers([estateOf([[ID, 40]])])],
    [
      money.judgeLedgers([estateOf([[ID, 40]], { balance: 961 })]),
      money.judgeLedgers([estateOf([], { credited: 999 })]),
      money.judgeLedgers([estateOf([[ID, 1001]])]),
      money.judgeLedgers([estateOf([], { ledger: estateOf([[ID, 1]]).ledger.toReversed() })]),
    ],
  ],
  "home = book, by reconciling and by reading": [
    [money.judgeBooks([estateOf([])])],
    [
      money.judgeBooks([estateOf([], { book: 999 })]),
      money.judgeBooks([estateOf([], { book: null })]),
      money.judgeBooks([estateOf([], { differences: ["sum: expected 1, found 2"] })]),
    ],
  ],
  "no open hold, nothing in an outbox": [
    [money.judgeRest([estateOf([])], [outbox])],
    [
      money.judgeRest([estateOf([], { openHolds: 1 })], []),
      money.judgeRest([estateOf([], { held: 1 })], []),
      ...(["waiting", "dead", "parked"] as const).map((what) =>
        money.judgeRest([], [{ ...outbox, [what]: 1 }]),
      ),
    ],
  ],
  "nothing charged twice, wrongly or for nothing": [
    [
      charges(traceOf({ id: ID }), [ID, 40]),
      charges(leftAt(0), [idAt(2), 5]),
      charges(traceOf({ id: ID, fate: "left", cost: null, usage: null }), [ID, 60]),
      charges(traceOf({ id: ID, shape: "mock/flaky", cost: 60 }), [ID, 60]),
    ],
    [
      charges(traceOf({ id: ID }), [ID, 40], [ID, 40]),
      charges(traceOf({ id: ID }), [ID, 41]),
      charges(traceOf({ id: ID })),
      charges(traceOf({ id: ID, cost: null }), [ID, 0]),
      charges(traceOf({ id: ID, usage: { input: 10, output: 16 } }), [ID, 40]),
      charges(traceOf({ id: ID, kind: "read", cost: null }), [ID, 40]),
      charges(refusalOf(503, "api_error", { id: ID }), [ID, 40]),
      charges(traceOf({ id: ID, fate: "left", cost: null, usage: null })),
      charges(traceOf({ id: ID, orgId: "two" }), [ID, 40]),
      charges(leftAt(100), [idAt(99), 5]),
      charges(leftAt(100), [idAt(101), 5], [idAt(102), 5]),
    ],
  ],
  "no key admitted after its revocation": [
    [
      limits.judgeRevocations([traceOf({ sentMs: START + 99 })], parties.revocations),
      limits.judgeRevocations([late({ keyId: "another" })], parties.revocations),
      limits.judgeRevocations([late({ status: 401 }), late({ status: 503 })], parties.revocations),
    ],
    [200, 402, 429].map((status) =>
      limits.judgeRevocations([late({ status })], parties.revocations),
    ),
  ],
  "no limit passed in any 60 s": [
    [limits.judgeLimits([], [logOf([...range(60), 60_000])], [])],
    [
      limits.judgeLimits([], [logOf([...range(60), 59_999])], []),
      limits.judgeLimits(
        range(61).map((i) => traceOf({ sentMs: START + i * 900 })),
        [logOf([])],
        [],
      ),
      limits.judgeLimits([], [], [{ orgId: "org", limit: 1, granted: [1, 2] }]),
      limits.judgeLimits(
        [refusalOf(429, "rate_limit_exceeded", { isAdmitted: false })],
        [logOf([])],
        [],
      ),
    ],
  ],
  "no answer but the error table's, no 5xx but a 503 with retry-after": [
    [
      traceOf(),
      leftAt(0),
      leftAt(0, { fate: "broken", endedMs: START + 900 }),
      refusalOf(401, "invalid_api_key", { kind: "forged", keyId: null }),
      refusalOf(401, "invalid_api_key"),
      refusalOf(402, "insufficient_balance", { orgId: "dry" }),
      refusalOf(429, "rate_limit_exceeded", soon),
      refusalOf(429, "api_error", { code: "end_user_quota_exceeded", user: "bob" }),
      refusalOf(502, "upstream_error", { forced: "failure" }),
      refusalOf(502, "upstream_error", { endedMs: START + 20_000 }),
      refusalOf(503, "api_error", { code: "upstream_overloaded", forced: "overload", ...soon }),
      refusalOf(503, "api_error", { code: "storage_unavailable", ...soon }),
      refusalOf(404, "invalid_request_error", { kind: "wrong", shape: "unknown model" }),
      traceOf({ fate: "cut", forced: "break" }),
    ].map(answered),
    [
      refusalOf(500, "api_error"),
      refusalOf(502, "upstream_error", { endedMs: START + 19_999 }),
      refusalOf(503, "api_error", { code: "overloaded" }),
      refusalOf(503, "api_error", { code: "overloaded", retryAfter: "3600" }),
      refusalOf(503, "api_error", { code: "misconfigured", ...soon }),
      refusalOf(503, "api_error", { code: "upstream_overloaded", ...soon }),
      refusalOf(503, "api_error", { keyId: null, code: "overloaded", ...soon }),
      refusalOf(401, "invalid_api_key", { keyId: "live" }),
      refusalOf(402, "insufficient_balance"),
      refusalOf(429, "rate_limit_exceeded"),
      refusalOf(429, "rate_limit_exceeded", { isOrganizationLimit: true, ...soon }),
      refusalOf(429, "api_error", { code: "end_user_quota_exceeded", user: "ann" }),
      refusalOf(404, "invalid_request_error"),
      traceOf({ kind: "forged", keyId: null }),
      traceOf({ fate: "cut" }),
      traceOf({ fate: "mute" }),
      traceOf({ fate: "stuck" }),
      leftAt(10_000, { fate: "broken" }),
      leftAt(0, { fate: "broken", region: "us" }),
    ].map(answered),
  ],
  "no exception, every settlement finds its hold and is saved": [
    [answers.judgeMishaps([mishap("settle_unknown", 30_500)], [kill])],
    [
      answers.judgeMishaps([mishap("settle_unknown", 30_501)], [kill]),
      answers.judgeMishaps([mishap("settlement_unsaved", -1)], [kill]),
      ...["exception", "settle_without_hold", "uncaught"].map((event) =>
        answers.judgeMishaps([mishap(event, 100)], [kill]),
      ),
    ],
  ],
  "a 503 only near a fault or for want of room, nearly all answered": [
    [
      unavailable(refused("storage_unavailable", { sentMs: START + 6500 })),
      unavailable(refused("home_region_unreachable", { region: "us", sentMs: START + 6500 })),
      unavailable(refused("overloaded")),
      unavailable(refused("x", { ...gone, endedMs: START + 11_000 }), [slow]),
    ],
    [
      unavailable(refused("storage_unavailable", { sentMs: START + 6501 })),
      unavailable(refused("x", { ...gone, endedMs: START + 10_999 }), [slow]),
      unavailable(refused("home_region_unreachable", { sentMs: START + 6500 })),
      unavailable(
        traceOf(),
        range(4).map(() => refused("overloaded", { sentMs: START })),
      ),
    ],
  ],
  "memory flat": [
    [
      limits.judgeMemory(life((i) => (i < 10 ? i : 10 + (i % 5)))),
      limits.judgeMemory(life((i) => 8 + i / 6)),
      limits.judgeMemory([]),
    ],
    [limits.judgeMemory(life((i) => 8 + i / 4))],
  ],
  "everything was tried": [
    [answers.judgeReach(met, load)],
    Object.keys(met).map((what) => answers.judgeReach({ ...met, [what]: 0 }, load)),
  ],
};

describe.each(Object.entries(INVARIANTS))("%s", (promise, [intact, broken]) => {
  it("is intact for what may be, and broken by each fault alone", () => {
    for (const [i, verdict] of intact.entries()) {
      expect(verdict, `intact ${i}`).toMatchObject({ promise, broken: [] });
    }
    for (const [i, verdict] of broken.entries()) {
      expect(verdict.broken.length, `broken ${i}`).toBeGreaterThan(0);
    }
  });
});

it("what hangs on time is not judged on a machine that left out a fifth, or refused forged keys late", () => {
  const bad: Verdict = { promise: "p", figure: "", broken: ["x"] };
  expect(answers.unlessTooSlow(bad, load)).toBe(bad);
  for (const more of [{ leftOut: 21 }, { drowned: 6 }]) {
    const { broken, notJudged } = answers.unlessTooSlow(bad, { ...load, ...more });
    expect([broken, notJudged]).toEqual([[], expect.stringContaining("too slow")]);
  }
  const forged = range(4).map((i) => traceOf({ kind: "forged", endedMs: START + 498 + i }));
  expect(answers.loadOf(forged, load)).toMatchObject({ sent: 4, refused: 4, drowned: 2 });
});

it("mishaps are found among what the Workers and their runtime log", () => {
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

it("a seed plans the same requests and faults; both regions meet every fault, and storms come", () => {
  const plan = { seed: 7, rate: 60, durationMs: 120_000 };
  const requests = [...arrivals(plan)];
  expect([...arrivals(plan)]).toEqual(requests);
  expect(requests.length / (60 * 120)).toBeGreaterThan(1.1);
  expect(requests.filter(({ leave }) => leave !== null).length / requests.length).toBeGreaterThan(
    0.2,
  );
  for (const durationMs of [10_000, 120_000]) {
    const faults = faultPlan(7, durationMs);
    expect(faultPlan(7, durationMs)).toEqual(faults);
    const places = new Set(faults.map(({ what, region }) => `${what} ${region}`));
    expect(places.size).toBe(12);
    expect(faults.every(({ atMs }) => atMs < durationMs)).toBe(true);
  }
});
