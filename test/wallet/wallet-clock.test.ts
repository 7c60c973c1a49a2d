import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { micros } from "../../src/shared/money.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
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

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
/** Real time also passes with a shifted clock. */
const SLACK = 2_000;
/** Noon on the last day of a month, so that a day later is another month. */
const NOON = Date.UTC(2031, 6, 31, 12);

let alerts: { alert?: string; org_id?: string; lag_ms?: number }[] = [];
beforeEach(() => {
  alerts = [];
  vi.spyOn(console, "error").mockImplementation((line: string) => alerts.push(JSON.parse(line)));
});
afterEach(() => setClock(null));

function steps(orgId: string): number[] {
  return alerts
    .filter((one) => one.alert === "clock_stepped_back" && one.org_id === orgId)
    .map((one) => Math.round((one.lag_ms ?? 0) / MINUTE));
}

function runAlarm(wallet: Wallet): Promise<void> {
  return wallet.alarm();
}

/** Events of a wallet between two calls. */
const BETWEEN: readonly (readonly [string, (stub: Stub) => Promise<unknown>])[] = [
  ["without an eviction", async () => {}],
  ["with an eviction", (stub) => evictDurableObject(stub)],
  [
    "with a publish and an eviction",
    async (stub) => {
      valueOf(await stub.poke());
      await evictDurableObject(stub);
    },
  ],
];

