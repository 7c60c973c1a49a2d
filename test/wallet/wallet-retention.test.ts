import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, expect, it } from "vitest";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
  credit,
  differences,
  failureOf,
  holdOf,
  newWallet,
  pay,
  rowsOf,
  runAlarm,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

afterEach(() => setClock(null));

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

async function alarmAt(stub: Stub, ms: number): Promise<void> {
  setClock(ms);
  await runAlarm(stub);
}

it("a rollup replaces old ledger rows with one row that has the same sums and usage, and keeps credits", async () => {
  const start = Date.UTC(2031, 2, 10, 12);
  setClock(start);
  const { stub } = await newWallet(1000);
  const [unpaid, lost] = [holdOf(5), holdOf(5)];
  valueOf(await stub.hold(unpaid));
  valueOf(await stub.hold(lost));
  valueOf(await stub.void(unpaid.id));
  await pay(stub, 30, "u");
  await credit(stub, 50);
  await pay(stub, 20);
  await alarmAt(stub, start + 21 * 60_000);
  await alarmAt(stub, start + 2 * DAY + 2 * HOUR);
  expect(await rowsOf(stub, "SELECT count(*) AS n FROM requests")).toEqual([{ n: 3 }]);
  const paid = holdOf(7);
  valueOf(await stub.hold(paid));
  valueOf(await settle(stub, paid.id, 7));
  await alarmAt(stub, start + 31 * DAY);
  await evictDurableObject(stub);
  const { rows } = valueOf(await stub.ledger(0, 100));
  expect(rows.map((row) => [row.kind, row.amountMicro])).toEqual([
    ["credit", 1000],
    ["credit", 50],
    ["rollup", -50],
    ["usage", -7],
  ]);
  expect(valueOf(await stub.usage("2031-03-10", "2031-03-10", "user")).data).toMatchObject([
    { group: null, costMicro: 20 },
    { group: "u", costMicro: 30 },
  ]);
  expect(valueOf(await stub.balance()).creditsMicro).toBe(993);
  expect(failureOf(await stub.request(unpaid.id))).toMatchObject({ kind: "not_found" });
  expect(await differences(stub)).toEqual([]);
});

it("a rollup of 2,100 rows runs in batches, without changing usage, balance or end users", async () => {
  const start = Date.UTC(2032, 2, 30, 23, 50);
  setClock(start);
  const { stub } = await newWallet(10_000);
  const late = holdOf(40, { externalId: "v" });
  valueOf(await stub.hold(late));
  setClock(start + 25 * 60_000);
  const charge = valueOf(await settle(stub, late.id, 20_000)); // late, and above the balance
  expect(charge).toMatchObject({ kind: "settled", charged: 10_000, shortfall: 10_000 });
  await credit(stub, 5000);
  const ids = await payMany(stub, 2100);
  await runAlarm(stub); // as for a publish: determines when its first row is old
  const answers = async (): Promise<string> =>
    JSON.stringify([
      await Promise.all(
        (["day", "model", "key", "user"] as const).map((by) =>
          stub.usage("2032-03-01", "2032-04-30", by),
        ),
      ),
      await stub.balance(),
      await stub.listEndUsers(10, 0),
    ]);
  setClock(start + 29 * DAY);
  const before = await answers();
  expect(await rowsOf(stub, "SELECT count(*) AS n FROM requests")).toEqual([{ n: 2101 }]);
  expect(JSON.parse(before)).toMatchObject([
    [{ value: { total: { requests: 2101, costMicro: 12_100 } } }, {}, {}, {}],
    { value: { creditsMicro: 2900 } },
    {},
  ]);
  for (let alarms = 0; alarms < 2; alarms++) {
    await alarmAt(stub, start + 31 * DAY);
    expect(await answers()).toBe(before);
  }
  expect(await rowsOf(stub, "SELECT count(*) AS n FROM requests")).toEqual([{ n: 0 }]);
  await evictDurableObject(stub);
  expect(await answers()).toBe(before);
  expect(valueOf(await stub.ledger(0, 10)).rows.map((row) => [row.kind, row.amountMicro])).toEqual([
    ["credit", 10_000],
    ["credit", 5000],
    ["rollup", -12_100],
  ]);
  for (const id of [late.id, ids[0] ?? "", ids.at(-1) ?? ""]) {
    expect(failureOf(await stub.request(id))).toMatchObject({ kind: "not_found" });
    expect(valueOf(await settle(stub, id, 1))).toEqual({ kind: "unknown" });
  }
  expect(await answers()).toBe(before);
  expect(await differences(stub)).toEqual([]);
});

/**
 * Pays for requests of one micro-credit, every second one without an end user. Returns their IDs.
 */
async function payMany(stub: Stub, count: number): Promise<string[]> {
  const requests = Array.from({ length: count }, (_, i) =>
    holdOf(1, { externalId: i % 2 === 0 ? "u" : null }),
  );
  await runInDurableObject(stub, async (wallet: Wallet) => {
    for (const request of requests) {
      valueOf(await wallet.hold(request));
      valueOf(await settle(wallet, request.id, 1));
    }
  });
  return requests.map(({ id }) => id);
}

it("a rollup keeps today's and yesterday's Idempotency-Keys, and deletes older keys in batches of 2,000", async () => {
  const start = Date.UTC(2031, 11, 31, 23);
  setClock(start);
  const { stub } = await newWallet(1000);
  valueOf(await stub.hold(holdOf(1, { idempotency: { name: "x", body: "b" } })));
  await rowsOf(
    stub,
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4500)
    INSERT INTO idempotency_keys SELECT '2031-12-31', 'n' || i, 'b', 'req_', ${start} FROM n`,
  );
  await evictDurableObject(stub);
  const keptAfterAlarm = (ms: number): Promise<number> => {
    setClock(ms);
    return runInDurableObject(stub, async (wallet: Wallet, { storage: { sql } }) => {
      await wallet.alarm();
      return sql.exec<{ n: number }>("SELECT count(*) AS n FROM idempotency_keys").one().n;
    });
  };
  expect(await keptAfterAlarm(start + DAY)).toBe(4501);
  expect(await keptAfterAlarm(start + 26 * HOUR)).toBe(2501);
  // More is due, so the next alarms run automatically.
  const kept = () => rowsOf(stub, "SELECT count(*) AS n FROM idempotency_keys");
  await expect.poll(kept).toEqual([{ n: 0 }]);
});

it("the ledger's pages have no gaps, even across rollups", async () => {
  const { stub } = await newWallet(10_000);
  for (let i = 0; i < 30; i++) {
    await pay(stub, 1);
    if (i % 7 === 0) valueOf(await stub.poke());
  }
  await runInDurableObject(stub, (_wallet: Wallet, state) => {
    state.storage.sql.exec(
      "INSERT OR IGNORE INTO checkpoints SELECT 9, 0, clock, newest, '' FROM checkpoints ORDER BY seq DESC LIMIT 1",
    );
  });
  const seqs: number[] = [];
  for (let after = 0; seqs.length < 31;) {
    const page = valueOf(await stub.ledger(after, 4));
    expect(page.nextAfterSeq).toBeGreaterThan(after);
    seqs.push(...page.rows.map((row) => row.seq));
    after = page.nextAfterSeq;
  }
  expect(seqs).toEqual(Array.from({ length: 31 }, (_, i) => i + 1));
  expect(valueOf(await stub.ledger(31, 4))).toEqual({ rows: [], nextAfterSeq: 31 });
});
