import { afterEach, describe, expect, it } from "vitest";
import { runInDurableObject } from "cloudflare:test";
import type { BudgetScope } from "../../src/shared/budgets.ts";
import type { NewPause } from "../../src/shared/contracts/pauses.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { siblingKey, evict, gatedKey } from "./key-admissions-fixture.ts";
import type { GatedKey } from "./key-admissions-fixture.ts";
import { SESSION_ID, sessionOf } from "./session-fixture.ts";
import {
  countWrites,
  failureOf,
  holdOf,
  deleteWalletStorage,
  newId,
  rowsOf,
  runAlarm,
  setClock,
  settle,
  valueOf,
} from "./wallet-fixture.ts";

const SCOPES = ["organization", "member", "key", "session", "end_user"] as const;

afterEach(() => setClock(null));

const openKey = (): Promise<GatedKey> => gatedKey({ rpmLimit: 1000, balance: 10_000 });

/** Returns a request of the key's session for an end user, which all pauses stop. */
async function requestHold(key: GatedKey, withSession = true) {
  const request = holdOf(5, { keyId: key.booked.keyId, externalId: "ann" });
  const shown = withSession ? { session: await sessionOf(key) } : undefined;
  return valueOf(await key.stub.admitAndHold(key.hash, request, shown)).held;
}

function pauseOf({ booked }: GatedKey, scope: BudgetScope, more: Partial<NewPause> = {}): NewPause {
  const ids = {
    organization: "",
    member: booked.memberId,
    key: booked.keyId,
    session: SESSION_ID,
    end_user: "ann",
  };
  const owner = { keyId: null, memberId: null };
  return {
    scope,
    id: ids[scope],
    source: "member",
    reason: "Costs",
    until: null,
    stopRunning: false,
    actor: SYSTEM_ACTOR,
    session: { owner, isOwn: false },
    ...more,
  };
}

async function pause(key: GatedKey, scope: BudgetScope, more: Partial<NewPause> = {}) {
  return valueOf(await key.stub.putPause(pauseOf(key, scope, more)));
}

type EndOwner = (key: GatedKey) => Promise<unknown>;

const endKey: EndOwner = ({ stub, hash, booked: { keyId } }) =>
  stub.revokeKey(hash, Date.now(), { keyId, actor: SYSTEM_ACTOR });

const endSession: EndOwner = ({ stub }) => {
  const owner = { keyId: null, memberId: null };
  return stub.endSession({
    id: SESSION_ID,
    expiresAt: 0,
    owner,
    isOwn: false,
    actor: SYSTEM_ACTOR,
  });
};

const rotate: EndOwner = ({ stub, hash, booked: { keyId } }) =>
  stub.setKeySecrets(hash, null, { keyId, actor: SYSTEM_ACTOR, sessionsCut: 1 });

const expireSession: EndOwner = async ({ stub }) => {
  setClock(Date.now() + 3_600_000 + 60_001);
  await runAlarm(stub);
};

const events = async ({ stub }: GatedKey) =>
  (await rowsOf(stub, "SELECT type, data FROM events WHERE type LIKE 'pause.%' ORDER BY seq")).map(
    ({ type, data }) => [type, JSON.parse(String(data))],
  );

