import { env } from "cloudflare:workers";
import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { RegionOutbox } from "../../src/index.ts";
import { applyOutcomes } from "../../src/models/requests/paid-path.peer.ts";
import { success } from "../../src/shared/failure.ts";
import { outcomeToJson } from "../../src/regions/outbox-format.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import { settleOf, voidOf, Wallets } from "./outbox-fixture.ts";
import { depthIs, emptied, EMPTY, eventually, outboxOf, withAlarms } from "./outbox-steps.ts";
import type { Outbox } from "./outbox-steps.ts";

/** A healthy organization's messages arrive within this time, whichever wallets hang. */
const DELIVERED_WITHIN_MS = 15_000;
const HEALED_MS = 60_000;
let wallets: Wallets;
let outbox: Outbox;
const org = (): string => crypto.randomUUID();

beforeEach(() => {
  wallets = new Wallets();
  outbox = outboxOf("own");
});
afterEach(async () => {
  wallets.hanging.clear();
  await emptied(outbox);
  wallets.restore();
  shiftClock(null);
});

/** Returns the time of an outcome from the outbox to its wallet. */
async function deliveryMs(orgId: string): Promise<number> {
  const item = settleOf(orgId, 1);
  const startedMs = Date.now();
  await outbox.enqueue([item]);
  const isThere = (): void => expect(wallets.charged.has(`${orgId} ${item.holdId}`)).toBe(true);
  await vi.waitFor(isThere, { timeout: 100_000, interval: 5 });
  return Date.now() - startedMs;
}

it(
  "an outbox delivers to other wallets while a wallet with a hundred outcomes hangs",
  { timeout: 120_000 },
  async () => {
    const [hanging, healthy] = [org(), org()];
    wallets.hanging.add(hanging);
    await outbox.enqueue(Array.from({ length: 100 }, () => voidOf(hanging)));
    await eventually(() => expect(wallets.calls.length).toBeGreaterThan(0));
    expect(await deliveryMs(healthy)).toBeLessThan(DELIVERED_WITHIN_MS);
    for (let more = 0; more < 3; more++) {
      await outbox.enqueue(Array.from({ length: 100 }, () => voidOf(hanging)));
      expect(await deliveryMs(healthy)).toBeLessThan(DELIVERED_WITHIN_MS);
    }
  },
);

it("an outbox calls a failing wallet once per round, and delivers all outcomes once the wallet recovers", async () => {
  const orgId = org();
  wallets.down = true;
  await outbox.enqueue(Array.from({ length: 30 }, (_, i) => settleOf(orgId, i)));
  await eventually(() => expect(wallets.calls).toHaveLength(1));
  for (let round = 2; round <= 4; round++) {
    shiftClock(round * HEALED_MS);
    await runDurableObjectAlarm(outbox);
    expect(wallets.calls).toHaveLength(round);
  }
  // A different one each time, because new messages come first.
  expect(new Set(wallets.calls).size).toBe(4);
  wallets.down = false;
  await withAlarms(outbox, 5 * HEALED_MS, () => depthIs(outbox, EMPTY));
  expect(wallets.charged.size).toBe(30);
});

it("an outbox still delivers an organization's other outcomes if its wallet rejects one outcome", async () => {
  const orgId = org();
  const bad = settleOf(orgId, 1);
  wallets.refusals.set(bad.holdId, { kind: "internal" });
  await outbox.enqueue([bad]);
  await eventually(() => expect(wallets.calls).toHaveLength(1));
  await outbox.enqueue(Array.from({ length: 20 }, (_, i) => settleOf(orgId, i)));
  await withAlarms(outbox, HEALED_MS, () => depthIs(outbox, { ...EMPTY, waiting: 1 }));
  expect(wallets.charged.size).toBe(20);
});

it("an outbox delivers one organization's outcomes immediately while another organization's wallet hangs", async () => {
  const [hanging, healthy] = [org(), org()];
  wallets.down = true;
  await outbox.enqueue([voidOf(hanging), settleOf(healthy, 2)]);
  await eventually(() => expect(wallets.calls).toHaveLength(2));
  wallets.down = false;
  wallets.hanging.add(hanging);
  expect(await outbox.flush(1000, healthy)).toBe(true);
  expect([...wallets.charged.values()]).toEqual([2]);
});

it("a region calls a hanging wallet only once, and applies the message's outcomes for other wallets", async () => {
  const [hanging, healthy] = [org(), org()];
  const items = [
    ...Array.from({ length: 20 }, () => voidOf(hanging)),
    ...Array.from({ length: 20 }, () => voidOf(healthy)),
  ];
  const calls: string[] = [];
  const deliveries = await applyOutcomes(items.map(outcomeToJson), "us", {
    wallet: (orgId) => ({
      settle: () => Promise.reject(new Error("nothing is settled here")),
      void: () => {
        calls.push(orgId);
        return orgId === hanging
          ? new Promise(() => undefined)
          : Promise.resolve(success({ kind: "voided" }));
      },
    }),
    isOrganization: () => Promise.resolve(true),
  });
  expect(calls.filter((orgId) => orgId === hanging)).toHaveLength(1);
  const kinds = deliveries.map(({ kind }) => kind);
  expect(kinds.slice(0, 20)).toEqual(["failed", ...Array.from({ length: 19 }, () => "untried")]);
  expect(new Set(kinds.slice(20))).toEqual(new Set(["delivered"]));
});

it("an outbox delivers all messages even if the platform runs the alarm without the object's name", async () => {
  wallets.down = true;
  const item = settleOf(org(), 3);
  await outbox.enqueue([item]);
  await eventually(() => expect(wallets.calls).toHaveLength(1));
  wallets.down = false;
  shiftClock(HEALED_MS);
  await runInDurableObject(outbox, async (_outbox, state) => {
    Object.defineProperty(state, "id", { value: {}, configurable: true });
    const started = new RegionOutbox(state, env);
    await started.alarm();
  });
  expect([...wallets.charged.values()]).toEqual([3]);
  await evictDurableObject(outbox);
});
