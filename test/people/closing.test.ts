import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { closeOrganization } from "../../src/accounts/people/closing.store.ts";
import { eraseStalePeople } from "../../src/accounts/people/erasure.store.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { objectsOf } from "../../src/shared/contracts/objects.ts";
import { mintId } from "../../src/shared/id.ts";
import { runHourlyJobs } from "../../src/operator/scheduled.ts";
import {
  addKey,
  addMember,
  admin,
  chat,
  openAccount,
  send,
  skipPauses,
} from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { openKnown, sendAsPeer } from "../contract/peer-client.ts";
import { Browser, inviteAndJoin, signUp, startIssuer } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

const close = (orgId: string): Promise<Response> =>
  admin("DELETE", `/orgs/${orgId}?give_up_balance=true`);
const restore = (orgId: string): Promise<Response> => admin("POST", `/orgs/${orgId}/restore`);
const read = async (orgId: string): Promise<unknown> =>
  (await admin("GET", `/orgs/${orgId}`)).json();
const rowsOf = async (table: string, orgId: string): Promise<string> =>
  JSON.stringify(
    (await env.DB.prepare(`SELECT * FROM ${table} WHERE org_id = ?`).bind(orgId).all()).results,
  );

/** Runs the hourly job as if the 7 days of each closed organization were over. */
async function sweep(): Promise<void> {
  await env.DB.prepare(
    "UPDATE closed_organizations SET restorable_until = closed_at WHERE restorable_until IS NOT NULL",
  ).run();
  await runHourlyJobs(env);
}

const forwardedRead = (path: string): object => ({
  method: "GET",
  path,
  query: "",
  headers: {},
  body: null,
});
const READS = ["/v1/models", "/v1/balance", "/v1/key", "/v1/keys", "/v1/users", "/v1/sessions"];

/** Returns the statuses of a paid request and of reads with this key. */
const statusesOf = async (key: string): Promise<readonly number[]> => [
  (await chat(key)).status,
  ...(await Promise.all(READS.map((path) => send(path, { key })))).map(({ status }) => status),
];
const ALL = (status: number): readonly number[] => ["paid", ...READS].map(() => status);

const restoreAs = (browser: Browser, orgId: string): Promise<Response> =>
  browser.people("POST", `/organizations/${orgId}/restore`);
async function closedOf(browser: Browser): Promise<unknown> {
  const me = await (await browser.people("GET", "/me")).json<{ closed_organizations: unknown }>();
  return me.closed_organizations;
}

/**
 * Returns the database, which runs `work` between the check of an owner's right to restore and the
 * restoration.
 */
function beforeRestoring(work: () => Promise<unknown>): D1Database {
  let isNext = false;
  const prepare = (sql: string): D1PreparedStatement => {
    isNext ||= sql.includes("DELETE FROM closed_organizations");
    return env.DB.prepare(sql);
  };
  const batch = async (statements: D1PreparedStatement[]): Promise<D1Result[]> => {
    if (isNext) await work();
    isNext = false;
    return env.DB.batch(statements);
  };
  return { prepare, batch } as unknown as D1Database;
}

async function organizationAfterLogin(
  person: Awaited<ReturnType<typeof inviteAndJoin>>,
): Promise<unknown> {
  await person.browser.logIn(person.account);
  return (await person.browser.session())?.organization ?? null;
}

