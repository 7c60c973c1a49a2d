import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import {
  credit,
  differences,
  holdOf,
  lose,
  newWallet,
  pay,
  rowsOf,
  runAlarm,
  setClock,
  settle,
  valueOf,
} from "./wallet-desk.ts";
import type { Stub } from "./wallet-desk.ts";

const logged: string[] = [];
beforeEach(() => {
  logged.length = 0;
  vi.spyOn(console, "error").mockImplementation((line: string) => void logged.push(line));
});
afterEach(() => {
  setClock(null);
  vi.restoreAllMocks();
});

/** An organisation of the book whose wallet has paid, holds, has an end user and was published. */
async function organization(): Promise<{ stub: Stub; orgId: string }> {
  const { stub, orgId } = await newWallet(1000);
  await env.DB.prepare(
    "INSERT INTO organizations (id, name, slug, region, created_at) VALUES (?1, 'R', ?1, 'eu', 0)",
  )
    .bind(orgId)
    .run();
  await pay(stub, 100, "bob");
  await pay(stub, 50);
  valueOf(await stub.hold(holdOf(70)));
  valueOf(await stub.poke());
  return { stub, orgId };
}

/** What reconciling finds, each with an alert of its own, and no alert beside these. */
async function found(stub: Stub, orgId: string): Promise<readonly object[]> {
  const all = await differences(stub);
  const alerts = logged
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter((line) => line["org_id"] === orgId); // wallets of other tests still wake up
  expect(alerts).toEqual(
    all.map((difference) => ({
      event: "alert",
      alert: "reconciliation_difference",
      org_id: orgId,
      ...difference,
    })),
  );
  return all;
}

/** What reconciling finds after this statement. */
async function foundAfter(statement: string): Promise<readonly object[]> {
  const { stub, orgId } = await organization();
  await rowsOf(stub, statement);
  return found(stub, orgId);
}

it("nothing is found, and nobody is alerted, while everything agrees", async () => {
  const { stub, orgId } = await organization();
  expect(await found(stub, orgId)).toEqual([]);
  await pay(stub, 7, "cy");
  expect(await found(stub, orgId)).toEqual([]);
  await evictDurableObject(stub);
  expect(await found(stub, orgId)).toEqual([]);
});

it("nothing is found after a late settle and after old rows were rolled up", async () => {
  const start = Date.UTC(2031, 2, 10, 12);
  setClock(start);
  const { stub, orgId } = await organization();
  const late = holdOf(30);
  valueOf(await stub.hold(late));
  setClock(start + 3_600_000);
  expect(valueOf(await settle(stub, late.id, 30))).toMatchObject({ charged: 30 });
  expect(await found(stub, orgId)).toEqual([]);
  setClock(start + 40 * 86_400_000);
  await runAlarm(stub);
  await pay(stub, 5);
  expect(await found(stub, orgId)).toEqual([]);
  const rollups = await rowsOf(stub, "SELECT amount FROM entries WHERE kind = 'rollup'");
  expect(rollups).toEqual([{ amount: -180 }]);
});

it("nothing is found in a wallet that was rebuilt from the book", async () => {
  const { stub, orgId } = await organization();
  await lose(stub);
  expect(valueOf(await stub.rebuild(orgId))).toMatchObject({ creditsMicro: 850 });
  await pay(stub, 5, "bob");
  expect(await found(stub, orgId)).toEqual([]);
});

const INJECTED: readonly (readonly [what: string, statement: string, found: object])[] = [
  [
    "a charge",
    "UPDATE requests SET charged = 101, cost = 101 WHERE charged = 100",
    { what: "ledger sum", expected: 849, found: 850 },
  ],
  [
    "a credit",
    "UPDATE entries SET amount = 1001 WHERE kind = 'credit'",
    { what: "ledger sum", expected: 851, found: 850 },
  ],
  [
    "an open hold",
    "UPDATE requests SET granted = 71, most = 71 WHERE state = 'held'",
    { what: "held", expected: 71, found: 70 },
  ],
  [
    "the balance that a start would begin with",
    "UPDATE checkpoints SET balance = balance + 1",
    { what: "balance", expected: 851, found: 850 },
  ],
  [
    "the usage of a model",
    "UPDATE totals SET cost = cost + 1 WHERE dimension = 'model'",
    { what: "usage by model", expected: 150, found: 151 },
  ],
  [
    "the usage of a key",
    "UPDATE totals SET cost = cost - 1 WHERE dimension = 'key'",
    { what: "usage by key", expected: 150, found: 149 },
  ],
  [
    "the usage of an end user",
    "UPDATE totals SET cost = cost + 1 WHERE dimension = 'user' AND name = 'bob'",
    { what: "usage by user", expected: 150, found: 151 },
  ],
];

it.each(INJECTED)(
  "a micro injected into %s is found, and alerted",
  async (_what, statement, one) => {
    expect(await foundAfter(statement)).toContainEqual(one);
  },
);

it("a micro injected into the book is found, and alerted", async () => {
  const { stub, orgId } = await organization();
  await env.DB.prepare("UPDATE balances SET credits_micro = credits_micro + 1 WHERE org_id = ?")
    .bind(orgId)
    .run();
  expect(await found(stub, orgId)).toEqual([{ what: "book balance", expected: 850, found: 851 }]);
});

it("a ledger row that is gone is found, and alerted", async () => {
  expect(await foundAfter("DELETE FROM requests WHERE charged = 50")).toContainEqual({
    what: "ledger rows missing",
    expected: 0,
    found: 1,
  });
});

it("a credit after the injection does not hide it", async () => {
  const { stub, orgId } = await organization();
  await rowsOf(stub, "UPDATE requests SET charged = 101, cost = 101 WHERE charged = 100");
  valueOf(await credit(stub, 1));
  expect(await found(stub, orgId)).toContainEqual({
    what: "ledger sum",
    expected: 850,
    found: 851,
  });
});
