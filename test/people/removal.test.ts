import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { runHourlyJobs } from "../../src/operator/scheduled.ts";
import { ADMIN_TOKEN, admin, chat, openAccount, send } from "../contract/client.ts";
import {
  Browser,
  inviteAndJoin,
  inviteTo,
  signUp,
  tokenOf,
  newAccount,
  startIssuer,
} from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

type Stub = { readonly [method: string]: (...parameters: readonly unknown[]) => unknown };

/** Creates Ann's team with Ben in this role. */
async function team(role: string) {
  const ann = await signUp(issuer);
  return { ann, ben: await inviteAndJoin(issuer, ann.browser, role) };
}

async function keyOf(browser: Browser): Promise<string> {
  const response = await browser.ask("POST", "/console/api/v1/keys", { name: "one" });
  return (await response.json<{ key: string }>()).key;
}

describe("a removed member", () => {
  it("immediately loses the console session, all keys and all sessions of these keys", async () => {
    const { ann, ben } = await team("admin");
    const key = await keyOf(ben.browser);
    const minted = await send("/v1/sessions", { key, body: {} });
    const { token } = await minted.json<{ token: string }>();
    const removed = await ann.browser.people("DELETE", `/members/${ben.view.member.id}`);
    expect(removed.status).toBe(200);
    expect((await chat(key)).status).toBe(401);
    expect((await chat(token)).status).toBe(401);
    expect((await ben.browser.ask("GET", "/console/api/v1/keys")).status).toBe(401);
    const again = await ann.browser.people("DELETE", `/members/${ben.view.member.id}`);
    expect(again.status).toBe(200);
    expect(await ben.browser.logIn(ben.account)).toBe("/console/#/");
    expect((await ben.browser.session())?.organization).toBeNull();
  });

  it("leaves no open invitation behind", async () => {
    const { ann, ben } = await team("admin");
    const eve = issuer.newAccount();
    const created = await ben.browser.people("POST", "/invitations", {
      role: "member",
      email: eve.email,
    });
    const { link } = await created.json<{ link: string }>();
    await ann.browser.people("DELETE", `/members/${ben.view.member.id}`);
    const invitation = tokenOf(link);
    const end = await new Browser().logIn(eve, { purpose: "accept", invitation });
    expect(end).toMatch(/why=invitation_over$/);
  });
});

describe("an owner of an organization", () => {
  it("can't leave, lose the role or be deleted while there is no other owner", async () => {
    const { ann } = await team("admin");
    const own = `/members/${ann.view.member.id}`;
    const refused = [
      await ann.browser.people("DELETE", own),
      await ann.browser.people("PATCH", own, { role: "admin" }),
      await ann.browser.people("DELETE", "/me"),
    ];
    for (const response of refused) {
      const { error } = await response.json<{ error: { code: string } }>();
      expect([response.status, error.code]).toEqual([409, "last_owner"]);
    }
  });
});

describe("a member's changed role", () => {
  it("takes effect at the member's next request", async () => {
    const { ann, ben } = await team("member");
    expect((await ben.browser.people("GET", "/invitations")).status).toBe(403);
    await ann.browser.people("PATCH", `/members/${ben.view.member.id}`, { role: "admin" });
    expect((await ben.browser.people("GET", "/invitations")).status).toBe(200);
    await ann.browser.people("PATCH", `/members/${ben.view.member.id}`, { role: "member" });
    expect((await ben.browser.people("GET", "/invitations")).status).toBe(403);
  });
});

describe("the hidden key of a console session", () => {
  it("isn't listed or counted, and can't be changed, rotated or revoked", async () => {
    const { browser, view } = await signUp(issuer);
    const row = await env.DB.prepare("SELECT id FROM keys WHERE member_id = ?")
      .bind(view.member.id)
      .first<{ id: string }>();
    const at = `/console/api/v1/keys/${row?.id ?? ""}`;
    const responses = [
      await browser.ask("PATCH", at, { name: "x" }),
      await browser.ask("DELETE", at),
      await browser.ask("POST", `${at}/rotate`, { overlap_seconds: 0 }, { "idempotency-key": "a" }),
    ];
    expect(responses.map(({ status }) => status)).toEqual([404, 404, 404]);
    const listed = await browser.ask("GET", "/console/api/v1/keys");
    expect(await listed.json()).toMatchObject({ keys: [] });
  });
});

