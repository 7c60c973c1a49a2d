import { env } from "cloudflare:workers";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { runDurableObjectAlarm } from "cloudflare:test";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findKeyByHash, revokeKey } from "../../src/accounts/keys/keys.store.ts";
import { revokeKeyEverywhere } from "../../src/accounts/keys/revocation.ts";
import { draftKey, makeKey, makeMember, WatchedDatabase } from "./key-fixture.ts";
import { kindOf, registerOf } from "./register-fixture.ts";
import type { KeyServices } from "../../src/accounts/keys/revocation.ts";
import { objectsOf } from "../../src/shared/contracts/objects.ts";
import type { RegionOutboxMethods } from "../../src/shared/contracts/outbox.ts";
import type { KeyRegisterMethods } from "../../src/shared/contracts/register.ts";

let book: WatchedDatabase;
let steps: string[];

beforeEach(() => {
  book = new WatchedDatabase();
  steps = [];
});
afterEach(() => book.restore());

function prepare(sql: string): D1PreparedStatement {
  steps.push("book");
  return env.DB.prepare(sql);
}

/**
 * Returns the real key object and database, which record the order of steps. The first `faults`
 * calls of the key object and the first `deaf` ones of the outbox throw.
 */
function services(
  at: number,
  faults: readonly Record<string, boolean>[] = [],
  deaf: readonly Record<string, boolean>[] = [],
): KeyServices & { readonly stubs: () => number } {
  let stubs = 0;
  let outboxes = 0;
  return {
    db: { prepare } as unknown as D1Database, // objects use `env.DB` itself
    ...objectsOf(env),
    register: (hash) => {
      const fault = faults[stubs++];
      return {
        revoke: (revokedAt) => {
          steps.push("register");
          if (fault !== undefined) return Promise.reject(Object.assign(new Error("gone"), fault));
          return registerOf(hash).revoke(revokedAt);
        },
        tellBook: () => {
          steps.push("book owed");
          return registerOf(hash).tellBook();
        },
      } as Partial<KeyRegisterMethods> as KeyRegisterMethods;
    },
    region: "eu",
    keySecrets: [],
    peers: ["us"],
    outbox: (name) => {
      const fault = deaf[outboxes++];
      return {
        enqueueRevocations: async (items) => {
          steps.push(`${name} ${items.map(({ revokedAt }) => revokedAt).join()}`);
          if (fault !== undefined) throw Object.assign(new Error("gone"), fault);
        },
      } as Partial<RegionOutboxMethods> as RegionOutboxMethods;
    },
    now: at,
    actor: SYSTEM_ACTOR,
    stubs: () => stubs,
  };
}

