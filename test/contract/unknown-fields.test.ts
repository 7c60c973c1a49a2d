import { beforeEach, describe, expect, it } from "vitest";
import { admin, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

type Body = Record<string, unknown>;

/** A call with a body: its path and fields, and where the resource can be read. */
type Change = {
  readonly name: string;
  readonly send: (body: Body) => Promise<Response>;
  readonly body: Body;
  readonly read: () => Promise<Body>;
};

/** Fields that clients can't set, with values that differ from those in these tests. */
const READ_ONLY: Body = {
  id: "mine",
  key: "svc_sk_eu_live_mine",
  prefix: "svc",
  member_id: "another",
  region: "us",
  is_personal: true,
  revoked: true,
  credits_micro: 1,
  held_micro: 5,
  monthly_spend_dollars: 9,
  daily_spend_dollars: 9,
  created_at: "1999-01-01T00:00:00.000Z",
  last_used_at: "1999-01-01T00:00:00.000Z",
};

let account: Account;

beforeEach(async () => {
  account = await openAccount();
  await client("POST", "/v1/users", { external_id: "ann" });
});

function client(method: string, path: string, body?: Body): Promise<Response> {
  return send(path, { method, key: account.key, body });
}

async function successBody(response: Promise<Response>): Promise<Body> {
  const { status, body } = { status: (await response).status, body: await (await response).json() };
  expect(status).toBeLessThan(300);
  return body as Body;
}

function changes(): readonly Change[] {
  const settings = `/v1/orgs/${account.orgId}/settings`;
  const member = `/orgs/${account.orgId}/members/${account.memberId}`;
  const key = `/orgs/${account.orgId}/keys/${account.keyId}`;
  return [
    {
      name: "POST /v1/keys",
      send: (body) => client("POST", "/v1/keys", body),
      body: { name: "another" },
      read: async () => ((await successBody(client("GET", "/v1/keys")))["keys"] as Body[])[0] ?? {},
    },
    {
      name: "POST /v1/users",
      send: (body) => client("POST", "/v1/users", body),
      body: { external_id: "bob" },
      read: () => successBody(client("GET", "/v1/users/ann")),
    },
    {
      name: "PATCH /v1/users/{external_id}",
      send: (body) => client("PATCH", "/v1/users/ann", body),
      body: { daily_quota_dollars: 3 },
      read: () => successBody(client("GET", "/v1/users/ann")),
    },
    {
      name: "PATCH /v1/orgs/{id}",
      send: (body) => client("PATCH", `/v1/orgs/${account.orgId}`, body),
      body: { name: "Another" },
      read: () => successBody(client("GET", `/v1/orgs/${account.orgId}`)),
    },
    {
      name: "PATCH /v1/orgs/{id}/settings",
      send: (body) => client("PATCH", settings, body),
      body: { low_balance_threshold_dollars: 3 },
      read: () => successBody(client("GET", settings)),
    },
    {
      name: "PATCH /admin/v1/orgs/{id}",
      send: (body) => admin("PATCH", `/orgs/${account.orgId}`, body),
      body: { rpm_limit: 5 },
      read: () => successBody(admin("GET", `/orgs/${account.orgId}`)),
    },
    {
      name: "PATCH /admin/v1/orgs/{id}/members/{id}",
      send: (body) => admin("PATCH", member, body),
      body: { email: "other@example.com" },
      read: async () => {
        const { members } = await successBody(admin("GET", `/orgs/${account.orgId}/members`));
        return (members as Body[])[0] ?? {};
      },
    },
    {
      name: "POST /admin/v1/orgs/{id}/members/{id}/keys",
      send: (body) => admin("POST", `${member}/keys`, body),
      body: { name: "another" },
      read: () => successBody(admin("GET", key)),
    },
    {
      name: "PATCH /admin/v1/orgs/{id}/keys/{id}",
      send: (body) => admin("PATCH", key, body),
      body: { rpm_limit: 7 },
      read: () => successBody(admin("GET", key)),
    },
  ];
}

describe("an endpoint with a JSON body", () => {
  it("accepts a response body with one changed field as a request body, and ignores read-only fields", async () => {
    for (const { name, send: sent, body, read } of changes()) {
      const before = await read();
      const own = await sent({ ...before, ...body });
      expect([name, own.status]).toEqual([name, expect.toSatisfy((one) => one < 300)]);
      const others = Object.entries(READ_ONLY).filter(([field]) => field in before);
      const request = { ...before, ...Object.fromEntries(others), ...body };
      const response = await successBody(sent(request));
      const after = await read();
      for (const [field, other] of others) {
        expect([name, field, response[field]]).not.toEqual([name, field, other]);
        const isUnchanged = name.startsWith("POST") || after[field] === before[field];
        expect([name, field, isUnchanged]).toEqual([name, field, true]);
      }
    }
  });

  it("rejects a field with the name of an inherited JavaScript property, such as toString, or with an empty name", async () => {
    const names = ["constructor", "toString", "__proto__", "hasOwnProperty"];
    for (const name of names) {
      const response = await send("/v1/keys", {
        method: "POST",
        key: account.key,
        body: JSON.parse(`{ "name": "x", "${name}": 1 }`) as Body,
      });
      expect(await errorOf(response, 400)).toMatchObject({
        param: name,
        message: `Unknown parameter: '${name}'.`,
      });
    }
    const empty = await client("POST", "/v1/keys", { name: "x", "": 1 });
    expect((await errorOf(empty, 400)).param).toBeNull();
  });
});
