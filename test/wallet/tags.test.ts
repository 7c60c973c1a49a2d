import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { effortFor } from "../effort.ts";
import { micros } from "../../src/shared/money.ts";
import { periodOf } from "../../src/shared/period.ts";
import type { Tags } from "../../src/shared/tags.ts";
import type { UsageReport } from "../../src/shared/contracts/reports.ts";
import type { WalletMethods } from "../../src/shared/contracts/wallet.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { countWrites, differences, failureOf, GENERATION, holdOf } from "./wallet-fixture.ts";
import { newWallet, setClock, valueOf } from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const START = Date.UTC(2031, 0, 31, 20);
const HOUR_MS = 3_600_000;
const KEYS = ["team", "run", "a.b/c"] as const;

afterEach(() => setClock(null));

type Charges = Pick<WalletMethods, "hold" | "settle">;

async function charge(stub: Charges, cost: number, tags?: Tags): Promise<void> {
  const request = holdOf(cost);
  valueOf(await stub.hold(request));
  const generation = tags === undefined ? GENERATION : { ...GENERATION, tags };
  valueOf(await stub.settle({ id: request.id, cost: micros(cost), generation }));
}

type Command =
  | { readonly kind: "charge"; readonly cost: number; readonly tags: Tags | undefined }
  | { readonly kind: "declare"; readonly keys: readonly string[] }
  | { readonly kind: "evict" | "publish" }
  | { readonly kind: "tick"; readonly hours: number };

const tags = fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom("x", "y", 'ä"\\'), {
  noNullPrototype: true,
});
const command: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("charge" as const),
      cost: fc.nat(90),
      tags: fc.option(tags, { nil: undefined }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("declare" as const),
      keys: fc.shuffledSubarray([...KEYS]),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("evict" as const, "publish" as const) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("tick" as const),
      hours: fc.integer({ min: 1, max: 9 }),
    }),
  },
);

type Charged = { readonly day: string; readonly cost: number; readonly tags: Tags };

async function run(stub: Stub, commands: readonly Command[]): Promise<Charged[]> {
  const charged: Charged[] = [];
  let keys: readonly string[] = [];
  let clock = START;
  for (const one of commands) {
    if (one.kind === "charge") {
      await charge(stub, one.cost, one.tags);
      const counted = Object.entries(one.tags ?? {}).filter(([key]) => keys.includes(key));
      charged.push({
        day: periodOf(clock).day,
        cost: one.cost,
        tags: Object.fromEntries(counted),
      });
    } else if (one.kind === "declare") {
      ({ keys } = one);
      valueOf(await stub.patchSettings({ tagKeys: keys }));
    } else if (one.kind === "tick") {
      clock += one.hours * HOUR_MS;
      setClock(clock);
    } else if (one.kind === "evict") {
      await stub.balance(); // an object that isn't running can't be evicted
      await evictDurableObject(stub);
    } else {
      valueOf(await stub.poke());
    }
  }
  valueOf(await stub.patchSettings({ tagKeys: KEYS }));
  return charged;
}

const DAYS = ["2031-01-31", "2031-02-28"] as const;

/** Returns the charges by day and value, in the format of `day,tag:key`. */
function expectedOf(charged: readonly Charged[], key: string): (string | number | null)[][] {
  const sums = new Map<string, (string | number | null)[]>();
  for (const { day, cost, tags: those } of charged) {
    const value = those[key] ?? null;
    const name = `${day} ${value ?? ""}`;
    const [, , requests, before] = sums.get(name) ?? [day, value, 0, 0];
    sums.set(name, [day, value, Number(requests) + 1, Number(before) + cost]);
  }
  return [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum);
}

