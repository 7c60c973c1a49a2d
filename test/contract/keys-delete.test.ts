import { env } from "cloudflare:workers";
import { runDurableObjectAlarm } from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import { balanceOf, chat, errorOf, openAccount, send, addMember } from "./client.ts";
import type { Account } from "./client.ts";
import { createKey, deleteKey, failingBindings, keysOf, statusOf } from "./key-client.ts";
import type { CreatedKey } from "./key-client.ts";

let account: Account;
let victim: CreatedKey;
beforeEach(async () => {
  account = await openAccount();
  victim = await createKey(account.key, { name: "victim" });
});

/** Reports whether the list shows the victim as revoked. */
async function isListedAsRevoked(): Promise<boolean | undefined> {
  return (await keysOf(account.key)).find((one) => one.id === victim.id)?.revoked;
}

describe("DELETE /v1/keys/{id}", () => {
  it("returns the revoked key in the format of GET /v1/keys, also on repeated calls", async () => {
    const { key, ...record } = victim;
    const expected = { ...record, revoked: true };
    for (let round = 0; round < 3; round++) {
      const response = await deleteKey(account.key, victim.id);
      expect([response.status, await response.json()]).toEqual([200, expected]);
    }
    expect((await keysOf(account.key))[0]).toEqual(expected);
    expect(await statusOf(key)).toBe(401);
  });

  it("makes all later requests with the key fail with 401, without a charge", async () => {
    expect((await chat(victim.key)).status).toBe(200);
    const before = await balanceOf(account.key);
    expect((await deleteKey(account.key, victim.id)).status).toBe(200);
    const refused = [
      await chat(victim.key),
      await chat(victim.key, { stream: true }),
      await send("/v1/models", { key: victim.key }),
      await send("/v1/keys", { key: victim.key }),
      await send("/v1/keys", { key: victim.key, body: { name: "x" } }),
    ];
    for (const one of refused) expect((await errorOf(one, 401)).type).toBe("invalid_api_key");
    expect(await balanceOf(account.key)).toBe(before);
  });

  it("revokes keys that were never used, including a global key in its home region", async () => {
    const global = await createKey(account.key, { scope: "global" });
    for (const one of [victim, global]) {
      expect((await deleteKey(account.key, one.id)).status).toBe(200);
      expect(await statusOf(one.key)).toBe(401);
    }
  });

  it("revokes the key only once for 20 concurrent calls", async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => deleteKey(account.key, victim.id)),
    );
    const bodies = new Set(await Promise.all(answers.map((one) => one.text())));
    expect(new Set(answers.map((one) => one.status))).toEqual(new Set([200]));
    expect(bodies.size).toBe(1);
    const register = env.KEY_REGISTER.getByName(await hashOf(victim.id));
    const { revoked_at } = await rowOf(victim.id);
    expect(await register.revoke(1)).toBe(revoked_at);
  });

  it("lets callers revoke the key that authenticates the call", async () => {
    const response = await deleteKey(victim.key, victim.id);
    expect(await response.json()).toMatchObject({ id: victim.id, revoked: true });
    await errorOf(await deleteKey(victim.key, victim.id), 401);
    expect(await isListedAsRevoked()).toBe(true);
  });

  it("completes a revocation that only the database has recorded", async () => {
    expect(await statusOf(victim.key)).toBe(200);
    await env.DB.prepare("UPDATE keys SET revoked_at = 7 WHERE id = ?").bind(victim.id).run();
    // The key's object reads the revocation within a minute of use.
    expect(await statusOf(victim.key)).toBe(200);
    expect((await deleteKey(account.key, victim.id)).status).toBe(200);
    expect(await statusOf(victim.key)).toBe(401);
    expect((await rowOf(victim.id)).revoked_at).toBe(7);
  });
});

describe("DELETE /v1/keys/{id} by a revoked key", () => {
  it("returns 401, and leaves the target key active", async () => {
    await deleteKey(account.key, victim.id);
    await errorOf(await deleteKey(victim.key, account.keyId), 401);
    expect(await statusOf(account.key)).toBe(200);
  });

  it("returns 401 even if only the database has recorded the caller's revocation", async () => {
    expect(await statusOf(victim.key)).toBe(200);
    await env.DB.prepare("UPDATE keys SET revoked_at = 7 WHERE id = ?").bind(victim.id).run();
    await errorOf(await deleteKey(victim.key, account.keyId), 401);
    expect(await statusOf(account.key)).toBe(200);
  });
});

