import { beforeEach, describe, expect, it } from "vitest";
import { env } from "cloudflare:workers";
import { parseConfig } from "../../src/shared/config/config.ts";
import { ANYBODY, Entra, GitHub, loginsOf, startGoogle } from "./other-issuers.ts";
import { Browser, inviteTo, PEOPLE_VARS, signUp, startIssuer } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

const IN = "/console/#/";
const TENANT = "11111111-1111-1111-1111-111111111111";
const OTHER = "22222222-2222-2222-2222-222222222222";
const oid = () => crypto.randomUUID();
const PRIVATE = "9188040d-6c67-4c5b-b112-36a304b66dad";
const account = () => {
  const one = issuer.newAccount();
  return one;
};
const issuerOf = (tid: string) => `https://login.microsoftonline.com/${tid}/v2.0`;
const operatorAt = (subject: string) => ({
  OPERATOR_LOGINS: JSON.stringify([{ name: "olga", role: "all", issuer: "work", subject }]),
});

const personOf = async (browser: Browser) => (await browser.session())?.person.id ?? null;

describe("Google as an identity provider", () => {
  const bindings = loginsOf({ id: "google", kind: "google" });
  const options = { issuer: "google", purpose: "sign_up" };

  it("gets requests for the login time and an account choice, with an S256 code challenge", async () => {
    startGoogle(issuer);
    const { searchParams } = await new Browser(bindings).start(options);
    expect(Object.fromEntries(searchParams)).toMatchObject({
      response_type: "code",
      response_mode: "query",
      scope: "openid email profile",
      prompt: "select_account",
      code_challenge_method: "S256",
      claims: '{"id_token":{"auth_time":{"essential":true}}}',
      redirect_uri: "https://eu.test/console/api/login/callback/google",
    });
    for (const name of ["state", "nonce", "code_challenge"]) {
      expect(searchParams.get(name)).toMatch(/^[\w-]{43}$/);
    }
  });

  it("confirms only addresses of Gmail and of managed domains", async () => {
    const google = startGoogle(issuer);
    const cases = [
      [{ email: "x@gmail.com" }, IN],
      [{ email: "x@acme.test", hd: "acme.test" }, IN],
      [{ email: "x@acme.test" }, "/console/#/login?why=unproven"],
      [{ email: "x@gmail.com.acme.test" }, "/console/#/login?why=unproven"],
      [{ email: "x@gmail.com", email_verified: "false" }, "/console/#/login?why=unproven"],
      [{ email: "x@gmail.com", email_verified: 1 }, "/console/#/login?why=unproven"],
      [{ email: "y@gmail.com", email_verified: "true" }, IN],
      [{ email: "z@gmail.com", hd: null }, IN],
    ] as const;
    for (const [claims, end] of cases) {
      google.bend = { claims: (plain) => ({ ...plain, ...claims }) };
      const known = issuer.newAccount();
      expect([claims, await new Browser(bindings).logIn(known, options)]).toEqual([claims, end]);
    }
  });
});

describe("Microsoft Entra as an identity provider", () => {
  const bindings = loginsOf({ id: "work", kind: "entra", issuer: "organizations" });
  const options = { issuer: "work", purpose: "sign_up" };

  it("identifies people by the claims tid and oid instead of sub", async () => {
    const entra = new Entra(issuer);
    const who = oid();
    const ann = account();
    entra.claims = { tid: TENANT, oid: who, xms_edov: true };
    const browser = new Browser(bindings);
    expect(await browser.logIn(ann, options)).toBe(IN);
    entra.claims = { tid: TENANT, oid: who, sub: "another", xms_edov: "1" };
    const again = new Browser(bindings);
    expect(await again.logIn(account(), { ...options, purpose: "log_in" })).toBe(IN);
    expect(await personOf(again)).toBe(await personOf(browser));
    entra.claims = { tid: OTHER, oid: who, sub: ann.id, email: ann.email, xms_edov: true };
    const thief = new Browser(bindings);
    expect(await thief.logIn(ann, { ...options, purpose: "log_in" })).toMatch(/why=unknown(?:&|$)/);
    expect(await thief.session()).toBeNull();
  });

  it("doesn't confirm an unverified address for a sign-up or invitation (nOAuth)", async () => {
    const entra = new Entra(issuer);
    const { browser, account: victim } = await signUp(issuer);
    const invitation = await inviteTo(browser, { role: "admin", email: "boss@acme.test" });
    for (const proof of [undefined, false, 0, "0", "no"]) {
      entra.claims = { tid: OTHER, oid: oid(), email: "boss@acme.test", xms_edov: proof };
      const thief = new Browser(bindings);
      const end = await thief.logIn(account(), { ...options, purpose: "accept", invitation });
      expect([proof, end]).toEqual([proof, "/console/#/login?why=other_address"]);
      expect(await thief.logIn(account(), options)).toMatch(/why=unproven$/);
    }
    entra.claims = { tid: OTHER, oid: oid(), email: victim.email, xms_edov: true };
    const other = new Browser(bindings);
    expect(await other.logIn(account(), { ...options, purpose: "log_in" })).toMatch(
      /why=unknown(?:&|$)/,
    );
  });

  it("rejects a token from another tenant, without a tenant, or signed with the keys for private accounts", async () => {
    const entra = new Entra(issuer);
    const good = { tid: TENANT, oid: oid(), xms_edov: true };
    const broken = [
      { ...good, iss: issuerOf(OTHER) },
      { ...good, tid: "../evil", iss: issuerOf(TENANT) },
      { ...good, tid: undefined, iss: issuerOf(TENANT) },
      { ...good, iss: "https://evil.test/v2.0" },
      { ...good, oid: "admin" },
      { ...good, tid: PRIVATE, iss: issuerOf(PRIVATE) },
    ];
    for (const claims of broken) {
      entra.claims = claims;
      const end = await new Browser(bindings).logIn(account(), options);
      expect([claims, end]).toEqual([claims, "/console/#/login?why=refused"]);
    }
    entra.claims = good;
    entra.keyIssuer = issuerOf(PRIVATE);
    // No isolate has cached these keys.
    const fresh = { ...bindings, LOCAL_SECRET: "client.secret" };
    expect(await new Browser(fresh).logIn(account(), options)).toMatch(/why=refused$/);
  });

  it("identifies an operator only together with the operator's tenant", async () => {
    const entra = new Entra(issuer);
    const who = oid();
    const parsed = parseConfig({ ...env, ...PEOPLE_VARS, ...bindings, ...operatorAt(who) });
    expect(parsed.ok ? [] : parsed.problems.map(({ variable }) => variable)).toEqual([
      "OPERATOR_LOGINS",
    ]);
    const olga = { ...bindings, ...operatorAt(`${TENANT}/${who}`) };
    entra.claims = { tid: OTHER, oid: who, xms_edov: true };
    const thief = new Browser(olga);
    expect(await thief.logIn(account(), { ...options, purpose: "log_in" })).toMatch(
      /why=unknown(?:&|$)/,
    );
    entra.claims = { tid: TENANT, oid: who };
    const browser = new Browser(olga);
    expect(await browser.logIn(account(), { ...options, purpose: "log_in" })).toBe(IN);
    expect(await browser.session()).toMatchObject({ kind: "operator", operator: "all" });
  });
});

