import * as fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { PacedReader } from "../../src/providers/paced-reader.ts";

const PACE_MS = 16;

beforeEach(() => {
  vi.useFakeTimers({ now: 1_000_000 });
});
afterEach(() => {
  vi.useRealTimers();
});

/** A body that says what it is told to say, and counts how often it was pulled. */
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

function paced(body: ReadableStream<Uint8Array>, paceMs: number): PacedReader {
  const reader = new PacedReader(body);
  reader.paceMs = paceMs;
  return reader;
}

/** What a pump hears, with the time of each handing on. */
function heardBy(reader: PacedReader): { atMs: number; text: string | null }[] {
  const heard: { atMs: number; text: string | null }[] = [];
  const pump = async (): Promise<void> => {
    for (;;) {
      // oxlint-disable-next-line no-await-in-loop -- a stream is read in order
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

it("the first bytes are handed on at once, those that come sooner than the pace together when it is over", async () => {
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

it("bytes that come later than the pace after the last ones are handed on at once", async () => {
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
  ["the end", (script: ReturnType<typeof scripted>) => script.end(), null],
  ["a break", (script: ReturnType<typeof scripted>) => script.break(), "broken"],
] as const)("what was gathered is handed on before %s, without waiting", async (_, end, last) => {
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
});

it("what was gathered is handed on when the body is cancelled, and then its end", async () => {
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

it("what was gathered waits no longer once it is 64 KiB", async () => {
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

it("while nobody asks, nothing more is read than the one chunk that was asked for", async () => {
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

it("a clock that steps back holds nothing back: what comes after it is handed on", async () => {
  const { body, say } = scripted();
  const heard = heardBy(paced(body, PACE_MS));
  say("a");
  await vi.advanceTimersByTimeAsync(1);
  vi.setSystemTime(1_000_000 - 60_000);
  say("b");
  await vi.advanceTimersByTimeAsync(0);
  expect(heard.map(({ text }) => text)).toEqual(["a", "b"]);
});

it("with a pace of 0 every chunk is handed on by itself, as it comes", async () => {
  const { body, say, end } = scripted();
  const heard = heardBy(paced(body, 0));
  for (const text of ["a", "b", "c"]) {
    say(text);
    // oxlint-disable-next-line no-await-in-loop -- one chunk after the other
    await vi.advanceTimersByTimeAsync(0);
  }
  end();
  await vi.advanceTimersByTimeAsync(0);
  expect(heard.map(({ text }) => text)).toEqual(["a", "b", "c", null]);
});

it("whatever comes whenever: all of it in order, none later than the pace, none sooner than the pace after the last", async () => {
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
        // oxlint-disable-next-line no-await-in-loop -- time passes
        await vi.advanceTimersByTimeAsync(afterMs);
        atMs += afterMs;
        say(text);
        // oxlint-disable-next-line no-await-in-loop -- it is heard
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
    { numRuns: 60 },
  );
});
