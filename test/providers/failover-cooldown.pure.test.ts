import { expect, it } from "vitest";
import {
  GOOD,
  RETRY,
  RESET,
  FAULT,
  BUSY,
  BAD_KEY,
  failure,
  routes,
  never,
} from "./failover-fixture.ts";
import type { RouteCandidate } from "./failover-fixture.ts";
import type { ProviderResult } from "../../src/models/core/provider.ts";

it("failover reports the routes in cooldown, except a route that is called despite its cooldown", async () => {
  const two = routes([BAD_KEY], [GOOD]);
  expect(await two.run()).toMatchObject({ value: { candidate: { at: 1 }, skipped: [] } });
  expect(await two.run()).toMatchObject({ value: { candidate: { at: 1 }, skipped: [{ at: 0 }] } });
  const mixed = routes([BUSY, GOOD], [BAD_KEY]);
  await mixed.run();
  expect(await mixed.run()).toMatchObject({
    value: { candidate: { at: 0 }, skipped: [{ at: 1 }] },
  });
});

it("failover reports the routes in cooldown even if the request fails", async () => {
  const two = routes([RETRY], [BAD_KEY]);
  const skipped: number[][] = [];
  const onSkipped = (all: readonly RouteCandidate[]) => void skipped.push(all.map(({ at }) => at));
  expect(await two.run({ onSkipped })).toMatchObject({ ok: false });
  expect(await two.run({ onSkipped })).toMatchObject({ ok: false });
  expect(skipped).toEqual([[], [1]]);
});

it("failover returns upstream_error without an attempt if every route is disabled", async () => {
  const { record, run } = routes([BAD_KEY]);
  await run();
  expect(await run()).toMatchObject({ failure: { kind: "upstream_error" } });
  expect(record.calls).toEqual(["a"]);
});

it("failover skips a route until its retry-after, unless it is the only route", async () => {
  const two = routes([BUSY, GOOD], [GOOD]);
  await two.run();
  two.record.nowMs += 6_999;
  await two.run();
  two.record.nowMs += 1;
  await two.run();
  expect(two.record.calls).toEqual(["a", "b", "b", "a"]);
  const one = routes([BUSY, GOOD]);
  await one.run();
  expect(await one.run()).toMatchObject({ ok: true });
  const mixed = routes([BUSY, GOOD], [BAD_KEY]);
  await mixed.run();
  expect(await mixed.run()).toMatchObject({ ok: true, value: { candidate: { at: 0 } } });
  expect(mixed.record.calls).toEqual(["a", "b", "a"]);
});

function busyFor(retryAfterMs: number): ProviderResult {
  return failure({ kind: "overloaded", reason: "429", retryAfterMs });
}

it("failover retries only the last route, once, after at most a second", async () => {
  const waits: number[] = [];
  const pauseMs = (ms: number) => {
    waits.push(ms);
    return 0;
  };
  const short = routes([busyFor(1000)], [busyFor(999), GOOD]);
  expect(await short.run({ pauseMs })).toMatchObject({
    ok: true,
    value: { candidate: { at: 1 }, attempts: 3 },
  });
  expect([short.record.calls, waits]).toEqual([["a", "b", "b"], [999]]);
  const long = routes([busyFor(1001), GOOD]);
  expect(await long.run({ pauseMs })).toMatchObject({ failure: { retryAfterSeconds: 2 } });
  const twice = routes([busyFor(800)]);
  expect(await twice.run({ pauseMs })).toMatchObject({ failure: { retryAfterSeconds: 1 } });
  expect([long.record.calls, twice.record.calls]).toEqual([["a"], ["a", "a"]]);
});

it("failover makes no further attempt if the client disconnects or the request ends during the wait", async () => {
  const disconnected = routes([RESET, GOOD]);
  let here = true;
  const pauseMs = () => {
    here = false;
    return 0;
  };
  expect(await disconnected.run({ pauseMs, mayRetry: () => here })).toMatchObject({ ok: false });
  const end = new AbortController();
  const ended = routes([RESET, GOOD]);
  const abort = () => {
    queueMicrotask(() => end.abort());
    return 60_000;
  };
  expect(await ended.run({ signal: end.signal, pauseMs: abort })).toMatchObject({ ok: false });
  expect([disconnected.record.calls, ended.record.calls]).toEqual([["a"], ["a"]]);
});

