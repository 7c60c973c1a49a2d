import { beforeEach, describe, expect, it, vi } from "vitest";
import { objectsWithout } from "../contract/client.ts";
import { Browser, inviteTo, signUp, newAccount, startIssuer } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
const log: string[] = [];
beforeEach(() => {
  log.length = 0;
  for (const method of ["log", "warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation((...words) => void log.push(words.join(" ")));
  }
  issuer = startIssuer();
});

const code = async (response: Response): Promise<readonly [number, string]> => {
  const { error } = await response.json<{ error: { code: string | null; type: string } }>();
  return [response.status, error.code ?? error.type];
};
const balance = async (browser: Browser): Promise<number> => {
  const read = await browser.ask("GET", "/console/api/v1/balance");
  return (await read.json<{ credits_micro: number }>()).credits_micro;
};
const TEN_MINUTES = { CLOCK_OFFSET_MS: "660000" };

describe("a login to the console", () => {
  it("completes only in the browser that started the login, and only with an unused, unchanged callback", async () => {
    const ann = issuer.newAccount();
    const mine = new Browser();
    const back = await mine.click(await mine.start({ purpose: "sign_up" }), ann);
    const victim = new Browser();
    expect(await victim.land(back)).toMatch(/why=expired$/);
    await victim.start();
    expect(await victim.land(back)).toMatch(/why=refused$/); // another state
    const twice = new URL(back);
    twice.searchParams.append("code", "another");
    expect(await mine.land(twice)).toMatch(/why=refused$/);
    expect(await mine.land(back)).toMatch(/why=expired$/); // the first attempt used up the cookie
    expect([await victim.session(), await mine.session()]).toEqual([null, null]);
  });

  it("redirects only to console pages", async () => {
    const browser = new Browser();
    for (const go of ["https://evil.test", "//evil.test", "#/\\evil", "javascript:x", "/v1/keys"]) {
      const body = { issuer: "local", purpose: "log_in", go };
      expect((await browser.ask("POST", "/console/api/login/start", body)).status).toBe(400);
    }
  });

  it("starts only from the console's page, with a body of at most 2 KiB", async () => {
    const browser = new Browser();
    const body = { issuer: "local", purpose: "log_in" };
    const foreign = { origin: "https://evil.test" };
    const response = await browser.ask("POST", "/console/api/login/start", body, foreign);
    expect(response.status).toBe(403);
    const long = await browser.ask("POST", "/console/api/login/start", {
      ...body,
      go: "x".repeat(3000),
    });
    expect(long.status).toBe(413);
  });

  it("fails if the person takes more than ten minutes to log in", async () => {
    const ann = issuer.newAccount();
    const browser = new Browser();
    const back = await browser.click(await browser.start({ purpose: "sign_up" }), ann);
    const later = Object.assign(new Browser(TEN_MINUTES), { address: browser.address });
    for (const [name, value] of browser.cookies) later.cookies.set(name, value);
    expect(await later.land(back)).toMatch(/why=expired$/);
  });

  it("creates a new cookie and ends the previous session", async () => {
    const { browser, account } = await signUp(issuer);
    const before = browser.cookies.get("__Host-turnpike-eu");
    await browser.logIn(account);
    expect(browser.cookies.get("__Host-turnpike-eu")).not.toBe(before);
    const old = new Browser();
    old.cookies.set("__Host-turnpike-eu", before ?? "");
    await vi.waitFor(async () => expect(await old.session()).toBeNull());
  });

  it("can't be completed in another region, even if the cookie is renamed", async () => {
    const { browser } = await signUp(issuer);
    const other = new Browser();
    other.cookies.set("__Host-turnpike-us", browser.cookies.get("__Host-turnpike-eu") ?? "");
    expect(await other.session()).toBeNull();
  });

  it("logs no email address, subject, code, state or token", async () => {
    const ann = issuer.newAccount();
    const browser = new Browser({ LOG_REQUESTS: "all" });
    const start = await browser.start({ purpose: "sign_up" });
    const back = await browser.click(start, ann);
    await browser.land(back);
    const logs = log.join("\n");
    const state = start.searchParams.get("state") ?? "?";
    for (const secret of [ann.email, ann.id, state, back.searchParams.get("code") ?? "?"]) {
      expect(logs).not.toContain(secret);
    }
  });
});

describe("an email address without a verified identity", () => {
  it("never identifies a person, so that two people with the same address stay separate", async () => {
    const { account, view } = await signUp(issuer);
    const thief = issuer.newAccount({ email: account.email });
    const browser = new Browser();
    expect(await browser.logIn(thief)).toMatch(/why=unknown(?:&|$)/);
    await browser.logIn(thief, { purpose: "sign_up" });
    expect((await browser.session())?.organization.id).not.toBe(view.organization.id);
  });

  it("allows no sign-up and no accepted invitation unless the identity provider confirms the address", async () => {
    const { browser } = await signUp(issuer);
    const ben = issuer.newAccount({ isVerified: false });
    const invitation = await inviteTo(browser, { role: "admin", email: ben.email });
    const other = new Browser();
    expect(await other.logIn(ben, { purpose: "sign_up" })).toMatch(/why=unproven$/);
    expect(await other.logIn(ben, { purpose: "accept", invitation })).toMatch(/why=other_address$/);
    expect(await other.session()).toBeNull();
  });
});

describe("an invitation", () => {
  it("adds no member if forwarded, forged, revoked, used or expired", async () => {
    const { browser } = await signUp(issuer);
    const [ben, eve] = [newAccount(), newAccount()];
    issuer.accounts.push(ben, eve);
    const invitation = await inviteTo(browser, { role: "member", email: ben.email });
    const thief = new Browser();
    expect(await thief.logIn(eve, { purpose: "accept", invitation })).toMatch(/why=other_address$/);
    const forged = invitation.slice(0, -1) + (invitation.endsWith("A") ? "B" : "A");
    expect(await thief.logIn(ben, { purpose: "accept", invitation: forged })).toMatch(
      /why=not_found$/,
    );
    const listed = await browser.people("GET", "/invitations");
    const { invitations } = await listed.json<{ invitations: { id: string }[] }>();
    const ended = await browser.people("DELETE", `/invitations/${invitations[0]?.id ?? ""}`);
    expect(ended.status).toBe(200);
    expect(await thief.logIn(ben, { purpose: "accept", invitation })).toMatch(
      /why=invitation_over$/,
    );
    expect(await thief.session()).toBeNull();
  });

  it("requires a member or an email address, and can't grant a higher role than the inviter's", async () => {
    const { browser } = await signUp(issuer);
    await browser.people("POST", "/organization/team");
    expect((await browser.people("POST", "/invitations", { role: "admin" })).status).toBe(400);
    const ben = issuer.newAccount();
    const invitation = await inviteTo(browser, { role: "admin", email: ben.email });
    const admin = new Browser();
    await admin.logIn(ben, { purpose: "accept", invitation });
    const body = { role: "owner", email: "x@example.test" };
    expect(await code(await admin.people("POST", "/invitations", body))).toEqual([
      403,
      "role_required",
    ]);
    const view = await admin.session();
    const path = `/members/${view?.member.id ?? ""}`;
    expect(await code(await admin.people("PATCH", path, { role: "owner" }))).toEqual([
      403,
      "role_required",
    ]);
  });
});

describe("a stolen session", () => {
  it("gets 409 other_organization if the page shows a different organization", async () => {
    const { browser } = await signUp(issuer);
    const shown = { "x-organization": crypto.randomUUID() };
    const response = await browser.ask("GET", "/console/api/v1/keys", undefined, shown);
    expect(await code(response)).toEqual([409, "other_organization"]);
  });

  it("ends when the person logs out everywhere", async () => {
    const { browser, account } = await signUp(issuer);
    const other = new Browser();
    await other.logIn(account);
    expect((await browser.people("POST", "/me/log-out")).status).toBe(200);
    expect([await browser.session(), await other.session()]).toEqual([null, null]);
  });
});

describe("linking an identity to a person", () => {
  it("fails if the identity belongs to another person, and merges no accounts", async () => {
    const [one, two] = [await signUp(issuer), await signUp(issuer)];
    expect(await one.browser.logIn(two.account, { purpose: "link" })).toMatch(/why=other_person$/);
    const free = issuer.newAccount();
    expect(await one.browser.logIn(free, { purpose: "link" })).toBe("/console/#/");
    const again = new Browser();
    await again.logIn(free);
    expect((await again.session())?.person.id).toBe(one.view.person.id);
  });
});

describe("a sign-up", () => {
  it("fails above the network's daily limit or if sign-up is off, and may require an operator's approval", async () => {
    const crowd = Array.from({ length: 4 }, () => newAccount());
    issuer.accounts.push(...crowd);
    const bindings = { SIGN_UPS_A_DAY_AN_ADDRESS: "3" };
    const ends: string[] = [];
    for (const one of crowd) {
      const browser = Object.assign(new Browser(bindings), { address: "2001:db8:1:2::1" });
      ends.push(await browser.logIn(one, { purpose: "sign_up" }));
    }
    expect(ends.map((end) => end.replace("/console/", ""))).toEqual([
      "#/",
      "#/",
      "#/",
      "#/login?why=too_many",
    ]);
    const off = issuer.newAccount();
    expect(await new Browser({ SIGN_UP: "off" }).logIn(off, { purpose: "sign_up" })).toMatch(
      /why=unknown(?:&|$)/,
    );
    const { browser } = await signUp(issuer, newAccount(), { SIGN_UP: "approve" });
    const key = await browser.ask("POST", "/console/api/v1/keys", { name: "early" });
    expect(await code(key)).toEqual([403, "organization_suspended"]);
  });

  it("leaves no active wallet if approval is required and the wallet can't be suspended", async () => {
    const account = issuer.newAccount();
    const bindings = { SIGN_UP: "approve" };
    const failing = new Browser({ ...objectsWithout("WALLET", "configure"), ...bindings });
    await failing.logIn(account, { purpose: "sign_up" }).catch(() => undefined);
    const browser = new Browser(bindings);
    await browser.logIn(account, { purpose: "sign_up" });
    const body = { model: "sandbox/echo", messages: [{ role: "user", content: "Hello" }] };
    const paid = await browser.ask("POST", "/console/api/v1/chat/completions", body);
    expect(await code(paid)).toEqual([403, "organization_suspended"]);
  });

  it("adds credits once per identity, within a daily budget", async () => {
    const gift = { SIGN_UP_CREDIT_MICRO: "500000", SIGN_UP_CREDITS_A_DAY_MICRO: "1000000000000" };
    const { browser, account } = await signUp(issuer, newAccount(), gift);
    expect(await balance(browser)).toBe(500_000);
    expect((await browser.people("DELETE", "/me", { give_up_balance: true })).status).toBe(200);
    const again = new Browser(gift);
    expect(await again.logIn(account)).toMatch(/why=unknown(?:&|$)/);
    await again.logIn(account, { purpose: "sign_up" });
    expect(await balance(again)).toBe(0);
    const spent = { SIGN_UP_CREDIT_MICRO: "500000", SIGN_UP_CREDITS_A_DAY_MICRO: "499999" };
    expect(await balance((await signUp(issuer, newAccount(), spent)).browser)).toBe(0);
  });
});
