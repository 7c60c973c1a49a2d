import { runInDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { RegionOutbox } from "../../src/regions/region-outbox.do.ts";
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

const DAY_MS = 24 * 60 * 60 * 1000;
let peer: Peer;
let alerts: unknown[][];
let outbox: Outbox;

beforeEach(() => {
  peer = new Peer();
  outbox = outboxOf("us");
  alerts = vi.spyOn(console, "error").mockImplementation(() => undefined).mock.calls;
});
afterEach(async () => {
  await emptied(outbox); // its alarms would call the next test's peer
  shiftClock(null);
});

/**
 * Returns the alerts of this test's outbox, because the shifted clock can affect other files'
 * outboxes too.
 */
const alertsHere = (): readonly Record<string, unknown>[] =>
  alerts
    .flat()
    .map((line) => JSON.parse(String(line)) as Record<string, unknown>)
    .filter((alert) => alert["outbox"] === outbox.name);

const org = (): string => crypto.randomUUID();

describe("the outcome of a request for another region's wallet", () => {
  it("shares one request with other outcomes, with the documented fields", async () => {
    const orgId = org();
    const [settle, release] = [settleOf(orgId, 42), voidOf(orgId)];
    await outbox.enqueue([settle, release]);
    await eventually(() => depthIs(outbox, EMPTY));
    expect(peer.requests).toHaveLength(1);
    expect(peer.requests[0]?.url).toBe("https://us.turnpike.example.com/internal/v1/outcomes");
    const items = new Map(peer.requests[0]?.items.map((item) => [item["hold_id"], item]));
    expect(items.get(settle.holdId)).toMatchObject({
      org_id: orgId,
      kind: "settle",
      cost_micro: 42,
      generation: { model: "sandbox/echo", key_id: "key_1", usage: { cache_read: 0 } },
    });
    expect(items.get(release.holdId)).toEqual({
      hold_id: release.holdId,
      org_id: orgId,
      kind: "void",
      cost_micro: 0,
      generation: null,
    });
    expect(await armed(outbox)).toBeNull();
  });

  it("shares one delayed alarm and one request even with outcomes that are added one by one", async () => {
    const items = Array.from({ length: 5 }, (_, i) => settleOf(org(), i));
    const begunMs = Date.now();
    await runInDurableObject(outbox, async (instance: RegionOutbox, { storage }) => {
      const set = vi.spyOn(storage, "setAlarm").mockResolvedValue(undefined);
      for (const item of items) await instance.enqueue([item]);
      expect(set).toHaveBeenCalledTimes(1);
      expect(set.mock.calls[0]?.[0]).toBeGreaterThan(begunMs);
      set.mockRestore();
    });
    expect(peer.requests).toHaveLength(0);
    await outbox.poke();
    await eventually(() => depthIs(outbox, EMPTY));
    expect(peer.requests.map((request) => request.items.length)).toEqual([5]);
  });

  it("reaches the region once, in a request of at most a hundred outcomes", async () => {
    const items = Array.from({ length: 250 }, (_, i) => settleOf(org(), i));
    await outbox.enqueue(items);
    await eventually(() => depthIs(outbox, EMPTY));
    // Other tests' key objects can look keys up at the peer. Those requests have no items.
    const ours = peer.requests.filter(({ items: carried }) => Array.isArray(carried));
    const sizes = ours.map((request) => request.items.length);
    expect(sizes.toSorted((a, b) => b - a)).toEqual([100, 100, 50]);
    expect(new Set(peer.receivedIds()).size).toBe(250);
  });

  it("stays pending until the response contains a valid result for the outcome", async () => {
    const ids = ["taken", "refused", "failed", "silent", "twice", "odd"] as const;
    const items = new Map(ids.map((name) => [name, settleOf(org(), 1)]));
    const idOf = (name: (typeof ids)[number]): string => items.get(name)?.holdId ?? "";
    peer.answer = ({ items: requested }) => {
      const named = new Map(requested.map((item) => [item["hold_id"], item]));
      const of = (name: (typeof ids)[number]) => named.get(idOf(name)) ?? {};
      const results = [
        { ...of("taken"), result: "delivered" },
        { ...of("refused"), result: "refused", reason: "unknown organization" },
        { ...of("failed"), result: "failed", reason: "storage_unavailable" },
        { ...of("twice"), result: "delivered" },
        { ...of("twice"), result: "refused" },
        { ...of("odd"), result: "taken" },
        { hold_id: "req_somebody-else", result: "delivered" },
        { result: "delivered" },
        null,
      ];
      return Response.json({ ok: true, results });
    };
    await outbox.enqueue([...items.values()]);
    await eventually(() => depthIs(outbox, { waiting: 4, dead: 1, parked: 0 }));
    expect(alertsHere()[0]).toMatchObject({
      event: "alert",
      alert: "outbox_dead",
      id: idOf("refused"),
      reason: "unknown organization",
    });
    peer.answer = null;
    await withAlarms(outbox, 60_000, () => depthIs(outbox, { ...EMPTY, dead: 1 }));
    const later = ["failed", "silent", "twice", "odd"] as const;
    expect([...peer.effects.keys()].toSorted()).toEqual(later.map(idOf).toSorted());
  });

  it.each([
    ["text", () => new Response("<html></html>")],
    ["an empty object", () => Response.json({})],
    ["an error for the whole request", () => Response.json({ ok: false, results: [] })],
    ["results that aren't a list", () => Response.json({ ok: true, results: {} })],
    ["an ordinary 404", () => Response.json({ ok: true, results: [] }, { status: 404 })],
    ["a 500", () => Response.json({ ok: true, results: [] }, { status: 500 })],
  ])("stays pending after the response: %s", async (_name, answer) => {
    peer.answer = answer;
    await outbox.enqueue([settleOf(org(), 1), voidOf(org())]);
    await eventually(() => expect(peer.requests).not.toHaveLength(0));
    await eventually(async () => expect(await armed(outbox)).toBeGreaterThan(Date.now()));
    await depthIs(outbox, { ...EMPTY, waiting: 2 });
    peer.answer = null;
    await withAlarms(outbox, 60_000, () => depthIs(outbox, EMPTY));
    expect(peer.effects.size).toBe(2);
  });

  it("never shares a request with another outcome of the same hold", async () => {
    const settle = settleOf(org(), 5);
    await outbox.enqueue([settle, { ...voidOf(settle.orgId), holdId: settle.holdId }]);
    await eventually(() => depthIs(outbox, EMPTY));
    expect(peer.requests.map((request) => request.items.length)).toEqual([1, 1]);
    expect(peer.receivedIds()).toEqual([settle.holdId, settle.holdId]);
  });

  it("waits for a later sweep after a week without a response, with an alert, and is never dropped", async () => {
    peer.fault = () => "request-lost";
    await outbox.enqueue([settleOf(org(), 5)]);
    await eventually(() => expect(peer.requests).not.toHaveLength(0));
    await withAlarms(outbox, 6 * DAY_MS, () => expect(peer.requests.length).toBeGreaterThan(1));
    await depthIs(outbox, { ...EMPTY, waiting: 1 });
    await withAlarms(outbox, 8 * DAY_MS, () => depthIs(outbox, { ...EMPTY, parked: 1 }));
    expect(alerts.flat().join()).toContain('"alert":"outbox_parked"');
  });

  it("gets one attempt per sweep after a week of failures, with a single alert, until delivered", async () => {
    await parkedAfterAWeek(1);
    for (let sweep = 2; sweep <= 4; sweep++) {
      const before = peer.requests.length;
      await outbox.poke();
      await eventually(() => expect(peer.requests).toHaveLength(before + 1));
      await eventually(() => depthIs(outbox, { ...EMPTY, parked: 1 }));
    }
    expect(alertsHere()).toHaveLength(1);
    peer.fault = () => "none";
    await outbox.poke();
    await eventually(() => depthIs(outbox, EMPTY));
    expect(peer.effects.size).toBe(1);
  });

  it("gets only one shared request per sweep after a week of failures, until one outcome is delivered", async () => {
    await parkedAfterAWeek(250);
    peer.requests.length = 0;
    await outbox.poke();
    await eventually(() => depthIs(outbox, { ...EMPTY, parked: 250 }));
    expect(peer.requests.map((request) => request.items.length)).toEqual([100]);
    expect(alertsHere()).toHaveLength(250);
    peer.fault = () => "none";
    await outbox.enqueue([settleOf(org(), 1)]);
    await eventually(() => depthIs(outbox, EMPTY));
    expect(peer.effects.size).toBe(251);
  });

  it("stays pending while PEERS doesn't contain the other region", async () => {
    const nobody = env.REGION_OUTBOX.getByName(`eu/${crypto.randomUUID()}`);
    await nobody.enqueue([settleOf(org(), 5)]);
    await eventually(async () => expect(await armed(nobody)).toBeGreaterThan(Date.now()));
    await depthIs(nobody, { ...EMPTY, waiting: 1 });
    expect(peer.requests).toEqual([]);
  });
});

describe("a region that recovers from an outage", () => {
  it(
    "receives all pending outcomes immediately instead of 30 s later",
    { timeout: 100_000 },
    async () => {
      peer.fault = () => "request-lost";
      const items = Array.from({ length: 250 }, (_, i) => settleOf(org(), i));
      await outbox.enqueue(items);
      await eventually(() => expect(peer.requests.length).toBeGreaterThanOrEqual(3));
      // One failure delays all pending messages, so a minute can have fewer requests than hundreds
      // of messages.
      for (let minute = 1; minute <= 8; minute++) {
        const before = peer.requests.length;
        await withAlarms(outbox, minute * 60_000, () =>
          expect(peer.requests.length).toBeGreaterThan(before),
        );
      }
      await eventually(async () => expect(await armed(outbox)).toBeGreaterThan(Date.now() + 5000));
      peer.fault = () => "none";
      peer.requests.length = 0;
      const news = settleOf(org(), 1);
      await outbox.enqueue([news]);
      await withAlarms(outbox, 8 * 60_000, () => depthIs(outbox, EMPTY));
      expect(peer.requests.map((request) => request.items.length)).toEqual([1, 100, 100, 50]);
      expect(peer.effects.size).toBe(251);
    },
  );

  it("doesn't immediately receive an outcome again if the outcome's wallet failed", async () => {
    const bad = settleOf(org(), 1);
    peer.failing.add(bad.holdId);
    await outbox.enqueue([bad]);
    await eventually(() => expect(peer.requests).not.toHaveLength(0));
    await eventually(async () => expect(await armed(outbox)).toBeGreaterThan(Date.now()));
    shiftClock(-20_000); // its backoff doesn't end during this test
    const deliveryCount = (): number => peer.receivedIds().filter((id) => id === bad.holdId).length;
    const before = deliveryCount();
    await outbox.enqueue([settleOf(org(), 2)]);
    await eventually(() => depthIs(outbox, { ...EMPTY, waiting: 1 }));
    expect(deliveryCount()).toBe(before);
  });

  it("receives only one request per hundred messages while requests fail", async () => {
    peer.fault = () => "request-lost";
    await outbox.enqueue(Array.from({ length: 100 }, (_, i) => settleOf(org(), i)));
    await eventually(() => expect(peer.requests).not.toHaveLength(0));
    for (let minute = 1; minute <= 4; minute++) {
      const before = peer.requests.length;
      await withAlarms(outbox, minute * 60_000, () =>
        expect(peer.requests.length).toBeGreaterThan(before),
      );
    }
    expect(peer.requests.every((request) => request.items.length === 100)).toBe(true);
  });
});

it("an outbox dead-letters an invalid message, and delivers all other messages", async () => {
  const good = settleOf(org(), 2);
  const bad = settleOf(org(), 2);
  await outbox.enqueue([{ ...bad, cost: Number.NaN as typeof bad.cost }, good]);
  await eventually(() => depthIs(outbox, { ...EMPTY, dead: 1 }));
  expect(peer.receivedIds()).toEqual([good.holdId]);
});

/**
 * Enqueues this number of settlements, which an unavailable peer doesn't receive for eight days.
 */
async function parkedAfterAWeek(count: number): Promise<void> {
  peer.fault = () => "request-lost";
  await outbox.enqueue(Array.from({ length: count }, () => settleOf(org(), 5)));
  await eventually(() => expect(peer.requests.length).toBeGreaterThan(0));
  await withAlarms(outbox, 8 * DAY_MS, () => depthIs(outbox, { ...EMPTY, parked: count }));
}
