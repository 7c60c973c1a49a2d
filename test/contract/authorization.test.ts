import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { ROUTES } from "../../src/routes.ts";
import { MEMBER_ROLES } from "../../src/shared/caller.ts";
import {
  allowHolds,
  endUserOf,
  generationOf,
  sendCall,
  namesTarget,
  OWN_ONLY,
  ownId,
  ROWS,
  unknownId,
  verdict,
  withKey,
} from "./authorization-table.ts";
import type { Row } from "./authorization-table.ts";
import { ADMIN_TOKEN, addKey, addMember, admin, openAccount, send } from "./client.ts";
import type { Account, Role } from "./client.ts";
import type { FakeStripe } from "../fakes/stripe/fake.ts";
import { installStripe, useStripe } from "../payments/fake-stripe.ts";

/** Returns rows for `it.each`, named after their calls. */
const byName = (rows: readonly Row[]): readonly (readonly [string, Row])[] =>
  rows.map((row) => [`${row[0]} ${row[1]}`, row]);

let members: Readonly<Record<Role, Account>>;
let colleague: Account;
/** The owner of another organization. */
let stranger: Account;
/** An owner's revoked key, and no key. */
let rejectedKeys: readonly (string | undefined)[];
let stripe: FakeStripe;
beforeAll(async () => {
  const owner = await openAccount();
  const join = (role: Role): Promise<Account> => addMember(owner.orgId, role);
  members = {
    owner,
    admin: await join("admin"),
    billing: await join("billing"),
    member: await join("member"),
  };
  colleague = await join("admin");
  stranger = await openAccount();
  stripe = useStripe();
  // An organization without purchases has no portal.
  const idempotency = { "idempotency-key": "first" };
  const bought = { amount_dollars: 10, method: "checkout" };
  await send("/v1/credits/purchases", { key: owner.key, body: bought, headers: idempotency });
  for (const { key } of [owner, stranger]) {
    await send("/v1/users", { key, body: { external_id: "there already" } });
  }
  const revoked = await addKey(owner.orgId, owner.memberId);
  await admin("DELETE", `/orgs/${owner.orgId}/keys/${revoked.keyId}`);
  rejectedKeys = [revoked.key, undefined];
  for (const account of Object.values(members)) await allowHolds(account);
  vi.restoreAllMocks();
});

beforeEach(() => installStripe(stripe));

/**
 * Returns a response without its request ID, the remaining requests of its key, and the given ID.
 */
async function bare(response: Response, id = ""): Promise<object> {
  const omittedHeaders = /^x-(request-id$|ratelimit-)/;
  const headers = [...response.headers].filter(([name]) => !omittedHeaders.test(name));
  const body = (await response.text()).replace(id, "");
  return { status: response.status, headers, body };
}

it("each path in the route table has exactly one kind of access", () => {
  const reaches = new Set(ROUTES.map(({ path, reach }) => `${path} ${reach}`));
  expect(reaches.size).toBe(new Set(ROUTES.map(({ path }) => path)).size);
});

it("each path in the route table returns 405 for unsupported methods, with an allow header", async () => {
  const { key, orgId } = await openAccount();
  const methodsOf = new Map([["/admin/v1/metrics", ["GET"]]]);
  for (const { method, path, reach } of ROUTES) {
    if (reach !== "people") methodsOf.set(path, [...(methodsOf.get(path) ?? []), method]);
  }
  for (const [path, methods] of methodsOf) {
    const named = path
      .replace("/:org_id", `/${orgId}`)
      .replaceAll(/:\w+(\{.+?\})?/g, (_, form = "") => (form.includes("resp_") ? "resp_x" : "x"));
    const allow = [...methods, ...(methods.includes("GET") ? ["HEAD"] : [])].join(", ");
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
      if (methods.includes(method)) continue;
      const caller = path.startsWith("/admin/") ? ADMIN_TOKEN : key;
      const answer = await send(named, { method, key: caller });
      const [status] = await verdict(answer);
      const actual = [method, path, status, answer.headers.get("allow")];
      expect(actual).toEqual([method, path, 405, allow]);
    }
  }
});

describe("an endpoint in the table of allowed roles", () => {
  it.each(byName(ROWS))("accepts only the roles in the table: %s", async (_, row) => {
    const [, , may, status] = row;
    for (const role of MEMBER_ROLES) {
      const account = members[role];
      const answer = await sendCall(
        await withKey(row, account),
        account.key,
        await ownId(row, account),
      );
      const expected = may.includes(role) ? [status, null] : [403, "role_required"];
      expect([role, ...(await verdict(answer))]).toEqual([role, ...expected]);
      expect(answer.headers.get("openai-organization")).toBe(account.orgId);
    }
  });
});

