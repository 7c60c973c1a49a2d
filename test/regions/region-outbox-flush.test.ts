import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, beforeEach, expect, it } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import { settleOf, voidOf } from "./outbox-fixture.ts";
import { armed, depthIs, emptied, EMPTY, eventually, outboxOf } from "./outbox-steps.ts";
import type { Outbox } from "./outbox-steps.ts";
import { Peer } from "./peer-fixture.ts";

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

it("a flush of an outbox delivers pending messages despite their backoff, and reports an empty outbox", async () => {
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

it("a flush of an outbox calls an unavailable region once, reports pending messages, and leaves an alarm set", async () => {
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

it("a flush of an outbox returns in time if the other region doesn't respond, and never sends a message twice concurrently", async () => {
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
  expect(peer.heard()).toEqual([first.holdId]);
  resolve();
  await alarm;
  expect(await flushes).toEqual(Array.from({ length: 10 }, () => true));
  expect(peer.heard()).toEqual([first.holdId, second.holdId]);
  expect(peer.sentBeside).toEqual([]);
});

it("a flush of an outbox delivers to this region's own wallets as well", async () => {
  const own = outboxOf("own");
  expect(await own.flush(1000)).toBe(true);
  await own.enqueue([voidOf("never-made")]);
  expect(await own.flush(1000)).toBe(false);
  await depthIs(own, { ...EMPTY, waiting: 1 });
});
