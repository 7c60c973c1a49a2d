import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import {
  asked,
  eventually,
  evict,
  gatedKey,
  MINUTE_MS,
  registerOf,
  standingOf,
  WatchedRegisters,
} from "./key-admissions-fixture.ts";
import { credit, differences, failureOf, holdOf, settle, valueOf } from "./wallet-desk.ts";

let registers: WatchedRegisters;

beforeEach(() => {
  registers = new WatchedRegisters();
  vi.spyOn(console, "warn").mockImplementation(() => undefined);
});
afterEach(() => {
  registers.restore();
  shiftClock(null);
  vi.restoreAllMocks();
});

describe("a repeat of a request whose answer was lost", () => {
  it("takes a place again and never holds twice, also by an object that starts again", async () => {
    const key = await gatedKey({ rpmLimit: 3, balance: 100 });
    const request = holdOf(60);
    for (let i = 1; i <= 3; i++) {
      const { held } = valueOf(await key.stub.admitAndHold(key.hash, request));
      expect(valueOf(held).granted).toBe(60);
      expect(await standingOf(key)).toEqual({ admitted: i, openHolds: 1, held: 60 });
      await evict(key);
    }
  });

  it("over the key's limit releases the hold that nobody comes back for", async () => {
    const key = await gatedKey({ rpmLimit: 1, balance: 100 });
    const [request, other] = [holdOf(60), holdOf(10)];
    valueOf(valueOf(await key.stub.admitAndHold(key.hash, request)).held);
    valueOf(await key.stub.hold(other));
    await evict(key);
    expect(failureOf(await key.stub.admitAndHold(key.hash, request))).toMatchObject({
      kind: "rate_limited",
    });
    expect(await standingOf(key)).toEqual({ admitted: 1, openHolds: 1, held: 10 });
    expect(valueOf(await settle(key.stub, request.id, 60))).toEqual({ kind: "voided" });
    expect(await differences(key.stub)).toEqual([]);
  });

  it("with a key that was revoked meanwhile releases it too", async () => {
    const key = await gatedKey({ balance: 100 });
    const request = holdOf(60);
    valueOf(valueOf(await key.stub.admitAndHold(key.hash, request)).held);
    valueOf(await key.stub.revokeKey(key.hash, 1));
    expect(failureOf(await key.stub.admitAndHold(key.hash, request))).toEqual({
      kind: "invalid_api_key",
    });
    expect(await standingOf(key)).toEqual({ admitted: 1, openHolds: 0, held: 0 });
  });

  it("admitted before, with a key that was revoked meanwhile, releases it too", async () => {
    const key = await gatedKey({ balance: 100 });
    const request = holdOf(60);
    expect(await asked(key)).toBe("admitted");
    valueOf(await key.stub.hold(request, key.hash));
    valueOf(await key.stub.revokeKey(key.hash, 1));
    await evict(key);
    expect(failureOf(await key.stub.hold(request, key.hash))).toEqual({ kind: "invalid_api_key" });
    expect(await standingOf(key)).toEqual({ admitted: 1, openHolds: 0, held: 0 });
    expect(await differences(key.stub)).toEqual([]);
  });

  it.each([
    ["is dead", "invalid_api_key"],
    ["cannot be asked", "storage_unavailable"],
  ])("whose key has to be met again, and whose register %s, releases it too", async (why, kind) => {
    const key = await gatedKey({ balance: 100 });
    const request = holdOf(60);
    valueOf(valueOf(await key.stub.admitAndHold(key.hash, request)).held);
    await registerOf(key).revoke(1);
    shiftClock(MINUTE_MS + 1000);
    expect(await asked(key)).toBe("admitted");
    await eventually(async () => expect(await asked(key)).toBe("invalid_api_key"));
    if (why !== "is dead") registers.fault = {};
    expect(failureOf(await key.stub.admitAndHold(key.hash, request))).toEqual({ kind });
    expect(await standingOf(key)).toMatchObject({ openHolds: 0, held: 0 });
  });

  it("finds its hold where the book has become another wallet's meanwhile, and nothing new is held", async () => {
    vi.spyOn(console, "error").mockImplementation(() => undefined);
    const key = await gatedKey({ balance: 100 });
    const request = holdOf(60);
    valueOf(valueOf(await key.stub.admitAndHold(key.hash, request)).held);
    valueOf(await key.stub.poke());
    await env.DB.prepare("UPDATE balances SET epoch = 'other' WHERE org_id = ?")
      .bind(key.row.org_id)
      .run();
    await credit(key.stub, 1);
    valueOf(await key.stub.poke());
    const { held } = valueOf(await key.stub.admitAndHold(key.hash, request));
    expect(held).toEqual({ ok: true, value: { granted: 60 } });
    expect(valueOf(await key.stub.hold(request))).toEqual({ granted: 60 });
    expect(failureOf(await key.stub.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
    expect(valueOf(await settle(key.stub, request.id, 60))).toMatchObject({ charged: 60 });
  });

  it("that was charged since leaves the charge, whether it is admitted or not", async () => {
    const key = await gatedKey({ rpmLimit: 2, balance: 100 });
    const request = holdOf(60);
    valueOf(valueOf(await key.stub.admitAndHold(key.hash, request)).held);
    valueOf(await settle(key.stub, request.id, 55));
    for (let i = 0; i < 2; i++) await key.stub.admitAndHold(key.hash, request);
    const { creditsMicro, openHolds } = valueOf(await key.stub.balance());
    expect([creditsMicro, openHolds]).toEqual([45, 0]);
    expect(await differences(key.stub)).toEqual([]);
  });
});

it("a void that came while the register was asked is final: nothing is held after it", async () => {
  const key = await gatedKey({ balance: 100 });
  const request = holdOf(60);
  registers.hold();
  const slow = key.stub.admitAndHold(key.hash, request);
  await eventually(() => expect(registers.given).toEqual(["identify"]));
  valueOf(await key.stub.void(request.id));
  registers.open();
  expect(valueOf(await slow).held.ok).toBe(false);
  expect(await standingOf(key)).toEqual({ admitted: 1, openHolds: 0, held: 0 });
});
