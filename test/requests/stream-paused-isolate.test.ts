import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { NumericConfigVariables } from "../../src/shared/config/config.ts";
import { Timers } from "../../src/shared/timers.ts";
import { RunTimer } from "../../src/models/requests/run-timer.ts";
import { StreamClient, StreamWatch } from "../../src/models/requests/stream-watch.ts";

const NUMBERS = { UPSTREAM_IDLE_MS: 60_000, KEEP_ALIVE_MS: 15_000, READER_STUCK_MS: 30_000 };
const TICK_MS = 1000;
const COMMENT = ": keep-alive\n\n";
/** An overloaded machine, or a process that was stopped for a while. */
const STOOD_STILL_MS = 120_000;

/** Returns a watch over a stream to a real reader, with its effects on both sides. */
function watching() {
  const seen = { cancelled: 0, left: 0 };
  const client = new StreamClient({ left: () => void seen.left++ });
  const limits = { deadlineMs: 1e9, drainMs: 20_000 };
  const watch = new StreamWatch({
    events: { next: () => Promise.resolve(null), cancel: () => void seen.cancelled++ },
    timer: new RunTimer(new AbortController().signal, new Timers(), limits),
    client,
    ping: () => COMMENT,
    now: () => Date.now(),
    numbers: NUMBERS as NumericConfigVariables,
  });
  return { client, watch, seen };
}

/** Advances the clock. The only tick that was due runs at the end. */
function standStill(): void {
  vi.setSystemTime(Date.now() + STOOD_STILL_MS - TICK_MS);
  vi.advanceTimersByTime(TICK_MS);
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
});
afterEach(() => {
  vi.useRealTimers();
});

it.each([2, 10, 29])(
  "a stream's client stays connected after %s pauses of the isolate",
  async (times) => {
    const { client, watch, seen } = watching();
    const written = client.write("data: 1\n\n");
    for (let i = 0; i < times; i++) standStill();
    expect(seen.left).toBe(0);
    const text = new Response(client.readable).text();
    await written;
    await client.end("data: [DONE]\n\n");
    expect((await text).replaceAll(COMMENT, "")).toBe("data: 1\n\ndata: [DONE]\n\n");
    expect(client.pendingMs).toBeLessThanOrEqual(times * TICK_MS);
    watch.close();
  },
);

it("a stream's client that reads nothing counts as disconnected only after the time limit", async () => {
  const { client, watch, seen } = watching();
  const written = client.write("data: 1\n\n");
  vi.advanceTimersByTime(NUMBERS.READER_STUCK_MS);
  expect(seen.left).toBe(0);
  vi.advanceTimersByTime(2 * TICK_MS);
  expect(seen.left).toBe(1);
  await written;
  await expect(new Response(client.readable).text()).rejects.toThrow("client left");
  watch.close();
});

it("a stream's client keeps the full time limit if the clock steps back", () => {
  const { client, watch, seen } = watching();
  void client.write("data: 1\n\n");
  vi.advanceTimersByTime(20 * TICK_MS);
  vi.setSystemTime(Date.now() - STOOD_STILL_MS);
  vi.advanceTimersByTime(9 * TICK_MS);
  expect(seen.left).toBe(0);
  vi.advanceTimersByTime(5 * TICK_MS);
  expect(seen.left).toBe(1);
  watch.close();
});
