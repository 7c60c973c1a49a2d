import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
  differences,
  failureOf,
  holdOf,
  newWallet,
  pay,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

afterEach(() => setClock(null));

/** Stops the clock of the test and of every object. */
function stopClockAt(ms: number): void {
  vi.spyOn(Date, "now").mockReturnValue(ms);
}

function quota(stub: Stub, externalId: string, daily: number | null, monthly: number | null) {
  return stub.putEndUser(externalId, {
    dailyQuotaMicro: daily === null ? null : micros(daily),
    monthlyQuotaMicro: monthly === null ? null : micros(monthly),
  });
}

async function spendOf(stub: Stub, externalId: string): Promise<[daily: number, monthly: number]> {
  const user = valueOf(await stub.readEndUser(externalId));
  return [user.dailySpendMicro, user.monthlySpendMicro];
}

function holdFor(stub: Stub, amount: number, externalId = "u") {
  return stub.hold(holdOf(amount, { externalId }));
}

describe("an end user's quota", () => {
  it("admits exactly the requests that fit the quota, to the micro-credit", async () => {
    const { stub } = await newWallet(1000);
    valueOf(await quota(stub, "u", 100, null));
    await pay(stub, 99, "u");
    const last = await stub.hold(holdOf(1, { externalId: "u", most: micros(50) }));
    expect(valueOf(last).granted).toBe(1);
    expect(failureOf(await holdFor(stub, 0))).toMatchObject({
      kind: "quota_exceeded",
      period: "day",
      quotaMicro: 100,
      leftMicro: 1,
      heldMicro: 1,
      requiredMicro: 0,
      onlyHolds: true,
    });
  });

  it("reports the remaining and required amounts and the reset time when it rejects a request", async () => {
    setClock(Date.UTC(2031, 4, 14, 13));
    const { stub } = await newWallet(1000);
    valueOf(await quota(stub, "u", 100, null));
    valueOf(await quota(stub, "m", null, 100));
    const refusals = [];
    for (const user of ["u", "m"]) {
      await pay(stub, 70, user);
      refusals.push(failureOf(await holdFor(stub, 40, user)));
    }
    const numbers = { quotaMicro: 100, leftMicro: 30, heldMicro: 0, requiredMicro: 40 };
    const rest = { kind: "quota_exceeded", ...numbers, onlyHolds: false };
    expect(refusals).toEqual([
      { ...rest, period: "day", resetsAt: Date.UTC(2031, 4, 15) },
      { ...rest, period: "month", resetsAt: Date.UTC(2031, 5, 1) },
    ]);
  });

  it("rejects requests over the daily or monthly quota, and reports the month if both quotas are exceeded", async () => {
    const { stub } = await newWallet(1000);
    valueOf(await quota(stub, "day", 10, 100));
    valueOf(await quota(stub, "month", 100, 10));
    valueOf(await quota(stub, "both", 10, 10));
    const periods = [];
    for (const user of ["day", "month", "both"]) {
      await pay(stub, 10, user);
      periods.push(failureOf(await holdFor(stub, 1, user)));
    }
    expect(periods).toMatchObject(
      ["day", "month", "month"].map((period) => ({
        kind: "quota_exceeded",
        period,
        onlyHolds: false,
      })),
    );
    expect(valueOf(await stub.hold(holdOf(1))).granted).toBe(1);
  });

  it("applies a change immediately, rejects all requests if 0, and allows all requests if null", async () => {
    const { stub } = await newWallet(1000);
    valueOf(await quota(stub, "u", 10, null));
    await pay(stub, 10, "u");
    expect((await holdFor(stub, 1)).ok).toBe(false);
    valueOf(await stub.patchEndUser("u", { dailyQuotaMicro: micros(20) }));
    await pay(stub, 5, "u");
    valueOf(await stub.patchEndUser("u", { dailyQuotaMicro: micros(12) }));
    expect((await holdFor(stub, 1)).ok).toBe(false);
    valueOf(await stub.patchEndUser("u", { dailyQuotaMicro: null }));
    await pay(stub, 50, "u");
    valueOf(await stub.patchEndUser("u", { monthlyQuotaMicro: micros(0) }));
    expect(failureOf(await holdFor(stub, 0))).toMatchObject({ period: "month" });
  });

  it.each([
    ["an ordinary day", Date.UTC(2031, 4, 14, 24), true],
    ["a month", Date.UTC(2031, 5, 1), false],
    ["a year", Date.UTC(2032, 0, 1), false],
    ["28 February", Date.UTC(2031, 2, 1), false],
    ["29 February", Date.UTC(2032, 2, 1), false],
    ["28 February of a leap year", Date.UTC(2032, 1, 29), true],
  ])(
    "counts a request that lasts beyond the end of %s on the day of the request's admission",
    async (_end, at, sameMonth) => {
      stopClockAt(at - 1);
      const { stub } = await newWallet(1000);
      valueOf(await quota(stub, "u", 50, 200));
      await pay(stub, 30, "u");
      const over = holdOf(20, { externalId: "u" });
      valueOf(await stub.hold(over));
      expect((await holdFor(stub, 1)).ok).toBe(false);
      stopClockAt(at);
      expect(await spendOf(stub, "u")).toEqual([0, sameMonth ? 30 : 0]);
      stopClockAt(at + 5000);
      valueOf(await settle(stub, over.id, 20));
      await evictDurableObject(stub);
      expect(await spendOf(stub, "u")).toEqual([0, sameMonth ? 50 : 0]);
      await pay(stub, 7, "u");
      expect(await spendOf(stub, "u")).toEqual([7, sameMonth ? 57 : 7]);
      const before = new Date(at - 1).toISOString().slice(0, 10);
      expect(valueOf(await stub.usage(before, before, "day")).total.costMicro).toBe(50);
    },
  );

  it("remains used up if the clock steps back over midnight", async () => {
    const midnight = Date.UTC(2031, 6, 2);
    setClock(midnight + 1000);
    const { stub } = await newWallet(1000);
    valueOf(await quota(stub, "u", 100, null));
    await pay(stub, 60, "u");
    setClock(midnight - 30_000);
    expect(await spendOf(stub, "u")).toEqual([60, 60]);
    valueOf(await holdFor(stub, 40));
    await evictDurableObject(stub);
    expect((await holdFor(stub, 1)).ok).toBe(false);
    expect(await differences(stub)).toEqual([]);
  });
});

