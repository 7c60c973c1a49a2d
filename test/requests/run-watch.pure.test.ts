import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  STOP_QUERY_TIMEOUT_MS,
  LongRuns,
  parseStoppedRequests,
  parseStopQuery,
  stopQueryToJson,
  watchRun,
} from "../../src/models/requests/run-watch.ts";
import { RunTimer } from "../../src/models/requests/run-timer.ts";
import type { FindRequestsToStop } from "../../src/models/requests/run-watch.ts";
import type { Failure } from "../../src/shared/failure.ts";
import type { Paused } from "../../src/shared/paused.ts";
import { Timers } from "../../src/shared/timers.ts";
import { effortFor } from "../effort.ts";

const PAUSED: Paused = {
  kind: "paused",
  pauseId: "pau_1",
  scope: "key",
  reason: "Costs",
  until: null,
};
const CALLER = {
  keyId: "key_1",
  keyHash: "a".repeat(64),
  memberId: "m",
  scope: "regional",
} as const;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A request of an isolate. `ms` is its own duration. */
type Request = { readonly startMs: number; readonly ms: number };

/**
 * Runs requests of one organization in one isolate. From `pauseMs` on, queries return a stop for
 * every request.
 */
class WatchFixture {
  readonly questions: number[] = [];
  readonly haltedMs = new Map<string, number>();
  readonly reasons: (Failure | null)[] = [];
  readonly #board = new LongRuns();
  readonly #pauseMs: number;
  readonly #latencyMs: (question: number) => number;

  constructor(pauseMs: number, latencyMs: (question: number) => number) {
    this.#pauseMs = pauseMs;
    this.#latencyMs = latencyMs;
  }