describe.each(BETWEEN)(
  "a wallet whose clock is corrected after being a day ahead (%s)",
  (_how, pause) => {
    it("releases holds on schedule, whether created before or after the correction", async () => {
      setClock(NOON);
      const { stub, orgId } = await newWallet(1000);
      setClock(NOON + DAY);
      valueOf(await stub.hold(holdOf(600, { externalId: "u" })));
      valueOf(await stub.hold(holdOf(100, { peer: true })));
      await pause(stub);
      setClock(NOON + MINUTE);
      valueOf(await stub.hold(holdOf(200)));
      await pause(stub);
      expect(valueOf(await stub.balance()).heldMicro).toBe(900);
      setClock(NOON + MINUTE + 20 * MINUTE + SLACK);
      await pause(stub);
      expect(valueOf(await stub.balance()).heldMicro).toBe(100);
      setClock(NOON + MINUTE + 35 * MINUTE + SLACK);
      expect(valueOf(await stub.balance()).heldMicro).toBe(0);
      expect(steps(orgId)).toEqual([DAY / MINUTE - 1]);
      expect(await differences(stub)).toEqual([]);
    });

    it("counts requests made before the correction against the rate limit", async () => {
      const began = performance.now();
      setClock(NOON);
      const { stub } = await newWallet(1000);
      valueOf(await stub.configure({ rpmLimit: 3 }));
      await pay(stub, 1);
      setClock(NOON + DAY);
      await pay(stub, 1);
      const released = holdOf(1);
      valueOf(await stub.hold(released));
      valueOf(await stub.void(released.id));
      await pause(stub);
      setClock(NOON + 30_000);
      expect(failureOf(await stub.hold(holdOf(1)))).toMatchObject({ kind: "rate_limited" });
      await pause(stub);
      setClock(NOON + 61_000);
      await pay(stub, 1);
      const refused = failureOf(await stub.hold(holdOf(1)));
      expect(refused).toMatchObject({ kind: "rate_limited", retryAfterMs: expect.any(Number) });
      const took = performance.now() - began; // real time also passes with a shifted clock
      const { retryAfterMs } = refused as { retryAfterMs: number };
      expect(Math.abs(retryAfterMs - 29_000)).toBeLessThanOrEqual(took);
      await pause(stub);
      for (let i = 1; i < 6; i++) {
        setClock(NOON + i * 2 * MINUTE);
        await pay(stub, 1);
        await pause(stub);
      }
    });

    it("keeps the later period for spend and quotas, and counts every charge in that period", async () => {
      setClock(NOON);
      const { stub } = await newWallet(1000);
      valueOf(
        await stub.putEndUser("u", {
          dailyQuotaMicro: micros(100),
          monthlyQuotaMicro: micros(100),
        }),
      );
      await pay(stub, 90, "u");
      setClock(NOON + DAY);
      await pay(stub, 30, "u");
      const open = holdOf(10, { externalId: "u" });
      valueOf(await stub.hold(open));
      await pause(stub);
      setClock(NOON + MINUTE);
      await pay(stub, 20, "u");
      await pause(stub);
      valueOf(await settle(stub, open.id, 10));
      await pause(stub);
      expect(valueOf(await stub.readEndUser("u"))).toMatchObject({
        dailySpendMicro: 60,
        monthlySpendMicro: 60,
      });
      expect(failureOf(await stub.hold(holdOf(41, { externalId: "u" })))).toMatchObject({
        kind: "quota_exceeded",
      });
      await pay(stub, 40, "u");
      await pause(stub);
      setClock(NOON + DAY);
      expect(failureOf(await stub.hold(holdOf(1, { externalId: "u" })))).toMatchObject({
        kind: "quota_exceeded",
      });
      expect(valueOf(await stub.usage("2031-07-31", "2031-07-31", "day")).total.costMicro).toBe(
        160,
      );
      expect(valueOf(await stub.usage("2031-08-01", "2031-08-01", "day")).total.costMicro).toBe(30);
      const { rows } = valueOf(await stub.ledger(0, 100));
      expect(rows.map((row) => row.seq)).toEqual([1, 2, 3, 4, 5, 6]);
      expect(await differences(stub)).toEqual([]);
    });

    it("publishes its data after the usual interval, with only one alarm", async () => {
      setClock(NOON);
      const { stub, orgId } = await newWallet(1000);
      valueOf(await stub.poke());
      setClock(NOON + DAY);
      valueOf(await stub.balance());
      await pay(stub, 5);
      await pause(stub);
      setClock(NOON + MINUTE);
      await pay(stub, 7);
      setClock(NOON + 3 * MINUTE);
      await runInDurableObject(stub, runAlarm);
      const { results } = await env.DB.prepare(
        "SELECT credits_micro FROM balances WHERE org_id = ?",
      )
        .bind(orgId)
        .all();
      expect(results).toEqual([{ credits_micro: 988 }]);
      const alarmIn = await runInDurableObject(stub, async (_wallet: Wallet, state) => {
        return ((await state.storage.getAlarm()) ?? Infinity) - Date.now();
      });
      expect(alarmIn).toBeGreaterThan(10 * MINUTE);
    });
  },
);

it("a wallet deletes free requests on schedule even if its clock was ten days ahead earlier", async () => {
  setClock(NOON);
  const { stub } = await newWallet(1000);
  await pay(stub, 1);
  await runInDurableObject(stub, runAlarm);
  setClock(NOON + 10 * DAY);
  await runInDurableObject(stub, runAlarm);
  setClock(NOON + MINUTE);
  const released = holdOf(1);
  valueOf(await stub.hold(released));
  valueOf(await stub.void(released.id));
  await runInDurableObject(stub, runAlarm);
  setClock(NOON + 2 * DAY + 120 * MINUTE);
  await runInDurableObject(stub, runAlarm);
  expect(await rowsOf(stub, "SELECT state FROM requests")).toEqual([{ state: "settled" }]);
});

it("a wallet's time never decreases if the clock steps back by at most a minute", async () => {
  setClock(NOON);
  const { stub, orgId } = await newWallet(1000);
  valueOf(await stub.configure({ rpmLimit: 1 }));
  await pay(stub, 1);
  setClock(NOON - 59_000);
  await evictDurableObject(stub);
  expect(failureOf(await stub.hold(holdOf(1)))).toMatchObject({
    retryAfterMs: expect.closeTo(MINUTE, -3),
  });
  expect(steps(orgId)).toEqual([]);
});
