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
      start: (given) => void (controller = given),
      pull: () => void pulled++,
    },
    { highWaterMark: 0 },
  );
  return {
    body,
    say: (text: string) => controller?.enqueue(new TextEncoder().encode(text)),
    end: () => controller?.close(),
    break: () => controller?.error(new Error("reset")),
    pulled: () => pulled,
  };
}

/**
 * Returns a source that collects bytes while no one reads, as the runtime does. Counts the reads.
 */
function gathering() {
  let said = "";
  let [reads, isOver] = [0, false];
  let reader: ((bytes: Uint8Array | null) => void) | null = null;
  let wake: (() => void) | null = null;
  const answer = (): void => {
    if (reader === null || (said === "" && !isOver)) return;
    const bytes = said === "" ? null : new TextEncoder().encode(said);
    said = "";
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
    startBuffering: (told) => {
      if (!isOver) wake = told;
      return !isOver;
    },
    cancel: end,
  };
  const say = (text: string): void => {
    said += text;
    answer();
  };
  return { source, say, end, reads: () => reads };
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
function heardBy(reader: PacedBodyReader): { atMs: number; text: string | null }[] {
  const heard: { atMs: number; text: string | null }[] = [];
  const pump = async (): Promise<void> => {
    for (;;) {
      const bytes = await reader.next();
      heard.push({
        atMs: Date.now() - 1_000_000,
        text: bytes === null ? null : new TextDecoder().decode(bytes),
      });
      if (bytes === null) return;
    }
  };
  pump().catch(() => heard.push({ atMs: Date.now() - 1_000_000, text: "broken" }));
  return heard;
}

it("a paced stream delivers the first bytes immediately, and later bytes once per interval", async () => {
  const { body, say } = scripted();
  const heard = heardBy(paced(body, PACE_MS));
  say("a");
  await vi.advanceTimersByTimeAsync(3);
  say("b");
  await vi.advanceTimersByTimeAsync(5);
  say("c");
  await vi.advanceTimersByTimeAsync(7);
  expect(heard).toEqual([{ atMs: 0, text: "a" }]);
  await vi.advanceTimersByTimeAsync(1);
  expect(heard).toEqual([
    { atMs: 0, text: "a" },
    { atMs: 16, text: "bc" },
  ]);
});

it("a paced stream delivers bytes immediately if they arrive less often than the pace", async () => {
  const { body, say } = scripted();
  const heard = heardBy(paced(body, PACE_MS));
  say("a");
  await vi.advanceTimersByTimeAsync(20);
  say("b");
  await vi.advanceTimersByTimeAsync(0);
  await vi.advanceTimersByTimeAsync(20);
  say("c");
  await vi.advanceTimersByTimeAsync(0);
  expect(heard.map(({ atMs, text }) => [atMs, text])).toEqual([
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
    const heard = heardBy(paced(script.body, PACE_MS));
    script.say("a");
    await vi.advanceTimersByTimeAsync(1);
    script.say("b");
    await vi.advanceTimersByTimeAsync(1);
    end(script);
    await vi.advanceTimersByTimeAsync(0);
    expect(heard.map(({ text }) => text)).toEqual(["a", "b", last]);
    expect(heard.at(-1)?.atMs).toBe(2);
  },
);

it("a paced stream delivers buffered bytes and the end when its body is canceled", async () => {
  const { body, say } = scripted();
  const reader = paced(body, PACE_MS);
  const heard = heardBy(reader);
  say("a");
  await vi.advanceTimersByTimeAsync(1);
  say("b");
  await vi.advanceTimersByTimeAsync(1);
  reader.cancel();
  await vi.advanceTimersByTimeAsync(0);
  expect(heard.map(({ text }) => text)).toEqual(["a", "b", null]);
});

it("a paced stream delivers buffered bytes once they reach 64 KiB", async () => {
  const { body, say } = scripted();
  const heard = heardBy(paced(body, PACE_MS));
  say("a");
  await vi.advanceTimersByTimeAsync(1);
  say("b".repeat(64 * 1024 - 1));
  await vi.advanceTimersByTimeAsync(1);
  expect(heard).toHaveLength(1);
  say("c");
  await vi.advanceTimersByTimeAsync(1);
  expect(heard.map(({ atMs, text }) => [atMs, text?.length])).toEqual([
    [0, 1],
    [2, 64 * 1024],
  ]);
});

it("a paced stream requests only one chunk ahead if the client doesn't read", async () => {
  const { body, say, pulled } = scripted();
  const reader = paced(body, PACE_MS);
  const first = reader.next();
  await vi.advanceTimersByTimeAsync(0);
  say("a");
  expect(await first).not.toBeNull();
  const before = pulled();
  await vi.advanceTimersByTimeAsync(1000);
  expect(pulled()).toBe(before);
});

it("a paced stream delivers later bytes immediately if the clock steps back", async () => {
  const { body, say } = scripted();
  const heard = heardBy(paced(body, PACE_MS));
  say("a");
  await vi.advanceTimersByTimeAsync(1);
  vi.setSystemTime(1_000_000 - 60_000);
  say("b");
  await vi.advanceTimersByTimeAsync(0);
  expect(heard.map(({ text }) => text)).toEqual(["a", "b"]);
});

it("a paced stream delivers every chunk separately if the pace is 0", async () => {
  const { body, say, end } = scripted();
  const heard = heardBy(paced(body, 0));
  for (const text of ["a", "b", "c"]) {
    say(text);
    await vi.advanceTimersByTimeAsync(0);
  }
  end();
  await vi.advanceTimersByTimeAsync(0);
  expect(heard.map(({ text }) => text)).toEqual(["a", "b", "c", null]);
});

/** Writes every 4 ms until the reader lets the runtime collect bytes. */
async function untilFast(say: (text: string) => void): Promise<void> {
  for (let i = 0; i < 25; i++) {
    say("a");
    await vi.advanceTimersByTimeAsync(4);
  }
}

it("a paced stream reads a fast body once per interval, not once per chunk", async () => {
  const { source, say, reads } = gathering();
  const heard = heardBy(pacedSource(source));
  await untilFast(say);
  const before = { reads: reads(), heard: heard.length };
  await untilFast(say);
  await untilFast(say);
  const times = Math.ceil(200 / PACE_MS);
  expect(reads() - before.reads).toBeLessThanOrEqual(times);
  expect(heard.length - before.heard).toBeGreaterThanOrEqual(times - 2);
  await vi.advanceTimersByTimeAsync(PACE_MS);
  expect(heard.map(({ text }) => text).join("")).toBe("a".repeat(75));
});

it("a paced stream delivers bytes on arrival after a fast body becomes slow", async () => {
  const { source, say } = gathering();
  const heard = heardBy(pacedSource(source));
  await untilFast(say);
  await vi.advanceTimersByTimeAsync(500);
  const before = heard.length;
  for (const text of ["b", "c", "d"]) {
    say(text);
    await vi.advanceTimersByTimeAsync(0);
    expect(heard.at(-1)?.text).toBe(text);
    await vi.advanceTimersByTimeAsync(20);
  }
  expect(heard).toHaveLength(before + 3);
});

it.each(["the end", "a cancel"])(
  "a paced stream immediately delivers the bytes that the runtime buffered before %s",
  async (what) => {
    const { source, say, end } = gathering();
    const reader = pacedSource(source);
    const heard = heardBy(reader);
    await untilFast(say);
    await vi.advanceTimersByTimeAsync(
      (heard.at(-1)?.atMs ?? 0) + PACE_MS + 1 - (Date.now() - 1_000_000),
    );
    const atMs = Date.now() - 1_000_000;
    say("b");
    say("c");
    if (what === "the end") end();
    else reader.cancel();
    await vi.advanceTimersByTimeAsync(1);
    expect(heard.at(-1)).toMatchObject({ text: null });
    expect(heard.at(-1)?.atMs).toBeLessThanOrEqual(atMs + 1);
    expect(heard.map(({ text }) => text).join("")).toBe(`${"a".repeat(25)}bc`);
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
    fc.asyncProperty(arrivals, async (said) => {
      vi.setSystemTime(1_000_000);
      const { source, say, end } = gathering();
      const heard = heardBy(pacedSource(source));
      await vi.advanceTimersByTimeAsync(0);
      const due: { byMs: number; length: number }[] = [];
      let length = 0;
      for (const { afterMs, text } of said) {
        await vi.advanceTimersByTimeAsync(afterMs);
        say(text);
        await vi.advanceTimersByTimeAsync(0);
        length += text.length;
        due.push({ byMs: Date.now() - 1_000_000 + PACE_MS, length });
      }
      await vi.advanceTimersByTimeAsync(PACE_MS);
      expect(heard.map(({ text }) => text).join("")).toBe(said.map(({ text }) => text).join(""));
      for (const { byMs, length: least } of due) {
        const then = heard.filter((one) => one.atMs <= byMs).map(({ text }) => text);
        expect(then.join("").length).toBeGreaterThanOrEqual(least);
      }
      end();
      await vi.advanceTimersByTimeAsync(0);
      expect(heard.at(-1)?.text).toBeNull();
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
    fc.asyncProperty(arrivals, fc.constantFrom(1, 7, 16, 50), async (said, paceMs) => {
      vi.setSystemTime(1_000_000);
      const { body, say, end } = scripted();
      const heard = heardBy(paced(body, paceMs));
      await vi.advanceTimersByTimeAsync(0);
      let atMs = 0;
      const due: { byMs: number; bytes: number }[] = [];
      let bytes = 0;
      for (const { afterMs, text } of said) {
        await vi.advanceTimersByTimeAsync(afterMs);
        atMs += afterMs;
        say(text);
        await vi.advanceTimersByTimeAsync(0);
        bytes += new TextEncoder().encode(text).length;
        due.push({ byMs: atMs + paceMs, bytes });
      }
      await vi.advanceTimersByTimeAsync(paceMs);
      const whole = heard.map(({ text }) => text).join("");
      expect(whole).toBe(said.map(({ text }) => text.toWellFormed()).join(""));
      for (const { byMs, bytes: least } of due) {
        const then = heard.filter((one) => one.atMs <= byMs).map(({ text }) => text);
        expect(new TextEncoder().encode(then.join("")).length).toBeGreaterThanOrEqual(least);
      }
      const apart = heard.slice(1).map((one, index) => one.atMs - (heard[index]?.atMs ?? 0));
      expect(apart.filter((ms) => ms < paceMs)).toEqual([]);
      end();
      await vi.advanceTimersByTimeAsync(0);
      expect(heard.at(-1)?.text).toBeNull();
    }),
    { numRuns: effortFor(20, 1000) },
  );
});