describe("GitHub as an identity provider", () => {
  const gift = { SIGN_UP_CREDIT_MICRO: "500000", SIGN_UP_CREDITS_A_DAY_MICRO: "1000000000000" };
  const bindings = { ...loginsOf({ id: "github", kind: "github" }), ...gift };
  const options = { issuer: "github", purpose: "sign_up" };
  const logIn = (browser: Browser, fields: object = options) =>
    browser.logIn(ANYBODY, { ...options, ...fields });
  let nth = 1000;

  it("identifies people by account number instead of name", async () => {
    const github = new GitHub(issuer);
    github.account = { ...github.account, id: nth++ };
    const browser = new Browser(bindings);
    expect(await logIn(browser)).toBe(IN);
    github.account = { ...github.account, login: "renamed", name: "Renamed" };
    const again = new Browser(bindings);
    expect(await logIn(again, { purpose: "log_in" })).toBe(IN);
    expect(await personOf(again)).toBe(await personOf(browser));
    // Another account has taken over the name.
    github.account = { ...github.account, id: nth++, login: "octocat" };
    expect(await logIn(new Browser(bindings), { purpose: "log_in" })).toMatch(/why=unknown(?:&|$)/);
  });

  it("fails a login if the response names another issuer, but not if the response names none", async () => {
    const github = new GitHub(issuer);
    for (const iss of ["https://github.com", "https://evil.test", null]) {
      github.account = { ...github.account, id: nth++ };
      github.iss = iss;
      const end = await logIn(new Browser(bindings));
      expect([iss, end]).toEqual([iss, iss === null ? IN : "/console/#/login?why=refused"]);
    }
  });

  it("returns the error 'expired' for an expired code, and 'unreachable' for an HTML response", async () => {
    const github = new GitHub(issuer);
    const browser = new Browser(bindings);
    const back = await browser.click(await browser.start(options), ANYBODY);
    back.searchParams.set("code", "used");
    expect(await browser.land(back)).toMatch(/why=expired$/);
    const other = new Browser(bindings);
    const late = await other.click(await other.start(options), ANYBODY);
    github.isAway = true;
    expect(await other.land(late)).toMatch(/why=issuer_unreachable$/);
  });

  it("confirms all verified addresses, each of which can accept an invitation", async () => {
    const github = new GitHub(issuer);
    github.account = { ...github.account, id: nth++ };
    github.emails = [
      { email: "boss@acme.test", primary: true, verified: false },
      { email: "own@acme.test", primary: false, verified: true },
    ];
    const { browser } = await signUp(issuer);
    const wrong = await inviteTo(browser, { role: "admin", email: "boss@acme.test" });
    expect(await logIn(new Browser(bindings), { purpose: "accept", invitation: wrong })).toMatch(
      /why=other_address$/,
    );
    const right = await inviteTo(browser, { role: "admin", email: "own@acme.test" });
    expect(await logIn(new Browser(bindings), { purpose: "accept", invitation: right })).toBe(IN);
  });

  it("gives no sign-up credit to an account younger than 30 days", async () => {
    const github = new GitHub(issuer);
    const credits: number[] = [];
    for (const days of [29, 31]) {
      const createdAt = new Date(Date.now() - days * 86_400_000).toISOString();
      github.account = { ...github.account, id: nth++, created_at: createdAt };
      const browser = new Browser(bindings);
      expect(await logIn(browser)).toBe(IN);
      const read = await browser.ask("GET", "/console/api/v1/balance");
      credits.push((await read.json<{ credits_micro: number }>()).credits_micro);
    }
    expect(credits).toEqual([0, 500_000]);
  });
});