describe("a pause of spending", () => {
  it.each(SCOPES)("rejects holds immediately until the pause ends: %s", async (scope) => {
    const key = await openKey();
    valueOf(await requestHold(key));
    const { pause: created } = await pause(key, scope);
    const shown = { scope, reason: "Costs" };
    const hidden = scope === "session" ? shown : { scope: null, reason: null };
    const paused = { kind: "paused", pauseId: created.id, until: null };
    expect(failureOf(await requestHold(key))).toEqual({ ...paused, ...hidden });
    const direct = await requestHold(key, false);
    expect(failureOf(direct)).toEqual(scope === "session" ? null : { ...paused, ...shown });
    await evict(key);
    expect(failureOf(await requestHold(key))).toMatchObject(paused);
    const peer = holdOf(5, { keyId: key.booked.keyId, peer: true, externalId: "ann" });
    const session = await sessionOf(key);
    expect(failureOf(await key.stub.hold(peer, key.hash, { session }))).toMatchObject(paused);
    const ending = { id: created.id, source: "member", actor: SYSTEM_ACTOR } as const;
    valueOf(await key.stub.endPause(ending));
    valueOf(await requestHold(key));
    const name = scope === "end_user" ? { end_user: "ann" } : {};
    const details = { scope, ...name, pause_id: created.id };
    expect(await events(key)).toEqual([
      ["pause.created", expect.objectContaining({ ...details, reason: "Costs" })],
      ["pause.ended", { ...details, cause: "removed" }],
    ]);
  });

  it.each(SCOPES)("rejects even a hold placed by POST /v1/holds: %s", async (scope) => {
    const key = await openKey();
    valueOf(await requestHold(key, true));
    await key.stub.setKeyTerms(key.hash, { ...key.booked.terms, mayHold: true });
    const session = { ...(await sessionOf(key)), mayHold: true as const };
    const placed = { pays: "quota", merchant: null, description: "x", expiresInS: 60 } as const;
    const place = async () => {
      const request = holdOf(5, { keyId: key.booked.keyId, externalId: "ann", placed });
      return key.stub.placeHold(request, { keyHash: key.hash, shown: { session } }, false);
    };
    valueOf(await place());
    await pause(key, scope);
    expect(failureOf(await place())).toMatchObject({ kind: "paused" });
  });

  it.each(["organization", "member", "key", "session"] as const)(
    "appears in the admission of a request without a hold and in the key's status: %s",
    async (scope) => {
      const key = await openKey();
      valueOf(await requestHold(key));
      const shown = { session: await sessionOf(key) };
      const seen = async () => [
        valueOf(await key.stub.admit(key.hash, shown)).paused?.kind,
        valueOf(await key.stub.keyStanding(key.hash, shown)).paused?.kind,
      ];
      expect(await seen()).toEqual([undefined, undefined]);
      await pause(key, scope);
      expect(await seen()).toEqual(["paused", "paused"]);
    },
  );

  it("leaves the organization's other keys unaffected", async () => {
    const key = await openKey();
    const other = await siblingKey(key);
    await pause(key, "key");
    expect(failureOf(await requestHold(key, false))).toMatchObject({
      kind: "paused",
      scope: "key",
    });
    valueOf(await requestHold(other, false));
    await pause(key, "member");
    expect(failureOf(await requestHold(other, false))).toMatchObject({ scope: "member" });
  });

  it("survives a loss of the wallet, but doesn't return if it had already ended", async () => {
    const key = await openKey();
    await pause(key, "key");
    const { pause: ended } = await pause(key, "member");
    valueOf(await key.stub.poke());
    valueOf(await key.stub.endPause({ id: ended.id, source: "member", actor: SYSTEM_ACTOR }));
    valueOf(await key.stub.poke());
    await deleteWalletStorage(key.stub);
    valueOf(await key.stub.rebuild(key.booked.orgId));
    const remaining = valueOf(await key.stub.pauses(null));
    expect(remaining.map(({ pause: { scope } }) => scope)).toEqual(["key"]);
    expect(failureOf(await requestHold(key, false))).toMatchObject({
      kind: "paused",
      scope: "key",
    });
    expect(await rowsOf(key.stub, "SELECT name FROM rules WHERE rule IS NULL")).toEqual([]);
  });

  it("ends at the set time, with one event from the alarm", async () => {
    const key = await openKey();
    const until = Date.now() + 600_000;
    const { pause: created } = await pause(key, "organization", { until });
    expect(failureOf(await requestHold(key, false))).toMatchObject({ kind: "paused", until });
    setClock(until + 1);
    await runAlarm(key.stub);
    expect((await events(key)).at(-1)).toEqual([
      "pause.ended",
      { scope: "organization", pause_id: created.id, cause: "expired" },
    ]);
    valueOf(await requestHold(key, false));
    expect(valueOf(await key.stub.pauses(null))).toEqual([]);
  });

  it("accepts a later end, but no earlier end", async () => {
    const key = await openKey();
    const until = Date.now() + 600_000;
    const first = await pause(key, "key", { until });
    expect(first.created).toBe(true);
    expect(await pause(key, "key", { until })).toEqual({ ...first, created: false });
    const longer = await pause(key, "key", { until: until + 1, reason: "More" });
    expect(longer).toMatchObject({ created: false, pause: { id: first.pause.id, reason: "More" } });
    const shorter = pauseOf(key, "key", { until });
    expect(failureOf(await key.stub.putPause(shorter))).toMatchObject({ kind: "conflict" });
    expect((await pause(key, "key")).pause.until).toBeNull();
    const past = pauseOf(key, "member", { until: Date.now() - 1 });
    expect(failureOf(await key.stub.putPause(past))).toMatchObject({ param: "until" });
    expect((await events(key)).map(([type]) => type)).toEqual(Array(3).fill("pause.created"));
  });

  it("doesn't replace other pauses, and only operators can end an operator's pause", async () => {
    const key = await openKey();
    const { pause: own } = await pause(key, "key");
    const { pause: theirs } = await pause(key, "key", { source: "operator" });
    expect(failureOf(await requestHold(key, false))).toMatchObject({ pauseId: theirs.id });
    const ending = { id: theirs.id, source: "member", actor: SYSTEM_ACTOR } as const;
    expect(failureOf(await key.stub.endPause(ending))).toMatchObject({ code: "operator_pause" });
    valueOf(await key.stub.endPause({ ...ending, source: "operator" }));
    expect(failureOf(await requestHold(key, false))).toMatchObject({ pauseId: own.id });
  });

  it("prevents the paused end user's deletion, and loses the name if the end user is erased", async () => {
    const key = await openKey();
    valueOf(await requestHold(key, false));
    expect(await pause(key, "end_user")).toMatchObject({ name: "ann" });
    const stored = await rowsOf(key.stub, "SELECT name || rule AS text FROM rules");
    expect(JSON.stringify(stored)).not.toContain("ann");
    expect(await events(key)).toMatchObject([["pause.created", { end_user: "ann" }]]);
    const kept = failureOf(await key.stub.deleteEndUser("ann"));
    expect(kept).toMatchObject({ kind: "conflict" });
    expect(failureOf(await requestHold(key, false))).toMatchObject({ kind: "paused" });
    valueOf(await key.stub.eraseEndUsers());
    expect((await events(key)).at(-1)?.[1]).toMatchObject({ cause: "deleted" });
    expect(JSON.stringify(await events(key))).not.toContain("ann");
  });

  const ends: readonly (readonly [string, readonly BudgetScope[], EndOwner])[] = [
    ["the key is revoked", ["key", "session"], endKey],
    ["the session ends", ["session"], endSession],
    ["a rotation ends the session", ["session"], rotate],
    ["the session expires", ["session"], expireSession],
    ["the member is removed", ["member"], ({ stub, booked }) => stub.forgetMember(booked.memberId)],
  ];
  it.each(ends)(
    "ends when the paused key, session or member is removed, and a removed session can't be paused again: %s",
    async (_, scopes, end) => {
      const key = await openKey();
      valueOf(await requestHold(key));
      for (const scope of SCOPES) await pause(key, scope);
      await end(key);
      const remaining = valueOf(await key.stub.pauses(null)).map(({ pause: { scope } }) => scope);
      expect(remaining.toSorted()).toEqual(
        SCOPES.filter((one) => !scopes.includes(one)).toSorted(),
      );
      const ended = (await events(key)).filter(([type]) => type === "pause.ended");
      expect(ended.map(([, { scope, cause }]) => [scope, cause])).toEqual(
        scopes.map((scope) => [scope, "deleted"]),
      );
      if (!scopes.includes("session") || end === expireSession) return;
      const again = await key.stub.putPause(pauseOf(key, "session"));
      expect(failureOf(again)).toMatchObject({ kind: "not_found" });
    },
  );

  it("ends along with the paused session, even if the session was never used", async () => {
    const key = await openKey();
    const expiresAt = Date.now() + 60_000;
    const owner = { keyId: null, memberId: null };
    await pause(key, "session", { session: { owner, isOwn: true, expiresAt } });
    setClock(expiresAt + 60_001);
    await runAlarm(key.stub);
    expect(valueOf(await key.stub.pauses(null))).toEqual([]);
  });

  it("can be created by an operator or for the organization even if 1,000 pauses exist", async () => {
    const key = await openKey();
    await runInDurableObject(key.stub, async (wallet: Wallet) => {
      for (let n = 0; n < 1000; n++) {
        await wallet.putPause({ ...pauseOf(key, "key"), id: `key_${n}` });
      }
    });
    const more = await key.stub.putPause({ ...pauseOf(key, "key"), id: "key_more" });
    expect(failureOf(more)).toMatchObject({ code: "too_many_pauses" });
    valueOf(
      await key.stub.putPause({ ...pauseOf(key, "key"), id: "key_more", source: "operator" }),
    );
    valueOf(await key.stub.putPause(pauseOf(key, "organization")));
  });

  it("can't be created for an unknown end user or for another owner's session", async () => {
    const key = await openKey();
    for (const scope of ["end_user", "session"] as const) {
      const result = await key.stub.putPause(pauseOf(key, scope));
      expect(failureOf(result)).toMatchObject({ kind: "not_found" });
    }
    valueOf(await requestHold(key));
    const owner = { keyId: null, memberId: "another" };
    const theirs = pauseOf(key, "session", { session: { owner, isOwn: false } });
    expect(failureOf(await key.stub.putPause(theirs))).toMatchObject({ kind: "not_found" });
  });

  it("adds no database row to a request, either before or during the pause", async () => {
    const key = await openKey();
    valueOf(await requestHold(key, false));
    const { keyId } = key.booked;
    const written = (work: (wallet: Wallet) => Promise<void>) =>
      runInDurableObject(key.stub, (wallet: Wallet, { storage }) =>
        countWrites(storage, () => work(wallet)),
      );
    const one = async (wallet: Wallet): Promise<void> => {
      const id = newId();
      valueOf(await wallet.hold(holdOf(5, { id, keyId, externalId: "ann" }), key.hash));
      valueOf(await settle(wallet, id, 3));
    };
    await written(one);
    const without = await written(one);
    await pause(key, "key", { id: "key_other" });
    expect(await written(one)).toBe(without);
    await pause(key, "key");
    const rejected = async (wallet: Wallet): Promise<void> => {
      const result = await wallet.hold(holdOf(5, { keyId, externalId: "ann" }), key.hash);
      expect(failureOf(result)).toMatchObject({ kind: "paused" });
    };
    expect(await written(rejected)).toBe(0);
  });
});