describe("an end user", () => {
  it("keeps the ID, the creation time and omitted fields after a repeated PUT", async () => {
    const { stub } = await newWallet();
    const created = valueOf(await quota(stub, "u", 10, 20)).endUser;
    const again = valueOf(await stub.putEndUser("u", { dailyQuotaMicro: micros(11) }));
    expect(again).toEqual({ created: false, endUser: { ...created, dailyQuotaMicro: 11 } });
  });

  it.each([
    ["nothing", "", false],
    ["a control character", "a\nb", false],
    ["a C1 control", "a\u0085", false],
    ["a line separator", "a\u2028b", false],
    ["a lone surrogate", "\ud800", false],
    ["a dot", ".", false],
    ["two dots", "..", false],
    ["257 bytes", `a${"é".repeat(128)}`, false],
    ["256 bytes", "é".repeat(128), true],
    ["spaces and a slash", " a/b ", true],
  ])("requires a valid ID: %s, %j (valid: %s)", async (_what, name, isGood) => {
    const { stub } = await newWallet();
    const answer = await stub.putEndUser(name, {});
    const { kind, param } = (failureOf(answer) ?? {}) as { kind?: string; param?: string };
    expect([kind, param]).toEqual(
      isGood ? [undefined, undefined] : ["invalid_request", "external_id"],
    );
    expect(valueOf(await stub.listEndUsers(10, 0)).total).toBe(isGood ? 1 : 0);
  });

  it("keeps its position in the list while other end users are added", async () => {
    const { stub } = await newWallet();
    for (const name of ["c", "a", "b"]) {
      valueOf(await stub.putEndUser(name, {}));
    }
    const page = valueOf(await stub.listEndUsers(2, 1));
    expect([page.endUsers.map((user) => user.externalId), page.total]).toEqual([["a", "b"], 3]);
  });

  it("can't be created beyond 100,000 end users, but existing end users still work", async () => {
    const { stub } = await newWallet(100);
    valueOf(await holdFor(stub, 1, "first"));
    await runInDurableObject(stub, (_wallet: Wallet, state) => {
      state.storage.sql.exec(
        `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99999)
        INSERT INTO end_users (id, external_id, alert_threshold, month, monthly_spend, day,
          daily_spend, created_at, changed) SELECT 'id' || i, 'x' || i, 0.8, '', 0, '', 0, 0, 0 FROM n`,
      );
    });
    await evictDurableObject(stub);
    expect(failureOf(await holdFor(stub, 1, "new"))).toEqual({ kind: "too_many_end_users" });
    expect(valueOf(await holdFor(stub, 1, "first")).granted).toBe(1);
    valueOf(await stub.configure({ rpmLimit: 1 })); // is checked first
    expect(failureOf(await holdFor(stub, 1, "new"))).toMatchObject({ kind: "rate_limited" });
  });
});
