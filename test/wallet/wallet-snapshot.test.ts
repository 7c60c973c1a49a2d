import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import * as fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { effortFor } from "../effort.ts";
import { FaultyDatabase } from "./faulty-database.ts";
import type { Fault } from "./faulty-database.ts";
import {
  credit,
  deleteWalletStorage,
  differences,
  failureOf,
  holdOf,
  newWallet,
  pay,
  rowsOf,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

afterEach(() => setClock(null));

/** More rows than one bound value can contain. */
const MANY = effortFor(60_000, 100_000);

const FAULTS: readonly Fault[] = [
  "none",
  "none",
  "none",
  "throw",
  "throw-after",
  "delay",
  "duplicate",
];

type Step =
  | { kind: "pay"; user: string; cost: number }
  | { kind: "delete" | "put"; user: string }
  | { kind: "publish"; fault: Fault }
  | { kind: "deliver"; die: number }
  | { kind: "remember" | "restore" | "evict" | "settings" };

const user = fc.constantFrom("a", "b", "c");

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("pay" as const),
      user,
      cost: fc.integer({ min: 1, max: 60 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constantFrom("delete" as const, "put" as const), user }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("publish" as const),
      fault: fc.constantFrom(...FAULTS),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("deliver" as const), die: fc.nat(5) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("evict" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constantFrom("remember" as const, "restore" as const, "settings" as const),
    }),
  },
);

