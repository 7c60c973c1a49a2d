import * as fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { BufferedBody, PacedBodyReader } from "../../src/models/core/paced-reader.ts";
import type { ByteSource } from "../../src/models/core/paced-reader.ts";
import { effortFor } from "../effort.ts";

const PACE_MS = 16;

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Returns a body that the test fills. Counts how often it is pulled. */
function scripted() {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let pulled = 0;
  const body = new ReadableStream<Uint8Array>(
    {
      start: (streamController) => void (controller = streamController),
      pull: () => void pulled++,
    },
    { highWaterMark: 0 },
  );
  return {
    body,
    send: (text: string) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
    break: () => controller?.error(new Error("reset")),
    pulled: () => pulled,
  };
}

/**
 * Returns a source that collects bytes while no one reads, as the runtime does. Counts the reads.
 */
function bufferingSource() {
  let buffered = "";
  let [reads, isOver] = [0, false];
  let reader: ((bytes: Uint8Array | null) => void) | null = null;
  let wake: (() => void) | null = null;
  const answer = (): void => {
    if (reader === null || (buffered === "" && !isOver)) return;
    const bytes = buffered === "" ? null : new TextEncoder().encode(buffered);
    buffered = "";
    reader(bytes);
    reader = null;
  };
  const end = (): void => {
    isOver = true;
    answer();
    wake?.();
  };
  const source: ByteSource = {
    read: () => {
      reads++;
      return new Promise((resolve) => {
        reader = resolve;
        answer();
      });
    },
    startBuffering: (onData) => {
      if (!isOver) wake = onData;
      return !isOver;
    },
    cancel: end,
  };
  const send = (text: string): void => {
    buffered += text;
    answer();
  };
  return { source, send, end, reads: () => reads };
}

function pacedSource(source: ByteSource): PacedBodyReader {
  const reader = new PacedBodyReader(source);
  reader.paceMs = PACE_MS;
  return reader;
}

function paced(body: ReadableStream<Uint8Array>, paceMs: number): PacedBodyReader {
  const reader = new PacedBodyReader(new BufferedBody(body));
  reader.paceMs = paceMs;
  return reader;
}

/** Returns the pieces that a reader delivers, each with its time. */
function collectPieces(reader: PacedBodyReader): { atMs: number; text: string | null }[] {
  const pieces: { atMs: number; text: string | null }[] = [];
  const pump = async (): Promise<void> => {
    for (;;) {
      const bytes = await reader.next();
      pieces.push({
        atMs: Date.now() - 1_000_000,
        text: bytes === null ? null : new TextDecoder().decode(bytes),
      });
      if (bytes === null) return;
    }
  };
  pump().catch(() => pieces.push({ atMs: Date.now() - 1_000_000, text: "broken" }));
  return pieces;
}

it("a paced stream delivers the first bytes immediately, and later bytes once per interval", async () => {
  const { body, send } = scripted();
  const pieces = collectPieces(paced(body, PACE_MS));
  send("a");
  await vi.advanceTimersByTimeAsync(3);
  send("b");
  await vi.advanceTimersByTimeAsync(5);
  send("c");
  await vi.advanceTimersByTimeAsync(7);
  expect(pieces).toEqual([{ atMs: 0, text: "a" }]);
  await vi.advanceTimersByTimeAsync(1);
  expect(pieces).toEqual([
    { atMs: 0, text: "a" },
    { atMs: 16, text: "bc" },
  ]);
});

it("a paced stream delivers bytes immediately if they arrive less often than the pace", async () => {
  const { body, send } = scripted();
  const pieces = collectPieces(paced(body, PACE_MS));
  send("a");
  await vi.advanceTimersByTimeAsync(20);
  send("b");
  await vi.advanceTimersByTimeAsync(0);
  await vi.advanceTimersByTimeAsync(20);
  send("c");
  await vi.advanceTimersByTimeAsync(0);
  expect(pieces.map(({ atMs, text }) => [atMs, text])).toEqual([
    [0, "a"],
    [20, "b"],
    [40, "c"],
  ]);
});

it.each([
  ["the end of the body", (script: ReturnType<typeof scripted>) => script.end(), null],
  ["an error", (script: ReturnType<typeof scripted>) => script.break(), "broken"],
] as const)(
  "a paced stream delivers buffered bytes before %s without waiting",
  async (_, end, last) => {
    const script = scripted();
    const pieces = collectPieces(paced(script.body, PACE_MS));
    script.send("a");
    await vi.advanceTimersByTimeAsync(1);
    script.send("b");
    await vi.advanceTimersByTimeAsync(1);
    end(script);
    await vi.advanceTimersByTimeAsync(0);
    expect(pieces.map(({ text }) => text)).toEqual(["a", "b", last]);
    expect(pieces.at(-1)?.atMs).toBe(2);
  },
);