describe("a person's data export", () => {
  it("contains actions by and on the person, even after a removal, but no actions between other people", async () => {
    const { ann, ben } = await team("admin");
    const [account, cleo] = [newAccount(), newAccount()];
    issuer.accounts.push(account, cleo);
    const body = { role: "member", email: account.email };
    expect((await ben.browser.people("POST", "/invitations", body)).status).toBe(201);
    await inviteTo(ann.browser, { role: "member", email: cleo.email });
    await ann.browser.people("DELETE", `/members/${ben.view.member.id}`);
    await ben.browser.logIn(ben.account, {});
    const of = { organization_id: ann.view.organization.id };
    const by = (id: string) => ({ ...of, actor: { kind: "member", id } });
    await vi.waitFor(async () => {
      await env.DB.prepare("UPDATE people SET exported_at = NULL").run();
      const exported = await ben.browser.people("GET", "/me/export");
      const { events } = await exported.json<{ events: readonly { type: string }[] }>();
      expect(events.toSorted((a, b) => a.type.localeCompare(b.type))).toMatchObject([
        { type: "invitation.created", ...by(ben.view.member.id) },
        { type: "member.created", ...of, subject: ben.view.member.id },
        { type: "member.removed", ...by(ann.view.member.id), subject: ben.view.member.id },
      ]);
    });
  });
});

describe("a repeated export of a person's data", () => {
  it("returns 429 with the time until the next allowed export for ten minutes", async () => {
    const { browser } = await signUp(issuer);
    const [first, second] = [
      await browser.people("GET", "/me/export"),
      await browser.people("GET", "/me/export"),
    ];
    expect([first.status, second.status]).toEqual([200, 429]);
    expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(590);
    expect(await second.text()).toContain("1 requests per 10 minutes for exports of your data");
    await env.DB.prepare("UPDATE people SET exported_at = exported_at - 600000").run();
    expect((await browser.people("GET", "/me/export")).status).toBe(200);
  });

  it("reads each organization once, even if the person was a member several times", async () => {
    const { ann, ben } = await team("admin");
    await ann.browser.people("DELETE", `/members/${ben.view.member.id}`);
    const invitation = await inviteTo(ann.browser, { role: "member", email: ben.account.email });
    let eventReads = 0;
    const getByName = (name: string): unknown => {
      const stub = env.WALLET.getByName(name) as unknown as Stub;
      return new Proxy(stub, {
        get:
          (_, method: string) =>
          (...parameters: unknown[]) => {
            if (method === "events") eventReads++;
            return stub[method]?.(...parameters);
          },
      });
    };
    const WALLET = { getByName };
    const again = new Browser({ WALLET });
    await again.logIn(ben.account, { purpose: "accept", invitation });
    const exported = await again.people("GET", "/me/export");
    const { memberships } = await exported.json<{ memberships: { organization_id: string }[] }>();
    const own = memberships.filter(({ organization_id: id }) => id === ann.view.organization.id);
    expect(own).toHaveLength(2);
    expect(eventReads).toBe(new Set(memberships.map(({ organization_id: id }) => id)).size);
  });
});

describe("the erasure of a person", () => {
  it("removes name, address and identity from the database, but keeps IDs in events", async () => {
    const { browser, account, view } = await signUp(issuer);
    const exported = await browser.people("GET", "/me/export");
    expect(await exported.text()).toContain(account.email);
    expect((await browser.people("DELETE", "/me")).status).toBe(200);
    expect(await browser.session()).toBeNull();
    const tables = await env.DB.prepare(
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'd1%'",
    ).all<{ name: string }>();
    const dumps = await Promise.all(
      tables.results.map(({ name }) => env.DB.prepare(`SELECT * FROM "${name}"`).all()),
    );
    const all = JSON.stringify(dumps.map(({ results }) => results));
    for (const gone of [account.email, account.id, account.name]) expect(all).not.toContain(gone);
    const events = await admin("GET", `/orgs/${view.organization.id}/events`);
    const text = await events.text();
    for (const gone of [account.email, account.id, account.name]) expect(text).not.toContain(gone);
  });
});

it("an operator can connect a login to a member who has only keys, and can close the organization permanently", async () => {
  const { orgId, memberId, key } = await openAccount({ credits: 5 });
  const created = await admin("POST", `/orgs/${orgId}/invitations`, { member_id: memberId });
  const { link } = await created.json<{ link: string }>();
  const read = await admin("GET", `/orgs/${orgId}/members`);
  const { members } = await read.json<{ members: { email: string }[] }>();
  const ann = issuer.newAccount({ email: members[0]?.email ?? "" });
  const browser = new Browser();
  const invitation = tokenOf(link);
  expect(await browser.logIn(ann, { purpose: "accept", invitation })).toBe("/console/#/");
  expect(await browser.session()).toMatchObject({ role: "owner", member: { id: memberId } });
  expect((await admin("DELETE", `/orgs/${orgId}`)).status).toBe(409);
  await env.DB.prepare("UPDATE organizations SET slug = ? WHERE id <> ? AND id = ?")
    .bind(`closed-${orgId.slice(0, 18)}`, orgId, (await openAccount({ credits: 0 })).orgId)
    .run();
  expect((await admin("DELETE", `/orgs/${orgId}?give_up_balance=true`)).status).toBe(200);
  await env.DB.prepare("UPDATE closed_organizations SET restorable_until = closed_at").run();
  await runHourlyJobs(env);
  const shown = await admin("GET", `/orgs/${orgId}`);
  const { slug } = await shown.json<{ slug: string }>();
  expect(slug).toMatch(/^closed-[0-9a-f]{24}$/);
  expect((await admin("GET", `/orgs/${slug}`)).status).toBe(200);
  expect((await chat(key)).status).toBe(401);
  expect(await browser.session()).toBeNull();
  expect((await admin("PATCH", `/orgs/${orgId}`, { status: "active" })).status).toBe(409);
});

