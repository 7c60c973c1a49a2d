import * as fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { effort } from "../effort.ts";
import { MUTANTS } from "./payments-mutants.ts";
import { faultsAtRest, faultsNow } from "./payments-oracle.ts";
import { apply, operation } from "./payments-ops.ts";
import type { Operation } from "./payments-ops.ts";
import { PaymentsWorld } from "./payments-world.ts";
import type { Broken } from "./payments-world.ts";

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

/** Lets these things happen, then everything come to rest; the first faults that the oracle sees. */
async function faultsOf(
  happening: readonly Operation[],
  hasTax: boolean,
  broken: Broken = {},
): Promise<readonly string[]> {
  const world = new PaymentsWorld(hasTax, broken);
  await world.begin();
  for (const one of happening) {
    // oxlint-disable-next-line no-await-in-loop -- in the order in which it happens
    await apply(world, one);
    const faults = faultsNow(world);
    if (faults.length > 0) return [`after ${JSON.stringify(one)}`, ...faults];
  }
  world.fake.clearFaults();
  world.bookDown = 0;
  for (const { wallet } of world.organizations) {
    wallet.down = 0;
    wallet.set(null);
  }
  for (let days = 0; days < 4 && (days === 0 || !world.isQuiet); days++) {
    // oxlint-disable-next-line no-await-in-loop -- day by day
    await world.pass(25 * HOUR);
  }
  return faultsAtRest(world);
}

it("money that comes in is credited once, and what goes back is owed once, whatever fails", async () => {
  await fc.assert(
    fc.asyncProperty(operations, fc.boolean(), async (happening, hasTax) => {
      expect(await faultsOf(happening, hasTax)).toEqual([]);
    }),
    { numRuns: effort(100, 20_000) },
  );
});

/** A refund is read, its machine killed somewhere, the refund fails, and what was on its way arrives last. */
const lateReading = (after: number): readonly Operation[] => [
  { do: "refund", at: 0, share: 50 },
  { do: "kill", org: 0, after },
  { do: "pass", ms: 11 * 60_000 },
  { do: "pass", ms: 11 * 60_000 },
  { do: "failRefund", at: 0, share: 1 },
  { do: "pass", ms: HOUR },
  { do: "late", org: 0 },
];

describe("the oracle sees what is broken on purpose", () => {
  it.each(Object.entries(MUTANTS))("%s", async (_name, broken) => {
    const found = await fc.check(
      fc.asyncProperty(operations, fc.boolean(), async (happening, hasTax) => {
        expect(await faultsOf(happening, hasTax, broken)).toEqual([]);
      }),
      { numRuns: 300, endOnFailure: true },
    );
    expect(found.failed).toBe(true);
  });

  it("a reading that arrives after a later one, where no fence is", async () => {
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
      /* oxlint-disable no-await-in-loop -- one world after the other */
      expect([after, ...(await faultsOf(lateReading(after), false))]).toEqual([after]);
      broken.push(...(await faultsOf(lateReading(after), false, fenceless)));
      /* oxlint-enable no-await-in-loop */
    }
    expect(broken.join()).toMatch(/7: of pi_/);
  });
});
