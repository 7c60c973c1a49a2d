import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { assert } from "../../src/shared/assert.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { EventRecord, EventType } from "../../src/shared/event.ts";
import { recordAttempt } from "../../src/events/webhooks/attempt-rows.do.ts";
import { queueEvents, selectDueDelivery } from "../../src/events/webhooks/delivery-rows.do.ts";
import { selectWebhookStates } from "../../src/events/webhooks/receiver-rows.do.ts";
import { addCredits, errorOf } from "../contract/client.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import {
  account,
  runWebhookAlarm,
  callWebhooks,
  deliveriesOf,
  HOUR,
  ids,
  LONG,
  createWebhook,
  object,
  receivers,
  callsTo,
  useReceivers,
  expectDeliveries,
} from "./receivers.ts";

useReceivers();

const types = ["balance.credited"];
const SECOND = 1000;

/** Creates twenty events for a webhook at this time, all of which wait. */
async function happen(id: string, atMs: number): Promise<void> {
  for (let i = 0; i < 20; i++) {
    setClock(atMs); // a slow machine needs more time than the first pause
    await addCredits(account.orgId, 1);
  }
  await vi.waitFor(async () => expect(await deliveriesOf(id)).toHaveLength(20), LONG);
}
async function attempts(id: string): Promise<number> {
  return (await deliveriesOf(id)).reduce((sum, one) => sum + one.attempts, 0);
}
/** Checks that this number of attempts was made until this time. */
async function triedAt(hook: { readonly id: string }, atMs: number, count: number): Promise<void> {
  setClock(atMs);
  await runWebhookAlarm();
  await vi.waitFor(async () => expect(await attempts(hook.id)).toBe(count), LONG);
}

describe("a webhook receiver that is down", () => {
  it("gets one message at a time, and all waiting messages once the receiver accepts one", async () => {
    let isDown = true;
    receivers["down.turnpike.dev"] = () => new Response("", { status: isDown ? 503 : 200 });
    const hook = await createWebhook("down.turnpike.dev", { types });
    const start = Date.now();
    await happen(hook.id, start);
    await triedAt(hook, start, 1);
    let at = start;
    for (const [n, seconds] of [5, 30, 120, 300, 900, 900].entries()) {
      await triedAt(hook, at + (seconds / 5) * SECOND, n + 1);
      at += (seconds + 30) * SECOND;
      await triedAt(hook, at, n + 2);
    }
    // The message that has waited longest comes first.
    expect(ids("down.turnpike.dev")).toHaveLength(7);
    isDown = false;
    setClock(at + HOUR);
    await runWebhookAlarm();
    await vi.waitFor(async () => {
      const states = (await deliveriesOf(hook.id)).map(({ state }) => state);
      expect(new Set(states)).toEqual(new Set(["delivered"]));
    }, LONG);
    expect(callsTo("down.turnpike.dev")).toHaveLength(7 + 20);
  });

  it("gets nothing until the retry-after ends, unless the receiver accepts a test", async () => {
    let status = 429;
    receivers["later.turnpike.dev"] = () =>
      new Response("", { status, headers: { "retry-after": "1800" } });
    const hook = await createWebhook("later.turnpike.dev", { types });
    await addCredits(account.orgId, 1);
    await vi.waitFor(async () => expect(await attempts(hook.id)).toBe(1), LONG);
    const start = Date.now();
    await triedAt(hook, start + 1790 * SECOND, 1);
    await triedAt(hook, start + 1810 * SECOND, 2);
    status = 200;
    setClock(start + 2200 * SECOND); // the message's own time has come, not the end of the pause
    await runWebhookAlarm();
    expect(await attempts(hook.id)).toBe(2);
    expect((await callWebhooks("POST", `/${hook.id}/test`, {})).status).toBe(200);
    await expectDeliveries(hook, [{ state: "delivered", attempts: 3 }]);
  });
});

it("a webhook can be tested five times per minute, after which a test returns 429 with the wait", async () => {
  receivers["tested.turnpike.dev"] = () => new Response("ok");
  const hook = await createWebhook("tested.turnpike.dev", { types });
  for (let i = 0; i < 5; i++) {
    expect((await callWebhooks("POST", `/${hook.id}/test`, {})).status).toBe(200);
  }
  const sixth = await callWebhooks("POST", `/${hook.id}/test`, {});
  expect(Number(sixth.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await errorOf(sixth, 429)).type).toBe("rate_limit_exceeded");
  setClock(Date.now() + 61 * SECOND);
  expect((await callWebhooks("POST", `/${hook.id}/test`, {})).status).toBe(200);
  expect(callsTo("tested.turnpike.dev")).toHaveLength(6);
});