describe("the database's copy of a wallet", () => {
  it("matches the wallet after the first successful publish, whatever failures D1 had before", async () => {
    const result = await fc.check(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 30, size: "max" }), runSteps),
      { numRuns: effortFor(8, 40), seed: 11, endOnFailure: true },
    );
    expect(result.failed ? fc.defaultReportMessage(result) : "").toBe("");
  });

  it("includes thousands of end users, even after the database is restored to an earlier time", async () => {
    const { stub, orgId } = await newWallet(100);
    await runInDurableObject(stub, (_wallet: Wallet, state) => {
      state.storage.sql.exec(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO end_users (id, external_id, alert_threshold, month, monthly_spend, day,
          daily_spend, created_at, changed) SELECT 'id' || i, 'x' || i, 1, '', 0, '', 0, 0, 1 FROM n`,
      );
    });
    await evictDurableObject(stub);
    const database = new FaultyDatabase(orgId);
    valueOf(await stub.poke());
    expect((await database.rows())["end_users"]).toHaveLength(5000);
    await database.restore();
    expect((await database.rows())["balances"]).toEqual([]);
    await pay(stub, 1, "x7");
    valueOf(await stub.poke());
    expect((await database.rows())["end_users"]).toHaveLength(5000);
  });

  it(`includes ${MANY} changed end users, even after an outage during the publish`, async () => {
    const { stub, orgId } = await newWallet(1000);
    await pay(stub, 10, "first");
    await runInDurableObject(stub, (_wallet: Wallet, state) => {
      state.storage.sql.exec(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${MANY - 1})
        INSERT INTO end_users (id, external_id, alert_threshold, month, monthly_spend, day, daily_spend,
          created_at, changed)
        SELECT printf('%036d', i), 'u' || i, 0.8, '2031-01', i, '2031-01-01', i, i, 1 FROM n`,
      );
    });
    await evictDurableObject(stub);
    const book = new FaultyDatabase(orgId);
    await book.install(stub);
    book.failsAfter = 12; // sent batches are repeated
    valueOf(await stub.poke());
    expect(book.failsAfter).toBeLessThan(0);
    const count = env.DB.prepare("SELECT count(*) AS n FROM end_users WHERE org_id = ?");
    const sent = await count.bind(orgId).first<number>("n");
    expect(sent).toBeGreaterThan(10_000);
    expect(sent).toBeLessThan(MANY);
    book.failsAfter = Infinity;
    valueOf(await stub.poke());
    expect(await count.bind(orgId).first("n")).toBe(MANY);
    expect(valueOf(await stub.poke()).isUnpublished).toBe(false);
  });

  it("may be outdated while the database is down, without blocking holds or charges", async () => {
    const { stub, orgId } = await newWallet(1000);
    const database = new FaultyDatabase(orgId);
    await database.install(stub);
    database.fault = "throw";
    for (let i = 0; i < 20; i++) {
      await pay(stub, 2, "u");
      valueOf(await stub.poke());
    }
    expect((await database.rows())["balances"]).toEqual([]);
    database.fault = "none";
    valueOf(await stub.poke());
    expect((await database.rows())["balances"]).toMatchObject([{ credits_micro: 960 }]);
    expect((await database.rows())["end_users"]).toMatchObject([{ daily_spend_micro: 40 }]);
    expect((await database.rows())["daily_usage"]).toMatchObject([
      { requests: 20, cost_micro: 40 },
    ]);
    expect(await differences(stub)).toEqual([]);
  });

  it("stays unchanged if it belongs to another wallet, and makes this wallet reject holds", async () => {
    const { stub, orgId } = await newWallet(100);
    const request = holdOf(10);
    valueOf(await stub.hold(request));
    valueOf(await stub.poke());
    await env.DB.prepare("UPDATE balances SET epoch = 'other' WHERE org_id = ?").bind(orgId).run();
    valueOf(await settle(stub, request.id, 10));
    valueOf(await stub.poke());
    expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
    await evictDurableObject(stub);
    expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
    const { results } = await env.DB.prepare("SELECT * FROM balances WHERE org_id = ?")
      .bind(orgId)
      .all();
    expect(results).toMatchObject([{ epoch: "other", credits_micro: 100 }]);
    const { epoch } = await stub.create(orgId);
    await env.DB.prepare("UPDATE balances SET epoch = ? WHERE org_id = ?").bind(epoch, orgId).run();
    valueOf(await stub.poke());
    expect(valueOf(await stub.hold(holdOf(1))).granted).toBe(1);
  });

  it("restores a lost wallet's balance, end users, settings and daily usage", async () => {
    const { stub, orgId } = await newWallet(100);
    valueOf(await stub.patchSettings({ defaultUserDailyQuotaMicro: micros(50) }));
    await pay(stub, 30, "u");
    valueOf(await stub.poke());
    await deleteWalletStorage(stub);
    expect(failureOf(await stub.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
    expect(valueOf(await stub.rebuild(orgId)).creditsMicro).toBe(70);
    expect(failureOf(await stub.rebuild(orgId))).toMatchObject({ kind: "conflict" });
    expect(failureOf(await stub.hold(holdOf(21, { externalId: "u" })))).toMatchObject({
      period: "day",
    });
    await pay(stub, 20, "u");
    valueOf(await stub.poke());
    expect((await new FaultyDatabase(orgId).rows())["balances"]).toMatchObject([
      { credits_micro: 50 },
    ]);
    expect(await differences(stub)).toEqual([]);
  });
});

async function runSteps(steps: readonly Step[]): Promise<void> {
  const { stub, orgId } = await newWallet();
  await credit(stub, 100_000);
  const database = new FaultyDatabase(orgId);
  await database.install(stub);
  for (const one of steps) await take(one, stub, database);
  database.fault = "none";
  while (database.late.length > 0) await database.deliver(3);
  valueOf(await stub.putEndUser("healed", {}));
  valueOf(await stub.poke());
  await compare(stub, database);
  expect(await differences(stub)).toEqual([]);
}

