import { evictDurableObject, runDurableObjectAlarm } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import type { OutcomeItem } from "../../src/shared/contracts/outbox.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import { settleOf, voidOf } from "./outbox-fixture.ts";
import { outboxOf, stored } from "./outbox-steps.ts";
import type { Outbox } from "./outbox-steps.ts";
import { Peer } from "./peer-fixture.ts";
import type { Fault } from "./peer-fixture.ts";
import { effortFor } from "../effort.ts";

const WORLDS = effortFor(10, 400);

const DAY_MS = 24 * 60 * 60 * 1000;
const FAULTS: readonly Fault[] = [
  "none",
  "request-lost",
  "reply-lost",
  "twice",
  "garbage",
  "error",
  "half",
  "all-failed",
];

/** A step of an outbox, after a pause of `minutes`. */
type Step = {
  readonly minutes: number;
  readonly what: "enqueue" | "again" | "alarm" | "flush" | "evict" | "poke";
  /** The number of outcomes to enqueue. One of three is a void. */
  readonly count: number;
};
type Fate = "taken" | "refused" | "failing";
type OutboxRun = {
  readonly steps: readonly Step[];
  readonly faults: readonly Fault[];
  readonly fates: readonly Fate[];
};

const outboxRuns: fc.Arbitrary<OutboxRun> = fc.record({
  steps: fc.array(
    fc.record({
      minutes: fc.nat(3),
      what: fc.constantFrom(
        "enqueue",
        "enqueue",
        "again",
        "alarm",
        "alarm",
        "flush",
        "evict",
        "poke",
      ),
      count: fc.integer({ min: 1, max: 130 }),
    }),
    { minLength: 4, maxLength: 14 },
  ),
  faults: fc.array(fc.constantFrom(...FAULTS), { minLength: 1, maxLength: 20 }),
  fates: fc.array(fc.constantFrom<Fate>("taken", "taken", "taken", "refused", "failing"), {
    minLength: 1,
    maxLength: 9,
  }),
});

afterEach(() => shiftClock(null));

class Run {
  readonly peer = new Peer();
  readonly outbox: Outbox = outboxOf("us");
  readonly enqueued: OutcomeItem[] = [];
  readonly #fates: readonly Fate[];
  #minutes = 0;

  constructor({ faults, fates }: OutboxRun) {
    this.#fates = fates;
    let request = 0;
    this.peer.fault = () => faults[request++ % faults.length] ?? "none";
  }

  async step({ minutes, what, count }: Step): Promise<void> {
    this.#minutes += minutes;
    shiftClock(this.#minutes * 60_000);
    switch (what) {
      case "enqueue":
        return this.outbox.enqueue(Array.from({ length: count }, (_, i) => this.#newItem(i)));
      case "again":
        return this.outbox.enqueue(this.enqueued.slice(-count));
      case "alarm":
        await runDurableObjectAlarm(this.outbox);
        return;
      case "flush":
        await this.outbox.flush(1000);
        return;
      case "evict":
        await this.outbox.depth(); // only running objects can be evicted
        return evictDurableObject(this.outbox);
      case "poke":
        return this.outbox.poke();
    }
  }

  /** Restores the connection, then waits a week for outcomes whose wallet always fails. */
  async end(): Promise<void> {
    this.peer.fault = () => "none";
    for (const passed of [3_600_000, 8 * DAY_MS]) {
      shiftClock(this.#minutes * 60_000 + passed);
      const isWaiting = async (): Promise<boolean> =>
        (await stored(this.outbox)).some(
          ({ id, state }) => state === "waiting" && (passed > DAY_MS || !this.peer.failing.has(id)),
        );
      for (let rounds = 0; rounds < 200 && (await isWaiting()); rounds++) {
        await runDurableObjectAlarm(this.outbox);
      }
    }
  }

  /** Returns the expected final state of an outcome. */
  endOf(holdId: string): { readonly isTaken: boolean; readonly state: string } {
    if (this.peer.refused.has(holdId)) return { isTaken: false, state: "dead" };
    if (this.peer.failing.has(holdId)) return { isTaken: false, state: "parked" };
    return { isTaken: true, state: "gone" };
  }

  #newItem(i: number): OutcomeItem {
    const item = i % 3 === 2 ? voidOf(crypto.randomUUID()) : settleOf(crypto.randomUUID(), i);
    const fate = this.#fates[this.enqueued.length % this.#fates.length];
    if (fate === "refused") this.peer.refused.add(item.holdId);
    if (fate === "failing") this.peer.failing.add(item.holdId);
    this.enqueued.push(item);
    return item;
  }
}

it(`an outbox delivers, dead-letters or sets aside each outcome exactly once despite losses and evictions: ${WORLDS} runs`, async () => {
  const seen = { taken: 0, dead: 0, parked: 0 };
  await fc.assert(
    fc.asyncProperty(outboxRuns, async (input) => {
      shiftClock(null);
      const run = new Run(input);
      for (const step of input.steps) await run.step(step);
      await run.end();
      const remaining = new Map((await stored(run.outbox)).map(({ id, state }) => [id, state]));
      for (const { holdId, kind } of run.enqueued) {
        const isTaken = run.peer.effects.get(holdId) === kind;
        const state = remaining.get(holdId) ?? "gone";
        expect({ isTaken, state }).toEqual(run.endOf(holdId));
      }
      expect(run.peer.sentBeside).toEqual([]);
      seen.dead += run.peer.refused.size;
      seen.parked += run.peer.failing.size;
      seen.taken += run.enqueued.length - remaining.size;
    }),
    { numRuns: WORLDS },
  );
  expect(Math.min(seen.taken, seen.dead, seen.parked)).toBeGreaterThan(0);
});