describe("an operator with a role", () => {
  const OPERATORS = ["read", "support", "finance", "all"] as const;
  const bindings = {
    ADMIN_TOKENS: OPERATORS.map((role) => `${role}/${role}:${role.padEnd(32, "x")}`).join(","),
  };
  const sendAs = (role: string, method: string, path: string, body?: object) =>
    send(`/admin/v1${path}`, {
      method,
      key: role === "admin" ? ADMIN_TOKEN : role.padEnd(32, "x"),
      bindings: { ...env, ...bindings },
      ...(body !== undefined && { body }),
    });

  it("can do exactly what the role allows, and appears in events by name", async () => {
    const { orgId } = await openAccount({ credits: 0 });
    const acts = [
      ["read", "GET", "/orgs"],
      ["support", "PATCH", `/orgs/${orgId}`, { name: "Renamed" }],
      ["finance", "POST", `/orgs/${orgId}/credits`, { amount_micro: 1, reference: "r" }],
      ["all", "POST", `/orgs/${orgId}/rebuild-wallet`, {}],
    ] as const;
    for (const [needs, method, path, body] of acts) {
      for (const role of [...OPERATORS, "admin"]) {
        const may = needs === "read" || role === needs || role === "all" || role === "admin";
        const { status } = await sendAs(role, method, path, body);
        expect([role, method, path, status !== 403]).toEqual([role, method, path, may]);
      }
    }
    const read = await sendAs("read", "GET", `/orgs/${orgId}/events`);
    const { events } = await read.json<{ events: { actor: { id: string }; type: string }[] }>();
    expect(events.map(({ actor }) => actor.id)).toContain("support");
  });

  it("can change prices, provider costs and past charges only with the role finance or all", async () => {
    const { orgId } = await openAccount({ credits: 0 });
    const from = new Date(Date.now() + 30 * 86_400_000).toISOString();
    const rows = [
      { list: "of-a-role", item: "sandbox/echo", from, price: { input: 1, output: 2 } },
    ];
    const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const span = { from: day, to: new Date(Date.now() - 3 * 3_600_000).toISOString() };
    const slip = {
      id: "s",
      model: "sandbox/echo",
      organization: orgId,
      ...span,
      price: { input: 1 },
    };
    const acts = [
      ["finance", "POST", "/prices", 201, { rows }],
      ["read", "GET", "/prices?list=of-a-role", 200],
      ["finance", "PATCH", `/orgs/${orgId}`, 200, { price_list: "of-a-role" }],
      ["finance", "PATCH", `/orgs/${orgId}`, 200, { price_list: null }],
      ["finance", "DELETE", "/prices/prc_none", 404],
      ["read", "GET", `/margin?from=${day}&to=${day}`, 200],
      ["finance", "POST", "/costs", 201, { rows: [{ provider: "p", day, dollars: 1 }] }],
      ["finance", "POST", "/rerate", 200, { ...slip, dry_run: true }],
      ["finance", "POST", "/rerate", 200, { ...slip, dry_run: false }],
    ] as const;
    for (const [needs, method, path, status, body] of acts) {
      for (const role of ["read", "support", "finance", "all"] as const) {
        const may = needs === "read" || role === needs || role === "all";
        const answer = await sendAs(role, method, path, body);
        const outcome = [role, method, path, answer.status];
        expect(outcome).toEqual([role, method, path, may ? status : 403]);
      }
    }
    const listed = await sendAs("read", "GET", "/prices?list=of-a-role");
    const { prices } = await listed.json<{ prices: { posted_by: string }[] }>();
    expect(prices.map(({ posted_by: by }) => by)).toEqual(["finance"]);
  });

  it("can log in to the console if OPERATOR_LOGINS contains the operator's identity", async () => {
    const olga = issuer.newAccount();
    const browser = new Browser({
      OPERATOR_LOGINS: JSON.stringify([
        { name: "olga", role: "read", issuer: "local", subject: olga.id },
      ]),
    });
    expect(await browser.logIn(olga)).toBe("/console/#/");
    expect(await browser.session()).toMatchObject({ kind: "operator", operator: "read" });
    expect((await browser.ask("GET", "/console/api/admin/v1/orgs")).status).toBe(200);
    const body = { name: "X", slug: "x-none", owner_email: "x@example.com" };
    expect((await browser.ask("POST", "/console/api/admin/v1/orgs", body)).status).toBe(403);
  });
});
