import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import {
  ADMIN_TOKEN,
  addKey,
  addMember,
  admin,
  chat,
  errorOf,
  objectsWithout,
  openAccount,
  send,
} from "./client.ts";
import type { Account } from "./client.ts";

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

let account: Account;
beforeEach(async () => {
  account = await openAccount({ keyScope: "global" });
});

const keys = (): string => `/orgs/${account.orgId}/keys`;
const keyPath = (id = account.keyId): string => `${keys()}/${id}`;
const read = async (id?: string): Promise<Record<string, unknown>> => {
  const response = await admin("GET", keyPath(id));
  expect(response.status).toBe(200);
  return response.json();
};
const patch = (body: unknown, id?: string): Promise<Response> => admin("PATCH", keyPath(id), body);
const models = (key = account.key): Promise<Response> => send("/v1/models", { key });
const limitSeen = async (): Promise<string | null> =>
  (await models()).headers.get("x-ratelimit-limit-requests");

describe("GET /admin/v1/orgs/{id}/keys", () => {
  it("returns every member's keys with their owners, newest first, including revoked keys", async () => {
    const second = await addMember(account.orgId, "member");
    const third = await addKey(account.orgId, second.memberId);
    await admin("DELETE", keyPath(second.keyId));
    const response = await admin("GET", keys());
    expect(response.status).toBe(200);
    const answer = await response.json<{ keys: Record<string, unknown>[] }>();
    const ids = answer.keys.map((key) => key["id"]);
    expect(ids).toHaveLength(3);
    expect(new Set(ids.slice(0, 2))).toEqual(new Set([second.keyId, third.keyId]));
    expect(answer.keys.at(-1)).toEqual({
      id: account.keyId,
      name: "First key",
      prefix: expect.stringMatching(/^svc_sk_gbl_eu_live_[0-9A-Za-z]{4}$/),
      region: "eu",
      scope: "global",
      rpm_limit: 1000,
      created_at: expect.stringMatching(ISO),
      last_used_at: null,
      revoked: false,
      member_id: account.memberId,
    });
    expect(answer.keys.find((key) => key["id"] === second.keyId)).toMatchObject({
      revoked: true,
      member_id: second.memberId,
    });
    expect(await read(third.keyId)).toEqual(answer.keys.find((key) => key["id"] === third.keyId));
  });

  it("returns neither secrets nor hashes of keys", async () => {
    const { results } = await env.DB.prepare("SELECT hash FROM keys WHERE org_id = ?")
      .bind(account.orgId)
      .all<{ hash: string }>();
    const text = await (await admin("GET", keys())).text();
    expect(results).toHaveLength(1);
    expect(text).not.toContain(results[0]?.hash);
    expect(text).not.toContain(account.key.slice(-30));
  });
});

describe("PATCH /admin/v1/orgs/{id}/keys/{key_id}", () => {
  it("returns the key in the format of GET, and leaves omitted fields unchanged", async () => {
    const before = await read();
    const response = await patch({ name: "renamed", rpm_limit: 9 });
    expect(response.status).toBe(200);
    const after = await response.json();
    expect(after).toEqual({ ...before, name: "renamed", rpm_limit: 9 });
    expect(await read()).toEqual(after);
    expect(await (await patch({ name: "again" })).json()).toMatchObject({ rpm_limit: 9 });
    expect(await (await patch({ rpm_limit: 8 })).json()).toMatchObject({ name: "again" });
    expect(await (await patch({})).json()).toMatchObject({ name: "again", rpm_limit: 8 });
  });

  it("applies a new limit immediately, even to an unused key, and counts earlier requests", async () => {
    await patch({ rpm_limit: 1000 - 1 });
    expect(await limitSeen()).toBe("999");
    for (let i = 0; i < 4; i++) expect((await models()).status).toBe(200);
    await patch({ rpm_limit: 5 });
    expect((await models()).status).toBe(429);
    await patch({ rpm_limit: 6 });
    const last = await models();
    expect([last.status, last.headers.get("x-ratelimit-remaining-requests")]).toEqual([200, "0"]);
    expect((await models()).status).toBe(429);
    await patch({ rpm_limit: 1000 });
    expect(await limitSeen()).toBe("1000");
  });

  it("leaves a revoked key revoked", async () => {
    await admin("DELETE", keyPath());
    expect(await (await patch({ rpm_limit: 7, revoked: false })).json()).toMatchObject({
      rpm_limit: 7,
      revoked: true,
    });
    expect((await models()).status).toBe(401);
  });

  it.each([
    ["register", "KEY_REGISTER", "setLimit"],
    ["wallet", "WALLET", "setKeyLimit"],
  ] as const)(
    "returns 503 if the key's %s can't be notified, and succeeds on a retry",
    async (_, object, call) => {
      expect(await limitSeen()).toBe("1000");
      const sent = { method: "PATCH", key: ADMIN_TOKEN, body: { rpm_limit: 3 } };
      const bindings = objectsWithout(object, call);
      const response = await send(`/admin/v1${keyPath()}`, { ...sent, bindings });
      expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
      expect((await patch({ rpm_limit: 3 })).status).toBe(200);
      expect(await limitSeen()).toBe("3");
    },
  );
});

describe("DELETE /admin/v1/orgs/{id}/keys/{key_id}", () => {
  it("returns the revoked key on each call, and rejects all later requests with this key", async () => {
    const before = await read();
    expect((await chat(account.key)).status).toBe(200);
    const response = await admin("DELETE", keyPath());
    expect(response.status).toBe(200);
    // A key's use is recorded after the response, so it can be missing here.
    const gone = { ...(await response.json<object>()), last_used_at: null };
    expect(gone).toEqual({ ...before, revoked: true });
    expect((await errorOf(await chat(account.key), 401)).type).toBe("invalid_api_key");
    const again = await admin("DELETE", keyPath());
    expect([again.status, await again.json()]).toMatchObject([
      200,
      { id: account.keyId, revoked: true },
    ]);
    expect({ ...(await read()), last_used_at: null }).toEqual(gone);
  });

  it("leaves all other keys active", async () => {
    const second = await addKey(account.orgId, account.memberId);
    await admin("DELETE", keyPath());
    expect((await models(second.key)).status).toBe(200);
  });

  it("ignores a request body", async () => {
    expect((await admin("DELETE", keyPath(), '{"revoked": false')).status).toBe(200);
    expect((await models()).status).toBe(401);
  });

  it.each([
    ["register", "KEY_REGISTER", "revoke", 401],
    ["wallet", "WALLET", "revokeKey", 200],
  ] as const)(
    "returns 503 and lists no revocation if the key's %s can't be notified, and succeeds on a retry",
    async (_, object, call, status) => {
      expect((await models()).status).toBe(200);
      const path = `/admin/v1${keyPath()}`;
      const sent = { method: "DELETE", key: ADMIN_TOKEN };
      const response = await send(path, { ...sent, bindings: objectsWithout(object, call) });
      expect((await errorOf(response, 503)).code).toBe("storage_unavailable");
      expect((await read())["revoked"]).toBe(false);
      expect((await models()).status).toBe(status);
      expect((await send(path, sent)).status).toBe(200);
      expect((await models()).status).toBe(401);
    },
  );
});
