import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ReconcileState } from "../../src/shared/contracts/reconciliation.ts";
import { effortFor } from "../effort.ts";
import {
  credit,
  differences,
  holdOf,
  deleteWalletStorage,
  newId,
  newWallet,
  pay,
  rowsOf,
  runAlarm,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const logged: string[] = [];
beforeEach(() => {
  logged.length = 0;
  vi.spyOn(console, "error").mockImplementation((line: string) => void logged.push(line));
});
afterEach(() => setClock(null));

/** Creates a published organization with a charge, a hold and an end user. */
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

/** Returns the differences, after checking that each has its own alert and there are no others. */
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

/** Returns the differences after this statement. */
async function foundAfter(statement: string): Promise<readonly object[]> {
  const { stub, orgId } = await organization();
  await rowsOf(stub, statement);
  return found(stub, orgId);
}

it("a reconciliation finds nothing and raises no alert while wallet and database match", async () => {
  const { stub, orgId } = await organization();
  expect(await found(stub, orgId)).toEqual([]);
  await pay(stub, 7, "cy");
  expect(await found(stub, orgId)).toEqual([]);
  await evictDurableObject(stub);
  expect(await found(stub, orgId)).toEqual([]);
});

it("a reconciliation finds nothing after a late charge and a rollup of old rows", async () => {
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

it("a reconciliation finds nothing in a wallet that was rebuilt from the database", async () => {
  const { stub, orgId } = await organization();
  await deleteWalletStorage(stub);
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
    "the balance of the last checkpoint",
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
  "a reconciliation finds and reports an extra micro-credit in %s",
  async (_what, statement, one) => {
    expect(await foundAfter(statement)).toContainEqual(one);
  },
);

it("a reconciliation finds and reports an extra micro-credit in the database", async () => {
  const { stub, orgId } = await organization();
  await env.DB.prepare("UPDATE balances SET credits_micro = credits_micro + 1 WHERE org_id = ?")
    .bind(orgId)
    .run();
  expect(await found(stub, orgId)).toEqual([{ what: "book balance", expected: 850, found: 851 }]);
});

it("a reconciliation finds and reports a missing ledger row", async () => {
  expect(await foundAfter("DELETE FROM requests WHERE charged = 50")).toContainEqual({
    what: "ledger rows missing",
    expected: 0,
    found: 1,
  });
});

it("a reconciliation finds a wrong charge even after a later credit", async () => {
  const { stub, orgId } = await organization();
  await rowsOf(stub, "UPDATE requests SET charged = 101, cost = 101 WHERE charged = 100");
  valueOf(await credit(stub, 1));
  expect(await found(stub, orgId)).toContainEqual({
    what: "ledger sum",
    expected: 850,
    found: 851,
  });
});

/**
 * Possible errors in the tables: the wrong amounts above, and missing, duplicated or changed rows.
 */
const PLANTED: readonly string[] = [
  ...INJECTED.map(([, statement]) => statement),
  "DELETE FROM requests WHERE charged = 50",
  "DELETE FROM totals WHERE dimension = 'key'",
  "UPDATE requests SET seq = seq + 1000 WHERE charged = 50",
  "UPDATE entries SET seq = 100000 WHERE seq = (SELECT max(seq) FROM entries)",
  "UPDATE requests SET seq = 2 WHERE charged = 100",
  "UPDATE requests SET state = 'held', seq = NULL, balance = NULL, charged = 0, cost = 0 WHERE charged = 50",
];

const DAY_MS = 86_400_000;
const START = Date.UTC(2031, 5, 10, 12);

/** A wallet in use. `at` is its clock, which each action moves. */
class Trade {
  at = START;
  readonly open: string[] = [];
  readonly stub: Stub;

  constructor(stub: Stub) {
    this.stub = stub;
  }

  /** Moves the clock. */
  passes(ms: number): void {
    setClock((this.at += ms));
  }

  async settles(): Promise<void> {
    const id = this.open.shift();
    if (id !== undefined) valueOf(await settle(this.stub, id, 9));
  }
}

/** Actions of others between two slices. */
const MEANWHILE: Readonly<Record<string, (trade: Trade) => Promise<unknown>>> = {
  nothing: () => Promise.resolve(),
  pay: (trade) => pay(trade.stub, 3, trade.at % 2000 === 0 ? "bob" : "cy"),
  credit: async ({ stub }) => valueOf(await credit(stub, 5)),
  hold: async ({ stub, open }) => {
    const request = holdOf(10);
    valueOf(await stub.hold(request));
    open.push(request.id);
  },
  settle: (trade) => trade.settles(),
  void: async ({ stub, open }) => valueOf(await stub.void(open.shift() ?? newId())),
  late: (trade) => {
    trade.passes(3_600_000);
    return trade.settles();
  },
};
/** Actions that restart a reconciliation. */
const RESTARTS: typeof MEANWHILE = {
  publish: async ({ stub }) => valueOf(await stub.poke()),
  evict: ({ stub }) => evictDurableObject(stub),
  retain: (trade) => {
    trade.passes(31 * DAY_MS);
    return runAlarm(trade.stub);
  },
};
const RESTARTS_MAX = 6;

async function does(trade: Trade, what: string): Promise<void> {
  trade.passes(1000);
  await (MEANWHILE[what] ?? RESTARTS[what])?.(trade);
}

/** Creates a wallet with a rollup, a checkpoint and later rows. */
async function inTrade(): Promise<{ stub: Stub; trade: Trade }> {
  setClock(START - 40 * DAY_MS);
  const { stub } = await organization();
  setClock(START);
  await runAlarm(stub); // older rows are rolled up now
  const trade = new Trade(stub);
  for (const what of ["pay", "hold", "late", "hold"]) await does(trade, what);
  await pay(stub, 100, "bob");
  await pay(stub, 50);
  valueOf(await stub.poke());
  await pay(stub, 8, "cy");
  return { stub, trade };
}

/**
 * Returns the differences found in slices of `rowsMax` rows, those of one complete reading at the
 * start, and the number of slices.
 */
async function inSlices(stub: Stub, rowsMax: number, meanwhile: (turn: number) => Promise<void>) {
  let from: ReconcileState = { tries: 0, run: null };
  let whole = valueOf(await stub.reconcile());
  for (let turn = 1; ; turn++) {
    const { next, ...sliced } = valueOf(await stub.reconcile({ from, withinMs: 0, rowsMax }));
    const before = whole;
    if (from.run === null) whole = valueOf(await stub.reconcile());
    // its alarm ran in between
    if (from.run === null && JSON.stringify(before) !== JSON.stringify(whole)) continue;
    if (next === undefined) return { sliced, whole, turns: turn };
    from = next;
    await meanwhile(turn);
    if (from.run === null) whole = valueOf(await stub.reconcile());
  }
}

it("a reconciliation in slices finds the differences that a single pass finds, despite changes in between", async () => {
  const all = [MEANWHILE, RESTARTS].flatMap((some) => Object.keys(some));
  const meanwhile = fc
    .array(fc.constantFrom(...all), { minLength: 5, maxLength: 40 })
    .filter((done) => done.filter((one) => one in RESTARTS).length <= RESTARTS_MAX);
  const planted = fc.uniqueArray(fc.constantFrom(...PLANTED), { maxLength: 2 });
  let most = 0;
  await fc.assert(
    fc.asyncProperty(
      meanwhile,
      planted,
      fc.integer({ min: 1, max: 6 }),
      async (others, faults, rowsMax) => {
        const { stub, trade } = await inTrade();
        for (const fault of faults) await rowsOf(stub, fault);
        const { sliced, whole, turns } = await inSlices(stub, rowsMax, (turn) =>
          does(trade, others[turn - 1] ?? "nothing"),
        );
        expect(sliced).toEqual({ ...whole, rowsRead: expect.any(Number) });
        most = Math.max(most, turns);
      },
    ),
    {
      numRuns: effortFor(12, 150),
      examples: [
        [["pay", "publish"], [], 1], // while it reads usage
        // while it reads the ledger
        [[...Array.from({ length: 16 }, () => "pay"), "retain"], [], 1],
      ],
    },
  );
  expect(most).toBeGreaterThan(5); // confirms that it used slices
});

it("a reconciliation returns 409 only after disappearing rows have forced eight restarts", async () => {
  const { stub } = await organization();
  let answer = await stub.reconcile({ withinMs: 0, rowsMax: 1 });
  let tries = 0;
  while (answer.ok) {
    const { next: from } = answer.value;
    if (from === undefined) break;
    ({ tries } = from);
    if (from.run !== null) await evictDurableObject(stub);
    answer = await stub.reconcile({ from, withinMs: 0, rowsMax: 1 });
  }
  expect({ answer, tries }).toMatchObject({ answer: { failure: { kind: "conflict" } }, tries: 8 });
});
