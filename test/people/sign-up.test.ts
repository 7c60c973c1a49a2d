import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import {
  Browser,
  ISSUER,
  inviteTo,
  signUp,
  newAccount,
  startIssuer,
  inviteAndJoin,
} from "./people-client.ts";
import { admin, chat } from "../contract/client.ts";
import { personConsoleAccountName } from "../../src/accounts/people/removal.ts";
import type { PersonSession } from "../../src/shared/contracts/console-session.ts";
import { eraseStalePeople } from "../../src/accounts/people/erasure.store.ts";

let issuer: ReturnType<typeof startIssuer>;

beforeEach(() => {
  issuer = startIssuer();
});

const slots = async (): Promise<number | undefined> =>
  (await env.DB.prepare("SELECT count(*) AS n FROM sign_ups").first<{ n: number }>())?.n;

describe("a sign-up", () => {
  it("creates a person and a personal organization, whose owner can create a key and pay", async () => {
    const { browser, account, view } = await signUp(issuer);
    expect(view).toMatchObject({
      kind: "person",
      role: "owner",
      person: { name: account.name, email: account.email },
      organization: { is_personal: true },
    });
    const created = await browser.ask("POST", "/console/api/v1/keys", { name: "first" });
    expect(created.status).toBe(201);
    const listed = await browser.ask("GET", "/console/api/v1/keys");
    const { keys } = await listed.json<{ keys: { name: string }[] }>();
    expect(keys.map(({ name }) => name)).toEqual(["first"]);
  });

  it("fails at an identity's fourth attempt in a day, without affecting other identities", async () => {
    const bindings = { SIGN_UPS_AN_HOUR: "100000" };
    const account = issuer.newAccount();
    for (let time = 0; time < 3; time++) {
      const browser = new Browser(bindings);
      expect(await browser.logIn(account, { purpose: "sign_up" })).toBe("/console/#/");
      expect((await browser.people("DELETE", "/me")).status).toBe(200);
    }
    const before = await slots();
    const refused = await new Browser(bindings).logIn(account, { purpose: "sign_up" });
    expect(refused).toContain("why=too_many");
    expect(await slots()).toBe(before);
    await signUp(issuer, newAccount(), bindings);
  });

  it("allows the new person to invite a second person as a member", async () => {
    const { browser, view } = await signUp(issuer);
    const ben = issuer.newAccount();
    const invitation = await inviteTo(browser, { role: "member", email: ben.email });
    const other = new Browser();
    expect(await other.logIn(ben, { purpose: "accept", invitation })).toBe("/console/#/");
    expect(await other.session()).toMatchObject({
      role: "member",
      organization: { id: view.organization.id },
    });
  });
});

async function mintToken(browser: Browser): Promise<string> {
  const response = await browser.ask("POST", "/console/api/v1/sessions", { expires_in: 3600 });
  return (await response.json<{ token: string }>()).token;
}

async function fund(orgId: string): Promise<void> {
  const credit = { amount_micro: 1_000_000, reference: crypto.randomUUID() };
  expect((await admin("POST", `/orgs/${orgId}/credits`, credit)).status).toBe(200);
}

it('the button "Log out everywhere" ends all session tokens of the console, and a later login creates new tokens', async () => {
  const { browser, account, view } = await signUp(issuer);
  await fund(view.organization.id);
  const token = await mintToken(browser);
  expect((await chat(token)).status).toBe(200);
  expect((await browser.people("POST", "/me/log-out", {})).status).toBe(200);
  expect((await chat(token)).status).toBe(401);
  expect(await browser.logIn(account)).toBe("/console/#/");
  expect((await chat(await mintToken(browser))).status).toBe(200);
});

const HOUR_MS = 3_600_000;

