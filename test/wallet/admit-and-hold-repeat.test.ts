import { env } from "cloudflare:workers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { shiftClock } from "../keys/key-fixture.ts";
import {
  admission,
  eventually,
  evict,
  gatedKey,
  MINUTE_MS,
  registerOf,
  statusOf,
  WatchedRegisters,
} from "./key-admissions-fixture.ts";
import {
  credit,
  differences,
  failureOf,
  holdOf,
  rowsOf,
  settle,
  valueOf,
} from "./wallet-fixture.ts";

let registers: WatchedRegisters;

beforeEach(() => {
  registers = new WatchedRegisters();
});
afterEach(() => {
  registers.restore();
  shiftClock(null);
});

describe("a retry of a wallet call whose response was lost", () => {
  it("counts one request and creates one hold, even if the wallet restarts in between", async () => {
    const key = await gatedKey({ rpmLimit: 3, balance: 100 });
    const request = holdOf(60);
    for (let i = 1; i <= 4; i++) {
      const { admitted, held } = valueOf(await key.stub.admitAndHold(key.hash, request));
      expect(valueOf(held).granted).toBe(60);
      expect(admitted).toMatchObject({ limit: 3, remaining: 2 });
      expect(await statusOf(key)).toEqual({ admitted: 1, openHolds: 1, held: 60 });
      await evict(key);
    }
  });

  it("returns the earlier hold and the remaining requests even if the key has reached its rate limit", async () => {
    const key = await gatedKey({ rpmLimit: 1, balance: 100 });
    const request = holdOf(60);
    valueOf(valueOf(await key.stub.admitAndHold(key.hash, request)).held);
    await evict(key);
    const { admitted, held } = valueOf(await key.stub.admitAndHold(key.hash, request));
    expect([admitted.remaining, valueOf(held).granted]).toEqual([0, 60]);
    expect(failureOf(await key.stub.admitAndHold(key.hash, holdOf(1)))).toMatchObject({
      kind: "rate_limited",
    });
    expect(await statusOf(key)).toEqual({ admitted: 1, openHolds: 1, held: 60 });
  });

  it.each([
    ["key admitted together with the hold", "admitAndHold"],
    ["key admitted before the hold", "hold"],
  ] as const)(
    "fails after a revocation of the key (%s), and leaves the open hold unchanged",
    async (_, by) => {
      const key = await gatedKey({ balance: 100 });
      const request = holdOf(60);
      const sendHold = () =>
        by === "hold" ? key.stub.hold(request, key.hash) : key.stub.admitAndHold(key.hash, request);
      if (by === "hold") valueOf(await key.stub.admit(key.hash));
      valueOf<unknown>(await sendHold());
      valueOf(await key.stub.revokeKey(key.hash, 1));
      await evict(key);
      expect(failureOf(await sendHold())).toEqual({ kind: "invalid_api_key", isForGood: true });
      expect(await statusOf(key)).toEqual({ admitted: 1, openHolds: 1, held: 60 });
      expect(valueOf(await settle(key.stub, request.id, 60))).toMatchObject({ charged: 60 });
      expect(await differences(key.stub)).toEqual([]);
    },
  );

  it("leaves the open hold unchanged if the key lookup fails", async () => {
    const key = await gatedKey({ balance: 100 });
    const request = holdOf(60);
    valueOf(valueOf(await key.stub.admitAndHold(key.hash, request)).held);
    await registerOf(key).revoke(1);
    shiftClock(MINUTE_MS + 1000);
    expect(await admission(key)).toBe("admitted");
    await eventually(async () => expect(await admission(key)).toBe("invalid_api_key"));
    registers.fault = {};
    expect(failureOf(await key.stub.admitAndHold(key.hash, request))).toEqual({
      kind: "storage_unavailable",
    });
    expect(await statusOf(key)).toMatchObject({ openHolds: 1, held: 60 });
  });

  it("returns the earlier hold, but allows no new hold, while the wallet contradicts the database", async () => {
    const key = await gatedKey({ balance: 100 });
    const request = holdOf(60);
    valueOf(valueOf(await key.stub.admitAndHold(key.hash, request)).held);
    valueOf(await key.stub.poke());
    await env.DB.prepare("UPDATE balances SET epoch = 'other' WHERE org_id = ?")
      .bind(key.booked.orgId)
      .run();
    await credit(key.stub, 1);
    valueOf(await key.stub.poke());
    const { held } = valueOf(await key.stub.admitAndHold(key.hash, request));
    expect(held).toEqual({ ok: true, value: { granted: 60 } });
    expect(valueOf(await key.stub.hold(request))).toEqual({ granted: 60 });
    expect(failureOf(await key.stub.hold(holdOf(1)))).toEqual({ kind: "storage_unavailable" });
    expect(valueOf(await settle(key.stub, request.id, 60))).toMatchObject({ charged: 60 });
  });

  it("leaves the hold's charge unchanged, even if the retry is rejected", async () => {
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

describe("a wallet call that arrives after its retry", () => {
  it("leaves the retry's hold unchanged, even if the late call is rejected", async () => {
    const key = await gatedKey({ rpmLimit: 1, balance: 100 });
    const request = holdOf(60);
    const [repeat, first] = [key.stub, key.stub];
    valueOf(valueOf(await repeat.admitAndHold(key.hash, request)).held);
    await first.admitAndHold(key.hash, request); // over the limit by now
    valueOf(await key.stub.revokeKey(key.hash, 1));
    await first.admitAndHold(key.hash, request); // revoked by now
    expect(valueOf(await settle(key.stub, request.id, 60))).toMatchObject({ charged: 60 });
    expect(await differences(key.stub)).toEqual([]);
  });

  it("creates no hold if the request was already released, and leaves no rows after two days", async () => {
    const key = await gatedKey({ rpmLimit: 1, balance: 100 });
    const request = holdOf(60);
    expect(await admission(key)).toBe("admitted");
    expect(failureOf(await key.stub.admitAndHold(key.hash, request))).toMatchObject({
      kind: "rate_limited",
    });
    valueOf(await key.stub.void(request.id)); // requests without a response are voided
    await evict(key);
    shiftClock(MINUTE_MS + 1000);
    const late = valueOf(await key.stub.admitAndHold(key.hash, request));
    expect(failureOf(late.held)).toEqual({ kind: "overloaded" });
    expect(await statusOf(key)).toMatchObject({ openHolds: 0, held: 0 });
    expect(await differences(key.stub)).toEqual([]);
    shiftClock(2 * 86_400_000 + 5 * MINUTE_MS);
    valueOf(await key.stub.poke());
    expect(await rowsOf(key.stub, "SELECT id FROM requests")).toEqual([]);
  });
});

it("a wallet rejects a hold that is released during the key lookup", async () => {
  const key = await gatedKey({ balance: 100 });
  const request = holdOf(60);
  registers.hold();
  const slow = key.stub.admitAndHold(key.hash, request);
  await eventually(() => expect(registers.answeredCalls).toContain("identify"));
  valueOf(await key.stub.void(request.id));
  registers.open();
  expect(valueOf(await slow).held.ok).toBe(false);
  expect(await statusOf(key)).toEqual({ admitted: 0, openHolds: 0, held: 0 });
});
