import { beforeAll, describe, expect, it } from "vitest";
import { addMember, openAccount, send } from "./client.ts";
import type { Account, Role } from "./client.ts";
import { login, callFromPage } from "./console-client.ts";
import { createKey, deleteKey, postKey, statusOf } from "./key-client.ts";
import type { CreatedKey, KeyBody } from "./key-client.ts";

/**
 * The limits of the owner's limited key, which another person has, and a change that would lift
 * each.
 */
const TERMS = {
  budget_dollars: 1,
  tpm_limit: 1000,
  max_concurrent: 5,
  allowed_models: ["sandbox/echo"],
  end_user: "ann",
  expires_at: "2099-01-01T00:00:00.000Z",
  rpm_limit: 10,
};
const LIFTS: readonly object[] = [
  { budget_dollars: 2 },
  { rpm_limit: 11 },
  ...Object.keys(TERMS).flatMap((name) => (name === "rpm_limit" ? [] : [{ [name]: null }])),
  {
    budget_dollars: null,
    tpm_limit: null,
    max_concurrent: null,
    allowed_models: null,
    end_user: null,
    expires_at: null,
  },
];

let owner: Account;
let limited: CreatedKey;
let callers: Readonly<Record<Exclude<Role, "owner">, Account>>;
beforeAll(async () => {
  owner = await openAccount();
  limited = await createKey(owner.key, { name: "given away", ...TERMS });
  const join = (role: Role): Promise<Account> => addMember(owner.orgId, role);
  callers = {
    admin: await join("admin"),
    billing: await join("billing"),
    member: await join("member"),
  };
});

/** Sends a request with a key, or in a console that was logged in to with the key. */
type Call = (method: string, path: string, body?: object) => Promise<Response>;

const headers = (): Record<string, string> => ({ "idempotency-key": crypto.randomUUID() });

function byKey(key: string): Call {
  return (method, path, body) => send(path, { method, key, body, headers: headers() });
}

async function byConsole(key: string): Promise<Call> {
  const cookie = await login(key);
  return (method, path, body) => callFromPage(path, cookie, { method, body, headers: headers() });
}

const rename = (call: Call): Promise<Response> =>
  call("PATCH", `/v1/orgs/${owner.orgId}`, { name: "taken over" });

async function recordOf(id: string): Promise<KeyBody | undefined> {
  const { keys } = await (
    await send("/v1/keys", { key: owner.key })
  ).json<{ keys: readonly KeyBody[] }>();
  const found = keys.find((one) => one.id === id);
  return found && { ...found, last_used_at: null };
}

describe.each(["admin", "billing", "member"] as const)(
  "a caller with the role %s instead of owner",
  (role) => {
    it.each(["key", "console"])(
      "can't get an owner's permissions through the caller's own %s",
      async (how) => {
        const { key } = callers[role];
        const call = how === "key" ? byKey(key) : await byConsole(key);
        const before = await Promise.all([owner.keyId, limited.id].map(recordOf));
        const results: (readonly [string, number])[] = [];
        const attempt = async (name: string, request: Promise<Response>): Promise<void> => {
          const { status } = await request;
          results.push([name, status]);
        };
        await attempt("rename", rename(call));
        for (const id of [owner.keyId, limited.id]) {
          for (const overlap_seconds of [0, 60]) {
            await attempt("rotate", call("POST", `/v1/keys/${id}/rotate`, { overlap_seconds }));
          }
        }
        for (const lift of LIFTS) {
          await attempt(JSON.stringify(lift), call("PATCH", `/v1/keys/${limited.id}`, lift));
        }
        const named = await call("POST", "/v1/keys", { name: "mine", member_id: owner.memberId });
        const created = await named.json<CreatedKey>(); // `member_id` can't be set
        await attempt("rename by a created key", rename(byKey(created.key)));
        expect(results.filter(([, status]) => status !== 403 && status !== 404)).toEqual([]);
        expect(await Promise.all([owner.keyId, limited.id].map(recordOf))).toEqual(before);
        expect([await statusOf(owner.key), await statusOf(limited.key)]).toEqual([200, 200]);
      },
    );

    it("can't get an owner's permissions through a key, session or console login that the caller creates", async () => {
      const created = await createKey(callers[role].key);
      const session = await send("/v1/sessions", { key: created.key, body: {} });
      const { token } = await session.json<{ token: string }>();
      for (const call of [byKey(created.key), byKey(token), await byConsole(created.key)]) {
        expect((await rename(call)).status).toBe(403);
      }
      await deleteKey(created.key, created.id);
    });
  },
);

it("an owner's limited key passes its limits on to a new secret, session or console login", async () => {
  const { key, id } = await createKey(owner.key, {
    ...TERMS,
    name: "held by another",
    rpm_limit: 100,
  });
  const rotated = await byKey(key)("POST", `/v1/keys/${id}/rotate`, { overlap_seconds: 60 });
  expect(rotated.status).toBe(201);
  const { key: second } = await rotated.json<{ key: string }>();
  const session = await send("/v1/sessions", { key: second, body: {} });
  const { token } = await session.json<{ token: string }>();
  for (const call of [byKey(key), byKey(second), byKey(token), await byConsole(second)]) {
    for (const response of [
      await rename(call),
      await call("PATCH", `/v1/keys/${id}`, { budget_dollars: null }),
      await call("POST", "/v1/keys", { name: "mine" }),
      await call("POST", `/v1/keys/${owner.keyId}/rotate`, { overlap_seconds: 0 }),
    ]) {
      expect(response.status).toBe(403);
    }
  }
});

it("the API never returns the secret of another member's key, whatever the caller's role", async () => {
  const colleague = await addMember(owner.orgId, "member");
  for (const { key } of [owner, ...Object.values(callers)]) {
    const rotation = byKey(key)("POST", `/v1/keys/${colleague.keyId}/rotate`, {
      overlap_seconds: 60,
    });
    expect((await rotation).status).toBe(404);
  }
  const own = byKey(colleague.key)("POST", `/v1/keys/${colleague.keyId}/rotate`, {
    overlap_seconds: 60,
  });
  expect((await own).status).toBe(201);
});

it("an admin can lower limits of an owner's key and raise limits of a member's key, which creates events", async () => {
  const { admin, member } = callers;
  const lent = await (
    await postKey(member.key, { name: "lent", budget_dollars: 1 })
  ).json<KeyBody>();
  const patch = (id: string, body: object): Promise<Response> =>
    byKey(admin.key)("PATCH", `/v1/keys/${id}`, body);
  expect((await patch(lent.id, { budget_dollars: null })).status).toBe(200);
  expect((await patch(limited.id, { budget_dollars: 0.5 })).status).toBe(200);
  const response = await send("/v1/events?type=key.changed&limit=2", { key: owner.key });
  const { events } = await response.json<{ events: readonly object[] }>();
  const actor = { kind: "key", id: admin.keyId };
  expect(events).toMatchObject([
    { subject: limited.id, actor },
    { subject: lent.id, actor },
  ]);
});