  start(id: string, ms: number): void {
    const timers = new Timers();
    const limits = { deadlineMs: 900_000, drainMs: 0 };
    const timer = new RunTimer(new AbortController().signal, timers, limits);
    const caller = { ...CALLER, orgId: "org", home: "eu" } as const;
    let [isKept, isOver] = [false, false];
    // A request that has ended gets no more responses, except those that it waits for.
    const isLost = (): boolean => isOver && !isKept;
    watchRun({
      id,
      caller,
      timers,
      timer,
      board: this.#board,
      ask: (runs) => this.#ask(runs, isLost),
      waitUntil: () => void (isKept = true),
    });
    setTimeout(() => {
      isOver = true;
      timers.close();
    }, ms);
    timer.signal.addEventListener("abort", () => {
      this.reasons.push(timer.halted);
      this.haltedMs.set(id, Date.now() - this.#beganMs);
      timers.close();
    });
  }

  readonly #beganMs = Date.now();
  readonly #ask = async (...[runs, isLost]: [...Parameters<FindRequestsToStop>, () => boolean]) => {
    const latencyMs = this.#latencyMs(this.questions.length);
    this.questions.push(Date.now() - this.#beganMs);
    await new Promise((resolve) => void setTimeout(resolve, latencyMs / 2));
    const isPaused = Date.now() - this.#beganMs >= this.#pauseMs; // the wallet's decision
    await new Promise((resolve) => void setTimeout(resolve, latencyMs / 2));
    if (latencyMs > STOP_QUERY_TIMEOUT_MS) throw new Error("no answer in time");
    if (isLost()) await new Promise(() => undefined);
    return isPaused ? runs.map(({ id }) => ({ id, failure: PAUSED })) : [];
  };
}

const request = fc.record({
  startMs: fc.integer({ min: 0, max: 12_000 }),
  ms: fc.integer({ min: 100, max: 60_000 }),
});

async function endInTime(limits: { latencyMaxMs: number; gapMinMs: number }): Promise<void> {
  const latency = fc.integer({ min: 0, max: limits.latencyMaxMs });
  await fc.assert(
    fc.asyncProperty(
      fc.array(request, { minLength: 1, maxLength: 8 }),
      fc.integer({ min: 0, max: 20_000 }),
      fc.array(latency, { minLength: 1, maxLength: 5 }),
      async (requests: readonly Request[], pauseMs, latencies) => {
        const fixture = new WatchFixture(pauseMs, (at) => latencies[at % latencies.length] ?? 0);
        for (const [at, { startMs, ms }] of requests.entries()) {
          setTimeout(() => fixture.start(String(at), ms), startMs);
        }
        await vi.advanceTimersByTimeAsync(75_000);
        for (const [at, { startMs, ms }] of requests.entries()) {
          const lastMs = Math.max(pauseMs, startMs) + 15_000;
          if (startMs + ms < lastMs) continue; // the request can also end normally
          expect(fixture.haltedMs.get(String(at)) ?? Infinity).toBeLessThanOrEqual(lastMs);
        }
        const gaps = fixture.questions.slice(1).map((ms, at) => ms - (fixture.questions[at] ?? 0));
        expect(Math.min(Infinity, ...gaps)).toBeGreaterThanOrEqual(limits.gapMinMs);
        expect(fixture.reasons.every((reason) => reason === PAUSED)).toBe(true);
      },
    ),
    { numRuns: effortFor(100, 2000) },
  );
}

describe("a running request", () => {
  // oxlint-disable-next-line vitest/expect-expect -- endInTime expects
  it("ends within 15 s of a pause, although the isolate queries pauses only once per 4 s", async () => {
    await endInTime({ latencyMaxMs: 1900, gapMinMs: 4000 });
  });

  // oxlint-disable-next-line vitest/expect-expect -- endInTime expects
  it("ends within 15 s of a pause, although the home region takes more than 2 s to respond", async () => {
    await endInTime({ latencyMaxMs: 3400, gapMinMs: 2000 });
  });

  it("belongs to every second query, although one query covers at most 1000 requests", () => {
    const board = new LongRuns();
    const queries: string[][] = [];
    for (let ms = 0; ms <= 8000; ms += 1000) {
      for (let at = 0; at < 1500; at++) {
        const run = { id: String(at), called: { keyHash: CALLER.keyHash } };
        const { due } = board.tick("org", run, ms);
        if (due === null) continue;
        queries.push(due.runs.map(({ id }) => id));
        board.addResult("org", due, []);
      }
    }
    const [, second = [], third = []] = queries;
    expect([second.length, third.length]).toEqual([1000, 1000]);
    expect(new Set([...second, ...third]).size).toBe(1500);
  });

  it("causes no query for pauses in its first 6 s", async () => {
    const fixture = new WatchFixture(0, () => 0);
    for (let at = 0; at < 50; at++) fixture.start(String(at), 5999);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(fixture.questions).toEqual([]);
  });

  it("continues if the isolate's query for pauses gets no response, and the isolate retries the query", async () => {
    const fixture = new WatchFixture(0, (question) => (question < 3 ? 100_000 : 0));
    fixture.start("one", 120_000);
    await vi.advanceTimersByTimeAsync(11_500);
    expect([fixture.haltedMs.size, fixture.questions.length]).toEqual([0, 3]);
    await vi.advanceTimersByTimeAsync(3000);
    expect(fixture.haltedMs.size).toBe(1);
  });
});

describe("a call to the home region about running requests", () => {
  it("contains the request's ID, key and session", () => {
    const session = {
      id: "ses_1",
      madeAt: 1,
      cut: 0,
      createdAt: 2,
      expiresAt: 3,
      endUser: "ann",
      budgetMicro: null,
      allowedModels: null,
      rpmLimit: null,
      origins: null,
    };
    const { keyHash } = CALLER;
    const runs = [
      { id: "req_1", called: { keyHash } },
      { id: "req_2", called: { keyHash, shown: { session } } },
    ];
    expect(parseStopQuery(stopQueryToJson("org", runs))).toEqual({ orgId: "org", runs });
    expect(parseStopQuery({ org_id: "org" })).toBeNull();
  });

  it("accepts a response with a known failure, and rejects an unknown failure", () => {
    const stops = [{ id: "req_1", failure: PAUSED }];
    expect(parseStoppedRequests({ stops })).toEqual(stops);
    expect(
      parseStoppedRequests({ stops: [{ id: "req_1", failure: { kind: "nonsense" } }] }),
    ).toBeNull();
  });
});
