import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { IdempotencyHashes } from "../../src/shared/idempotency.ts";
import { micros } from "../../src/shared/money.ts";
import type { HoldRequest } from "../../src/shared/contracts/wallet.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
  countWrites,
  differences,
  failureOf,
  GENERATION,
  holdOf,
  newWallet,
  rowsOf,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";
import type { Stub } from "./wallet-fixture.ts";

afterEach(() => setClock(null));

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** An hour before the end of a year. */
const LATE = Date.UTC(2031, 11, 31, 23);
const IN_PROGRESS = { kind: "idempotency_in_progress" };
const MISMATCH = { kind: "idempotency_mismatch" };
const replayOf = (id: string) => ({ kind: "idempotency_replay", made: "generation", id });

/** Returns a hold of 10 micro-credits with the Idempotency-Key "x" and by default the body "1". */
function named(body = "1", more: Partial<HoldRequest> = {}): HoldRequest {
  const idempotency: IdempotencyHashes = { name: "x", body };
  return holdOf(10, { idempotency, ...more });
}

async function paid(stub: Stub, request = named()): Promise<string> {
  valueOf(await stub.hold(request));
  valueOf(await settle(stub, request.id, 10));
  return request.id;
}

async function refusal(stub: Stub, request = named()): Promise<unknown> {
  return failureOf(await stub.hold(request));
}

describe("an Idempotency-Key", () => {
  it("returns 409 while the first request's hold is open, then a replay error, and an error for a different body", async () => {
    const { stub } = await newWallet(1000);
    const first = named();
    valueOf(await stub.hold(first));
    expect(await refusal(stub)).toEqual(IN_PROGRESS);
    expect(await refusal(stub, named("2"))).toEqual(MISMATCH);
    await evictDurableObject(stub);
    expect(await refusal(stub)).toEqual(IN_PROGRESS);
    valueOf(await settle(stub, first.id, 7));
    expect(await refusal(stub)).toEqual(replayOf(first.id));
    expect(await refusal(stub, named("2"))).toEqual(MISMATCH);
    await evictDurableObject(stub);
    expect(await refusal(stub)).toEqual(replayOf(first.id));
    const other = holdOf(10, { idempotency: { name: "y", body: "1" } });
    expect(valueOf(await stub.hold(other)).granted).toBe(10);
    expect(valueOf(await stub.balance())).toMatchObject({ creditsMicro: 993, openHolds: 1 });
    expect(await differences(stub)).toEqual([]);
  });

  it("can be reused after the first request's hold expires, and the first request is then never charged", async () => {
    const { stub } = await newWallet(1000);
    setClock(LATE);
    const lost = named();
    valueOf(await stub.hold(lost));
    setClock(LATE + 21 * MINUTE);
    const second = named();
    valueOf(await stub.hold(second));
    expect(valueOf(await settle(stub, lost.id, 10))).toEqual({ kind: "voided" });
    valueOf(await settle(stub, second.id, 10));
    expect(valueOf(await settle(stub, lost.id, 10))).toEqual({ kind: "voided" });
    expect(valueOf(await stub.balance())).toMatchObject({ creditsMicro: 990, openHolds: 0 });
    expect(await differences(stub)).toEqual([]);
  });

  it("lasts exactly 24 hours from admission, across midnight and an eviction", async () => {
    const { stub } = await newWallet(1000);
    const now = vi.spyOn(Date, "now");
    now.mockReturnValue(LATE);
    const first = await paid(stub);
    now.mockReturnValue(LATE + DAY - 1);
    expect(await refusal(stub)).toEqual(replayOf(first));
    await evictDurableObject(stub);
    expect(await refusal(stub)).toEqual(replayOf(first));
    now.mockReturnValue(LATE + DAY);
    const second = await paid(stub, named("2"));
    expect(await refusal(stub, named("2"))).toEqual(replayOf(second));
    now.mockReturnValue(LATE + 2 * DAY - 1);
    expect(await refusal(stub, named("2"))).toEqual(replayOf(second));
    expect(valueOf(await stub.balance()).creditsMicro).toBe(980);
  });

  it("takes effect before rate limit, end users, quota and balance, but after a suspension", async () => {
    const { stub } = await newWallet(10);
    const first = await paid(stub);
    expect(await refusal(stub)).toEqual(replayOf(first));
    expect(await refusal(stub, holdOf(10))).toMatchObject({ kind: "balance_too_low" });
    valueOf(await stub.patchSettings({ defaultUserDailyQuotaMicro: micros(0) }));
    expect(await refusal(stub, named("1", { externalId: "u" }))).toEqual(replayOf(first));
    valueOf(await stub.configure({ rpmLimit: 1 }));
    expect(await refusal(stub)).toEqual(replayOf(first));
    expect(await refusal(stub, holdOf(0))).toMatchObject({ kind: "rate_limited" });
    valueOf(await stub.configure({ suspended: true }));
    expect(await refusal(stub)).toEqual({ kind: "organization_suspended" });
  });

  it("returns 409 to another region's rejected request even after the first hold's release, but not to a new request", async () => {
    const { stub } = await newWallet(1000);
    const home = named();
    valueOf(await stub.hold(home));
    const peer = named("1", { peer: true });
    expect(await refusal(stub, peer)).toEqual(IN_PROGRESS);
    valueOf(await stub.void(home.id));
    expect(await refusal(stub, peer)).toEqual(IN_PROGRESS);
    const again = await paid(stub, named("1", { peer: true }));
    expect(await refusal(stub, named("1", { peer: true }))).toEqual(replayOf(again));
  });

  it("lasts a day from the newest use, even if it was first used while the clock was days ahead", async () => {
    const { stub } = await newWallet(1000);
    setClock(LATE);
    await paid(stub);
    setClock(LATE + 2 * DAY);
    await paid(stub);
    setClock(LATE + 3 * DAY + MINUTE);
    const newest = await paid(stub, named("2"));
    setClock(LATE + MINUTE);
    expect(await refusal(stub, named("2"))).toEqual(replayOf(newest));
    expect(await refusal(stub)).toEqual(MISMATCH);
    expect(await rowsOf(stub, "SELECT day, body FROM idempotency_keys")).toEqual([
      { day: "2031-12-31", body: "2" },
    ]);
    setClock(LATE + DAY + 2 * MINUTE);
    expect(valueOf(await stub.hold(named())).granted).toBe(10);
  });
});

describe("the table of Idempotency-Keys", () => {
  it("gets one row per request with an Idempotency-Key, and no row for other requests", async () => {
    const { stub } = await newWallet(1000);
    const written = (make: () => HoldRequest): Promise<number> =>
      runInDurableObject(stub, (wallet: Wallet, state) =>
        countWrites(state.storage, async () => {
          const request = make();
          valueOf(await wallet.hold(request));
          const settlement = { id: request.id, cost: micros(10), generation: GENERATION };
          valueOf(await wallet.settle(settlement));
        }),
      );
    await paid(stub, holdOf(10));
    expect(await written(() => holdOf(10))).toBe(2);
    expect(await written(named)).toBe(3);
    expect(
      await runInDurableObject(stub, (wallet: Wallet, state) =>
        countWrites(state.storage, async () => void (await wallet.hold(named()))),
      ),
    ).toBe(0);
  });
});
