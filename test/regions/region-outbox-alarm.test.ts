import { env } from "cloudflare:workers";
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RegionOutbox } from "../../src/index.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import { settleOf, voidOf } from "./outbox-fixture.ts";
import {
  armed,
  depthIs,
  emptied,
  EMPTY,
  eventually,
  outboxOf,
  withAlarms,
} from "./outbox-steps.ts";
import type { Outbox } from "./outbox-steps.ts";
import { Peer } from "./peer-fixture.ts";

const HOUR_MS = 3_600_000;

let peer: Peer;

let outbox: Outbox;

beforeEach(() => {
  peer = new Peer();
  outbox = outboxOf("us");
});

afterEach(async () => {
  await emptied(outbox); // its alarms would call the next test's peer
  shiftClock(null);
});

/** Enqueues a message that waits for its backoff, because the peer was unavailable. */
async function oneWaiting(): Promise<string> {
  peer.fault = () => "request-lost";
  const item = settleOf(crypto.randomUUID(), 1);
  await outbox.enqueue([item]);
  await eventually(() => expect(peer.requests).not.toHaveLength(0));
  await eventually(async () => expect(await armed(outbox)).toBeGreaterThan(Date.now()));
  peer.fault = () => "none";
  return item.holdId;
}

it("an outbox sets its alarm again after each failure to read its tables, even ten in a row", async () => {
  const id = await oneWaiting();
  let reads = 0;
  await runInDurableObject(outbox, (_outbox, { storage }) => {
    const exec = storage.sql.exec.bind(storage.sql);
    storage.sql.exec = ((sql: string, ...values: unknown[]) => {
      if (!/^(?:SELECT|WITH)/.test(sql)) return exec(sql, ...values);
      reads++;
      throw new Error("the tables cannot be read");
    }) as typeof exec;
  });
  const requestCount = peer.requests.length;
  for (let round = 1; round <= 10; round++) {
    const before = reads;
    await runDurableObjectAlarm(outbox);
    expect(reads).toBeGreaterThan(before);
    expect(await armed(outbox)).not.toBeNull();
  }
  expect(peer.requests.length).toBe(requestCount);
  await evictDurableObject(outbox);
  await withAlarms(outbox, 60_000, () => depthIs(outbox, EMPTY));
  expect([...peer.effects.keys()]).toEqual([id]);
});

it("an outbox restores a lost alarm at the next start", async () => {
  await oneWaiting();
  await runInDurableObject(outbox, (_outbox, { storage }) => storage.deleteAlarm());
  expect(await armed(outbox)).toBeNull();
  await evictDurableObject(outbox);
  expect(await armed(outbox)).not.toBeNull();
  await withAlarms(outbox, 60_000, () => depthIs(outbox, EMPTY));
});

it.each([
  ["long past: set again", -61_000, true],
  ["about to run: unchanged", -1000, false],
  ["in the future: unchanged", 20_000, false],
])("an outbox starts with an alarm that is %s", async (_name, offsetMs, isSetAgain) => {
  await oneWaiting();
  await runInDurableObject(outbox, async (_outbox, state) => {
    const { storage } = state;
    const set = vi.fn<DurableObjectStorage["setAlarm"]>(storage.setAlarm.bind(storage));
    storage.getAlarm = () => Promise.resolve(Date.now() + offsetMs);
    storage.setAlarm = set;
    const started = new RegionOutbox(state, env);
    await state.blockConcurrencyWhile(() => Promise.resolve());
    expect(set.mock.calls).toHaveLength(isSetAgain ? 1 : 0);
    expect(started.depth().waiting).toBe(1);
  });
});

it.each([true, false])(
  "an outbox retries at the next alarm even if the clock was an hour ahead (evicted: %s)",
  async (isEvicted) => {
    shiftClock(HOUR_MS);
    const id = await oneWaiting();
    shiftClock(0);
    if (isEvicted) await evictDurableObject(outbox);
    await runDurableObjectAlarm(outbox); // finds nothing due, and the message an hour later
    await withAlarms(outbox, 0, () => depthIs(outbox, EMPTY)); // its own alarm can be running
    expect([...peer.effects.keys()]).toEqual([id]);
  },
);