it("a paced stream delivers buffered bytes and the end when its body is canceled", async () => {
  const { body, send } = scripted();
  const reader = paced(body, PACE_MS);
  const pieces = collectPieces(reader);
  send("a");
  await vi.advanceTimersByTimeAsync(1);
  send("b");
  await vi.advanceTimersByTimeAsync(1);
  reader.cancel();
  await vi.advanceTimersByTimeAsync(0);
  expect(pieces.map(({ text }) => text)).toEqual(["a", "b", null]);
});

it("a paced stream delivers buffered bytes once they reach 64 KiB", async () => {
  const { body, send } = scripted();
  const pieces = collectPieces(paced(body, PACE_MS));
  send("a");
  await vi.advanceTimersByTimeAsync(1);
  send("b".repeat(64 * 1024 - 1));
  await vi.advanceTimersByTimeAsync(1);
  expect(pieces).toHaveLength(1);
  send("c");
  await vi.advanceTimersByTimeAsync(1);
  expect(pieces.map(({ atMs, text }) => [atMs, text?.length])).toEqual([
    [0, 1],
    [2, 64 * 1024],
  ]);
});

it("a paced stream requests only one chunk ahead if the client doesn't read", async () => {
  const { body, send, pulled } = scripted();
  const reader = paced(body, PACE_MS);
  const first = reader.next();
  await vi.advanceTimersByTimeAsync(0);
  send("a");
  expect(await first).not.toBeNull();
  const before = pulled();
  await vi.advanceTimersByTimeAsync(1000);
  expect(pulled()).toBe(before);
});

it("a paced stream delivers later bytes immediately if the clock steps back", async () => {
  const { body, send } = scripted();
  const pieces = collectPieces(paced(body, PACE_MS));
  send("a");
  await vi.advanceTimersByTimeAsync(1);
  vi.setSystemTime(1_000_000 - 60_000);
  send("b");
  await vi.advanceTimersByTimeAsync(0);
  expect(pieces.map(({ text }) => text)).toEqual(["a", "b"]);
});

it("a paced stream delivers every chunk separately if the pace is 0", async () => {
  const { body, send, end } = scripted();
  const pieces = collectPieces(paced(body, 0));
  for (const text of ["a", "b", "c"]) {
    send(text);
    await vi.advanceTimersByTimeAsync(0);
  }
  end();
  await vi.advanceTimersByTimeAsync(0);
  expect(pieces.map(({ text }) => text)).toEqual(["a", "b", "c", null]);
});

/** Writes every 4 ms until the reader lets the runtime collect bytes. */
async function untilFast(send: (text: string) => void): Promise<void> {
  for (let i = 0; i < 25; i++) {
    send("a");
    await vi.advanceTimersByTimeAsync(4);
  }
}

it("a paced stream reads a fast body once per interval, not once per chunk", async () => {
  const { source, send, reads } = bufferingSource();
  const pieces = collectPieces(pacedSource(source));
  await untilFast(send);
  const before = { reads: reads(), pieces: pieces.length };
  await untilFast(send);
  await untilFast(send);
  const times = Math.ceil(200 / PACE_MS);
  expect(reads() - before.reads).toBeLessThanOrEqual(times);
  expect(pieces.length - before.pieces).toBeGreaterThanOrEqual(times - 2);
  await vi.advanceTimersByTimeAsync(PACE_MS);
  expect(pieces.map(({ text }) => text).join("")).toBe("a".repeat(75));
});

it("a paced stream delivers bytes on arrival after a fast body becomes slow", async () => {
  const { source, send } = bufferingSource();
  const pieces = collectPieces(pacedSource(source));
  await untilFast(send);
  await vi.advanceTimersByTimeAsync(500);
  const before = pieces.length;
  for (const text of ["b", "c", "d"]) {
    send(text);
    await vi.advanceTimersByTimeAsync(0);
    expect(pieces.at(-1)?.text).toBe(text);
    await vi.advanceTimersByTimeAsync(20);
  }
  expect(pieces).toHaveLength(before + 3);
});

