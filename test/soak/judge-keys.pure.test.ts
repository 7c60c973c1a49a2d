import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { judgeLimits, judgeRevocations, mostWithin } from "../../scripts/soak/judge-limits.ts";
import type { Trace } from "../../scripts/soak/trace.ts";
import { logOf, range, refusalOf, START, traceOf } from "./a-run.ts";

const DEAD = new Map([["key", { deletingMs: START, deletedMs: START + 100 }]]);

describe("no key admitted after its revocation", () => {
  it("is intact for what was sent before DELETE's answer, for 401 and for our own 503", () => {
    const later = START + 101;
    const traces = [
      traceOf({ sentMs: START + 99 }),
      refusalOf(401, "invalid_api_key", { sentMs: later }),
      refusalOf(503, "api_error", { sentMs: later, region: "us" }),
      traceOf({ sentMs: later, keyId: "another" }),
    ];
    expect(judgeRevocations(traces, DEAD)).toMatchObject({
      broken: [],
      figure: "1 keys revoked, 2 requests after that, 1 of them 401",
    });
  });

  it.each<[string, Trace]>([
    ["an answer", traceOf({ sentMs: START + 101, region: "us" })],
    ["a client that left an answer", traceOf({ sentMs: START + 101, fate: "left" })],
    ["a 402", refusalOf(402, "insufficient_balance", { sentMs: START + 101 })],
    ["a 429", refusalOf(429, "rate_limit_exceeded", { sentMs: START + 101 })],
  ])("is broken by %s to what was sent later", (_name, trace) => {
    expect(judgeRevocations([trace], DEAD).broken).toHaveLength(1);
  });

  it("says nothing of a key whose DELETE was never answered", () => {
    const limbo = new Map([["key", { deletingMs: START, deletedMs: null }]]);
    expect(judgeRevocations([traceOf({ sentMs: START + 101 })], limbo).broken).toEqual([]);
  });
});

describe("no limit passed in any 60 s", () => {
  const full = range(60).map((i) => i * 100);

  it("is intact with 60 in a window, and one more when the first is 60 s old", () => {
    const { broken, figure } = judgeLimits([], [logOf([...full, 60_000])], []);
    expect(broken).toEqual([]);
    expect(figure).toContain("fullest 1.000 of its limit");
  });

  it("is broken by 61 that a register has stored in 60 s", () => {
    expect(judgeLimits([], [logOf([...full, 59_999])], []).broken).toEqual([
      "key key in eu: 61 stored in 60 s, limit 60",
    ]);
  });

  it("is broken by 61 that clients have seen admitted in 60 s, whatever was stored", () => {
    const seen = range(61).map((i) => traceOf({ sentMs: START + i * 900 }));
    expect(judgeLimits(seen, [logOf([])], []).broken).toEqual([
      "key key in eu: 61 seen admitted in 60 s, limit 60",
    ]);
    const [last = traceOf(), others] = [seen.at(-1), seen.slice(0, -1)];
    const elsewhere = others.concat({ ...last, region: "us" });
    expect(judgeLimits(elsewhere, [logOf([])], []).broken).toEqual([]);
    const refused = others.concat({ ...last, isAdmitted: false });
    expect(judgeLimits(refused, [logOf([])], []).broken).toEqual([]);
  });

  it("holds nothing against requests that may have been further apart", () => {
    // sent within 60 s, but the last was answered later: it may have been admitted when the first was too old
    const seen = range(61).map((i) =>
      traceOf({ sentMs: START + i * 900, answeredMs: START + i * 900 + (i === 60 ? 6000 : 10) }),
    );
    expect(judgeLimits(seen, [logOf([])], []).broken).toEqual([]);
  });

  it("is broken by an organisation's own limit", () => {
    const grant = {
      orgId: "org",
      limit: 2,
      granted: [START, START + 1, START + 59_999],
      expired: [],
    };
    expect(judgeLimits([], [], [grant]).broken).toEqual(["org: 3 granted in 60 s, its limit is 2"]);
    const later = { ...grant, granted: [START, START + 1, START + 60_000] };
    expect(judgeLimits([], [], [later]).broken).toEqual([]);
  });

  it("is broken by a 429 while there was room", () => {
    const refusal = refusalOf(429, "rate_limit_exceeded", {
      sentMs: START + 10_000,
      isAdmitted: false,
    });
    expect(judgeLimits([refusal], [logOf(full)], []).broken).toEqual([]);
    expect(judgeLimits([refusal], [logOf(full.slice(1))], []).broken).toHaveLength(1);
    const organizations = { ...refusal, isOrganizationLimit: true };
    expect(judgeLimits([organizations], [logOf([])], []).broken).toEqual([]);
  });

  it("counts as a search of every window does", () => {
    const span = fc.record({
      fromMs: fc.integer({ min: 0, max: 200_000 }),
      tookMs: fc.integer({ min: 0, max: 70_000 }),
    });
    fc.assert(
      fc.property(fc.array(span, { maxLength: 30 }), (drawn) => {
        const spans = drawn.map(({ fromMs, tookMs }) => ({ fromMs, untilMs: fromMs + tookMs }));
        const counts = spans.map(
          (first) =>
            spans.filter(
              ({ fromMs, untilMs }) => fromMs >= first.fromMs && untilMs < first.fromMs + 60_000,
            ).length,
        );
        expect(mostWithin(spans)).toBe(Math.max(0, ...counts));
      }),
    );
  });
});
