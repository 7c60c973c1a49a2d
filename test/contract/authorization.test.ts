import { beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { OPERATOR_ENDPOINTS } from "../../src/operator/endpoints.ts";
import { EVERYONE, ROUTES } from "../../src/routes.ts";
import {
  allowHolds,
  endUserOf,
  generationOf,
  ask,
  namesTarget,
  OWN_ONLY,
  ownId,
  ROWS,
  unknownId,
  verdict,
  withKey,
} from "./authorization-table.ts";
import type { Row } from "./authorization-table.ts";
import { addKey, addMember, admin, openAccount, send } from "./client.ts";
import type { Account, Role } from "./client.ts";
import type { FakeStripe } from "../fakes/stripe/fake.ts";
import { putInPlace, useStripe } from "../payments/fake-stripe.ts";

/** Rows for `it.each`, under the name of their call. */
const byName = (rows: readonly Row[]): readonly (readonly [string, Row])[] =>
  rows.map((row) => [`${row[0]} ${row[1]}`, row]);

let members: Readonly<Record<Role, Account>>;
let colleague: Account;
/** Owns another organization. */
let stranger: Account;
/** An owner's key that was revoked, and no key at all. */
let shutOut: readonly (string | undefined)[];
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
  const idempotency = { "idempotency-key": "first" }; // who bought nothing has no portal
  const bought = { amount_dollars: 10, method: "checkout" };
  await send("/v1/credits/purchases", { key: owner.key, body: bought, headers: idempotency });
  for (const { key } of [owner, stranger]) {
    await send("/v1/users", { key, body: { external_id: "there already" } });
  }
  const revoked = await addKey(owner.orgId, owner.memberId);
  await admin("DELETE", `/orgs/${owner.orgId}/keys/${revoked.keyId}`);
  shutOut = [revoked.key, undefined];
  for (const account of Object.values(members)) await allowHolds(account);
  vi.restoreAllMocks();
});

beforeEach(() => putInPlace(stripe));

/** An answer without what is its own: its request id, what is left of its key's minute, and the id that was asked for. */
async function bare(response: Response, id = ""): Promise<object> {
  const own = /^x-(request-id$|ratelimit-)/;
  const headers = [...response.headers].filter(([name]) => !own.test(name));
  const body = (await response.text()).replace(id, "");
  return { status: response.status, headers, body };
}

it("the app serves exactly the paths of the route table below /v1, each with one kind of access", () => {
  const routes = app.routes.filter(
    ({ method, path }) => method !== "ALL" && path.startsWith("/v1/"),
  );
  const there = new Set(routes.map(({ method, path }) => `${method} ${path}`));
  expect(new Set(ROUTES.map(({ method, path }) => `${method} ${path}`))).toEqual(there);
  const reaches = new Set(ROUTES.map(({ path, reach }) => `${path} ${reach}`));
  expect(reaches.size).toBe(new Set(ROUTES.map(({ path }) => path)).size);
});

