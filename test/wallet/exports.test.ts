import { evictDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { effortFor } from "../effort.ts";
import { FOCUS_EXPORT_COLUMNS } from "../../src/money/wallet/exports/focus.ts";
import { readExportPages } from "../../src/money/wallet/exports/exports.route.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { micros } from "../../src/shared/money.ts";
import { periodOf } from "../../src/shared/period.ts";
import { success } from "../../src/shared/failure.ts";
import { createUsageMessage } from "../../src/events/webhooks/usage-formats.ts";
import type { StreamStart } from "../../src/shared/contracts/usage-stream.ts";
import type { Tags } from "../../src/shared/tags.ts";
import { parseFocusRows, sumOf } from "../fixtures/focus.ts";
import { brokenFocusRules } from "../fixtures/focus-rules.ts";
import { ReceivedLedger } from "../webhooks/received-ledger.ts";
import type { UsageMessage } from "../webhooks/received-ledger.ts";
import { credit, differences, GENERATION, holdOf, newWallet, setClock } from "./wallet-fixture.ts";
import { valueOf } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const START = Date.UTC(2031, 0, 1, 12);
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Hours, longer than requests are stored. */
const LONG = 800;
const TAX = 190_000;

afterEach(() => setClock(null));

type Command =
  | {
      readonly kind: "charge";
      readonly tokens: readonly [input: number, cached: number, output: number];
      readonly price: readonly [input: number, output: number];
      readonly tags: Tags | undefined;
      readonly lateHours: number;
      readonly user: string;
    }
  | { readonly kind: "credit"; readonly amount: number }
  | { readonly kind: "pay"; readonly amount: number }
  | { readonly kind: "refund"; readonly share: number }
  | { readonly kind: "declare"; readonly keys: readonly string[] }
  | { readonly kind: "delete" | "evict" | "publish" }
  | { readonly kind: "tick"; readonly hours: number };

const count = fc.nat(900);
const perMillion = fc.integer({ min: 1, max: 9_999_999 });
const charge = fc.record({
  kind: fc.constant("charge" as const),
  tokens: fc.tuple(count, count, count),
  price: fc.tuple(perMillion, perMillion),
  tags: fc.option(
    fc.dictionary(fc.constantFrom("team", "run"), fc.constantFrom("a", 'b,"'), {
      noNullPrototype: true,
    }),
    { nil: undefined },
  ),
  lateHours: fc.constantFrom(0, 0, 0, 30),
  user: fc.constantFrom("ann", "bob"),
});
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 8, arbitrary: charge },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("credit" as const),
      amount: fc.integer({ min: -900, max: 9000 }).filter((n) => n !== 0),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("pay" as const),
      amount: fc.integer({ min: 1, max: 9000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("refund" as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("declare" as const),
      keys: fc.subarray(["team", "run"]),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constantFrom("delete" as const, "evict" as const, "publish" as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("tick" as const),
      hours: fc.constantFrom(1, 7, 25, 170, LONG),
    }),
  },
);

/** A wallet with a clock and its received payments. */
class Month {
  readonly stub: Stub;
  clock = START;
  readonly #paid: { readonly id: string; readonly amount: number }[] = [];
  #reading = 1;
  /** A receiver of the usage stream and its position. */
  readonly received = new ReceivedLedger();
  #position: StreamStart = { afterSeq: 0 };

  constructor(stub: Stub) {
    this.stub = stub;
  }

  tick(hours: number): void {
    this.clock += hours * HOUR_MS;
    setClock(this.clock);
  }

  async run(one: Command): Promise<void> {
    const { stub } = this;
    if (one.kind === "charge") return this.#charge(one);
    if (one.kind === "tick") {
      this.tick(one.hours);
      if (one.hours === LONG) valueOf(await stub.poke()); // deletes earlier requests
      return;
    }
    if (one.kind === "credit") await credit(stub, one.amount);
    else if (one.kind === "pay") await this.#pay(one.amount);
    else if (one.kind === "refund") await this.#refund(one.share);
    else if (one.kind === "declare") valueOf(await stub.patchSettings({ tagKeys: one.keys }));
    else if (one.kind === "delete") await stub.deleteEndUser("ann");
    else if (one.kind === "publish") valueOf(await stub.poke());
    else {
      await stub.balance();
      await evictDurableObject(stub);
    }
  }

  /** Receives the stream up to the newest row. */
  async receive(): Promise<void> {
    this.#position = await streamTo(this.received, this.stub, this.#position);
  }