it("an outbox that restarts corrects an alarm that a wrong clock set an hour too late", async () => {
  await oneWaiting();
  await runInDurableObject(outbox, (_outbox, { storage }) =>
    storage.setAlarm(Date.now() + HOUR_MS),
  );
  await evictDurableObject(outbox);
  expect(await armed(outbox)).toBeLessThanOrEqual(Date.now() + 30_000);
});

it("an outbox without messages never sets an alarm", async () => {
  await outbox.poke();
  await evictDurableObject(outbox);
  await outbox.poke();
  expect(await outbox.flush(10)).toBe(true);
  expect(await armed(outbox)).toBeNull();
});

it("a flush of an outbox delivers pending messages despite the backoff, and reports an empty outbox", async () => {
  peer.fault = () => "request-lost";
  await outbox.enqueue(Array.from({ length: 150 }, (_, i) => settleOf(crypto.randomUUID(), i)));
  await eventually(() => expect(peer.requests.length).toBeGreaterThanOrEqual(2));
  await eventually(async () => expect(await armed(outbox)).toBeGreaterThan(Date.now()));
  shiftClock(-20_000); // Nothing is due. A clock further back would make everything due.
  peer.fault = () => "none";
  peer.requests.length = 0;
  expect(await outbox.flush(1000)).toBe(true);
  expect(peer.requests.map((request) => request.items.length)).toEqual([100, 50]);
  expect(peer.effects.size).toBe(150);
  expect(await outbox.flush(1000)).toBe(true);
  expect(peer.requests).toHaveLength(2);
});

it("a flush of an outbox calls an unavailable region once, reports pending messages, and keeps an alarm set", async () => {
  peer.fault = () => "request-lost";
  await outbox.enqueue(Array.from({ length: 150 }, (_, i) => settleOf(crypto.randomUUID(), i)));
  await eventually(() => expect(peer.requests.length).toBeGreaterThanOrEqual(2));
  await eventually(async () => expect(await armed(outbox)).toBeGreaterThan(Date.now()));
  shiftClock(-20_000); // Nothing is due. A clock further back would make everything due.
  peer.requests.length = 0;
  expect(await outbox.flush(1000)).toBe(false);
  expect(peer.requests).toHaveLength(1);
  expect(await armed(outbox)).not.toBeNull();
});

it("a flush of an outbox returns in time if the other region doesn't respond, and never sends a message twice", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  peer.stalled = promise;
  const first = settleOf(crypto.randomUUID(), 1);
  await outbox.enqueue([first]);
  await eventually(() => expect(peer.requests.length).toBeGreaterThan(0));
  expect(await outbox.flush(20)).toBe(false);
  const second = settleOf(crypto.randomUUID(), 2);
  await outbox.enqueue([second]);
  const flushes = Promise.all(Array.from({ length: 10 }, () => outbox.flush(5000)));
  const alarm = runDurableObjectAlarm(outbox);
  expect(await outbox.flush(20)).toBe(false);
  expect(peer.receivedIds()).toEqual([first.holdId]);
  resolve();
  await alarm;
  expect(await flushes).toEqual(Array.from({ length: 10 }, () => true));
  expect(peer.receivedIds()).toEqual([first.holdId, second.holdId]);
  expect(peer.sentBeside).toEqual([]);
});

it("a flush of an outbox delivers to wallets in the outbox's region as well", async () => {
  const own = outboxOf("own");
  expect(await own.flush(1000)).toBe(true);
  await own.enqueue([voidOf("never-made")]);
  expect(await own.flush(1000)).toBe(false);
  await depthIs(own, { ...EMPTY, waiting: 1 });
});