it("a webhook's replay waits for the previous replay", async () => {
  let status = 200;
  receivers["again.turnpike.dev"] = () => new Response("", { status });
  const hook = await createWebhook("again.turnpike.dev", { types });
  await addCredits(account.orgId, 1);
  const isDelivered = () =>
    vi.waitFor(async () => {
      expect(await deliveriesOf(hook.id)).toMatchObject([{ state: "delivered" }]);
    }, LONG);
  await isDelivered();
  status = 503;
  const replay = () =>
    callWebhooks("POST", `/${hook.id}/replay`, { since: "2020-01-01T00:00:00Z" });
  expect((await replay()).status).toBe(202);
  expect((await errorOf(await replay(), 409)).code).toBe("replay_in_progress");
  status = 200;
  setClock(Date.now() + 10 * SECOND);
  await runWebhookAlarm();
  await isDelivered();
  expect((await replay()).status).toBe(202);
});

const event = (type: EventType, n: number): EventRecord => ({
  id: `evt_${type}_${n}`,
  type,
  actor: SYSTEM_ACTOR,
  subject: "s",
  data: {},
  createdAt: n,
});
const events = (type: EventType, count: number) =>
  Array.from({ length: count }, (_, n) => event(type, n));

describe("a message that a webhook object stores", () => {
  const taken = { status: 200, error: null, answer: "", durationMs: 1, retryAfterMs: null };

  it("expires after the delivery, unless the message is among the webhook's newest thousand", async () => {
    for (let i = 0; i < 2; i++) {
      await createWebhook(`rows${i}.turnpike.dev`, { types });
    }
    await runInDurableObject(object(), (_, { storage }) => {
      const all = selectWebhookStates(storage.sql);
      const now = { nowMs: Date.now(), nextAt: null, ending: null };
      storage.sql.exec("DELETE FROM deliveries");
      for (const one of events("balance.credited", 1200)) {
        queueEvents(storage, [one], { receivers: all, nowMs: 1 });
        for (const receiver of all) {
          const due = selectDueDelivery(storage.sql, receiver, now.nowMs);
          assert(due !== null, "it waits for each");
          const sending = { attempt: taken, headers: null };
          recordAttempt(storage, { webhookId: receiver.webhook.id, due, sending }, now);
        }
      }
      const rows = storage.sql.exec<{ n: number }>(
        "SELECT count(*) AS n FROM deliveries GROUP BY webhook_id",
      );
      const counts = rows.toArray().map(({ n }) => n);
      expect(counts.map((n) => Math.floor(n / 100))).toEqual([10, 10]);
    });
  });

  it("counts toward a maximum per event type while pending, without affecting other types", async () => {
    receivers["flood.turnpike.dev"] = () => new Response("ok");
    await createWebhook("flood.turnpike.dev");
    await runInDurableObject(object(), (_, { storage }) => {
      const all = selectWebhookStates(storage.sql);
      storage.sql.exec("DELETE FROM deliveries");
      const queued = (many: readonly EventRecord[]) =>
        queueEvents(storage, many, { receivers: all, nowMs: Date.now() });
      queued(events("key.created", 50));
      queued(events("member.created", 50));
      const flood = events("end_user.alert", 12_000);
      for (let at = 0; at < flood.length; at += 1000) queued(flood.slice(at, at + 1000));
      const rows = storage.sql.exec<{ type: string; state: string; n: number }>(
        "SELECT type, state, count(*) AS n FROM deliveries GROUP BY type, state ORDER BY type, state",
      );
      expect(rows.toArray()).toEqual([
        { type: "end_user.alert", state: "failed", n: 1000 },
        { type: "end_user.alert", state: "pending", n: 9900 },
        { type: "key.created", state: "pending", n: 50 },
        { type: "member.created", state: "pending", n: 50 },
      ]);
      storage.sql.exec("DELETE FROM deliveries"); // otherwise, later tests would see them
    });
  });
});
