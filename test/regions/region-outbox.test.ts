import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { RegionOutbox } from "../../src/index.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import { generation, settleOf, voidOf, Wallets } from "./outbox-fixture.ts";
import { armed, depthIs, EMPTY, eventually, outboxOf, withAlarms } from "./outbox-steps.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
let wallets: Wallets;
let alerts: unknown[][];

beforeEach(() => {
  wallets = new Wallets();
  alerts = vi.spyOn(console, "error").mockImplementation(() => undefined).mock.calls;
});
afterEach(() => {
  wallets.restore();
  shiftClock(null);
});

/** Returns the alerts about an ID, because objects of earlier files can also raise alerts. */
const alertsOf = (id: string): readonly unknown[] =>
  alerts
    .map(([line]) => JSON.parse(String(line)) as { readonly id?: string })
    .filter((alert) => alert.id === id);

it("an outbox delivers charges and releases to the organization's wallet automatically", async () => {
  const [outbox, orgId] = [outboxOf("own"), crypto.randomUUID()];
  const [settle, release] = [settleOf(orgId, 42), voidOf(orgId)];
  await outbox.enqueue([settle, release]);
  await eventually(() => depthIs(outbox, EMPTY));
  expect([...wallets.charged]).toEqual([[`${orgId} ${settle.holdId}`, 42]]);
  expect([...wallets.voided]).toEqual([`${orgId} ${release.holdId}`]);
  expect(wallets.generations).toEqual([generation]);
  expect(await armed(outbox)).toBeNull();
});

it("an outbox stores only one message for each hold and kind", async () => {
  const outbox = outboxOf("own");
  wallets.down = true;
  const item = settleOf(crypto.randomUUID(), 7);
  await outbox.enqueue([item, item]);
  await Promise.all([outbox.enqueue([item]), outbox.enqueue([item])]);
  await depthIs(outbox, { ...EMPTY, waiting: 1 });
  wallets.down = false;
  await withAlarms(outbox, 60_000, () => depthIs(outbox, EMPTY));
  expect(wallets.charged.size).toBe(1);
});

it("an outbox stores the message and sets an alarm, and returns before the delivery", async () => {
  const outbox = outboxOf("own");
  const { promise, resolve } = Promise.withResolvers<void>();
  wallets.stalled = promise;
  const first = settleOf(crypto.randomUUID(), 1);
  await outbox.enqueue([first]);
  await eventually(() => expect(wallets.calls).toEqual([first.holdId]));
  await outbox.enqueue([settleOf(crypto.randomUUID(), 2)]);
  await depthIs(outbox, { ...EMPTY, waiting: 2 });
  expect(await armed(outbox)).not.toBeNull();
  wallets.stalled = null;
  resolve();
  await withAlarms(outbox, 60_000, () => depthIs(outbox, EMPTY));
});

it("an outbox delivers each outcome to a wallet once the wallet recovers from several failures", async () => {
  const [outbox, orgId] = [outboxOf("own"), crypto.randomUUID()];
  const items = [settleOf(orgId, 1), settleOf(orgId, 2), voidOf(orgId)];
  wallets.down = true;
  await outbox.enqueue(items);
  for (let round = 1; round <= 6; round++) {
    await withAlarms(outbox, round * 60_000, () =>
      expect(wallets.calls.length).toBeGreaterThanOrEqual(round),
    );
    await evictDurableObject(outbox);
  }
  await depthIs(outbox, { ...EMPTY, waiting: 3 });
  expect((await outbox.depth()).oldestMs).toBeGreaterThanOrEqual(6 * 60_000 - 1000);
  expect(await armed(outbox)).not.toBeNull();
  wallets.down = false;
  await withAlarms(outbox, 7 * 60_000, () => depthIs(outbox, EMPTY));
  expect([...wallets.charged.values()].toSorted((a, b) => a - b)).toEqual([1, 2]);
  expect(wallets.voided.size).toBe(1);
  const delivered = wallets.calls.length;
  expect(await runDurableObjectAlarm(outbox)).toBe(false);
  expect(wallets.calls).toHaveLength(delivered);
});