it("every role may call every endpoint, except those in the table of roles", () => {
  const fewer = ROUTES.filter(({ who }) => who.roles !== EVERYONE || who.others !== undefined);
  const said = fewer.map(({ method, path, who }) => {
    return `${method} ${path}: ${who.others === undefined ? who.roles.join() : `others' ${who.others.join()}`}`;
  });
  expect(said.toSorted()).toEqual([
    "DELETE /v1/keys/:id: others' owner,admin,billing",
    "DELETE /v1/pauses/:id: owner,admin",
    "DELETE /v1/responses/:id{resp_\\w+}: others' owner,admin,billing",
    "DELETE /v1/sessions/:id: others' owner,admin,billing",
    "DELETE /v1/webhooks/:id: owner,admin",
    "GET /v1/alerts: owner,admin,billing",
    "GET /v1/credits/purchases/:id: owner,admin,billing",
    "GET /v1/credits/purchases: owner,admin,billing",
    "GET /v1/credits: owner,admin,billing",
    "GET /v1/errors: others' owner,admin,billing",
    "GET /v1/events: owner,admin,billing",
    "GET /v1/exports/focus: owner,admin,billing",
    "GET /v1/exports: owner,admin,billing",
    "GET /v1/generation: others' owner,admin,billing",
    "GET /v1/generations/:id: others' owner,admin,billing",
    "GET /v1/generations: others' owner,admin,billing",
    "GET /v1/holds/:id: others' owner,admin,billing",
    "GET /v1/holds: others' owner,admin,billing",
    "GET /v1/keys: others' owner,admin,billing",
    "GET /v1/members/:id: owner,admin",
    "GET /v1/orgs/:org_id/settings: owner,admin,billing",
    "GET /v1/pauses: others' owner,admin,billing",
    "GET /v1/responses/:id{resp_\\w+}/input_items: others' owner,admin,billing",
    "GET /v1/responses/:id{resp_\\w+}: others' owner,admin,billing",
    "GET /v1/sessions: others' owner,admin,billing",
    "GET /v1/usage: owner,admin,billing",
    "GET /v1/webhooks/:id/deliveries/:delivery_id: owner,admin",
    "GET /v1/webhooks/:id/deliveries: owner,admin",
    "GET /v1/webhooks/:id: owner,admin",
    "GET /v1/webhooks: owner,admin",
    "PATCH /v1/keys/:id: others' owner,admin",
    "PATCH /v1/members/:id: owner,admin",
    "PATCH /v1/orgs/:org_id/settings: owner,admin,billing",
    "PATCH /v1/orgs/:org_id: owner",
    "PATCH /v1/webhooks/:id: owner,admin",
    "POST /v1/credits/portal: owner,admin,billing",
    "POST /v1/credits/purchases/:id/cancel: owner,admin,billing",
    "POST /v1/credits/purchases: owner,admin,billing",
    "POST /v1/keys/:id/rotate: others' ",
    "POST /v1/pauses: others' owner,admin,billing",
    "POST /v1/webhooks/:id/replay: owner,admin",
    "POST /v1/webhooks/:id/resend: owner,admin",
    "POST /v1/webhooks/:id/rotate: owner,admin",
    "POST /v1/webhooks/:id/test: owner,admin",
    "POST /v1/webhooks: owner,admin",
  ]);
  const limited = ROUTES.filter(({ reach }) => reach !== "managed").map(({ path }) => path);
  expect(limited.toSorted()).toEqual([
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/auth/key",
    "/v1/charges",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/holds",
    "/v1/holds",
    "/v1/holds/:id",
    "/v1/holds/:id/capture",
    "/v1/holds/:id/extend",
    "/v1/holds/:id/release",
    "/v1/images/edits",
    "/v1/images/generations",
    "/v1/key",
    "/v1/keys/:id/rotate",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/models",
    "/v1/models/:id{.+?}",
    "/v1/models/:id{.+?}/endpoints",
    "/v1/moderations",
    "/v1/ocr",
    "/v1/rerank",
    "/v1/responses",
    "/v1/responses/:id{resp_\\w+}",
    "/v1/responses/:id{resp_\\w+}",
    "/v1/responses/:id{resp_\\w+}/input_items",
    "/v1/sessions",
    "/v1/sessions",
    "/v1/sessions/:id",
  ]);
});

describe("an endpoint in the table of roles", () => {
  it.each(byName(ROWS))("allows exactly the listed roles: %s", async (_, row) => {
    const [, , may, status] = row;
    for (const role of EVERYONE) {
      const account = members[role];
      const answer = await ask(await withKey(row, account), account.key, await ownId(row, account));
      const expected = may.includes(role) ? [status, null] : [403, "role_required"];
      expect([role, ...(await verdict(answer))]).toEqual([role, ...expected]);
      expect(answer.headers.get("openai-organization")).toBe(account.orgId);
    }
  });
});

