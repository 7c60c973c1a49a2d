import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  Breaker,
  CONSECUTIVE_OVERLOADS_MAX,
  CONSECUTIVE_FAULTS_MAX,
  BREAKER_OPEN_MS,
  BREAKER_OPEN_MS_MAX,
  PROBE_TIMEOUT_MS,
} from "../../src/models/routing/breaker.ts";
import type { BreakerPermit } from "../../src/models/routing/breaker.ts";

type Ticket = { readonly pass: BreakerPermit };
type Outcome = "served" | "fault" | "busy" | "nothing";

/** The rules again over the whole log, without a counter. */
class PlainBreaker {
  log: { atMs: number; what: Outcome }[] = [];
  openUntilMs: number | null = null;
  opened = 0;
  probe: { readonly ticket: Ticket; readonly sinceMs: number } | null = null;

  isAwaiting(nowMs: number): boolean {
    return this.probe !== null && nowMs < this.probe.sinceMs + 600_000;
  }

  note(ticket: Ticket, what: Outcome, nowMs: number): void {
    const isProbe = this.probe?.ticket === ticket;
    if (isProbe) this.probe = null;
    if (what === "nothing") return;
    if (this.openUntilMs === null) {
      this.log.push({ atMs: nowMs, what });
      if (what !== "served" && this.isTooMuch(nowMs)) this.open(nowMs);
    } else if (what === "served" && (isProbe || ticket.pass === "forced")) {
      this.openUntilMs = null;
      this.opened = 0;
      this.log = [];
      this.probe = null;
    } else if (what !== "served" && isProbe) this.open(nowMs);
  }

  open(nowMs: number): void {
    this.openUntilMs = nowMs + Math.min(15_000 * 2 ** this.opened, 300_000);
    this.opened++;
  }

  isTooMuch(nowMs: number): boolean {
    const tail = (count: number) => this.log.slice(-count).map(({ what }) => what);
    const inARow = (count: number, ...whats: Outcome[]) =>
      this.log.length >= count && tail(count).every((what) => whats.includes(what));
    const since = (Math.floor(nowMs / 15_000) - 1) * 15_000;
    const recent = this.log.filter(({ atMs }) => atMs >= since);
    const faults = recent.filter(({ what }) => what !== "served").length;
    return (
      inARow(5, "fault", "busy") ||
      inARow(3, "busy") ||
      (faults >= 5 && faults * 2 >= recent.length)
    );
  }
}

type Step =
  | { readonly do: "ask"; readonly force: boolean }
  | { readonly do: "hear"; readonly which: number; readonly what: Outcome }
  | { readonly do: "wait"; readonly ms: number };
const outcome = (...whats: Outcome[]) =>
  fc.record({
    do: fc.constant("hear" as const),
    which: fc.nat(3),
    what: fc.constantFrom(...whats),
  });
const asking = fc.record({ do: fc.constant("ask" as const), force: fc.boolean() });
const waiting = fc.record({
  do: fc.constant("wait" as const),
  ms: fc.oneof(
    fc.nat(3000),
    fc.nat(40_000),
    fc.constantFrom(BREAKER_OPEN_MS, BREAKER_OPEN_MS_MAX, PROBE_TIMEOUT_MS),
  ),
});
const steps = (...heard: Outcome[]): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.oneof(
      { weight: 4, arbitrary: asking },
      { weight: 4, arbitrary: outcome(...heard) },
      { weight: 2, arbitrary: waiting },
    ),
    { maxLength: 120 },
  );

/** Plays steps on both, and lists where they disagree. */
class Play {
  readonly breaker = new Breaker();
  readonly plain = new PlainBreaker();
  readonly differences: string[] = [];
  readonly underWay: Ticket[] = [];
  nowMs = 1_700_000_000_000;

  constructor(all: readonly Step[]) {
    for (const step of all) {
      if (step.do === "wait") this.nowMs += step.ms;
      else if (step.do === "ask") this.ask(step.force);
      else this.hear(step.which, step.what);
      this.same("is open until", this.breaker.openUntilMs, this.plain.openUntilMs);
    }
  }

  ask(force: boolean): void {
    const { breaker, plain, nowMs } = this;
    const { openUntilMs } = plain;
    const mayProbe = openUntilMs !== null && nowMs >= openUntilMs && !plain.isAwaiting(nowMs);
    const pass: BreakerPermit | null = breaker.pass(nowMs) ?? (force ? "forced" : null);
    const isProbe = pass !== null && typeof pass !== "string";
    this.same("is a probe", isProbe, mayProbe);
    this.same("is free", pass === "free", openUntilMs === null);
    if (pass === null) return;
    const ticket: Ticket = { pass };
    this.underWay.push(ticket);
    if (isProbe) plain.probe = { ticket, sinceMs: nowMs };
  }

  hear(which: number, what: Outcome): void {
    const { breaker, nowMs } = this;
    const [ticket] = this.underWay.splice(which % Math.max(1, this.underWay.length), 1);
    if (ticket === undefined) return;
    if (what === "served") breaker.served(ticket.pass, nowMs);
    else if (what === "nothing") breaker.released(ticket.pass);
    else breaker.failed(ticket.pass, what === "busy", nowMs);
    this.plain.note(ticket, what, nowMs);
  }

  same(what: string, found: unknown, expected: unknown): void {
    if (found !== expected) this.differences.push(`${what}: ${String(found)}`);
  }
}

