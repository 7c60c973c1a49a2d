import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { credit, newWallet, pay, rowsOf, setClock, valueOf } from "./wallet-fixture.ts";

afterEach(() => setClock(null));

const DAY = 86_400_000;

describe("an alert of a wallet", () => {
  it("occurs only once per quota, period and limit, even for concurrent charges", async () => {
    const { stub } = await newWallet(1000);
    valueOf(await stub.putEndUser("u", { dailyQuotaMicro: micros(100) }));
    await Promise.all(Array.from({ length: 10 }, () => pay(stub, 10, "u")));
    const kinds = async () =>
      valueOf(await stub.alerts(10, 0)).alerts.map((one) => [
        one.kind,
        one.limitMicro,
        one.valueMicro,
      ]);
    expect(await kinds()).toEqual([["user_daily", 100, 80]]);
    await evictDurableObject(stub);
    valueOf(await stub.patchEndUser("u", { dailyQuotaMicro: micros(110) }));
    valueOf(await stub.patchEndUser("u", { dailyQuotaMicro: micros(100) }));
    valueOf(await stub.patchEndUser("u", { dailyQuotaMicro: micros(110) }));
    expect(await rowsOf(stub, "SELECT count(*) AS n FROM alerts")).toEqual([{ n: 2 }]);
    setClock(Date.now() + DAY);
    await pay(stub, 95, "u");
    expect(await kinds()).toHaveLength(3);
  });

  it("occurs exactly when the spend reaches the threshold, to the micro-credit", async () => {
    const { stub } = await newWallet(20_000);
    for (const percent of [7, 14, 28, 55, 56, 67, 80, 100]) {
      const name = `u${percent}`;
      valueOf(
        await stub.putEndUser(name, {
          dailyQuotaMicro: micros(100),
          alertThreshold: percent / 100,
        }),
      );
      await pay(stub, percent - 1, name);
      const before = valueOf(await stub.alerts(100, 0)).total;
      await pay(stub, 1, name);
      const { alerts, total } = valueOf(await stub.alerts(100, 0));
      expect([total - before, alerts[0]?.externalId, alerts[0]?.valueMicro]).toEqual([
        1,
        name,
        percent,
      ]);
    }
  });

  it("occurs once when the balance falls below the threshold, and again only after the balance rises by a tenth", async () => {
    const { stub } = await newWallet(200);
    valueOf(await stub.patchSettings({ lowBalanceThresholdMicro: micros(100) }));
    await pay(stub, 101);
    await pay(stub, 1);
    await credit(stub, 11);
    await pay(stub, 11);
    const count = async () => valueOf(await stub.alerts(10, 0)).total;
    expect(await count()).toBe(1);
    await credit(stub, 12);
    await evictDurableObject(stub);
    await pay(stub, 12);
    expect(await count()).toBe(2);
    valueOf(await stub.patchSettings({ lowBalanceThresholdMicro: micros(300) }));
    valueOf(await stub.patchSettings({ lowBalanceThresholdMicro: micros(300) }));
    expect(await count()).toBe(3);
  });

  it("occurs at most 32 times in 24 hours per kind of alert and end user", async () => {
    const { stub } = await newWallet(1000);
    for (const name of ["u", "other"]) {
      valueOf(await stub.putEndUser(name, {}));
      await pay(stub, 100, name);
    }
    const change = async (times: number): Promise<void> => {
      for (let i = 0; i < times; i++) {
        valueOf(await stub.patchEndUser("u", { dailyQuotaMicro: micros(100 - i) }));
        valueOf(await stub.patchSettings({ lowBalanceThresholdMicro: micros(900 + i) }));
      }
    };
    const kinds = () => rowsOf(stub, "SELECT kind, count(*) AS n FROM alerts GROUP BY kind");
    await change(40);
    expect(await kinds()).toEqual([
      { kind: "low_balance", n: 32 },
      { kind: "user_daily", n: 32 },
    ]);
    valueOf(await stub.patchEndUser("u", { monthlyQuotaMicro: micros(100) }));
    valueOf(await stub.patchEndUser("other", { dailyQuotaMicro: micros(100) }));
    expect(await kinds()).toContainEqual({ kind: "user_monthly", n: 1 });
    expect(await kinds()).toContainEqual({ kind: "user_daily", n: 33 });
    setClock(Date.now() + DAY);
    const later = { monthlyQuotaMicro: null, dailyQuotaMicro: micros(50) };
    valueOf(await stub.patchEndUser("u", later));
    await pay(stub, 50, "u");
    expect(await kinds()).toContainEqual({ kind: "user_daily", n: 34 });
    expect(await kinds()).toContainEqual({ kind: "low_balance", n: 33 });
  });
});

describe("an old alert of a wallet", () => {
  it("expires after 90 days, or after 10,000 newer alerts in the wallet or 1,000 in the database", async () => {
    const { stub, orgId } = await newWallet(1000);
    await pay(stub, 1);
    valueOf(await stub.poke());
    const now = Date.now();
    await runInDurableObject(stub, (_wallet: Wallet, state) => {
      for (let i = 0; i < 10_050; i++) {
        state.storage.sql.exec(
          `INSERT INTO alerts (id, kind, limit_micro, value_micro, created_at, seq, changed)
          VALUES (?, 'user_daily', 1, 1, ?, 1, 1000)`,
          mintId("alert_", now - i),
          now - i,
        );
      }
    });
    await pay(stub, 1);
    valueOf(await stub.poke());
    expect(valueOf(await stub.alerts(1, 0)).total).toBe(10_000);
    expect(await inDatabase(orgId)).toBe(1_000);
    setClock(now + 91 * DAY);
    for (let publishes = 0; publishes < 2; publishes++) {
      await pay(stub, 1);
      valueOf(await stub.poke());
    }
    expect(valueOf(await stub.alerts(1, 0)).total).toBe(0);
    expect(await inDatabase(orgId)).toBe(0);
  });

  it("appears in the log at expiry, without the end user's name", async () => {
    const { stub } = await newWallet(1000);
    const logged = vi.spyOn(console, "warn").mockReturnValue(undefined);
    const { endUser } = valueOf(
      await stub.putEndUser("jane.doe@example.com", { dailyQuotaMicro: micros(100) }),
    );
    await pay(stub, 90, "jane.doe@example.com");
    const lines = logged.mock.calls.map(([line]) => String(line));
    logged.mockRestore();
    expect(lines.filter((line) => line.includes(endUser.id))).toHaveLength(1);
    expect(lines.join("\n")).not.toContain("jane.doe");
  });
});

function inDatabase(orgId: string): Promise<unknown> {
  return env.DB.prepare("SELECT count(*) AS n FROM alerts WHERE org_id = ?").bind(orgId).first("n");
}
