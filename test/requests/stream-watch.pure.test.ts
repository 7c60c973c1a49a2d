import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { NumericConfigVariables } from "../../src/shared/config/config.ts";
import { Timers } from "../../src/shared/timers.ts";
import { RunTimer } from "../../src/models/requests/run-timer.ts";
import type { StreamClient } from "../../src/models/requests/stream-watch.ts";
import { StreamWatch } from "../../src/models/requests/stream-watch.ts";

const NUMBERS = {
  UPSTREAM_IDLE_MS: 400,
  UPSTREAM_THINKING_MS: 4000,
  KEEP_ALIVE_MS: 200,
  READER_STUCK_MS: 1000,
};

/** Returns a watch over a provider and a reader that only count its calls. */
function watching(numbers: Partial<typeof NUMBERS> = {}, lateMs?: number) {
  const seen = { cancelled: 0, left: 0, written: [] as string[] };
  const client = {
    pendingMs: 0,
    updatePendingMs: () => undefined,
    disconnect: () => void seen.left++,
    write: async (text: string) => void seen.written.push(text),
  };
  const run = new AbortController();
  const timers = new Timers();
  const limits = { deadlineMs: 60_000, drainMs: 100 };
  const timer = new RunTimer(new AbortController().signal, timers, limits);
  const watch = new StreamWatch({
    events: { next: () => Promise.resolve(null), cancel: () => void seen.cancelled++ },
    lateMs,
    timer,
    client: client as unknown as StreamClient,
    ping: () => ": keep-alive\n\n",
    now: () => Date.now(),
    numbers: { ...NUMBERS, ...numbers } as NumericConfigVariables,
  });
  return { watch, client, seen, timer, timers, run };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

it("a stream ends if the provider is silent for the idle time", () => {
  const { watch, seen } = watching();
  for (let i = 0; i < 10; i++) {
    vi.advanceTimersByTime(350);
    watch.recordEvent();
  }
  expect([seen.cancelled, watch.stopped]).toEqual([0, false]);
  vi.advanceTimersByTime(500);
  expect([seen.cancelled > 0, watch.stopped]).toEqual([true, true]);
  watch.close();
});

it("a stream ends if the provider sends no output within the limit for reasoning, even if it sends other events", () => {
  const { watch, seen } = watching();
  watch.recordEvent({ kind: "thinking" });
  vi.advanceTimersByTime(3900);
  watch.recordEvent();
  vi.advanceTimersByTime(3900);
  expect(seen.cancelled).toBe(0);
  vi.advanceTimersByTime(300);
  expect(seen.cancelled).toBe(1);
  watch.close();
});

it("a stream has the usual idle time once reasoning has finished", () => {
  const { watch, seen } = watching();
  watch.recordEvent({ kind: "thinking" });
  watch.recordEvent({ kind: "text", index: 0, json: '"a"' });
  vi.advanceTimersByTime(600);
  expect(seen.cancelled).toBe(1);
  watch.close();
});

it("a stream doesn't end due to the provider's silence if the client isn't reading", () => {
  const { watch, client, seen } = watching();
  client.pendingMs = 1;
  vi.advanceTimersByTime(5000);
  expect([seen.cancelled, seen.left, seen.written]).toEqual([0, 0, []]);
  client.pendingMs = 1001;
  vi.advanceTimersByTime(50);
  expect(seen.left).toBe(1);
  watch.close();
});

it("a stream sends a comment whenever the client has received nothing for a while, whatever the provider sends", () => {
  const { watch, seen } = watching();
  for (let i = 0; i < 12; i++) {
    vi.advanceTimersByTime(50);
    watch.recordEvent();
  }
  expect(seen.written).toEqual([": keep-alive\n\n", ": keep-alive\n\n", ": keep-alive\n\n"]);
  for (let i = 0; i < 12; i++) {
    vi.advanceTimersByTime(50);
    watch.recordEvent();
    watch.recordWrite();
  }
  expect(seen.written).toHaveLength(3);
  watch.close();
});

it("a stream waits one second for the terminal event after the last output", () => {
  const { watch, seen } = watching({ UPSTREAM_IDLE_MS: 60_000, KEEP_ALIVE_MS: 60_000 });
  watch.stopAfter(1000);
  vi.advanceTimersByTime(1000);
  watch.stopAfter(1000);
  expect(seen.cancelled).toBe(0);
  vi.advanceTimersByTime(1000);
  expect(seen.cancelled).toBe(1);
  watch.close();
});

/** Advances the clock as if nothing ran. The only tick that was due runs at the end. */
function standStill(): void {
  vi.setSystemTime(Date.now() + 2000);
  vi.advanceTimersByTime(50);
}

it("a stream's idle time excludes pauses of the isolate", () => {
  const { watch, seen } = watching();
  watch.recordEvent();
  vi.advanceTimersByTime(50);
  for (let i = 0; i < 8; i++) standStill();
  expect(seen.cancelled).toBe(0);
  vi.advanceTimersByTime(50);
  expect(seen.cancelled).toBe(1);
  watch.close();
});

it("a stream waits for its first event until the attempt's timeout, and for later events until the idle timeout", () => {
  const { watch, seen } = watching({}, 1700);
  vi.advanceTimersByTime(1700);
  expect(seen.cancelled).toBe(0);
  watch.recordEvent();
  vi.advanceTimersByTime(600);
  expect(seen.cancelled).toBe(1);
  watch.close();
  const silent = watching({}, 1700);
  vi.advanceTimersByTime(1800);
  expect(silent.seen.cancelled).toBe(1);
  silent.watch.close();
});

it("a stream accepts events after the last choice even if the isolate paused", () => {
  const { watch, seen } = watching({ UPSTREAM_IDLE_MS: 90_000 });
  standStill();
  watch.stopAfter(1000);
  for (let i = 0; i < 20; i++) standStill();
  expect(seen.cancelled).toBe(0);
  vi.advanceTimersByTime(50);
  expect(seen.cancelled).toBe(1);
  watch.close();
});

it("a stream ends when its request ends", () => {
  const { watch, seen, timer, timers } = watching();
  timer.handleDisconnect();
  vi.advanceTimersByTime(100);
  expect([seen.cancelled, watch.stopped]).toEqual([1, true]);
  watch.close();
  timers.close();
  expect(vi.getTimerCount()).toBe(0);
});
