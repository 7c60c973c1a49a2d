import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { RegionOutbox } from "../../src/index.ts";
import { revocationsOutboxName } from "../../src/regions/outbox-schedule.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import { settleOf } from "./outbox-fixture.ts";
import { armed, depthIs, emptied, EMPTY, eventually, outboxOf } from "./outbox-steps.ts";
import type { Outbox } from "./outbox-steps.ts";
import { Peer } from "./peer-fixture.ts";

let peer: Peer;
let outbox: Outbox;

beforeEach(async () => {
  peer = new Peer();
  outbox = env.REGION_OUTBOX.getByName(revocationsOutboxName("us"));
  await emptied(outbox);
});
afterEach(async () => {
  await emptied(outbox); // its alarms would call the next test's peer
  shiftClock(null);
});

function revocation(revokedAt = 5): { keyHash: string; revokedAt: number } {
  const random = crypto.getRandomValues(new Uint8Array(32));
  return {
    keyHash: [...random].map((byte) => byte.toString(16).padStart(2, "0")).join(""),
    revokedAt,
  };
}

it("an outbox for revocations calls a separate endpoint", async () => {
  const gone = revocation(1234);
  await outbox.enqueueRevocations([gone]);
  await eventually(() => depthIs(outbox, EMPTY));
  expect(peer.requests).toEqual([
    {
      url: "https://us.turnpike.example.com/internal/v1/revocations",
      items: [{ key_hash: gone.keyHash, revoked_at: 1234 }],
    },
  ]);
  await runInDurableObject(outbox, async (instance: RegionOutbox) => {
    await expect(instance.enqueue([settleOf(crypto.randomUUID(), 1)])).rejects.toThrow(
      "carries no outcomes",
    );
  });
  await runInDurableObject(outboxOf("us"), async (instance: RegionOutbox) => {
    await expect(instance.enqueueRevocations([gone])).rejects.toThrow("carries no revocations");
  });
});

it("an outbox sends new revocations immediately, even during the backoff of earlier revocations", async () => {
  const [old, fresh] = [revocation(), revocation()];
  peer.fault = ({ items }) => (items.length === 1 ? "request-lost" : "none");
  await outbox.enqueueRevocations([old]);
  await eventually(() => expect(peer.requests).not.toHaveLength(0));
  await eventually(async () => expect(await armed(outbox)).toBeGreaterThan(Date.now()));
  shiftClock(-20_000); // no backoff ends during this test
  peer.fault = () => "request-lost";
  await outbox.enqueueRevocations([fresh]);
  await eventually(() => expect(peer.receivedIds().at(-1)).toBe(fresh.keyHash));
  await depthIs(outbox, { ...EMPTY, waiting: 2 });
  await eventually(async () => expect(await armed(outbox)).toBeGreaterThan(Date.now()));
  peer.fault = () => "none";
  const third = revocation();
  await outbox.enqueueRevocations([third]);
  await eventually(() => depthIs(outbox, EMPTY));
  expect([...peer.effects.keys()].toSorted()).toEqual(
    [old, fresh, third].map(({ keyHash }) => keyHash).toSorted(),
  );
});

it("an outbox sends a repeated revocation immediately, even if the first revocation was dead-lettered", async () => {
  const gone = revocation(7);
  peer.refused.add(gone.keyHash);
  await outbox.enqueueRevocations([gone]);
  await eventually(() => depthIs(outbox, { ...EMPTY, dead: 1 }));
  peer.refused.clear();
  await outbox.enqueueRevocations([{ ...gone, revokedAt: 9 }]);
  await eventually(() => depthIs(outbox, EMPTY));
  expect(peer.requests.map(({ items }) => items[0]?.["revoked_at"])).toEqual([7, 7]);
});
