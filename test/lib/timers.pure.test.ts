import { expect, it, vi } from "vitest";
import * as fc from "fast-check";
import { StopSource, Timers } from "../../src/shared/timers.ts";

it("a stop signal notifies every listener once, except removed listeners", () => {
  const stop = new StopSource();
  const calls: string[] = [];
  const gone = (): void => void calls.push("gone");
  stop.addEventListener("abort", () => calls.push("one"));
  stop.addEventListener("abort", gone);
  stop.addEventListener("abort", () => calls.push("two"));
  stop.removeEventListener("abort", gone);
  expect(stop.aborted).toBe(false);
  stop.abort();
  stop.abort();
  expect(calls).toEqual(["one", "two"]);
  expect(stop.aborted).toBe(true);
});

it("a stop signal ignores a listener that is added after the stop, as an AbortSignal does", () => {
  const stop = new StopSource();
  stop.abort();
  const calls: string[] = [];
  stop.addEventListener("abort", () => calls.push("late"));
  expect(calls).toEqual([]);
});

it("a stop signal skips a listener that an earlier listener removes or adds", () => {
  const stop = new StopSource();
  const calls: string[] = [];
  const second = (): void => void calls.push("second");
  stop.addEventListener("abort", () => {
    calls.push("first");
    stop.removeEventListener("abort", second);
    stop.addEventListener("abort", () => calls.push("new"));
  });
  stop.addEventListener("abort", second);
  stop.abort();
  expect(calls).toEqual(["first"]);
});

/** Runs synchronously, so that no timer of an earlier file interferes. */
function inFakeTime(run: () => void): void {
  vi.useFakeTimers({ now: START });
  try {
    run();
  } finally {
    vi.useRealTimers();
  }
}

const START = 5_000_000;

/** A deadline: when it is set, its delay, and when it is canceled. */
const deadline = fc.record({
  setAt: fc.integer({ min: 1, max: 3000 }),
  ms: fc.oneof(...[50, 5000, 200_000].map((max) => fc.integer({ min: 1, max }))),
  cancelAfter: fc.option(fc.integer({ min: 1, max: 4000 }), { nil: null }),
});

it("a shared timer ends each deadline on time but never early, and skips canceled deadlines", () => {
  const property = fc.property(fc.array(deadline, { maxLength: 8 }), (deadlines) => {
    inFakeTime(() => {
      const timers = new Timers();
      const ran = new Map<number, number>();
      for (const [index, { setAt, ms, cancelAfter }] of deadlines.entries()) {
        setTimeout(() => {
          const cancel = timers.after(ms, () => ran.set(index, Date.now() - START));
          if (cancelAfter !== null) setTimeout(cancel, cancelAfter);
        }, setAt);
      }
      vi.advanceTimersByTime(210_000);
      const dueAt = deadlines.map(({ setAt, ms, cancelAfter }, index) => {
        if (cancelAfter === ms) return ran.get(index); // both are due in the same millisecond
        return cancelAfter === null || cancelAfter > ms ? setAt + ms : undefined;
      });
      expect(deadlines.map((_, index) => ran.get(index))).toEqual(dueAt);
      timers.close();
      expect(vi.getTimerCount()).toBe(0);
    });
  });
  fc.assert(property, { numRuns: 100 });
});

it("a shared timer sets only one platform timer for a request shorter than a second, despite many deadlines", () => {
  inFakeTime(() => {
    // Vitest would restore a spy to the fake timer after this file.
    const fakeTimeout = globalThis.setTimeout;
    let set = 0;
    globalThis.setTimeout = Object.assign(
      (...call: Parameters<typeof fakeTimeout>) => (set++, fakeTimeout(...call)),
      fakeTimeout,
    );
    const timers = new Timers();
    for (const ms of [30_000, 6000, 2000, 900_000, 120_000, 1000]) {
      timers.after(ms, () => undefined);
    }
    globalThis.setTimeout = fakeTimeout;
    expect(set).toBe(1);
    timers.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});