describe("daily usage by tag", () => {
  it("equals the ledger whatever the charges, declared tag keys, evictions and publishes", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(command, { maxLength: 40, size: "max" }), async (commands) => {
        setClock(START);
        const { stub } = await newWallet(1_000_000);
        const charged = await run(stub, commands);
        const { rows } = valueOf(await stub.ledger(0, 1000));
        const ledger = rows.filter(({ kind }) => kind === "usage");
        const spent = ledger.reduce((sum, { amountMicro }) => sum - amountMicro, 0);
        for (const key of KEYS) {
          const report = valueOf(await stub.usage(...DAYS, `day,tag:${key}`));
          const { data, total } = report;
          expect(data.map((one) => [one.day, one.group, one.requests, one.costMicro])).toEqual(
            expectedOf(charged, key),
          );
          expect(total.costMicro).toBe(spent);
          const whole = valueOf(await stub.usage(...DAYS, `tag:${key}`));
          expect(whole.data.reduce((sum, one) => sum + one.costMicro, 0)).toBe(spent);
        }
        expect(await differences(stub)).toEqual([]);
      }),
      { numRuns: effortFor(15, 400), endOnFailure: true },
    );
  });

  it("groups tag values beyond a day's first 1,000 as 'other', and still counts known values", async () => {
    setClock(START);
    const { stub } = await newWallet(1_000_000);
    valueOf(await stub.patchSettings({ tagKeys: ["run", "team"] }));
    await runInDurableObject(stub, async (wallet: Wallet) => {
      for (let i = 0; i < 1005; i++) {
        await charge(wallet, 1, { run: `r${i}`, team: i % 2 === 0 ? "a" : "b" });
        if (i === 900) valueOf(await wallet.poke());
      }
    });
    const check = async (): Promise<void> => {
      const runs = valueOf(await stub.usage(...DAYS, "tag:run"));
      expect(runs.data).toHaveLength(1001);
      expect(runs.data.find(({ group }) => group === "other")).toMatchObject({ costMicro: 5 });
      expect(runs.data.find(({ group }) => group === "r999")).toMatchObject({ costMicro: 1 });
      const teams = valueOf(await stub.usage(...DAYS, "tag:team"));
      expect(teams.data.map(({ group, costMicro }) => [group, costMicro])).toEqual([
        ["a", 503],
        ["b", 502],
      ]);
    };
    await check();
    await evictDurableObject(stub);
    await check();
    valueOf(await stub.poke());
    await check();
  });

  it("arrives in pages that contain every group once", async () => {
    setClock(START);
    const { stub } = await newWallet(1_000_000);
    valueOf(await stub.patchSettings({ tagKeys: ["team"] }));
    for (const team of ["b", "a", undefined, "c"]) {
      await charge(stub, 1, team === undefined ? undefined : { team });
    }
    for (const by of ["tag:team", "day,tag:team"] as const) {
      const groups: (string | null)[] = [];
      for (let after: string | null = null; ;) {
        const page: UsageReport = valueOf(await stub.usage(...DAYS, by, { limit: 1, after }));
        groups.push(...page.data.map(({ group }) => group));
        if (page.nextAfter === null) break;
        after = page.nextAfter;
      }
      expect(groups).toEqual([null, "a", "b", "c"]);
    }
  });

  it("fails for a tag key that isn't declared", async () => {
    const { stub } = await newWallet();
    expect(failureOf(await stub.usage(...DAYS, "tag:team"))).toMatchObject({ param: "group_by" });
  });

  it("needs no row for a request without tags, and at most one row for a request with tags", async () => {
    const { stub } = await newWallet(1_000_000);
    valueOf(await stub.patchSettings({ tagKeys: ["team"] }));
    await charge(stub, 1);
    valueOf(await stub.poke());
    await runInDurableObject(stub, async (wallet: Wallet, { storage }) => {
      /** Returns the written rows of ten charges and of the publish after them. */
      const rowsOf = async (tagsOf: (n: number) => Tags | undefined): Promise<number[]> => {
        const charged = await countWrites(storage, async () => {
          for (let n = 0; n < 10; n++) await charge(wallet, 1, tagsOf(n));
        });
        const published = await countWrites(storage, async () => void valueOf(await wallet.poke()));
        return [charged, published];
      };
      const [plain = NaN, published = NaN] = await rowsOf(() => undefined);
      const [tagged, publishedTagged = NaN] = await rowsOf((n) => ({ team: `t${n}` }));
      expect([plain, tagged]).toEqual([20, 20]);
      expect(publishedTagged - published).toBeLessThanOrEqual(10);
    });
  });
});