describe("access to another organization's or member's resource", () => {
  it.each(byName(ROWS.filter(namesTarget)))(
    "gets the same response as access to a missing resource: %s",
    async (_, row) => {
      const { owner } = members;
      const pairs = MEMBER_ROLES.map((role) => [members[role], stranger] as const);
      for (const [caller, other] of [...pairs, [stranger, owner] as const]) {
        const [id, unknown] = [await ownId(row, other), unknownId(row)];
        const theirs = await bare(await sendCall(row, caller.key, id), id);
        const nobodys = await bare(await sendCall(row, caller.key, unknown), unknown);
        expect(theirs).toEqual(nobodys);
        const mayNot = MEMBER_ROLES.some(
          (role) => members[role] === caller && !row[2].includes(role),
        );
        // These are rejected before any lookup.
        if (mayNot && (theirs as { status?: number }).status === 403) continue;
        expect(theirs).toMatchObject({
          status: 404,
          body: expect.stringMatching(/No such | not found\.|There is no active key /),
        });
      }
    },
  );

  it.each(byName(OWN_ONLY))(
    "returns 404 for another member's resource, except for roles in the table: %s",
    async (_, row) => {
      const [, , may, status] = row;
      for (const role of MEMBER_ROLES) {
        const { key } = members[role];
        const [id, unknown] = [await ownId(row, colleague), unknownId(row)];
        const theirs = await bare(await sendCall(row, key, id), id);
        const nobodys = await bare(await sendCall(row, key, unknown), unknown);
        const seen = may.includes(role) ? { status } : nobodys;
        expect(theirs).toMatchObject(seen);
        expect(nobodys).toMatchObject({ status: 404 });
      }
    },
  );
});

describe("a request without an active key", () => {
  it("returns the same 401 on every path", async () => {
    const answers = new Set<string>();
    for (const row of ROWS) {
      for (const id of [await ownId(row, members.owner), unknownId(row)]) {
        for (const key of rejectedKeys) {
          answers.add(JSON.stringify(await bare(await sendCall(row, key, id))));
        }
      }
    }
    expect([...answers]).toEqual([expect.stringContaining('"status":401')]);
  });

  it("returns the same 401 on operator paths to customers of any role", async () => {
    const answers = new Set<string>();
    for (const { method, path } of OPERATOR_ROUTES) {
      const { orgId, memberId, keyId } = members.owner;
      const ids: Record<string, string> = { id: orgId, member_id: memberId, key_id: keyId };
      const named = path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name] ?? "x");
      for (const key of [members.owner.key, ...rejectedKeys]) {
        const answer = await send(named, { method, key });
        answers.add(JSON.stringify(await bare(answer)));
      }
    }
    expect([...answers]).toEqual([expect.stringContaining('"status":401')]);
  });
});

it("a rejected request changes no organization's data", async () => {
  const { owner } = members;
  const refused: (readonly [Row, string | undefined, string])[] = [];
  for (const row of ROWS) {
    const ours = await ownId(row, owner);
    for (const key of rejectedKeys) refused.push([row, key, ours]);
    for (const role of MEMBER_ROLES.filter((one) => !row[2].includes(one))) {
      refused.push([row, members[role].key, ours]);
    }
    if (!namesTarget(row)) continue;
    refused.push([row, stranger.key, ours], [row, owner.key, await ownId(row, stranger)]);
  }
  for (const row of OWN_ONLY) {
    refused.push([row, members.member.key, await ownId(row, colleague)]);
  }
  const before = await Promise.all([owner, stranger].map(readEverything));
  for (const [row, key, id] of refused) {
    expect((await sendCall(row, key, id)).status).toBeGreaterThanOrEqual(401);
  }
  expect(await Promise.all([owner, stranger].map(readEverything))).toEqual(before);
});

it("every list contains only data of the caller's organization", async () => {
  const { owner } = members;
  const ours = [owner.orgId, owner.keyId, await endUserOf(owner), await generationOf(owner)];
  const paths = ["/v1/keys", "/v1/users?limit=100", "/v1/usage?group_by=user", "/v1/alerts"];
  for (const path of [...paths, "/v1/usage?group_by=key"]) {
    const answer = await send(path, { key: stranger.key });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("openai-organization")).toBe(stranger.orgId);
    const text = await answer.text();
    for (const id of ours) expect([path, text.includes(id)]).toEqual([path, false]);
  }
});

it("a suspended organization can read all its data but change nothing", async () => {
  const account = await openAccount();
  const calls: (readonly [Row, string])[] = [];
  for (const row of ROWS) {
    calls.push([await withKey(row, account), await ownId(row, account)]);
  }
  await admin("PATCH", `/orgs/${account.orgId}`, { status: "suspended" });
  for (const [row, id] of calls) {
    const [method, route] = row;
    const expected = method === "GET" ? [200, null] : [403, "organization_suspended"];
    const answer = await verdict(await sendCall(row, account.key, id));
    expect([method, route, ...answer]).toEqual([method, route, ...expected]);
  }
});

/**
 * Returns everything about an organization that its owner and operator can read, except last uses
 * of keys.
 */
async function readEverything({ orgId, key }: Account): Promise<unknown> {
  const org = `/v1/orgs/${orgId}`;
  const paths = [org, `${org}/settings`, "/v1/users?limit=100", "/v1/balance", "/v1/keys"];
  const read = await Promise.all(paths.map((path) => send(path, { key })));
  const operators = ["", "/members", "/ledger?limit=1000"].map((path) => `/orgs/${orgId}${path}`);
  const listed = await Promise.all(operators.map((path) => admin("GET", path)));
  const texts = await Promise.all([...read, ...listed].map((answer) => answer.text()));
  return texts.map((text) => text.replaceAll(/"last_used_at":[^,]+/g, ""));
}
