import { expect, it } from "vitest";
import { Stop } from "../../src/shared/timers.ts";

it("tells everybody who listens, once, and nobody who no longer does", () => {
  const stop = new Stop();
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

it("ignores a listener after the end, which asks whether it is over, like an AbortSignal", () => {
  const stop = new Stop();
  stop.abort();
  const told: string[] = [];
  stop.addEventListener("abort", () => told.push("late"));
  expect(told).toEqual([]);
});

it("a listener that stops listening, or adds another, in the middle of it does not change who is told", () => {
  const stop = new Stop();
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
