import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { refuse, success } from "../../src/shared/failure.ts";
import type { Result } from "../../src/shared/failure.ts";
import { callObjectWithRetries } from "../../src/shared/reach-object.ts";

const BUDGET_MS = 2000;
const LOST = new Error("Network connection lost.");
const OVERLOADED = Object.assign(new Error("too many requests"), { overloaded: true });
const never = (): Promise<Result<string>> => new Promise(() => undefined);
const UNAVAILABLE = { unanswered: true, failure: { kind: "storage_unavailable" } };

function wait(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
function throwing(): Promise<Result<string>> {
  throw LOST;
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("scheduler", { wait });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

/**
 * Runs calls with these results in order. The last one applies to all later calls. Returns the
 * times of the calls and the result.
 */
function reached(...ends: readonly (Error | string | typeof never)[]) {
  const startMs = Date.now();
  const calls: number[] = [];
  const call = (): Promise<Result<string>> => {
    const end = ends[Math.min(calls.length, ends.length - 1)] ?? never;
    calls.push(Date.now() - startMs);
    if (typeof end === "function") return end();
    if (end instanceof Error) return Promise.reject(end);
    return Promise.resolve(success(end));
  };
  const seen: { result?: unknown; atMs?: number } = {};
  void callObjectWithRetries(call).then((result) =>
    Object.assign(seen, { result, atMs: Date.now() - startMs }),
  );
  return { calls, seen };
}

it("callObjectWithRetries retries a lost call up to three times, and returns the first response", async () => {
  const lucky = reached(LOST, LOST, "third");
  const lost = reached(LOST);
  await vi.runAllTimersAsync();
  expect(lucky.calls).toEqual([0, 50, 250]);
  expect(lucky.seen.result).toEqual({ unanswered: false, result: success("third") });
  expect(lost.calls).toEqual([0, 50, 250, 1050]);
  expect(lost.seen.result).toEqual(UNAVAILABLE);
});

it.each([
  ["the first call hangs", [never], 1],
  ["a later call hangs", [LOST, never], 2],
] as const)(
  "callObjectWithRetries ends when its time limit is reached: %s",
  async (_, ends, calls) => {
    const one = reached(...ends);
    await vi.advanceTimersByTimeAsync(BUDGET_MS - 1);
    expect(one.seen).toEqual({});
    await vi.advanceTimersByTimeAsync(1);
    expect(one.seen).toEqual({ result: UNAVAILABLE, atMs: BUDGET_MS });
    expect(one.calls).toHaveLength(calls);
  },
);

it("callObjectWithRetries stops waiting when its time limit is reached, without another call", async () => {
  const late = (): Promise<Result<string>> =>
    new Promise((_, reject) => setTimeout(() => reject(LOST), BUDGET_MS - 100));
  const one = reached(LOST, late);
  await vi.advanceTimersByTimeAsync(BUDGET_MS);
  expect(one.seen).toEqual({ result: UNAVAILABLE, atMs: BUDGET_MS });
  await vi.runAllTimersAsync();
  expect(one.calls).toHaveLength(2);
});

it("callObjectWithRetries doesn't retry an overloaded object, and reports an unknown outcome only after a lost call", async () => {
  const at = reached(OVERLOADED);
  const after = reached(LOST, OVERLOADED);
  await vi.runAllTimersAsync();
  expect([at.calls.length, after.calls.length]).toEqual([1, 2]);
  const definite = { unanswered: false, result: { ok: false, failure: { kind: "overloaded" } } };
  expect(at.seen.result).toEqual(definite);
  expect(after.seen.result).toEqual(UNAVAILABLE);
});

it.each(["storage_unavailable", "overloaded"] as const)(
  "callObjectWithRetries reports %s as a known outcome, but as unknown after a lost call",
  async (kind) => {
    const cannotSay = (): Promise<Result<string>> => Promise.resolve(refuse({ kind }));
    const at = reached(cannotSay);
    const after = reached(LOST, cannotSay);
    await vi.runAllTimersAsync();
    expect([at.calls.length, after.calls.length]).toEqual([1, 2]);
    expect(at.seen.result).toEqual({ unanswered: false, result: refuse({ kind }) });
    expect(after.seen.result).toEqual({ unanswered: true, failure: { kind } });
  },
);

it("callObjectWithRetries returns any other rejection, but reports an unknown outcome after a lost call", async () => {
  const refusal = refuse({ kind: "organization_suspended" });
  const refused = (): Promise<Result<string>> => Promise.resolve(refusal);
  const at = reached(refused);
  const after = reached(LOST, refused);
  await vi.runAllTimersAsync();
  expect(at.seen.result).toEqual({ unanswered: false, result: refusal });
  expect(after.seen.result).toEqual({ unanswered: true, failure: refusal.failure });
});

it("callObjectWithRetries treats a call that throws immediately as lost", async () => {
  const one = reached(throwing);
  await vi.runAllTimersAsync();
  expect(one.calls).toHaveLength(4);
  expect(one.seen.result).toEqual(UNAVAILABLE);
});
