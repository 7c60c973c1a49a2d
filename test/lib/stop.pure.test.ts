import { expect, it } from "vitest";
import { StopSource } from "../../src/shared/timers.ts";

it("a stop signal notifies every listener once, and no removed one", () => {
  const stop = new StopSource();
  const told: string[] = [];
  const gone = (): void => void told.push("gone");
  stop.addEventListener("abort", () => told.push("one"));
  stop.addEventListener("abort", gone);
  stop.addEventListener("abort", () => told.push("two"));
  stop.removeEventListener("abort", gone);
  expect(stop.aborted).toBe(false);
  stop.abort();
  stop.abort();
  expect(told).toEqual(["one", "two"]);
  expect(stop.aborted).toBe(true);
});

it("a stop signal ignores a listener that is added after the stop, like an AbortSignal", () => {
  const stop = new StopSource();
  stop.abort();
  const told: string[] = [];
  stop.addEventListener("abort", () => told.push("late"));
  expect(told).toEqual([]);
});

it("a stop signal notifies the same listeners if one is removed or added meanwhile", () => {
  const stop = new StopSource();
  const told: string[] = [];
  const second = (): void => void told.push("second");
  stop.addEventListener("abort", () => {
    told.push("first");
    stop.removeEventListener("abort", second);
    stop.addEventListener("abort", () => told.push("new"));
  });
  stop.addEventListener("abort", second);
  stop.abort();
  expect(told).toEqual(["first"]);
});
