import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { admin, openAccount } from "../contract/client.ts";
import {
  Browser,
  codeOf,
  inviteTo,
  inviteAndJoin,
  signUp,
  newAccount,
  startIssuer,
  tokenOf,
} from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

const IN = "/console/#/";

async function operatorsLink(orgId: string, body: object): Promise<string> {
  const response = await admin("POST", `/orgs/${orgId}/invitations`, body);
  expect(response.status).toBe(201);
  return tokenOf((await response.json<{ link: string }>()).link);
}

async function membersOf(orgId: string): Promise<number> {
  const read = await env.DB.prepare(
    "SELECT count(*) AS n FROM members WHERE org_id = ? AND removed_at IS NULL",
  )
    .bind(orgId)
    .first<{ n: number }>();
  return read?.n ?? 0;
}

describe("an invitation", () => {
  it("adds only one member, even for 20 concurrent people or 20 clicks by one person", async () => {
    const { browser, view } = await signUp(issuer);
    const crowd = Array.from({ length: 20 }, () => newAccount());
    issuer.accounts.push(...crowd);
    const open = await inviteTo(browser, { role: "member" });
    const ends = await Promise.all(
      crowd.map((one) => new Browser().logIn(one, { purpose: "accept", invitation: open })),
    );
    expect(ends.filter((end) => end === IN)).toHaveLength(1);
    expect(new Set(ends)).toEqual(new Set([IN, "/console/#/login?why=invitation_over"]));
    expect(await membersOf(view.organization.id)).toBe(2);

    const ben = issuer.newAccount();
    const own = await inviteTo(browser, { role: "admin", email: ben.email.toUpperCase() });
    const clicks = Array.from({ length: 20 }, () =>
      new Browser().logIn(ben, { purpose: "accept", invitation: own }),
    );
    expect(new Set(await Promise.all(clicks))).toEqual(new Set([IN]));
    expect(await membersOf(view.organization.id)).toBe(3);
    const people = env.DB.prepare("SELECT count(*) AS n FROM identities WHERE subject = ?");
    expect((await people.bind(ben.id).first<{ n: number }>())?.n).toBe(1);
  });

  it("can't be reused by a removed member, who needs a newer invitation", async () => {
    const { browser, view } = await signUp(issuer);
    const ben = await inviteAndJoin(issuer, browser, "member");
    const second = await inviteTo(browser, { role: "admin", email: ben.account.email });
    const open = await inviteTo(browser, { role: "member" });
    const removed = await browser.people("DELETE", `/members/${ben.view.member.id}`);
    expect(removed.status).toBe(200);
    for (const invitation of [second, open]) {
      const end = await new Browser().logIn(ben.account, { purpose: "accept", invitation });
      expect(end).toMatch(/why=invitation_over$/);
    }
    expect(await membersOf(view.organization.id)).toBe(1);
    const again = await inviteTo(browser, { role: "admin", email: ben.account.email });
    expect(again).toBe(second); // a repeat returns the same link as a new invitation
    expect(await new Browser().logIn(ben.account, { purpose: "accept", invitation: again })).toBe(
      IN,
    );
  });

  it("fails for another address if the invitation connects a login to a member who has only keys", async () => {
    const { orgId, memberId } = await openAccount({ credits: 0 });
    const read = await admin("GET", `/orgs/${orgId}/members`);
    const { members } = await read.json<{ members: { email: string; role: string }[] }>();
    const invitation = await operatorsLink(orgId, { member_id: memberId });
    expect(await operatorsLink(orgId, { member_id: memberId })).toBe(invitation);
    const [eve, owner] = [newAccount(), newAccount({ email: members[0]?.email ?? "" })];
    issuer.accounts.push(eve, owner);
    const thief = new Browser();
    expect(await thief.logIn(eve, { purpose: "accept", invitation })).toMatch(/why=other_address$/);
    expect(await thief.session()).toBeNull();
    const browser = new Browser();
    expect(await browser.logIn(owner, { purpose: "accept", invitation })).toBe(IN);
    expect(await browser.session()).toMatchObject({ role: "owner", member: { id: memberId } });
  });

  it("can't connect a login with another address to a member", async () => {
    const { orgId, memberId } = await openAccount({ credits: 0 });
    const body = { member_id: memberId, email: "eve@example.com" };
    const answer = await admin("POST", `/orgs/${orgId}/invitations`, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({ error: { param: "email" } });
  });

  it("ends when the inviter loses the role, and can't be created for personal or closed organizations", async () => {
    const { browser, view } = await signUp(issuer);
    expect(await codeOf(await browser.people("POST", "/invitations", { role: "member" }))).toEqual([
      409,
      "personal_organization",
    ]);
    const ben = await inviteAndJoin(issuer, browser, "admin");
    const eve = issuer.newAccount();
    const created = await ben.browser.people("POST", "/invitations", {
      role: "admin",
      email: eve.email,
    });
    const invitation = tokenOf((await created.json<{ link: string }>()).link);
    const kept = await ben.browser.people("POST", "/invitations", { role: "member" });
    const { id: keptId } = await kept.json<{ id: string }>();
    const role = (name: string) =>
      browser.people("PATCH", `/members/${ben.view.member.id}`, { role: name });
    expect((await role("owner")).status).toBe(200);
    expect((await role("admin")).status).toBe(200); // the list still shows both
    const listed = async () => {
      const read = await browser.people("GET", "/invitations");
      return (await read.json<{ invitations: { id: string }[] }>()).invitations;
    };
    expect(await listed()).toHaveLength(2);
    expect((await role("billing")).status).toBe(200);
    expect(await listed()).toEqual([]);
    await vi.waitFor(async () => {
      const read = await admin("GET", `/orgs/${view.organization.id}/events?type=invitation.ended`);
      const { events } = await read.json<{ events: { subject: string }[] }>();
      expect(events.map(({ subject }) => subject)).toContain(keptId);
      expect(events).toHaveLength(2);
    });
    expect((await role("admin")).status).toBe(200); // an ended invitation stays ended
    const over = await new Browser().logIn(eve, { purpose: "accept", invitation });
    expect(over).toMatch(/why=invitation_over$/);
    expect((await browser.people("DELETE", "/organization")).status).toBe(200);
    const at = `/orgs/${view.organization.id}`;
    const closed = [409, "organization_closed"];
    const body = { email: "new@example.test", role: "member" };
    expect(await codeOf(await admin("POST", `${at}/invitations`, { role: "member" }))).toEqual(
      closed,
    );
    expect(await codeOf(await admin("POST", `${at}/members`, body))).toEqual(closed);
    const key = await admin("POST", `${at}/members/${view.member.id}/keys`, { name: "x" });
    expect(await codeOf(key)).toEqual(closed);
    expect(await codeOf(await admin("PATCH", at, { status: "active" }))).toEqual(closed);
    const credit = { amount_micro: 1, reference: crypto.randomUUID() };
    expect(await codeOf(await admin("POST", `${at}/credits`, credit))).toEqual(closed);
  });

  it("can't be created by an operator for a personal organization", async () => {
    const { view } = await signUp(issuer);
    const at = `/orgs/${view.organization.id}`;
    const personal = [409, "personal_organization"];
    const body = { email: "new@example.test", role: "member" };
    expect(await codeOf(await admin("POST", `${at}/invitations`, body))).toEqual(personal);
    expect(await codeOf(await admin("POST", `${at}/members`, body))).toEqual(personal);
    const ofMember = { member_id: view.member.id };
    expect(await codeOf(await admin("POST", `${at}/invitations`, ofMember))).toEqual([
      409,
      "has_log_in",
    ]);
  });

  it("returns 429 after the inviter's 20th invitation in an hour", async () => {
    const { browser } = await signUp(issuer);
    await browser.people("POST", "/organization/team");
    const responses = Array.from({ length: 25 }, (_, n) =>
      browser.people("POST", "/invitations", { role: "member", email: `p${n}@example.test` }),
    );
    const codes = await Promise.all((await Promise.all(responses)).map(codeOf));
    expect(codes.filter(([status]) => status === 201)).toHaveLength(20);
    expect(codes.filter(([, code]) => code === "too_many_invitations")).toHaveLength(5);
  });
});

describe("a person", () => {
  it("gets one personal organization, and can create only a limited number of organizations per day", async () => {
    const { browser, view } = await signUp(issuer, newAccount(), {
      SIGN_UPS_A_DAY_AN_ADDRESS: "6",
    });
    expect((await browser.people("DELETE", "/organization")).status).toBe(200);
    const gone = { organization_id: view.organization.id };
    expect((await browser.people("POST", "/me/act", gone)).status).toBe(401);
    const alone = new Browser({ SIGN_UPS_A_DAY_AN_ADDRESS: "6" });
    const account = issuer.accounts.at(-1) ?? newAccount();
    expect(await alone.logIn(account)).toBe(IN);
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, n) =>
        alone.people("POST", "/organizations", { name: `O ${n}` }),
      ),
    );
    const statuses = responses.map(({ status }) => status);
    expect(statuses.filter((status) => status === 201)).toHaveLength(6);
    expect(statuses.filter((status) => status === 403)).toHaveLength(4);
    const me = await alone.people("GET", "/me");
    const { organizations } = await me.json<{ organizations: { is_personal: boolean }[] }>();
    expect(organizations).toHaveLength(6);
    expect(organizations.filter((one) => one.is_personal)).toHaveLength(1);
  });
});