describe("a closed organization", () => {
  it("admits no key and no session until the organization is restored", async () => {
    const { orgId, memberId, key } = await openAccount();
    const unused = await addKey(orgId, memberId);
    const member = await addMember(orgId, "member");
    const minted = await send("/v1/sessions", { key, body: {} });
    const { token } = await minted.json<{ token: string }>();
    expect(await statusesOf(key)).toEqual(ALL(200));
    const before = await read(orgId);
    expect(before).toMatchObject({ closed_at: null, restorable_until: null });
    expect((await close(orgId)).status).toBe(200);
    const keys = [key, unused.key, member.key];
    for (const one of keys) expect(await statusesOf(one)).toEqual(ALL(401));
    expect((await chat(token)).status).toBe(401);
    const closed = await admin("GET", `/orgs/${orgId}`);
    const times = await closed.json<{ closed_at: string; restorable_until: string }>();
    const [at, until] = [times.closed_at, times.restorable_until].map(Date.parse);
    expect((until ?? 0) - (at ?? 0)).toBeGreaterThan(6.99 * 86_400_000);
    expect((await admin("PATCH", `/orgs/${orgId}`, { status: "active" })).status).toBe(409);
    const restored = await restore(orgId);
    expect(restored.status).toBe(200);
    expect(await restored.json()).toEqual(before);
    for (const one of keys) expect(await statusesOf(one)).toEqual(ALL(200));
    expect((await chat(token)).status).toBe(200);
  });

  it("accepts no login until restored, and afterwards no login of former members", async () => {
    const ann = await signUp(issuer);
    await ann.browser.people("POST", "/organization/team");
    const orgId = ann.view.organization.id;
    const [stays, removed] = [
      await inviteAndJoin(issuer, ann.browser, "admin"),
      await inviteAndJoin(issuer, ann.browser, "admin"),
    ];
    await ann.browser.people("DELETE", `/members/${removed.view.member.id}`);
    expect((await ann.browser.people("DELETE", "/organization")).status).toBe(200);
    expect(await ann.browser.session()).toBeNull();
    expect(await stays.browser.session()).toBeNull();
    expect(await organizationAfterLogin(stays)).toBeNull();
    expect((await restore(orgId)).status).toBe(200);
    expect(await organizationAfterLogin(stays)).toMatchObject({ id: orgId });
    expect(await organizationAfterLogin(removed)).toBeNull();
  });

  it("can be restored by the owner who closed the organization, even on a retry", async () => {
    const ann = await signUp(issuer);
    await ann.browser.people("POST", "/organization/team");
    const { id: orgId } = ann.view.organization;
    const [admins, removed] = [
      await inviteAndJoin(issuer, ann.browser, "admin"),
      await inviteAndJoin(issuer, ann.browser, "admin"),
    ];
    await ann.browser.people("DELETE", `/members/${removed.view.member.id}`);
    expect((await ann.browser.people("DELETE", "/organization")).status).toBe(200);
    for (const { browser, account } of [admins, removed]) {
      await browser.logIn(account);
      expect(await closedOf(browser)).toEqual([]);
      expect((await restoreAs(browser, orgId)).status).toBe(404);
    }
    await ann.browser.logIn(ann.account);
    expect(await closedOf(ann.browser)).toMatchObject([{ id: orgId }]);
    expect((await restoreAs(ann.browser, orgId)).status).toBe(200);
    expect(await ann.browser.session()).toMatchObject({ organization: { id: orgId } });
    expect(await closedOf(ann.browser)).toEqual([]);
    expect((await restoreAs(ann.browser, orgId)).status).toBe(200);
    expect(await organizationAfterLogin(admins)).toMatchObject({ id: orgId });
    expect(await organizationAfterLogin(removed)).toBeNull();
  });

  it("can't be restored by an owner if an operator closed the organization", async () => {
    const ann = await signUp(issuer);
    const { id: orgId } = ann.view.organization;
    for (const closers of [["operator"], ["owner", "operator"]]) {
      for (const by of closers) {
        const closed = await (by === "owner"
          ? ann.browser.people("DELETE", "/organization")
          : close(orgId));
        expect(closed.status).toBe(200);
      }
      await ann.browser.logIn(ann.account);
      expect(await closedOf(ann.browser)).toEqual([]);
      expect((await restoreAs(ann.browser, orgId)).status).toBe(404);
      expect((await restore(orgId)).status).toBe(200);
      await ann.browser.logIn(ann.account);
    }
  });

  it("remains closed if an operator closes the organization during an owner's restore", async () => {
    const ann = await signUp(issuer);
    const { id: orgId } = ann.view.organization;
    expect((await ann.browser.people("DELETE", "/organization")).status).toBe(200);
    await ann.browser.logIn(ann.account);
    const DB = beforeRestoring(() => close(orgId));
    const { cookies, address } = ann.browser;
    const browser = Object.assign(new Browser({ DB }), { cookies, address });
    expect((await restoreAs(browser, orgId)).status).toBe(404);
    expect(await read(orgId)).toMatchObject({ closed_at: expect.any(String) });
    expect(await ann.browser.session()).toMatchObject({ organization: null });
    expect((await restore(orgId)).status).toBe(200);
  });

  it("keeps the session of the owner who restores the organization, even if that owner earlier logged out everywhere", async () => {
    const ann = await signUp(issuer);
    const { id: orgId } = ann.view.organization;
    expect((await ann.browser.people("DELETE", "/organization")).status).toBe(200);
    await ann.browser.logIn(ann.account);
    expect((await ann.browser.people("POST", "/me/log-out", {})).status).toBe(200);
    await ann.browser.logIn(ann.account);
    expect((await restoreAs(ann.browser, orgId)).status).toBe(200);
    expect(await ann.browser.session()).toMatchObject({ organization: { id: orgId } });
  });

  it("rejects an owner's restore after 7 days", async () => {
    const ann = await signUp(issuer);
    expect((await ann.browser.people("DELETE", "/organization")).status).toBe(200);
    await sweep();
    await ann.browser.logIn(ann.account);
    expect(await closedOf(ann.browser)).toEqual([]);
    expect((await restoreAs(ann.browser, ann.view.organization.id)).status).toBe(409);
  });

  it("keeps the logins of members even if they haven't logged in for 90 days", async () => {
    const ann = await signUp(issuer);
    await ann.browser.people("POST", "/organization/team");
    const orgId = ann.view.organization.id;
    const stays = await inviteAndJoin(issuer, ann.browser, "admin");
    expect((await ann.browser.people("DELETE", "/organization")).status).toBe(200);
    await eraseStalePeople(env.DB, Date.now() + 100 * 86_400_000);
    expect((await restore(orgId)).status).toBe(200);
    expect(await organizationAfterLogin(stays)).toMatchObject({ id: orgId });
  });

  it("loses members who delete their accounts before the restore, and revokes those members' keys", async () => {
    const ann = await signUp(issuer);
    await ann.browser.people("POST", "/organization/team");
    const orgId = ann.view.organization.id;
    const member = await inviteAndJoin(issuer, ann.browser, "admin");
    const { key } = await addKey(orgId, member.view.member.id);
    expect((await send("/v1/key", { key })).status).toBe(200);
    expect((await ann.browser.people("DELETE", "/organization")).status).toBe(200);
    await member.browser.logIn(member.account);
    expect((await member.browser.people("DELETE", "/me")).status).toBe(200);
    expect((await restore(orgId)).status).toBe(200);
    expect(await statusesOf(key)).toEqual(ALL(401));
    const members = await (await admin("GET", `/orgs/${orgId}/members`)).text();
    expect(members).toContain(ann.view.member.id);
    expect(members).not.toContain(member.view.member.id);
  });

  it("returns 401 for reads that another region forwards to the home region", async () => {
    const { hash, orgId } = await openKnown();
    const statuses = async (): Promise<unknown[]> =>
      Promise.all(
        ["/v1/balance", "/v1/users", "/v1/key"].map(async (path) => {
          const { body } = await sendAsPeer("forward", {
            ...forwardedRead(path),
            caller_key_hash: hash,
          });
          return (body as { status?: unknown }).status;
        }),
      );
    expect(await statuses()).toEqual([200, 200, 200]);
    await close(orgId);
    expect(await statuses()).toEqual([401, 401, 401]);
  });

  it("rejects requests after the next sweep even if the wallet missed the call that closes the organization", async () => {
    const { orgId, key } = await openAccount();
    const by = { actor: SYSTEM_ACTOR, memberId: null, now: Date.now() };
    expect(await closeOrganization(env.DB, orgId, by)).not.toBeNull();
    expect((await send("/v1/balance", { key })).status).toBe(200);
    await runHourlyJobs(env);
    expect(await statusesOf(key)).toEqual(ALL(401));
  });

  it("keeps an earlier suspension after a restore, and emits an event when closed and when restored", async () => {
    const { orgId, key } = await openAccount();
    await admin("PATCH", `/orgs/${orgId}`, { status: "suspended" });
    await close(orgId);
    expect((await restore(orgId)).status).toBe(200);
    expect(await read(orgId)).toMatchObject({ status: "suspended" });
    expect((await chat(key)).status).toBe(403);
    await vi.waitFor(async () => {
      const events = await admin("GET", `/orgs/${orgId}/events?type=organization.changed`);
      const { events: found } = await events.json<{ events: { data: { closed?: boolean } }[] }>();
      const closings = found
        .map(({ data }) => data.closed)
        .filter((closed) => closed !== undefined);
      expect(closings.toSorted((one, other) => Number(one) - Number(other))).toEqual([false, true]);
    });
  });

  it("accepts a repeated restore, and can be closed again", async () => {
    const { orgId, key } = await openAccount();
    await close(orgId);
    expect([(await restore(orgId)).status, (await restore(orgId)).status]).toEqual([200, 200]);
    await close(orgId);
    expect((await chat(key)).status).toBe(401);
    expect((await restore(orgId)).status).toBe(200);
    expect((await chat(key)).status).toBe(200);
  });
});