/** The state after five faults, each after so many answers, so far apart. */
function mixed(gapMs: number, answers: number): string {
  const breaker = new Breaker();
  for (let at = 0; at < 5; at++) {
    for (let ok = 0; ok < answers; ok++) breaker.served("free", at * gapMs);
    breaker.failed("free", false, at * gapMs);
  }
  return breaker.state(5 * gapMs);
}

describe("a route's circuit breaker", () => {
  it("follows its rules over any history, and never admits two probes", () => {
    fc.assert(
      fc.property(steps("served", "fault", "fault", "fault", "busy", "busy", "nothing"), (all) => {
        expect(new Play(all).differences).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });

  it("stays closed after successes and failures that the route didn't cause", () => {
    fc.assert(
      fc.property(steps("served", "nothing"), (all) => {
        const { breaker, nowMs } = new Play(all);
        expect(breaker.state(nowMs)).toBe("closed");
      }),
    );
  });

  it("closes after one success, whatever came before", () => {
    fc.assert(
      fc.property(steps("served", "fault", "busy", "nothing"), (all) => {
        const { breaker, nowMs } = new Play(all);
        const laterMs = nowMs + BREAKER_OPEN_MS_MAX + PROBE_TIMEOUT_MS;
        breaker.served(breaker.pass(laterMs) ?? "free", laterMs);
        expect(breaker.state(laterMs)).toBe("closed");
        expect(breaker.pass(laterMs)).toBe("free");
      }),
    );
  });

  it("opens at the fifth failure in a row, or at the third overload without a wait time in a row", () => {
    for (const [busy, times] of [
      [false, CONSECUTIVE_FAULTS_MAX],
      [true, CONSECUTIVE_OVERLOADS_MAX],
    ] as const) {
      const breaker = new Breaker();
      for (let at = 1; at < times; at++) breaker.failed("free", busy, 0);
      expect(breaker.state(0)).toBe("closed");
      breaker.failed("free", busy, 0);
      expect(breaker.state(0)).toBe("open");
    }
  });

  it("opens at five failures among at most ten recent requests, but not if they are long ago", () => {
    expect(mixed(1000, 1)).toBe("open");
    expect(mixed(1000, 2)).toBe("closed");
    expect(mixed(15_000, 1)).toBe("closed");
  });

  it("forgets earlier failures after a longer pause", () => {
    const breaker = new Breaker();
    for (const atMs of [0, 1, 2, 3, 15_000, 60_000]) {
      breaker.served("free", atMs);
      if (atMs !== 15_000) breaker.failed("free", false, atMs);
    }
    expect(breaker.state(60_000)).toBe("closed");
  });

  it("stays open after the success of an earlier request, but closes after the success of a forced one", () => {
    const breaker = new Breaker();
    const opens = (nowMs: number) => {
      for (let at = 0; at < 5; at++) breaker.failed("free", false, nowMs);
    };
    opens(0);
    breaker.served("free", 1);
    expect(breaker.state(1)).toBe("open");
    breaker.failed(breaker.pass(BREAKER_OPEN_MS) ?? "free", false, BREAKER_OPEN_MS);
    breaker.served("forced", BREAKER_OPEN_MS + 1);
    expect(breaker.state(BREAKER_OPEN_MS + 1)).toBe("closed");
    opens(BREAKER_OPEN_MS + 2); // as long as the first time
    expect(breaker.openUntilMs).toBe(BREAKER_OPEN_MS + 2 + BREAKER_OPEN_MS);
  });

  it("doubles its open time after each failed probe, up to five minutes", () => {
    const breaker = new Breaker();
    for (let at = 0; at < 5; at++) breaker.failed("free", false, 0);
    const lengths: number[] = [];
    let nowMs = 0;
    for (let at = 0; at < 7; at++) {
      const untilMs = breaker.openUntilMs ?? 0;
      lengths.push((untilMs - nowMs) / 1000);
      expect(breaker.pass(untilMs - 1)).toBeNull();
      nowMs = untilMs;
      expect(breaker.state(nowMs)).toBe("half_open");
      const probe = breaker.pass(nowMs);
      expect(breaker.pass(nowMs)).toBeNull();
      breaker.failed(probe ?? "free", false, nowMs);
    }
    expect(lengths).toEqual([15, 30, 60, 120, 240, 300, 300]);
  });

  it("admits another probe after a probe without a result, and after a while even if a probe is lost", () => {
    const breaker = new Breaker();
    for (let at = 0; at < 5; at++) breaker.failed("free", false, 0);
    const first = breaker.pass(BREAKER_OPEN_MS);
    breaker.released(first ?? "free");
    expect(breaker.pass(BREAKER_OPEN_MS)).not.toBeNull();
    expect(breaker.pass(BREAKER_OPEN_MS + PROBE_TIMEOUT_MS - 1)).toBeNull();
    const last = breaker.pass(BREAKER_OPEN_MS + PROBE_TIMEOUT_MS);
    expect(last).not.toBeNull();
    breaker.failed(first ?? "free", false, BREAKER_OPEN_MS + PROBE_TIMEOUT_MS); // of the first: too late to count
    expect(breaker.openUntilMs).toBe(BREAKER_OPEN_MS);
    breaker.failed(last ?? "free", false, BREAKER_OPEN_MS + PROBE_TIMEOUT_MS);
    expect(breaker.openUntilMs).toBe(BREAKER_OPEN_MS + PROBE_TIMEOUT_MS + 2 * BREAKER_OPEN_MS);
  });
});
