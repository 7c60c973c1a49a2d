import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  CallGroups,
  GROUPED_PARTS_MAX,
  GROUPED_CALL_TIMEOUT_MS,
  CONCURRENT_CALLS_MAX,
} from "../../src/shared/call-groups.ts";
import type { GroupedPartResult } from "../../src/shared/call-groups.ts";
import { effortFor } from "../effort.ts";
import { afterTimeout } from "../../src/shared/timers.ts";

type Call = {
  readonly parts: readonly number[];
  /** The call that transports it. */
  readonly by: number;
  readonly end: (error?: Error) => void;
};

/** An object that doubles each part. Its calls end only when the test lets them. */
class Outside {
  readonly calls: Call[] = [];
  readonly groups: CallGroups<number, number>;

  constructor(sideBySide = 1) {
    this.groups = new CallGroups(sideBySide);
  }

  call(part: number): Promise<number> {
    return this.groups.callPart("one", {
      part,
      callAlone: async () => (await this.#called([part], part)).map(answerOf)[0] ?? Number.NaN,
      callTogether: (parts) => this.#called(parts, part),
      after: afterTimeout,
    });
  }

  #called(parts: readonly number[], by: number): Promise<readonly GroupedPartResult<number>[]> {
    return new Promise((resolve, reject) => {
      const end = (error?: Error): void => {
        if (error === undefined) resolve(parts.map(doubled));
        else reject(error);
      };
      this.calls.push({ parts, by, end });
    });
  }

  get sent(): readonly (readonly number[])[] {
    return this.calls.map(({ parts }) => parts);
  }
}

function doubled(part: number): GroupedPartResult<number> {
  return { kind: "answered", answer: part * 2 };
}

function answerOf(answer: GroupedPartResult<number>): number {
  return answer.kind === "answered" ? answer.answer : Number.NaN;
}

/** Waits until all callers have checked for waiting parts. */
async function settled(): Promise<void> {
  await vi.advanceTimersByTimeAsync(25);
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

type Step = "ask" | "end" | "fail" | "hang" | "time";
const STEPS: readonly Step[] = ["ask", "ask", "ask", "ask", "end", "end", "fail", "hang", "time"];

/** Adds parts in sequence, whose calls end, fail or hang in any order. */
class Run {
  readonly #outside: Outside;
  readonly #results = new Map<number, number | string>();
  readonly #ended = new Set<Outside["calls"][number]>();
  #partCount = 0;

  constructor(sideBySide: number) {
    this.#outside = new Outside(sideBySide);
  }

  async take(step: Step): Promise<void> {
    const [call] = this.#open();
    if (step === "ask") this.#ask();
    else if (step === "time") await vi.advanceTimersByTimeAsync(GROUPED_CALL_TIMEOUT_MS + 25);
    else if (call !== undefined) this.#end(call, step);
    await settled();
  }

  /** Ends every open call. */
  async toTheEnd(): Promise<void> {
    do {
      for (const call of this.#open()) this.#end(call, "end");
      await vi.advanceTimersByTimeAsync(GROUPED_CALL_TIMEOUT_MS + 25);
    } while (this.#open().length > 0);
  }

  /** Returns the faults in all parts and calls of this run. */
  faults(): string[] {
    const { sent } = this.#outside;
    const parts = sent.flat();
    // Only the caller of a hanging call can wait forever. Waiting parts have a timer.
    const carriers = new Set(this.#outside.calls.map(({ by }) => by));
    const all = Array.from({ length: this.#partCount }, (_, i) => i + 1);
    return [
      ...parts.filter((part, i) => parts.indexOf(part) !== i).map((part) => `${part} sent twice`),
      ...sent
        .filter(({ length }) => length > GROUPED_PARTS_MAX)
        .map(({ length }) => `a call of ${length}`),
      ...[...this.#results]
        .filter(([part, result]) => typeof result === "number" && result !== part * 2)
        .map(([part]) => `${part} received another part's result`),
      ...all
        .filter((part) => !this.#results.has(part) && !carriers.has(part))
        .map((part) => `${part} received no result`),
    ];
  }

  #ask(): void {
    const part = ++this.#partCount;
    this.#outside.call(part).then(
      (answer) => this.#results.set(part, answer),
      (error: Error) => this.#results.set(part, error.message),
    );
  }

  #open(): Outside["calls"] {
    return this.#outside.calls.filter((call) => !this.#ended.has(call));
  }

  #end(call: Outside["calls"][number], how: Step): void {
    this.#ended.add(call);
    if (how === "end") call.end();
    if (how === "fail") call.end(new Error("the object broke"));
  }
}

describe("a group of calls", () => {
  it("starts a single call immediately, and then collects further calls in order", async () => {
    const outside = new Outside();
    const results = [1, 2, 3, 4].map((part) => outside.call(part));
    expect(outside.sent).toEqual([[1]]);
    outside.calls[0]?.end();
    await settled();
    expect(outside.sent).toEqual([[1], [2, 3, 4]]);
    outside.calls[1]?.end();
    await settled();
    await expect(Promise.all(results)).resolves.toEqual([2, 4, 6, 8]);
    const later = outside.call(5);
    expect(outside.sent.at(-1)).toEqual([5]);
    outside.calls[2]?.end();
    await expect(later).resolves.toBe(10);
  });

  it("runs a few calls concurrently, and groups only additional calls", async () => {
    const outside = new Outside(CONCURRENT_CALLS_MAX);
    const first = Array.from({ length: CONCURRENT_CALLS_MAX }, (_, i) => i + 1);
    const results = [...first, 11, 12].map((part) => outside.call(part));
    expect(outside.sent).toEqual(first.map((part) => [part]));
    outside.calls[0]?.end();
    await vi.advanceTimersByTimeAsync(0);
    results.push(outside.call(13));
    expect(outside.sent.at(-1)).toEqual([11, 12, 13]);
    for (const { end } of outside.calls) end();
    await settled();
    await expect(Promise.all(results)).resolves.toEqual([...first, 11, 12, 13].map((n) => n * 2));
  });

  it("starts the next call even if the previous call never ends", async () => {
    const outside = new Outside();
    void outside.call(1); // its call never ends
    const others = [2, 3].map((part) => outside.call(part));
    await vi.advanceTimersByTimeAsync(150); // no caller waits longer for it
    expect(outside.sent).toEqual([[1], [2, 3]]);
    outside.calls[1]?.end();
    await settled();
    await expect(Promise.all(others)).resolves.toEqual([4, 6]);
    const later = outside.call(4);
    expect(outside.sent).toEqual([[1], [2, 3], [4]]);
    outside.calls[2]?.end();
    await expect(later).resolves.toBe(8);
  });

  it("sends each part once, returns each part's result, and limits the size of a call", async () => {
    const steps = fc.array(fc.constantFrom(...STEPS), { maxLength: 200 });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: CONCURRENT_CALLS_MAX }),
        steps,
        async (most, taken) => {
          const run = new Run(most);
          for (const step of taken) await run.take(step);
          await run.toTheEnd();
          expect(run.faults()).toEqual([]);
        },
      ),
      { numRuns: effortFor(200, 2000) },
    );
  });
});
