import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { effortFor } from "../effort.ts";
import { CHARGE_MUTANTS, MUTANTS } from "./payments-mutants.ts";
import { faultsAtRest, faultsNow } from "./payments-oracle.ts";
import { apply, operation } from "./payments-ops.ts";
import type { Operation } from "./payments-ops.ts";
import { PaymentsFixture } from "./payments-fixture.ts";
import type { Broken } from "./payments-fixture.ts";

const HOUR = 3_600_000;
const operations = fc.array(operation, { minLength: 10, maxLength: 60, size: "max" });

beforeEach(() => {
  for (const level of ["warn", "error", "log"] as const) {
    vi.spyOn(console, level).mockImplementation(() => undefined);
  }
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** Runs these operations until everything has settled. Returns the first detected faults. */
async function faultsOf(
  happening: readonly Operation[],
  hasTax: boolean,
  broken: Broken = {},
): Promise<readonly string[]> {
  const fixture = new PaymentsFixture(hasTax, broken);
  await fixture.begin();
  for (const one of happening) {
    await apply(fixture, one);
    const faults = faultsNow(fixture);
    if (faults.length > 0) return [`after ${JSON.stringify(one)}`, ...faults];
  }
  fixture.fake.clearFaults();
  fixture.bookDown = 0;
  for (const { wallet } of fixture.organizations) {
    wallet.down = 0;
    wallet.set(null);
  }
  for (const hours of [1, 25, 25, 25]) {
    if (hours === 1 || !fixture.isQuiet) await fixture.pass(hours * HOUR);
  }
  return faultsAtRest(fixture);
}

/** A long run has 20,000 runs in parts, so that each part can be run separately. */
const PARTS = Array.from({ length: effortFor(1, 10) }, (_, part) => part + 1);

it.each(PARTS)(
  "each payment is credited once and each refund or dispute deducted once, whatever fails: part %i",
  async () => {
    await fc.assert(
      fc.asyncProperty(operations, fc.boolean(), async (happening, hasTax) => {
        expect(await faultsOf(happening, hasTax)).toEqual([]);
      }),
      { numRuns: effortFor(50, 2000) },
    );
  },
);

/**
 * A refund is read, and its instance is killed somewhere. Then the refund fails, and the earlier
 * call arrives last.
 */
const lateReading = (after: number): readonly Operation[] => [
  { do: "refund", at: 0, share: 50 },
  { do: "kill", org: 0, after },
  { do: "pass", ms: 11 * 60_000 },
  { do: "pass", ms: 11 * 60_000 },
  { do: "failRefund", at: 0, share: 1 },
  { do: "pass", ms: HOUR },
  { do: "late", org: 0 },
];

it("a permanently declined card stays disabled even if the invoice is paid by another method", async () => {
  const happening: readonly Operation[] = [
    { do: "bank", behavior: { blocked: true } },
    { do: "fault", kind: "no_answer", when: "before", on: /^GET / },
    { do: "topUp", org: 1, on: true, dollars: 5 },
    { do: "payElsewhere", org: 0 },
    { do: "pass", ms: 1000 },
    { do: "bank", behavior: { decline_code: "lost_card" } },
    { do: "pass", ms: 7 * HOUR },
  ];
  expect(await faultsOf(happening, false)).toEqual([]);
});

it("a permanently declined card stays disabled even if the declined purchase is canceled", async () => {
  const happening: readonly Operation[] = [
    { do: "bank", behavior: { decline_code: "lost_card" } },
    { do: "fault", kind: "no_answer", when: "before", on: /\/void$/ },
    { do: "topUp", org: 0, on: true, dollars: 5 },
    { do: "bank", behavior: { decline_code: "lost_card" } },
    { do: "cancel", at: 0 },
    { do: "pass", ms: 7 * HOUR },
  ];
  expect(await faultsOf(happening, false)).toEqual([]);
});

const PAUSE: Operation = { do: "pass", ms: 7 * HOUR };
/** Enables automatic purchases, which the bank declines with this code. */
const declined = (decline_code: string): readonly Operation[] => [
  ...Array.from({ length: 8 }, () => ({ do: "bank", behavior: { decline_code } }) as const),
  { do: "topUp", org: 0, on: true, dollars: 5 },
  ...Array.from({ length: 12 }, () => PAUSE),
];

/** Finds each planted fault within a few runs. */
const SEED = 6;

describe("the check of payments in this test", () => {
  it.each(Object.entries(MUTANTS))("finds the planted fault: %s", async (_name, broken) => {
    const found = await fc.check(
      fc.asyncProperty(operations, fc.boolean(), async (happening, hasTax) => {
        expect(await faultsOf(happening, hasTax, broken)).toEqual([]);
      }),
      { numRuns: 300, endOnFailure: true, seed: SEED },
    );
    expect(found.failed).toBe(true);
  });

  it.each(Object.entries(CHARGE_MUTANTS))(
    "finds the planted fault after a decline: %s",
    async (_name, { broken, bank, fault }) => {
      expect(await faultsOf(declined(bank), false)).toEqual([]);
      expect((await faultsOf(declined(bank), false, broken)).join()).toMatch(fault);
    },
  );

  it("finds a wallet that applies an outdated state of a payment after a newer state", async () => {
    const fenceless: Broken = {
      wallet: (wallet) => {
        const real = wallet.setBack.bind(wallet);
        let reading = 0;
        wallet.setBack = (back) => real({ ...back, reading: ++reading });
        return wallet;
      },
    };
    const broken: string[] = [];
    for (let after = 0; after < 16; after++) {
      expect([after, ...(await faultsOf(lateReading(after), false))]).toEqual([after]);
      broken.push(...(await faultsOf(lateReading(after), false, fenceless)));
    }
    expect(broken.join()).toMatch(/7: of pi_/);
  });
});
