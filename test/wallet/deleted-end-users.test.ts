import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { FaultyDatabase } from "./faulty-database.ts";
import {
  differences,
  failureOf,
  holdOf,
  deleteWalletStorage,
  newWallet,
  pay,
  rowsOf,
  runAlarm,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

const NOON = Date.UTC(2031, 4, 14, 12);
const NEXT_MONTH = Date.UTC(2031, 5, 1);
const HOUR_MS = 3_600_000;

beforeEach(() => setClock(NOON));
afterEach(() => setClock(null));

function holdFor(stub: Stub, amount: number, externalId = "u") {
  return stub.hold(holdOf(amount, { externalId }));
}

async function spendOf(stub: Stub, externalId = "u"): Promise<[daily: number, monthly: number]> {
  const user = valueOf(await stub.readEndUser(externalId));
  return [user.dailySpendMicro, user.monthlySpendMicro];
}

/** Creates a wallet whose end users have a daily quota of 100 by default. */
async function newQuotaWallet() {
  const wallet = await newWallet(1000);
  valueOf(await wallet.stub.patchSettings({ defaultUserDailyQuotaMicro: micros(100) }));
  return wallet;
}

describe("a deleted end user who is created again", () => {
  it("keeps its earlier spend and its remaining quota if a request recreates the end user", async () => {
    const { stub } = await newQuotaWallet();
    await pay(stub, 70);
    await pay(stub, 70, "u");
    const { id } = valueOf(await stub.readEndUser("u"));
    valueOf(await stub.deleteEndUser("u"));
    expect(failureOf(await holdFor(stub, 31))).toMatchObject({
      kind: "quota_exceeded",
      quotaMicro: 100,
      leftMicro: 30,
      heldMicro: 0,
    });
    expect(failureOf(await stub.readEndUser("u"))).toMatchObject({ kind: "not_found" });
    await pay(stub, 30, "u");
    expect((await holdFor(stub, 1)).ok).toBe(false);
    expect(await spendOf(stub)).toEqual([100, 100]);
    expect(valueOf(await stub.readEndUser("u")).id).not.toBe(id);
    valueOf(await holdFor(stub, 100, "another"));
    expect(await differences(stub)).toEqual([]);
  });

  it("gets default limits and a new ID, but keeps spend and quota alert, if an API call creates the end user", async () => {
    const { stub } = await newQuotaWallet();
    const limits = { dailyQuotaMicro: micros(500), alertThreshold: 0.5 };
    const first = valueOf(await stub.putEndUser("u", limits)).endUser;
    await pay(stub, 90, "u");
    valueOf(await stub.deleteEndUser("u"));
    setClock(NOON + 1000);
    const { created, endUser } = valueOf(await stub.putEndUser("u", {}));
    expect(created).toBe(true);
    expect(endUser).toEqual({
      id: expect.any(String) as string,
      externalId: "u",
      monthlyQuotaMicro: null,
      dailyQuotaMicro: 100,
      alertThreshold: 0.8,
      monthlySpendMicro: 90,
      dailySpendMicro: 90,
      budgets: [],
      createdAt: expect.any(Number) as number,
    });
    expect(endUser.id).not.toBe(first.id);
    expect(endUser.createdAt).toBeGreaterThan(first.createdAt);
    const alerts = valueOf(await stub.alerts(10, 0)).alerts;
    expect(alerts).toMatchObject([{ kind: "user_daily", limitMicro: 100, valueMicro: 90 }]);
  });

  it.each([
    [false, false],
    [true, false],
    [false, true],
    [true, true],
  ])(
    "keeps open holds and charges (wallet evicted while deleted: %s, afterwards: %s)",
    async (evictAway, evictAfter) => {
      const { stub } = await newQuotaWallet();
      const who = { externalId: "u" };
      const [first, second, third] = [holdOf(40, who), holdOf(30, who), holdOf(10, who)];
      for (const request of [first, second, third]) {
        valueOf(await stub.hold(request));
      }
      valueOf(await stub.deleteEndUser("u"));
      if (evictAway) await evictDurableObject(stub);
      valueOf(await settle(stub, first.id, 35));
      if (evictAway) await evictDurableObject(stub);
      expect(failureOf(await holdFor(stub, 26))).toMatchObject({ leftMicro: 65, heldMicro: 40 });
      const back = holdOf(25, who);
      valueOf(await stub.hold(back));
      if (evictAfter) await evictDurableObject(stub);
      expect(failureOf(await holdFor(stub, 1))).toMatchObject({ leftMicro: 65, heldMicro: 65 });
      valueOf(await settle(stub, second.id, 30));
      valueOf(await stub.void(third.id));
      if (evictAfter) await evictDurableObject(stub);
      valueOf(await settle(stub, back.id, 25));
      expect(await spendOf(stub)).toEqual([90, 90]);
      expect(failureOf(await holdFor(stub, 11))).toMatchObject({ leftMicro: 10, heldMicro: 0 });
      valueOf(await stub.poke());
      await evictDurableObject(stub);
      expect(await spendOf(stub)).toEqual([90, 90]);
      expect(await differences(stub)).toEqual([]);
    },
  );

  it("keeps the earlier spend after several deletions, with or without publishes in between", async () => {
    const { stub, orgId } = await newQuotaWallet();
    const open = holdOf(15, { externalId: "u" });
    valueOf(await stub.hold(open));
    for (let round = 1; round <= 4; round++) {
      await pay(stub, 10, "u");
      if (round % 2 === 0) valueOf(await stub.poke());
      valueOf(await stub.deleteEndUser("u"));
      if (round > 2) valueOf(await stub.poke());
      valueOf(await stub.putEndUser("u", {}));
      expect(await spendOf(stub)).toEqual([10 * round, 10 * round]);
    }
    await evictDurableObject(stub);
    valueOf(await settle(stub, open.id, 15));
    expect(await spendOf(stub)).toEqual([55, 55]);
    valueOf(await stub.poke());
    const book = await new FaultyDatabase(orgId).rows();
    const { id } = valueOf(await stub.readEndUser("u"));
    expect(book["end_users"]).toMatchObject([{ id, external_id: "u", daily_spend_micro: 55 }]);
    expect(await differences(stub)).toEqual([]);
  });

  it("appears at the end of the list of end users", async () => {
    const { stub } = await newQuotaWallet();
    for (const name of ["a", "b"]) {
      valueOf(await stub.putEndUser(name, {}));
    }
    valueOf(await stub.deleteEndUser("a"));
    valueOf(await stub.putEndUser("a", {}));
    const { endUsers, total } = valueOf(await stub.listEndUsers(10, 0));
    expect([endUsers.map((user) => user.externalId), total]).toEqual([["b", "a"], 2]);
  });

  it("keeps the month's spend the next day, and starts the next month without spend", async () => {
    const { stub } = await newQuotaWallet();
    await pay(stub, 70, "u");
    valueOf(await stub.deleteEndUser("u"));
    setClock(NOON + 24 * HOUR_MS);
    valueOf(await stub.putEndUser("u", {}));
    expect(await spendOf(stub)).toEqual([0, 70]);
    setClock(NEXT_MONTH - 1000);
    const open = holdOf(5, { externalId: "u" });
    valueOf(await stub.hold(open));
    valueOf(await stub.deleteEndUser("u"));
    setClock(NEXT_MONTH + 1000);
    valueOf(await stub.putEndUser("u", {}));
    valueOf(await settle(stub, open.id, 5));
    expect(await spendOf(stub)).toEqual([0, 0]);
    expect(await differences(stub)).toEqual([]);
  });
});

describe("the data of a deleted end user", () => {
  it("appears in no response or database row, and is kept only under a hash", async () => {
    const { stub, orgId } = await newQuotaWallet();
    await pay(stub, 10, "u");
    valueOf(await stub.poke());
    const open = holdOf(5, { externalId: "u" });
    valueOf(await stub.hold(open));
    valueOf(await stub.deleteEndUser("u"));
    valueOf(await settle(stub, open.id, 5));
    valueOf(await stub.poke());
    await evictDurableObject(stub);
    expect(valueOf(await stub.listEndUsers(10, 0))).toEqual({
      endUsers: [],
      total: 0,
      nextAfter: null,
    });
    expect(failureOf(await stub.readEndUser("u"))).toMatchObject({ kind: "not_found" });
    expect(failureOf(await stub.patchEndUser("u", {}))).toMatchObject({ kind: "not_found" });
    expect((await new FaultyDatabase(orgId).rows())["end_users"]).toEqual([]);
    const rows = await rowsOf(stub, "SELECT external_id, departed, daily_spend FROM end_users");
    expect(rows).toEqual([
      {
        external_id: expect.stringMatching(/^\n[0-9a-f]{64}$/),
        departed: "2031-05",
        daily_spend: 15,
      },
    ]);
    const [hash] = rows.map((row) => String(row["external_id"]));
    expect(failureOf(await stub.deleteEndUser(hash ?? ""))).toMatchObject({ kind: "not_found" });
    expect(await differences(stub)).toEqual([]);
  });

  it("disappears with the wallet's alarm after the end of the month, and not before", async () => {
    const { stub } = await newQuotaWallet();
    await pay(stub, 10, "v");
    valueOf(await stub.deleteEndUser("v"));
    const kept = async (): Promise<number> =>
      (await rowsOf(stub, "SELECT id FROM end_users")).length;
    setClock(NEXT_MONTH - 1000);
    const open = holdOf(5, { externalId: "u" });
    valueOf(await stub.hold(open));
    valueOf(await stub.deleteEndUser("u"));
    await runAlarm(stub);
    valueOf(await stub.putEndUser("stays", {}));
    expect(await kept()).toBe(3);
    setClock(NEXT_MONTH + 1000);
    await runAlarm(stub);
    expect(await kept()).toBe(1);
    expect(valueOf(await settle(stub, open.id, 5))).toMatchObject({ charged: 5 });
    expect(failureOf(await stub.readEndUser("u"))).toMatchObject({ kind: "not_found" });
    expect(await differences(stub)).toEqual([]);
  });

  it("disappears with the wallet's alarm at the end of the month even if the wallet has no other work", async () => {
    const { stub } = await newQuotaWallet();
    valueOf(await stub.putEndUser("u", {}));
    valueOf(await stub.deleteEndUser("u"));
    valueOf(await stub.poke());
    await evictDurableObject(stub);
    const untilAlarmMs = await runInDurableObject(stub, async (wallet: Wallet, state) => {
      await state.storage.deleteAlarm();
      await wallet.alarm();
      return ((await state.storage.getAlarm()) ?? 0) - Date.now();
    });
    expect(Math.abs(untilAlarmMs - (NEXT_MONTH - NOON))).toBeLessThan(HOUR_MS);
  });

  it("doesn't count toward the limit of end users, and is kept for the 100,000 latest deletions", async () => {
    const { stub } = await newQuotaWallet();
    await pay(stub, 10, "oldest");
    await pay(stub, 20, "u");
    valueOf(await stub.deleteEndUser("oldest"));
    await runInDurableObject(stub, (_wallet: Wallet, state) => {
      state.storage.sql.exec(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
        INSERT INTO end_users (id, external_id, alert_threshold, month, monthly_spend, day,
          daily_spend, created_at, changed, departed)
        SELECT 'id' || i, 'x' || i, 0.8, '', 0, '', 0, 0, 0, '2031-05' FROM n`,
      );
    });
    await evictDurableObject(stub);
    valueOf(await stub.deleteEndUser("u"));
    const [row] = await rowsOf(stub, "SELECT count(*) AS n FROM end_users");
    expect(row).toEqual({ n: 100_000 });
    valueOf(await stub.putEndUser("oldest", {}));
    valueOf(await stub.putEndUser("u", {}));
    expect([await spendOf(stub, "oldest"), await spendOf(stub)]).toEqual([
      [0, 0],
      [20, 20],
    ]);
    valueOf(await stub.deleteEndUser("u"));
    setClock(NEXT_MONTH + 1000);
    valueOf(await stub.putEndUser("u", {}));
    valueOf(await stub.deleteEndUser("u"));
    const kept = "SELECT count(*) AS n FROM end_users WHERE departed IS NOT NULL";
    expect(await rowsOf(stub, kept)).toEqual([{ n: 100_000 }]);
    expect(await differences(stub)).toEqual([]);
  });

  it("isn't restored when the wallet is rebuilt, because the database doesn't contain the data", async () => {
    const { stub, orgId } = await newQuotaWallet();
    await pay(stub, 70, "u");
    await pay(stub, 10, "stays");
    valueOf(await stub.deleteEndUser("u"));
    valueOf(await stub.poke());
    await deleteWalletStorage(stub);
    valueOf(await stub.rebuild(orgId));
    await pay(stub, 100, "u");
    valueOf(await stub.deleteEndUser("u"));
    expect((await holdFor(stub, 1)).ok).toBe(false);
    expect(await spendOf(stub, "stays")).toEqual([10, 10]);
    expect(await differences(stub)).toEqual([]);
  });
});
