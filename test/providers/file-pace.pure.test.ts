import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FileReadPacer, FILE_READ_BYTES } from "../../src/models/core/paced-reader.ts";

beforeEach(() => void vi.useFakeTimers({ now: 5_000_000 }));
afterEach(() => void vi.useRealTimers());

/** Counts the reads that can start. */
function startReads(pace: FileReadPacer, count: number): () => number {
  let started = 0;
  for (let i = 0; i < count; i++) void pace.waitAfter(FILE_READ_BYTES).then(() => started++);
  return () => started;
}

describe("the pacing of an isolate's file reads", () => {
  it("starts one full read per millisecond, however many files are being read", async () => {
    const started = startReads(new FileReadPacer(), 100);
    await vi.advanceTimersByTimeAsync(50);
    expect(started()).toBe(51);
    await vi.advanceTimersByTimeAsync(49);
    expect(started()).toBe(100);
  });

  it("starts the next read immediately if the clock steps back", async () => {
    const pace = new FileReadPacer();
    startReads(pace, 2);
    vi.setSystemTime(1_000_000);
    const started = startReads(pace, 1);
    await vi.advanceTimersByTimeAsync(0);
    expect(started()).toBe(1);
  });
});