describe("access to someone else's resource", () => {
  it.each(byName(ROWS.filter(namesTarget)))(
    "returns the same response as for a missing resource: %s",
    async (_, row) => {
      const { owner } = members;
      const pairs = EVERYONE.map((role) => [members[role], stranger] as const);
      for (const [caller, other] of [...pairs, [stranger, owner] as const]) {
        const [id, unknown] = [await ownId(row, other), unknownId(row)];
        const theirs = await bare(await ask(row, caller.key, id), id);
        const nobodys = await bare(await ask(row, caller.key, unknown), unknown);
        expect(theirs).toEqual(nobodys);
        const mayNot = EVERYONE.some((role) => members[role] === caller && !row[2].includes(role));
        if (mayNot && (theirs as { status?: number }).status === 403) continue; // refused before anything is looked for
        expect(theirs).toMatchObject({
          status: 404,
          body: expect.stringMatching(/No such | not found\.|There is no active key /),
        });
      }
    },
  );

  it.each(byName(OWN_ONLY))(
    "fails for a member except where the table allows it: %s",
    async (_, row) => {
      const [, , may, status] = row;
      for (const role of EVERYONE) {
        const { key } = members[role];
        const [id, unknown] = [await ownId(row, colleague), unknownId(row)];
        const theirs = await bare(await ask(row, key, id), id);
        const nobodys = await bare(await ask(row, key, unknown), unknown);
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
        for (const key of shutOut) answers.add(JSON.stringify(await bare(await ask(row, key, id))));
      }
    }
    expect([...answers]).toEqual([expect.stringContaining('"status":401')]);
  });

  it("returns the same 401 on operators' paths to customers of any role", async () => {
    const answers = new Set<string>();
    for (const { method, path } of OPERATOR_ENDPOINTS) {
      const { orgId, memberId, keyId } = members.owner;
      const ids: Record<string, string> = { id: orgId, member_id: memberId, key_id: keyId };
      const named = path.replaceAll(/:(\w+)/g, (_, name: string) => ids[name] ?? "x");
      for (const key of [members.owner.key, ...shutOut]) {
        const answer = await send(`/admin/v1${named}`, { method, key });
        answers.add(JSON.stringify(await bare(answer)));
      }
    }
    expect([...answers]).toEqual([expect.stringContaining('"status":401')]);
  });
});

it("a rejected request changes nothing in this or another organization", async () => {
  const { owner } = members;
  const refused: (readonly [Row, string | undefined, string])[] = [];
  for (const row of ROWS) {
    const ours = await ownId(row, owner);
    for (const key of shutOut) refused.push([row, key, ours]);
    for (const role of EVERYONE.filter((one) => !row[2].includes(one))) {
      refused.push([row, members[role].key, ours]);
    }
    if (!namesTarget(row)) continue;
    refused.push([row, stranger.key, ours], [row, owner.key, await ownId(row, stranger)]);
  }
  for (const row of OWN_ONLY) {
    refused.push([row, members.member.key, await ownId(row, colleague)]);
  }
  const before = await Promise.all([owner, stranger].map(everythingOf));
  for (const [row, key, id] of refused) {
    expect((await ask(row, key, id)).status).toBeGreaterThanOrEqual(401);
  }
  expect(await Promise.all([owner, stranger].map(everythingOf))).toEqual(before);
});

it("every list shows an owner only the owner's own organization", async () => {
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

it("a suspended organization can read everything and change nothing", async () => {
  const account = await openAccount();
  const calls: (readonly [Row, string])[] = [];
  for (const row of ROWS) {
    calls.push([await withKey(row, account), await ownId(row, account)]);
  }
  await admin("PATCH", `/orgs/${account.orgId}`, { status: "suspended" });
  for (const [row, id] of calls) {
    const [method, route] = row;
    const expected = method === "GET" ? [200, null] : [403, "organization_suspended"];
    const answer = await verdict(await ask(row, account.key, id));
    expect([method, route, ...answer]).toEqual([method, route, ...expected]);
  }
});

/** What an organization is and has, as its owner and its operator read it; not when its keys were used. */
async function everythingOf({ orgId, key }: Account): Promise<unknown> {
  const org = `/v1/orgs/${orgId}`;
  const paths = [org, `${org}/settings`, "/v1/users?limit=100", "/v1/balance", "/v1/keys"];
  const read = await Promise.all(paths.map((path) => send(path, { key })));
  const operators = ["", "/members", "/ledger?limit=1000"].map((path) => `/orgs/${orgId}${path}`);
  const listed = await Promise.all(operators.map((path) => admin("GET", path)));
  const texts = await Promise.all([...read, ...listed].map((answer) => answer.text()));
  return texts.map((text) => text.replaceAll(/"last_used_at":[^,]+/g, ""));
}