it("failover skips routes in cooldown, or calls the route with the earliest end if all are in cooldown", async () => {
  const { record, health, run } = routes([GOOD], [RESET, GOOD], [GOOD]);
  const open = (id: string, atMs: number) => {
    for (let at = 0; at < 5; at++) health.recordFailure(`${id}:${id}-model`, "free", FAULT, atMs);
  };
  open("a", record.nowMs);
  expect(await run()).toMatchObject({ ok: true, value: { candidate: { at: 2 }, attempts: 2 } });
  expect(record.calls).toEqual(["b", "c"]);
  open("c", record.nowMs);
  open("b", record.nowMs - 1000);
  record.calls.length = 0;
  expect(await run()).toMatchObject({ ok: true, value: { candidate: { at: 1 }, attempts: 1 } });
  expect(record.calls).toEqual(["b"]);
  await run(); // it succeeded, so it gets all requests again
  expect(record.calls).toEqual(["b", "b"]);
});

it("failover reports overload even if another route has a wrong API key", async () => {
  expect(await routes([BUSY], [BAD_KEY]).run()).toMatchObject({
    failure: { kind: "upstream_overloaded", retryAfterSeconds: 7 },
  });
});

it("failover throws an exception if a bug occurs during a probe, and admits the next probe", async () => {
  const bug = Promise.reject(new Error("a bug"));
  bug.catch(() => undefined);
  const { record, health, run } = routes([bug, GOOD], [GOOD]);
  for (let at = 0; at < 5; at++) health.recordFailure("a:a-model", "free", FAULT, record.nowMs);
  record.nowMs += 15_000;
  await expect(run()).rejects.toThrow("a bug");
  expect(await run()).toMatchObject({ ok: true, value: { candidate: { at: 0 } } });
  expect(health.unavailableRoutes(record.nowMs)).toEqual([]);
});

it("failover admits the next probe if the request ends during a probe", async () => {
  const { record, health, run } = routes([never, GOOD], [GOOD]);
  for (let at = 0; at < 5; at++) health.recordFailure("a:a-model", "free", FAULT, record.nowMs);
  record.nowMs += 15_000;
  const end = new AbortController();
  const result = run({ signal: end.signal });
  await run(); // while the probe is in progress
  end.abort();
  await result;
  await run();
  expect(record.calls).toEqual(["a", "b", "a"]);
  expect(health.unavailableRoutes(record.nowMs)).toEqual([]);
});

it("failover rejects a request as overloaded if the isolate lacks memory, without counting this against the route", async () => {
  const shed = failure({ kind: "shed", reason: "no_room" });
  const { record, health, run } = routes([shed], [GOOD]);
  for (let at = 0; at < 10; at++) {
    expect(await run()).toMatchObject({ ok: false, failure: { kind: "overloaded" } });
  }
  expect([record.calls.length, health.unavailableRoutes(record.nowMs)]).toEqual([10, []]);
});

/**
 * Returns the seconds in a client's error if each route is overloaded for this time. Undefined:
 * unknown.
 */
async function wait(...ms: (number | undefined)[]): Promise<number | null> {
  const busy = ms.map((retryAfterMs) => [
    failure({
      kind: "overloaded",
      reason: "503",
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    }),
  ]);
  const result = await routes(...busy).run();
  return result.ok || result.failure.kind !== "upstream_overloaded"
    ? null
    : result.failure.retryAfterSeconds;
}

it("failover returns upstream_overloaded with the shortest wait (1 to 59 seconds) if all routes are overloaded", async () => {
  expect(await wait(7000, 3001)).toBe(4);
  expect(await wait(0)).toBe(1);
  expect(await wait(3_600_000)).toBe(59);
  expect(await wait(undefined)).toBe(5);
  const skipped = routes([BUSY], [BUSY]);
  await skipped.run();
  skipped.record.nowMs += 2000;
  expect(await skipped.run()).toMatchObject({ failure: { retryAfterSeconds: 5 } });
  expect(skipped.record.calls).toEqual(["a", "b"]);
  expect(await routes([BUSY], [RETRY]).run()).toMatchObject({
    failure: { kind: "upstream_error" },
  });
});