  async #charge({ tokens, price, tags, lateHours, user }: Extract<Command, { kind: "charge" }>) {
    const [input, cacheRead, output] = tokens;
    const usage = { input, cacheRead, cacheWrite: 0, output, reasoning: 0 };
    const [perInput, perOutput] = price;
    const sold = { input: perInput, cached: perInput, cacheWrite: perInput, output: perOutput };
    const exact = (input + cacheRead) * perInput + output * perOutput;
    const request = holdOf(0, { most: micros(5000), externalId: user });
    const hold = await this.stub.hold(request);
    if (!hold.ok) return;
    if (lateHours > 0) this.tick(lateHours);
    const generation = { ...GENERATION, usage, price: sold, ...(tags !== undefined && { tags }) };
    const cost = micros(Math.ceil(exact / 1_000_000));
    valueOf(await this.stub.settle({ id: request.id, cost, generation }));
  }

  async #pay(amount: number): Promise<void> {
    const id = `pi_${this.#paid.length}`;
    const method = "checkout" as const;
    const payment = { paymentId: id, purchaseId: `pur_${id}`, netMicro: micros(amount) };
    valueOf(await this.stub.creditPayment({ ...payment, method, actor: SYSTEM_ACTOR }));
    this.#paid.push({ id, amount });
  }

  async #refund(share: number): Promise<void> {
    const last = this.#paid.at(-1);
    if (last === undefined) return;
    const backMicro = micros(Math.floor(last.amount * share));
    const back = { paymentId: last.id, purchaseId: `pur_${last.id}`, backMicro };
    const reading = this.#reading++;
    valueOf(await this.stub.setBack({ ...back, reading, isDisputed: false }));
  }

  async csv(days: readonly string[]): Promise<string> {
    const sources = {
      orgId: "org",
      wallet: () => this.stub,
      payments: () => ({
        taxes: async (ids: readonly string[]) =>
          success(Object.fromEntries(ids.map((id) => [id, micros(TAX)]))),
      }),
    };
    let text = `${FOCUS_EXPORT_COLUMNS.join(",")}\r\n`;
    for await (const page of readExportPages(sources, days)) text += valueOf(page);
    return text;
  }

  /** Returns every day from the start to now. */
  days(): string[] {
    const days: string[] = [];
    for (let ms = START; ms < this.clock + DAY_MS; ms += DAY_MS) days.push(periodOf(ms).day);
    return days;
  }
}

/** Adds everything after a position to a receiver's ledger. Returns the new position. */
async function streamTo(
  received: ReceivedLedger,
  stub: Stub,
  start: StreamStart,
): Promise<StreamStart> {
  let from = start;
  for (;;) {
    const page = valueOf(await stub.usageStream({ from, limit: 3 }));
    received.add(JSON.parse(createUsageMessage("org", page).body) as UsageMessage);
    if (page.next.seq === page.from.seq) return page.next;
    from = page.next;
  }
}

describe("the FOCUS export", () => {
  it("equals the sums of ledger, usage and usage.settled events, and never changes for a past day", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 50, size: "max" }), async (commands) => {
        setClock(START);
        const { stub } = await newWallet(20_000);
        const month = new Month(stub);
        const closed = new Map<string, string>();
        for (const one of commands) {
          await month.run(one);
          if (one.kind === "publish") await month.receive();
          if (one.kind !== "tick" || one.hours === LONG) continue;
          const query = { day: "2031-01-01", after: null, limit: 1 };
          const { completeThrough } = valueOf(await stub.chargesOfDay(query));
          const through = completeThrough ?? "";
          for (const day of month.days().filter((date) => date <= through && !closed.has(date))) {
            closed.set(day, await month.csv([day]));
          }
        }
        const rows = parseFocusRows(await month.csv(month.days()));
        expect(brokenFocusRules(rows)).toEqual([]);
        const ledger = valueOf(await stub.ledger(0, 1000)).rows;
        const entered = ledger.reduce((sum, { amountMicro }) => sum + amountMicro, 0);
        expect(sumOf(rows, "x_LedgerAmount")).toBe(BigInt(entered) * 1_000_000n);
        expect(entered).toBe(valueOf(await stub.balance()).creditsMicro);
        const usage = valueOf(await stub.usage("2031-01-01", "2031-12-31", "day")).total;
        const used = rows.filter(({ SubAccountId: key }) => key !== undefined);
        expect(sumOf(used, "EffectiveCost")).toBe(BigInt(usage.costMicro) * 1_000_000n);
        valueOf(await stub.patchSettings({ tagKeys: ["team"] }));
        const byTeam = valueOf(await stub.usage("2031-01-01", "2031-12-31", "tag:team")).data;
        expect(byTeam.reduce((sum, one) => sum + one.costMicro, 0)).toBe(usage.costMicro);
        await month.receive();
        const fresh = new ReceivedLedger();
        await streamTo(fresh, stub, { afterSeq: 0 });
        for (const received of [month.received, fresh]) {
          expect(received.sum()).toBe(entered);
          expect(received.sum("usage", "rollup") + usage.costMicro).toBe(0);
          expect(received.sum("credit")).toBe(entered + usage.costMicro);
        }
        await streamTo(month.received, stub, { afterSeq: Math.floor(ledger.length / 2) });
        expect(month.received.sum()).toBe(entered);
        for (const [day, before] of closed) {
          expect(await month.csv([day])).toBe(before);
        }
        expect(await differences(stub)).toEqual([]);
      }),
      { numRuns: effortFor(15, 300), endOnFailure: true },
    );
  });
});
