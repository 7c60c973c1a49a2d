import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { Account, sumOf } from "./account.ts";
import type { LedgerRow } from "./account.ts";
import type { ClientOutcome } from "./peer-traffic.ts";
import { operatorReads } from "./money.ts";
import type { TestRegion, TwoRegions } from "./two-regions.ts";

const EMPTY_WITHIN_MS = 100_000;
const POLL_MS = 50;
/** Concurrent readers. */
const READERS = 8;
const DAY = { from: "2020-01-01", to: "2090-01-01" } as const;

type Outboxes = {
  readonly outboxes: readonly {
    readonly name: string;
    readonly waiting: number | null;
    readonly dead: number | null;
    readonly parked: number | null;
  }[];
};

/** Creates an EU organization that is used in the US. */
export function openRemoteAccount(
  regions: TwoRegions,
  options: { credits?: number } = {},
): Promise<Account> {
  return Account.open(() => regions.eu, { keyScope: "global", rpmLimit: 1000, ...options });
}

/** Returns the number of messages in a region's outboxes by state. */
export async function outboxesOf(region: TestRegion) {
  const { outboxes } = await operatorReads<Outboxes>(region, "/health");
  const total = (count: "waiting" | "dead" | "parked"): number =>
    outboxes.reduce((sum, one) => sum + (one[count] ?? NaN), 0);
  return { waiting: total("waiting"), dead: total("dead"), parked: total("parked") };
}

/** Waits until a region's outboxes have delivered everything. */
export async function delivered(region: TestRegion): Promise<void> {
  const deadline = performance.now() + EMPTY_WITHIN_MS;
  for (;;) {
    const { waiting, ...ended } = await outboxesOf(region);
    expect(ended).toEqual({ dead: 0, parked: 0 });
    if (waiting === 0) return;
    assert.ok(performance.now() < deadline, `${waiting} messages still wait`);
    await sleep(POLL_MS);
  }
}

/**
 * Checks an organization without running requests: no hold is open, the ledger's sum is the
 * balance, the wallet agrees with its rows and the database, and no request is in the ledger twice.
 * Returns the charge of each paid request.
 */
export async function expectAtRest(account: Account): Promise<ReadonlyMap<string, number>> {
  const balance = await account.fullBalance();
  expect(balance).toMatchObject({ open_holds: 0, held_micro: 0 });
  const rows = await account.ledger();
  expect(sumOf(rows)).toBe(balance.credits_micro);
  await account.published();
  expect(await account.differences()).toEqual([]);
  const paid = rows.filter((row) => row.kind === "usage");
  const charges = new Map(paid.map((row) => [row.generation_id ?? "", 0 - row.amount_micro]));
  expect(charges.size).toBe(paid.length);
  await expectSpend(account, paid);
  return charges;
}

/** Checks that end users and daily usage add up to the ledger. */
async function expectSpend(account: Account, paid: readonly LedgerRow[]): Promise<void> {
  const spent = 0 - sumOf(paid);
  const usage = await (await account.wallet()).usage(DAY.from, DAY.to, "user");
  assert.ok(usage.ok);
  expect(usage.value.total).toMatchObject({ requests: paid.length, costMicro: spent });
  const { endUsers } = await account.book();
  for (const { external_id, daily_spend_micro } of endUsers) {
    const one = usage.value.data.find((each) => each.group === external_id);
    expect(daily_spend_micro).toBe(one?.costMicro ?? 0);
  }
}

/** Checks that the ledger has each charge that clients know of once, and no others. */
export function expectKnownCharges(
  charges: ReadonlyMap<string, number>,
  outcomes: readonly ClientOutcome[],
): void {
  const paying = outcomes.filter((one) => one.fate === "paid" || one.fate === "charged");
  for (const { id, cost } of paying) {
    expect(charges.get(id), id).toBeGreaterThan(0);
    if (cost !== null) expect(charges.get(id), id).toBe(cost);
  }
  const known = new Set(paying.map(({ id }) => id));
  const open = outcomes.filter((one) => one.fate === "unknown").length;
  const others = [...charges.keys()].filter((id) => !known.has(id));
  expect(others.length).toBeLessThanOrEqual(open);
  for (const { id } of outcomes.filter((one) => one.fate === "free")) {
    expect(others).not.toContain(id);
  }
}

/**
 * Checks that both regions return the same generation for every paid request, which ran in the US.
 */
export async function expectGenerations(
  account: Account,
  us: TestRegion,
  charges: ReadonlyMap<string, number>,
): Promise<void> {
  const remaining = [...charges];
  const reader = async (): Promise<void> => {
    for (let one = remaining.pop(); one !== undefined; one = remaining.pop()) {
      const [id, cost] = one;
      const here = await account.call(`/generations/${id}`);
      const there = await fetch(`${us.baseUrl}/generations/${id}`, {
        headers: { authorization: `Bearer ${account.key}` },
      });
      const generation = (await here.json()) as object;
      expect([here.status, there.status]).toEqual([200, 200]);
      expect(generation).toMatchObject({ id, cost_micro: cost, region: "us" });
      expect(await there.json()).toEqual(generation);
    }
  };
  await Promise.all(Array.from({ length: READERS }, reader));
}