it("a login through a company's identity provider doesn't end the person's other sessions", async () => {
  const personId = `per_${crypto.randomUUID()}`;
  const session = (realm?: string): PersonSession => ({
    kind: "person",
    personId,
    memberId: null,
    orgId: null,
    issuer: "local",
    ...(realm !== undefined && { realm }),
    openedAt: Date.now(),
    freshAt: Date.now(),
    freshBy: "exchange",
    browser: "Firefox",
  });
  const objectOf = (realm?: string) =>
    env.CONSOLE_SESSION.getByName(personConsoleAccountName(personId, realm));
  const expiresAt = Date.now() + HOUR_MS;
  const own = objectOf();
  expect(await own.open("own", session(), expiresAt)).toMatchObject({ ok: true });
  const realm = crypto.randomUUID();
  for (let count = 0; count < 25; count++) {
    await objectOf(realm).open(`company ${count}`, session(realm), expiresAt);
  }
  expect(await own.enter("own", true)).toMatchObject({ ok: true });
  expect(await own.open("another", session(), expiresAt)).toMatchObject({ ok: true });
});

const DAY = 86_400_000;

const swept = (days: number): Promise<void> => eraseStalePeople(env.DB, Date.now() + days * DAY);

/** Reports whether any table about people contains the text. */
async function isKnown(text: string): Promise<boolean> {
  const tables = ["people", "identities", "invitations", "members", "member_people"];
  const reads = tables.map((name) => env.DB.prepare(`SELECT * FROM ${name}`));
  const rows = (await env.DB.batch(reads)).map(({ results }) => results);
  return JSON.stringify(rows).includes(text);
}

describe("POST /me/unlink", () => {
  it("rejects a person's only login with 409, and removes one of two logins", async () => {
    const { browser, account } = await signUp(issuer);
    const unlink = ({ id }: { readonly id: string }) =>
      browser.people("POST", "/me/unlink", { issuer: ISSUER, subject: id });
    expect((await unlink(account)).status).toBe(409);
    const second = issuer.newAccount();
    await browser.logIn(second, { purpose: "link" });
    expect((await unlink(account)).status).toBe(200);
    await browser.logIn(second);
    expect((await browser.session())?.kind).toBe("person");
    expect((await unlink(second)).status).toBe(409);
  });
});

describe("the hourly sweep of personal data", () => {
  it("erases an invitation's address 30 days after the invitation ends, but keeps the address while the invitation is open", async () => {
    const ann = await signUp(issuer);
    const [accepted, ended, over] = [newAccount(), newAccount(), newAccount()];
    issuer.accounts.push(accepted);
    const invitation = await inviteTo(ann.browser, { role: "member", email: accepted.email });
    await new Browser().logIn(accepted, { purpose: "accept", invitation });
    await inviteTo(ann.browser, { role: "member", email: ended.email });
    const read = await ann.browser.people("GET", "/invitations");
    const { invitations } = await read.json<{ invitations: { id: string }[] }>();
    await ann.browser.people("DELETE", `/invitations/${invitations[0]?.id ?? ""}`);
    await inviteTo(ann.browser, { role: "member", email: over.email }); // kept for seven days
    const kept = async (): Promise<readonly boolean[]> => {
      const addresses = [accepted, ended, over].map(({ email }) => isInvited(email));
      return Promise.all(addresses);
    };
    await swept(29);
    expect(await kept()).toEqual([true, true, true]);
    await swept(31);
    expect(await kept()).toEqual([false, false, true]);
    await swept(38);
    expect(await kept()).toEqual([false, false, false]);
  });

  it("erases exactly the people without an organization who haven't logged in for 90 days", async () => {
    const ann = await signUp(issuer);
    const ben = await inviteAndJoin(issuer, ann.browser, "member");
    await ann.browser.people("DELETE", `/members/${ben.view.member.id}`);
    await swept(89);
    expect(await isKnown(ben.account.id)).toBe(true);
    await swept(91);
    await swept(98); // the invitation that he used was deleted earlier, 30 days after its end
    for (const gone of [ben.account.id, ben.account.name, ben.account.email]) {
      expect([gone, await isKnown(gone)]).toEqual([gone, false]);
    }
    for (const stays of [ann.account.id, ann.account.name, ann.account.email]) {
      expect([stays, await isKnown(stays)]).toEqual([stays, true]);
    }
    expect(await ben.browser.session()).toBeNull();
    expect(await new Browser().logIn(ben.account)).toMatch(/why=unknown(?:&|$)/);
    expect((await ann.browser.session())?.person.id).toBe(ann.view.person.id);
  });
});

async function isInvited(email: string): Promise<boolean> {
  const row = await env.DB.prepare("SELECT 1 FROM invitations WHERE email = ?").bind(email).first();
  return row !== null;
}