async function take(one: Step, stub: Stub, database: FaultyDatabase): Promise<void> {
  if (one.kind === "pay") await pay(stub, one.cost, one.user);
  if (one.kind === "put") await stub.putEndUser(one.user, { dailyQuotaMicro: micros(500) });
  if (one.kind === "delete") await stub.deleteEndUser(one.user);
  if (one.kind === "settings") {
    await stub.patchSettings({ lowBalanceThresholdMicro: micros(99_900) });
  }
  if (one.kind === "deliver") await database.deliver(one.die);
  if (one.kind === "remember") await database.remember();
  if (one.kind === "restore") await database.restore();
  if (one.kind === "evict") {
    await evictDurableObject(stub);
    await database.install(stub);
  }
  if (one.kind === "publish") {
    database.fault = one.fault;
    valueOf(await stub.poke());
  }
}

/** Compares every database row with the wallet's own tables and responses. */
async function compare(stub: Stub, database: FaultyDatabase): Promise<void> {
  const book = await database.rows();
  const balance = valueOf(await stub.balance()).creditsMicro;
  expect(book["balances"]).toMatchObject([{ credits_micro: balance }]);
  const users = valueOf(await stub.listEndUsers(100, 0)).endUsers;
  expect(
    book["end_users"]?.map((row) => [
      row["id"],
      row["daily_spend_micro"],
      row["daily_quota_micro"],
    ]),
  ).toEqual(
    users
      .map((one) => [one.id, one.dailySpendMicro, one.dailyQuotaMicro])
      .toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1)),
  );
  const days = await rowsOf(stub, "SELECT cost FROM totals WHERE dimension = 'day'");
  expect(book["daily_usage"]?.map((row) => row["cost_micro"])).toEqual(
    days.map((row) => row["cost"]),
  );
  const alerts = await rowsOf(stub, "SELECT id FROM alerts ORDER BY id");
  expect(book["alerts"]?.map((row) => row["id"])).toEqual(alerts.map((row) => row["id"]));
  const settings = valueOf(await stub.readSettings());
  expect(book["settings"]).toMatchObject([
    { low_balance_threshold_micro: settings.lowBalanceThresholdMicro },
  ]);
}

const START = Date.UTC(2037, 8, 30, 12);

const DAY = 86_400_000;

it.each([false, true])(
  "a restored database matches the ledger after the wallet's next publish (evicted: %s)",
  async (evicted) => {
    setClock(START);
    const { stub, orgId } = await newWallet(1000);
    const database = new FaultyDatabase(orgId);
    valueOf(await stub.putEndUser("u", { dailyQuotaMicro: micros(100) }));
    await pay(stub, 80, "u");
    valueOf(await stub.poke());
    await database.remember();
    for (let day = 1; day <= 3; day++) {
      setClock(START + day * DAY);
      await pay(stub, 80 + day, "u");
      valueOf(await stub.poke());
    }
    await database.restore();
    expect(await differences(stub)).toMatchObject([
      { what: "book balance", expected: 1000 - 326, found: 920 },
    ]);
    if (evicted) await evictDurableObject(stub);
    await credit(stub, 1);
    valueOf(await stub.poke());
    const book = await database.rows();
    const { rows } = valueOf(await stub.ledger(0, 100));
    const sum = rows.reduce((total, row) => total + row.amountMicro, 0);
    expect(book["balances"]).toMatchObject([{ credits_micro: sum }]);
    const { data } = valueOf(await stub.usage("2037-09-30", "2037-10-03", "day"));
    expect(data.map(({ costMicro }) => costMicro)).toEqual([80, 81, 82, 83]);
    expect(book["daily_usage"]).toMatchObject(
      data.map(({ group, costMicro }) => ({ day: group, cost_micro: costMicro })),
    );
    const { alerts } = valueOf(await stub.alerts(10, 0));
    expect(alerts).toHaveLength(4);
    expect(book["alerts"]?.map((row) => row["id"])).toEqual(alerts.map(({ id }) => id).toSorted());
    expect(book["end_users"]).toMatchObject([{ day: "2037-10-03", daily_spend_micro: 83 }]);
    expect(await differences(stub)).toEqual([]);
  },
);
