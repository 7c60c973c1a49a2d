import { describe, expect, it } from "vitest";
import { judgeUnavailable } from "../../scripts/soak/judge-answers.ts";
import type { FaultWindow, Trace } from "../../scripts/soak/trace.ts";
import { leftAt, range, refusalOf, START, traceOf } from "./a-run.ts";

const ROOM = { inFlightMax: 3, lingerMs: 4000 };
const answers = range(100).map((i) => traceOf({ orgId: "other", sentMs: START + i * 100 }));

function windowOf(what: FaultWindow["what"], more: Partial<FaultWindow> = {}): FaultWindow {
  return { what, region: "eu", fromMs: START + 20_000, untilMs: START + 21_000, ...more };
}

/** A 503 of a request that was sent so many ms after the start and lived for 10. */
function refused(code: string, ms: number, more: Partial<Trace> = {}): Trace {
  const times = { sentMs: START + ms, endedMs: START + ms + 10 };
  return refusalOf(503, "api_error", { code, retryAfter: "1", ...times, ...more });
}

function broken(windows: readonly FaultWindow[], ...traces: Trace[]): readonly string[] {
  return judgeUnavailable([...answers, ...traces], windows, ROOM).broken;
}

function forged(tookMs: number, more: Partial<Trace> = {}): Trace {
  return traceOf({ kind: "forged", status: 401, sentMs: START, endedMs: START + tookMs, ...more });
}

/** Refused after so many ms, because home did not answer. */
function slow(ms: number, more: Partial<Trace> = {}): Trace {
  const endedMs = START + 500 + ms;
  return refused("home_region_unreachable", 500, { endedMs, ...more });
}

/** Others of the organisation, in flight when one of its requests is refused after 5 s. */
function others(count: number, more: Partial<Trace> = {}): Trace[] {
  return range(count).map(() => traceOf({ sentMs: START + 4900, endedMs: START + 5005, ...more }));
}

/** Refused while a kill explains it. */
function near(count: number): Trace[] {
  return range(count).map(() => refused("overloaded", 20_500));
}

describe("a 503 is near a fault that could bring it", () => {
  it.each<[FaultWindow["what"], number]>([
    ["abort", 1000],
    ["book", 6000],
    ["link", 6000],
    ["kill", 6000],
  ])("storage, while %s is on and %i ms after it, and at no other time", (what, recoveryMs) => {
    const windows = [windowOf(what)];
    for (const ms of [19_990, 20_500, 21_000 + recoveryMs]) {
      expect(broken(windows, refused("storage_unavailable", ms)), String(ms)).toEqual([]);
    }
    for (const ms of [19_989, 21_001 + recoveryMs]) {
      expect(broken(windows, refused("storage_unavailable", ms)), String(ms)).toHaveLength(1);
    }
    expect(broken([], refused("storage_unavailable", 20_500))).toHaveLength(1);
  });

  it("home is out of reach only by the line to it and by its own end", () => {
    const lost = refused("home_region_unreachable", 20_500, { region: "us" });
    for (const what of ["link", "kill"] as const) {
      expect(broken([windowOf(what)], lost)).toEqual([]);
      expect(broken([windowOf(what, { region: "us" })], lost)).toHaveLength(1);
    }
    const met = traceOf({ status: 200, region: "us", keyId: lost.keyId, endedMs: START + 20_000 });
    for (const what of ["abort", "book"] as const) {
      expect(broken([windowOf(what)], met, lost)).toHaveLength(1);
    }
  });

  it("a key that the region has not met is asked of home's register and book, which may be away", () => {
    const lost = refused("home_region_unreachable", 20_500, { region: "us", keyId: "new" });
    const elsewhere = traceOf({ status: 200, region: "eu", keyId: "new", endedMs: START + 20_000 });
    const later = traceOf({ status: 200, region: "us", keyId: "new", endedMs: START + 20_600 });
    for (const what of ["abort", "book"] as const) {
      expect(broken([windowOf(what)], elsewhere, lost, later)).toEqual([]);
      expect(broken([windowOf(what, { region: "us" })], lost)).toHaveLength(1);
    }
    expect(broken([], lost)).toHaveLength(1);
  });

  it("on a machine that takes 500 ms to refuse a forged key, a hop may run out of its 2 s", () => {
    expect(broken([], slow(2000), forged(500))).toEqual([]);
    expect(broken([], slow(1999), forged(500))).toHaveLength(1);
    expect(broken([], slow(2000), forged(499))).toHaveLength(1);
    expect(broken([], slow(2000), forged(900, { kind: "json" }))).toHaveLength(1);
    expect(broken([], slow(2000, { sentMs: START + 501 }), forged(500))).toHaveLength(1);
    expect(broken([], slow(2000, { code: "storage_unavailable" }), forged(500))).toHaveLength(1);
  });

  it("no fault explains a code that is none of ours", () => {
    expect(broken([windowOf("kill")], refused("misconfigured", 20_500))).toHaveLength(1);
  });
});

describe("an organisation is shed only beyond its room", () => {
  const shed = refused("overloaded", 5000);

  it("is intact with as many in flight as it may have", () => {
    expect(broken([], shed, ...others(3))).toEqual([]);
  });

  it.each<[string, Trace[]]>([
    ["one fewer", others(2)],
    ["one of another organisation", [...others(2), ...others(1, { orgId: "two" })]],
    ["one in the other region", [...others(2), ...others(1, { region: "us" })]],
    ["one that had ended", [...others(2), ...others(1, { endedMs: START + 4999 })]],
    ["one that came later", [...others(2), ...others(1, { sentMs: START + 5011 })]],
    ["one that costs nothing", [...others(2), ...others(1, { kind: "read" })]],
  ])("is broken with %s", (_name, some) => {
    expect(broken([], shed, ...some)).toHaveLength(1);
  });

  it("counts those whose client left for as long as they go on", () => {
    expect(broken([], shed, ...others(2), leftAt(1000))).toEqual([]);
    expect(broken([], shed, ...others(2), leftAt(990))).toHaveLength(1);
  });
});

it("is broken when over a fifth of the paid requests got no answer that they had earned", () => {
  expect(broken([windowOf("kill")], ...near(25))).toEqual([]);
  expect(broken([windowOf("kill")], ...near(26))).toEqual([
    "only 79.4 % of 126 paid requests got a 200 or a refusal that they had earned",
  ]);
  const gone = range(90).map(() => leftAt(0));
  const forced = range(90).map(() => refusalOf(502, "upstream_error", { forced: "failure" }));
  expect(broken([], ...gone, ...forced)).toEqual([]);
  expect(judgeUnavailable([], [], ROOM).broken).toHaveLength(1);
});