describe("the revocation of a key", () => {
  it("updates the key's Durable Object, then the database, and returns the revoked key", async () => {
    const { booked } = await makeKey();
    const answer = await revokeKeyEverywhere(services(5), booked);
    expect(answer).toEqual({ ok: true, value: { ...booked, revokedAt: 5 } });
    expect(steps).toEqual(["register", "book"]);
    expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
  });

  it("repeats every step for a revoked key, and keeps the time of the first revocation", async () => {
    const { booked } = await makeKey();
    await revokeKey(env.DB, { keyId: booked.keyId, orgId: booked.orgId, revokedAt: 3 });
    const answer = await revokeKeyEverywhere(services(9), { ...booked, revokedAt: 3 });
    expect(answer).toMatchObject({ ok: true, value: { revokedAt: 3 } });
    expect(steps).toEqual(["register", "book"]);
    expect(await registerOf(booked.keyHash).revoke(1)).toBe(3);
  });

  it("keeps the time of a revocation that only the key's Durable Object has stored", async () => {
    const { booked } = await makeKey();
    await registerOf(booked.keyHash).revoke(4);
    const answer = await revokeKeyEverywhere(services(9), booked);
    expect(answer).toMatchObject({ ok: true, value: { revokedAt: 4 } });
  });

  it("retries a failed call to the key's Durable Object", async () => {
    const { booked } = await makeKey();
    const own = services(5, [{ retryable: true }]);
    expect(await revokeKeyEverywhere(own, booked)).toMatchObject({ ok: true });
    expect(own.stubs()).toBe(2);
    expect(steps).toEqual(["register", "register", "book"]);
  });

  it.each([
    ["storage_unavailable", 2, [{ retryable: true }, { retryable: true }]],
    ["overloaded", 1, [{ overloaded: true }]],
  ] as const)(
    "returns %s if the key's Durable Object fails, and leaves the database unchanged",
    async (...args) => {
      const [kind, calls, faults] = args;
      const { booked } = await makeKey();
      expect(await revokeKeyEverywhere(services(5, faults), booked)).toEqual({
        ok: false,
        failure: { kind },
      });
      expect(steps).toEqual(Array.from({ length: calls }, () => "register"));
      expect(await findKeyByHash(env.DB, booked.keyHash)).toMatchObject({ revokedAt: null });
    },
  );

  it("succeeds while the database is down, and updates the database later", async () => {
    const { booked } = await makeKey();
    await registerOf(booked.keyHash).admit();
    book.broken = true;
    const answer = await revokeKeyEverywhere(services(5), booked);
    expect(answer).toEqual({ ok: true, value: { ...booked, revokedAt: 5 } });
    expect(steps).toEqual(["register", "book", "book owed"]);
    expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
    for (let round = 0; round < 2; round++) {
      expect(await runDurableObjectAlarm(registerOf(booked.keyHash))).toBe(true);
    }
    book.broken = false;
    expect(await findKeyByHash(env.DB, booked.keyHash)).toMatchObject({ revokedAt: null });
    expect(await runDurableObjectAlarm(registerOf(booked.keyHash))).toBe(true);
    expect(await findKeyByHash(env.DB, booked.keyHash)).toMatchObject({ revokedAt: 5 });
    expect(await runDurableObjectAlarm(registerOf(booked.keyHash))).toBe(false);
  });

  it("notifies other regions on every call for a global key, before it updates the database", async () => {
    const { booked } = await makeKey({ scope: "global" });
    for (const at of [5, 9]) {
      steps = [];
      expect(await revokeKeyEverywhere(services(at), booked)).toMatchObject({
        value: { revokedAt: 5 },
      });
      expect(steps).toEqual(["register", "us/revocations 5", "book"]);
    }
  });

  it.each([
    ["storage_unavailable", 2, [{ retryable: true }, { retryable: true }]],
    ["overloaded", 1, [{ overloaded: true }]],
  ] as const)(
    "returns %s while another region can't be notified, and succeeds on a retry",
    async (...args) => {
      const [kind, calls, deaf] = args;
      const { booked } = await makeKey({ scope: "global" });
      await registerOf(booked.keyHash).admit();
      const failed = await revokeKeyEverywhere(services(5, [], deaf), booked);
      expect(failed).toEqual({ ok: false, failure: { kind } });
      const notifications = Array.from({ length: calls }, () => "us/revocations 5");
      expect(steps).toEqual(["register", ...notifications]);
      expect(kindOf(await registerOf(booked.keyHash).admit())).toBe("invalid_api_key");
      expect(await findKeyByHash(env.DB, booked.keyHash)).toMatchObject({ revokedAt: null });
      steps = [];
      expect(await revokeKeyEverywhere(services(9), booked)).toMatchObject({
        value: { revokedAt: 5 },
      });
      expect(steps).toEqual(["register", "us/revocations 5", "book"]);
    },
  );

  it("returns not_found for a key that the database doesn't contain", async () => {
    const { booked } = await draftKey(await makeMember());
    expect(await revokeKeyEverywhere(services(5), booked)).toMatchObject({
      failure: { kind: "not_found" },
    });
  });
});