it.each(["the end", "a cancel"])(
  "a paced stream immediately delivers the bytes that the runtime buffered before %s",
  async (what) => {
    const { source, send, end } = bufferingSource();
    const reader = pacedSource(source);
    const pieces = collectPieces(reader);
    await untilFast(send);
    await vi.advanceTimersByTimeAsync(
      (pieces.at(-1)?.atMs ?? 0) + PACE_MS + 1 - (Date.now() - 1_000_000),
    );
    const atMs = Date.now() - 1_000_000;
    send("b");
    send("c");
    if (what === "the end") end();
    else reader.cancel();
    await vi.advanceTimersByTimeAsync(1);
    expect(pieces.at(-1)).toMatchObject({ text: null });
    expect(pieces.at(-1)?.atMs).toBeLessThanOrEqual(atMs + 1);
    expect(pieces.map(({ text }) => text).join("")).toBe(`${"a".repeat(25)}bc`);
  },
);

it("a paced stream delivers everything in order and on time if the runtime buffers bytes", async () => {
  const arrivals = fc.array(
    fc.record({
      afterMs: fc.oneof(fc.nat({ max: 6 }), fc.nat({ max: 40 })),
      text: fc.stringMatching(/^[a-z]{1,4}$/),
    }),
    { minLength: 20, maxLength: 80 },
  );
  await fc.assert(
    fc.asyncProperty(arrivals, async (chunks) => {
      vi.setSystemTime(1_000_000);
      const { source, send, end } = bufferingSource();
      const pieces = collectPieces(pacedSource(source));
      await vi.advanceTimersByTimeAsync(0);
      const due: { byMs: number; length: number }[] = [];
      let length = 0;
      for (const { afterMs, text } of chunks) {
        await vi.advanceTimersByTimeAsync(afterMs);
        send(text);
        await vi.advanceTimersByTimeAsync(0);
        length += text.length;
        due.push({ byMs: Date.now() - 1_000_000 + PACE_MS, length });
      }
      await vi.advanceTimersByTimeAsync(PACE_MS);
      expect(pieces.map(({ text }) => text).join("")).toBe(chunks.map(({ text }) => text).join(""));
      for (const { byMs, length: minLength } of due) {
        const then = pieces.filter((one) => one.atMs <= byMs).map(({ text }) => text);
        expect(then.join("").length).toBeGreaterThanOrEqual(minLength);
      }
      end();
      await vi.advanceTimersByTimeAsync(0);
      expect(pieces.at(-1)?.text).toBeNull();
    }),
    { numRuns: effortFor(20, 1000) },
  );
});

it("a paced stream delivers everything in order and on time, and nothing early", async () => {
  const arrivals = fc.array(
    fc.record({ afterMs: fc.nat({ max: 40 }), text: fc.string({ minLength: 1, maxLength: 5 }) }),
    { maxLength: 30 },
  );
  await fc.assert(
    fc.asyncProperty(arrivals, fc.constantFrom(1, 7, 16, 50), async (chunks, paceMs) => {
      vi.setSystemTime(1_000_000);
      const { body, send, end } = scripted();
      const pieces = collectPieces(paced(body, paceMs));
      await vi.advanceTimersByTimeAsync(0);
      let atMs = 0;
      const due: { byMs: number; bytes: number }[] = [];
      let bytes = 0;
      for (const { afterMs, text } of chunks) {
        await vi.advanceTimersByTimeAsync(afterMs);
        atMs += afterMs;
        send(text);
        await vi.advanceTimersByTimeAsync(0);
        bytes += new TextEncoder().encode(text).length;
        due.push({ byMs: atMs + paceMs, bytes });
      }
      await vi.advanceTimersByTimeAsync(paceMs);
      const whole = pieces.map(({ text }) => text).join("");
      expect(whole).toBe(chunks.map(({ text }) => text.toWellFormed()).join(""));
      for (const { byMs, bytes: minBytes } of due) {
        const then = pieces.filter((one) => one.atMs <= byMs).map(({ text }) => text);
        expect(new TextEncoder().encode(then.join("")).length).toBeGreaterThanOrEqual(minBytes);
      }
      const intervals = pieces.slice(1).map((one, index) => one.atMs - (pieces[index]?.atMs ?? 0));
      expect(intervals.filter((ms) => ms < paceMs)).toEqual([]);
      end();
      await vi.advanceTimersByTimeAsync(0);
      expect(pieces.at(-1)?.text).toBeNull();
    }),
    { numRuns: effortFor(20, 1000) },
  );
});
