import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { surviveCollections } from "../fixtures/garbage-collection.ts";
import { Timers } from "../../src/shared/timers.ts";
import { RunTimer } from "../../src/models/requests/run-timer.ts";

const LIMITS = { deadlineMs: 1000, drainMs: 200 };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("a request's timer ends at the deadline if the client stays connected", () => {
  const timer = new RunTimer(new AbortController().signal, new Timers(), LIMITS);
  vi.advanceTimersByTime(999);
  expect([timer.signal.aborted, timer.reason]).toEqual([false, null]);
  vi.advanceTimersByTime(1);
  expect([timer.signal.aborted, timer.reason, timer.clientGone]).toEqual([true, "deadline", false]);
});

it("a request's timer starts the drain time only once, however often the disconnect is reported", () => {
  const client = new AbortController();
  const timer = new RunTimer(client.signal, new Timers(), LIMITS);
  client.abort();
  vi.advanceTimersByTime(150);
  timer.handleDisconnect();
  expect([timer.clientGone, timer.signal.aborted]).toEqual([true, false]);
  vi.advanceTimersByTime(50);
  expect([timer.signal.aborted, timer.reason]).toEqual([true, "drained"]);
});

it("a request's timer starts the drain time immediately if the client has already disconnected", () => {
  const gone = new RunTimer(AbortSignal.abort(), new Timers(), LIMITS);
  expect(gone.clientGone).toBe(true);
  const late = new AbortController();
  const timer = new RunTimer(late.signal, new Timers(), LIMITS);
  vi.advanceTimersByTime(900);
  expect(gone.reason).toBe("drained");
  late.abort();
  vi.advanceTimersByTime(100);
  expect(timer.reason).toBe("deadline");
  vi.advanceTimersByTime(1000);
  expect(timer.reason).toBe("deadline");
});

it("a request's timer notifies listeners of the disconnect, including listeners added later", () => {
  const client = new AbortController();
  const timer = new RunTimer(client.signal, new Timers(), LIMITS);
  const events: string[] = [];
  timer.whenClientGone(() => events.push("waiting"));
  expect(events).toEqual([]);
  client.abort();
  timer.whenClientGone(() => events.push("late"));
  expect(events).toEqual(["waiting", "late"]);
});

it("a request's timer leaves no platform timer behind after it is closed", () => {
  const timers = new Timers();
  const timer = new RunTimer(AbortSignal.abort(), timers, LIMITS);
  timers.close();
  vi.advanceTimersByTime(5000);
  expect([vi.getTimerCount(), timer.reason]).toEqual([0, null]);
});

it("a request's timer removes its listener from the client's signal when the request ends", () => {
  const client = new AbortController();
  const timer = new RunTimer(client.signal, new Timers(), LIMITS);
  const events: string[] = [];
  timer.whenClientGone(() => events.push("left"));
  timer.close();
  client.abort();
  expect([events, timer.clientGone]).toEqual([[], false]);
});

it("a request's timer releases the client's signal when the request ends", async () => {
  vi.useRealTimers();
  const client = new AbortController();
  expect(await surviveCollections(overRun(client.signal))).toBe(undefined);
  expect(client.signal.aborted).toBe(false); // this shows that the listener existed until now
});

function overRun(client: AbortSignal): WeakRef<RunTimer> {
  const timers = new Timers();
  const timer = new RunTimer(client, timers, LIMITS);
  timers.close();
  timer.close();
  return new WeakRef(timer);
}
