import { describe, expect, it } from "vitest";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { BudgetScope } from "../../src/shared/budgets.ts";
import type { Session } from "../../src/shared/session.ts";
import { runInDurableObject } from "cloudflare:test";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { gatedKey } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { countWrites, holdOf, settle, valueOf } from "./wallet-fixture.ts";

const SESSION_ID = `ses_${"0".repeat(40)}`;
const ENDED = { kind: "invalid_api_key", isForGood: true };

/** Creates a key with a running request of its session for an end user. */
async function running() {
  const key = await gatedKey({ rpmLimit: 1000, balance: 10_000 });
  valueOf(await key.stub.admit(key.hash));
  const { madeAt } = valueOf(await key.stub.keyStanding(key.hash));
  const nothing = { endUser: null, budgetMicro: null, allowedModels: null, rpmLimit: null };
  const createdAt = Date.now();
  const times = { madeAt, cut: 0, createdAt, expiresAt: createdAt + 3_600_000 };
  const session: Session = { id: SESSION_ID, ...times, ...nothing, origins: null };
  const request = holdOf(5, { keyId: key.booked.keyId, externalId: "ann" });
  const { held } = valueOf(await key.stub.admitAndHold(key.hash, request, { session }));
  valueOf(held);
  const called = { keyHash: key.hash, shown: { session } };
  const stops = async () => valueOf(await key.stub.watch([{ id: request.id, called }]));
  expect(await stops()).toEqual([]);
  return { key, id: request.id, session, stops };
}

async function pauseOwner({ booked, stub }: GatedKey, scope: BudgetScope, stopRunning: boolean) {
  const ids = {
    organization: "",
    member: booked.memberId,
    key: booked.keyId,
    session: SESSION_ID,
    end_user: "ann",
  };
  const session = { owner: { keyId: null, memberId: null }, isOwn: false };
  const pause = {
    source: "member",
    reason: "Costs",
    until: null,
    actor: SYSTEM_ACTOR,
    session,
  } as const;
  return valueOf(await stub.putPause({ ...pause, scope, id: ids[scope], stopRunning }));
}

describe("a request that is in progress", () => {
  it.each(["organization", "member", "key", "session", "end_user"] as const)(
    "stops during a pause only if the pause sets stop_running: %s",
    async (scope) => {
      const { key, id, stops } = await running();
      await pauseOwner(key, scope, false);
      expect(await stops()).toEqual([]);
      const { pause: created } = await pauseOwner(key, scope, true);
      const paused = { kind: "paused", pauseId: created.id };
      expect(await stops()).toEqual([{ id, failure: expect.objectContaining(paused) }]);
      await pauseOwner(key, scope, false); // a change can't end it
      expect(await stops()).toHaveLength(1);
      valueOf(await settle(key.stub, id, 3));
      expect(await stops()).toEqual([]);
    },
  );

  it("stops when the request's key is revoked", async () => {
    const { key, id, stops } = await running();
    valueOf(await key.stub.revokeKey(key.hash, Date.now()));
    expect(await stops()).toEqual([{ id, failure: ENDED }]);
  });

  it("stops when the request's session ends, but not when any other session ends", async () => {
    const { key, id, session, stops } = await running();
    const owner = { keyId: null, memberId: null };
    const end = async (one: string) =>
      key.stub.endSession({
        id: one,
        owner,
        isOwn: true,
        expiresAt: session.expiresAt,
        actor: SYSTEM_ACTOR,
      });
    valueOf(await end(`ses_${"1".repeat(40)}`));
    expect(await stops()).toEqual([]);
    valueOf(await end(session.id));
    expect(await stops()).toEqual([{ id, failure: ENDED }]);
  });

  it("continues after the request's session expires", async () => {
    const { key, id, session } = await running();
    const over = { ...session, expiresAt: Date.now() - 1 };
    const called = { keyHash: key.hash, shown: { session: over } };
    const written = await runInDurableObject(key.stub, (wallet: Wallet, { storage }) =>
      countWrites(storage, async () => {
        expect(valueOf(await wallet.watch([{ id, called }]))).toEqual([]);
      }),
    );
    expect(written).toBe(0);
    const { pause: created } = await pauseOwner(key, "organization", true);
    expect(valueOf(await key.stub.watch([{ id, called }]))).toMatchObject([
      { id, failure: { kind: "paused", pauseId: created.id } },
    ]);
  });
});
