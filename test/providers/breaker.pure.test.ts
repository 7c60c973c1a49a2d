import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  CircuitBreaker,
  BREAKER_OPEN_MS,
  BREAKER_OPEN_MS_MAX,
  PROBE_TIMEOUT_MS,
} from "../../src/models/routing/breaker.ts";
import type { BreakerPermit } from "../../src/models/routing/breaker.ts";

type Ticket = { readonly pass: BreakerPermit };
type Outcome = "served" | "fault" | "busy" | "nothing";

/** The same rules over the whole history, without counters. */
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
      if (what !== "served" && this.hasTooManyFaults(nowMs)) this.open(nowMs);
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

  hasTooManyFaults(nowMs: number): boolean {
    const tail = (count: number) => this.log.slice(-count).map(({ what }) => what);
    const endsWith = (count: number, ...outcomes: Outcome[]) =>
      this.log.length >= count && tail(count).every((what) => outcomes.includes(what));
    const since = (Math.floor(nowMs / 15_000) - 1) * 15_000;
    const recent = this.log.filter(({ atMs }) => atMs >= since);
    const faults = recent.filter(({ what }) => what !== "served").length;
    return (
      endsWith(5, "fault", "busy") ||
      endsWith(3, "busy") ||
      (faults >= 5 && faults * 2 >= recent.length)
    );
  }
}

type Step =
  | { readonly do: "request"; readonly force: boolean }
  | { readonly do: "record"; readonly which: number; readonly what: Outcome }
  | { readonly do: "wait"; readonly ms: number };
const outcome = (...outcomes: Outcome[]) =>
  fc.record({
    do: fc.constant("record" as const),
    which: fc.nat(3),
    what: fc.constantFrom(...outcomes),
  });
const request = fc.record({ do: fc.constant("request" as const), force: fc.boolean() });
const waiting = fc.record({
  do: fc.constant("wait" as const),
  ms: fc.oneof(
    fc.nat(3000),
    fc.nat(40_000),
    fc.constantFrom(BREAKER_OPEN_MS, BREAKER_OPEN_MS_MAX, PROBE_TIMEOUT_MS),
  ),
});
const steps = (...outcomes: Outcome[]): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.oneof(
      { weight: 4, arbitrary: request },
      { weight: 4, arbitrary: outcome(...outcomes) },
      { weight: 2, arbitrary: waiting },
    ),
    { maxLength: 120, size: "max" },
  );

/** Runs steps on both, and lists the differences. */
class BreakerComparison {
  readonly breaker = new CircuitBreaker();
  readonly plain = new PlainBreaker();
  readonly differences: string[] = [];
  readonly tickets: Ticket[] = [];
  nowMs = 1_700_000_000_000;

  constructor(all: readonly Step[]) {
    for (const step of all) {
      if (step.do === "wait") this.nowMs += step.ms;
      else if (step.do === "request") this.requestPermit(step.force);
      else this.recordOutcome(step.which, step.what);
      this.compare("is open until", this.breaker.openUntilMs, this.plain.openUntilMs);
    }
  }

  requestPermit(force: boolean): void {
    const { breaker, plain, nowMs } = this;
    const { openUntilMs } = plain;
    const mayProbe = openUntilMs !== null && nowMs >= openUntilMs && !plain.isAwaiting(nowMs);
    const pass: BreakerPermit | null = breaker.requestPermit(nowMs) ?? (force ? "forced" : null);
    const isProbe = pass !== null && typeof pass !== "string";
    this.compare("is a probe", isProbe, mayProbe);
    this.compare("is free", pass === "free", openUntilMs === null);
    if (pass === null) return;
    const ticket: Ticket = { pass };
    this.tickets.push(ticket);
    if (isProbe) plain.probe = { ticket, sinceMs: nowMs };
  }

  recordOutcome(which: number, what: Outcome): void {
    const { breaker, nowMs } = this;
    const [ticket] = this.tickets.splice(which % Math.max(1, this.tickets.length), 1);
    if (ticket === undefined) return;
    if (what === "served") breaker.recordSuccess(ticket.pass, nowMs);
    else if (what === "nothing") breaker.releasePermit(ticket.pass);
    else breaker.recordFault(ticket.pass, what === "busy", nowMs);
    this.plain.note(ticket, what, nowMs);
  }

  compare(what: string, found: unknown, expected: unknown): void {
    if (found !== expected) this.differences.push(`${what}: ${String(found)}`);
  }
}

describe("a route's circuit breaker", () => {
  it("follows the documented rules after any sequence of results, and admits one probe at a time", () => {
    fc.assert(
      fc.property(steps("served", "fault", "fault", "fault", "busy", "busy", "nothing"), (all) => {
        expect(new BreakerComparison(all).differences).toEqual([]);
      }),
      { numRuns: 1000 },
    );
  });

  it("closes after one success, whatever the earlier results", () => {
    fc.assert(
      fc.property(steps("served", "fault", "busy", "nothing"), (all) => {
        const { breaker, nowMs } = new BreakerComparison(all);
        const laterMs = nowMs + BREAKER_OPEN_MS_MAX + PROBE_TIMEOUT_MS;
        breaker.recordSuccess(breaker.requestPermit(laterMs) ?? "free", laterMs);
        expect(breaker.state(laterMs)).toBe("closed");
        expect(breaker.requestPermit(laterMs)).toBe("free");
      }),
    );
  });
});