it("an outbox retries a failed attempt only after the backoff", async () => {
  const outbox = outboxOf("own");
  wallets.down = true;
  await outbox.enqueue([settleOf(crypto.randomUUID(), 1)]);
  await eventually(() => expect(wallets.calls).not.toHaveLength(0));
  await eventually(async () => expect(await armed(outbox)).toBeGreaterThan(Date.now()));
  shiftClock(-10_000);
  const tried = wallets.calls.length;
  await runDurableObjectAlarm(outbox);
  expect(wallets.calls).toHaveLength(tried);
  wallets.down = false;
  await withAlarms(outbox, 60_000, () => depthIs(outbox, EMPTY));
});

it("an outbox dead-letters a message after a final rejection, with an alert, and delivers later messages", async () => {
  const [outbox, orgId] = [outboxOf("own"), crypto.randomUUID()];
  const [bad, good] = [settleOf(orgId, 5), settleOf(orgId, 6)];
  wallets.refusals.set(bad.holdId, { kind: "conflict", message: "other content", param: null });
  await outbox.enqueue([bad, good]);
  await eventually(() => depthIs(outbox, { ...EMPTY, dead: 1 }));
  expect([...wallets.charged.values()]).toEqual([6]);
  expect(alertsOf(bad.holdId)).toMatchObject([{ event: "alert", alert: "outbox_dead" }]);
  expect(await armed(outbox)).toBeNull();
  await outbox.enqueue([bad]);
  await depthIs(outbox, { ...EMPTY, dead: 1 });
});

it("an outbox keeps an outcome for a wallet whose storage is unavailable", async () => {
  const outbox = outboxOf("own");
  const item = settleOf(crypto.randomUUID(), 5);
  wallets.refusals.set(item.holdId, { kind: "storage_unavailable" });
  await outbox.enqueue([item]);
  await eventually(() => expect(wallets.calls).not.toHaveLength(0));
  await depthIs(outbox, { ...EMPTY, waiting: 1 });
  wallets.refusals.clear();
  await withAlarms(outbox, 60_000, () => depthIs(outbox, EMPTY));
  expect([...wallets.charged.values()]).toEqual([5]);
});

it("an outbox stops retrying a message after seven days, with an alert, and delivers it in a later sweep", async () => {
  const outbox = outboxOf("own");
  wallets.down = true;
  const item = settleOf(crypto.randomUUID(), 5);
  await outbox.enqueue([item]);
  await eventually(() => expect(wallets.calls).not.toHaveLength(0));
  await withAlarms(outbox, 6 * DAY_MS, () => expect(wallets.calls.length).toBeGreaterThan(1));
  await depthIs(outbox, { ...EMPTY, waiting: 1 });
  await withAlarms(outbox, 8 * DAY_MS, () => depthIs(outbox, { ...EMPTY, parked: 1 }));
  expect(alertsOf(item.holdId)).toMatchObject([{ event: "alert", alert: "outbox_parked" }]);
  expect(await armed(outbox)).toBeNull();
  wallets.down = false;
  await outbox.poke();
  await eventually(() => depthIs(outbox, EMPTY));
  expect([...wallets.charged.values()]).toEqual([5]);
});

it("an outbox delivers at most 100 messages per alarm, and each message once", async () => {
  const outbox = outboxOf("own");
  const items = Array.from({ length: 250 }, (_, i) => settleOf(`org-${i % 7}`, i));
  const before: number[] = [];
  await runInDurableObject(outbox, (instance: RegionOutbox) => {
    const alarm = instance.alarm.bind(instance);
    instance.alarm = async () => {
      before.push(wallets.calls.length);
      await alarm();
    };
  });
  await outbox.enqueue(items);
  await eventually(() => depthIs(outbox, EMPTY));
  expect(before).toEqual([0, 100, 200]);
  expect(wallets.calls).toHaveLength(250);
  expect(wallets.charged.size).toBe(250);
});

it("an outbox restores a lost alarm when a sweep calls poke", async () => {
  const outbox = outboxOf("own");
  wallets.down = true;
  await outbox.enqueue([settleOf(crypto.randomUUID(), 5)]);
  await eventually(() => expect(wallets.calls.length).toBeGreaterThan(0));
  await runInDurableObject(outbox, (_outbox: RegionOutbox, state) => state.storage.deleteAlarm());
  wallets.down = false;
  await outbox.poke();
  expect(await armed(outbox)).not.toBeNull();
  await withAlarms(outbox, 60_000, () => depthIs(outbox, EMPTY));
});