/** Creates an organization with an end user in the wallet and in the database. */
async function withUsers(count: number): Promise<{ account: Account; name: string }> {
  const account = await openAccount();
  const name = `user-${crypto.randomUUID()}`;
  const wallet = objectsOf(env).wallet(account.orgId);
  for (let n = 0; n < count; n++) {
    await wallet.putEndUser(`${name}-${n}`, {});
  }
  await chat(account.key, { user: name });
  await chat(account.key, { model: "nope/none", user: name });
  await wallet.poke(); // publishes the end users
  expect(await rowsOf("end_users", account.orgId)).toContain(name);
  return { account, name };
}

describe("the deletion of a closed organization after 7 days", () => {
  it("erases names, keys and end users permanently", async () => {
    const { account, name } = await withUsers(250);
    const { orgId, key } = account;
    await send("/v1/keys", { key, body: { name: `key of ${name}` } });
    const events = async (): Promise<string> =>
      JSON.stringify(await objectsOf(env).wallet(orgId).eventsSince(0, 1000));
    expect(await events()).toContain(`key of ${name}`);
    await close(orgId);
    await runHourlyJobs(env); // isn't due yet
    expect(await objectsOf(env).wallet(orgId).listEndUsers(10, 0)).toMatchObject({
      value: { total: 251 },
    });
    expect(await rowsOf("keys", orgId)).toContain(`key of ${name}`);
    await sweep();
    expect(await read(orgId)).toMatchObject({ name: "Closed", restorable_until: null });
    expect((await restore(orgId)).status).toBe(409);
    expect((await chat(key)).status).toBe(401);
    expect((await objectsOf(env).wallet(orgId).listEndUsers(10, 0)).ok).toBe(true);
    expect(await objectsOf(env).wallet(orgId).listEndUsers(10, 0)).toMatchObject({
      value: { total: 0 },
    });
    await objectsOf(env).wallet(orgId).poke();
    expect(await rowsOf("end_users", orgId)).toBe("[]");
    const query = { fromMs: 0, beforeMs: Date.now() + 1000, keyIds: null, by: "user" } as const;
    const only = { model: null, provider: null, user: null };
    const failures = await objectsOf(env)
      .wallet(orgId)
      .keptFailures({ ...query, only });
    expect(JSON.stringify(failures)).not.toContain(name);
    expect(await events()).not.toContain(name);
    expect(await events()).toContain("key.created");
    await sweep(); // a repeat changes nothing
    expect(await read(orgId)).toMatchObject({ name: "Closed" });
  });

  it("continues to erase data in the next sweep if the wallet fails", async () => {
    const { account } = await withUsers(1);
    await close(account.orgId);
    skipPauses();
    const WALLET = { getByName: () => ({ poke: () => Promise.reject(new Error("down")) }) };
    await env.DB.prepare("UPDATE closed_organizations SET restorable_until = closed_at").run();
    await runHourlyJobs({ ...env, WALLET } as unknown as Env);
    expect(await read(account.orgId)).toMatchObject({ restorable_until: expect.any(String) });
    expect((await restore(account.orgId)).status).toBe(409);
    await sweep();
    expect(await read(account.orgId)).toMatchObject({ restorable_until: null });
  });
});

describe("a failed request's record that is stored after the request's end user was deleted", () => {
  it("omits the end user's name", async () => {
    const { orgId, key, keyId } = await openAccount();
    const name = `user-${crypto.randomUUID()}`;
    await send("/v1/users", { key, body: { external_id: name } });
    await send(`/v1/users/${name}`, { method: "DELETE", key });
    const wallet = objectsOf(env).wallet(orgId);
    const [id, at] = [mintId("req_", Date.now()), Date.now()];
    const request = { id, at, keyId, externalId: name, model: null, askedModel: null };
    const error = { code: "model_not_found", status: 404, message: "no" };
    const batch = { requests: [{ ...request, error, attempts: [] }], counts: [] };
    await wallet.noteFailed(batch as unknown as Parameters<typeof wallet.noteFailed>[0]);
    const query = { fromMs: 0, beforeMs: at + 1000, keyIds: null, by: "user" } as const;
    const only = { model: null, provider: null, user: null };
    const found = await wallet.keptFailures({ ...query, only });
    expect(JSON.stringify(found)).toContain(id);
    expect(JSON.stringify(found)).not.toContain(name);
  });
});