describe("DELETE /v1/keys/{id} during a failure", () => {
  it.each([
    ["retryable", { retryable: true }, "storage_unavailable"],
    ["overloaded", { overloaded: true }, "overloaded"],
  ])(
    "returns 503 and lists no revocation if the key's object is %s, and succeeds on a retry",
    async (_, marks, code) => {
      const bindings = failingBindings({ revoke: marks });
      const response = await deleteKey(account.key, victim.id, { bindings });
      expect(response.headers.get("retry-after")).toBe("1");
      expect((await errorOf(response, 503)).code).toBe(code);
      expect(await isListedAsRevoked()).toBe(false);
      // Both its wallet and its key object were notified.
      expect(await statusOf(victim.key)).toBe(401);
      expect((await deleteKey(account.key, victim.id)).status).toBe(200);
      expect(await isListedAsRevoked()).toBe(true);
      expect(await statusOf(victim.key)).toBe(401);
    },
  );

  it.each([/FROM keys LEFT JOIN key_terms/, /JOIN members/])(
    "changes nothing for a never-used key if the database query %s fails",
    async (statement) => {
      const bindings = failingBindings({ statement });
      const response = await deleteKey(account.key, victim.id, { bindings });
      expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
      expect(await isListedAsRevoked()).toBe(false);
      expect(await statusOf(victim.key)).toBe(200);
    },
  );

  it("changes nothing for another member's key if the database can't be read", async () => {
    const member = await addMember(account.orgId, "member");
    expect(await statusOf(member.key)).toBe(200);
    const bindings = failingBindings({ statement: /./ });
    for (const [key, id] of [
      [account.key, member.keyId],
      [member.key, account.keyId],
    ] as const) {
      await errorOf(await deleteKey(key, id, { bindings }), 503);
    }
    expect([await statusOf(member.key), await statusOf(account.key)]).toEqual([200, 200]);
  });
});

/** Waits until the key's object has updated the database. */
async function updateDatabase(): Promise<void> {
  const register = env.KEY_REGISTER.getByName(await hashOf(victim.id));
  expect(await runDurableObjectAlarm(register)).toBe(true);
  expect(await isListedAsRevoked()).toBe(true);
  expect(await runDurableObjectAlarm(register)).toBe(false);
}

describe("DELETE /v1/keys/{id} while the database is unavailable", () => {
  it("revokes a used key of the caller's member immediately, and updates the database afterwards", async () => {
    expect(await statusOf(victim.key)).toBe(200);
    const bindings = failingBindings({ statement: /./ });
    for (let round = 0; round < 2; round++) {
      const response = await deleteKey(account.key, victim.id, { bindings });
      expect([response.status, await response.json()]).toEqual([
        200,
        { id: victim.id, region: "eu", scope: "regional", rpm_limit: 1000, revoked: true },
      ]);
      expect(await statusOf(victim.key)).toBe(401);
    }
    expect(await isListedAsRevoked()).toBe(false);
    await updateDatabase();
  });

  it("returns all fields of the key if only the database write fails, and retries the write later", async () => {
    const bindings = failingBindings({ statement: /^UPDATE keys SET revoked_at/ });
    const response = await deleteKey(account.key, victim.id, { bindings });
    const { key: _, ...record } = victim;
    expect([response.status, await response.json()]).toEqual([200, { ...record, revoked: true }]);
    expect(await statusOf(victim.key)).toBe(401);
    await updateDatabase();
  });
});

async function hashOf(id: string): Promise<string> {
  return (await rowOf(id)).hash;
}

async function rowOf(id: string): Promise<{ hash: string; revoked_at: number | null }> {
  const row = await env.DB.prepare("SELECT hash, revoked_at FROM keys WHERE id = ?")
    .bind(id)
    .first<{ hash: string; revoked_at: number | null }>();
  if (row === null) throw new Error("the book has no such key");
  return row;
}
