import { evictDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it } from "vitest";
import { micros } from "../../src/lib/money.ts";
import { credit, newWallet, pay, rowsOf, setClock, valueOf } from "./wallet-desk.ts";

afterEach(() => setClock(null));

const DAY = 86_400_000;

describe("an alert", () => {
  it("of a quota is raised once per period and limit by requests settling together (58)", async () => {
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

  it("of the balance is raised once per fall and re-armed at a tenth above its threshold", async () => {
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
});
