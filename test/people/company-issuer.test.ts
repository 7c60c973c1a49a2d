import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { LocalIssuer } from "../fakes/local-issuer.ts";
import type { Account } from "../fakes/local-issuer.ts";
import { admin, send } from "../contract/client.ts";
import {
  Browser,
  codeOf,
  inviteAndJoin,
  signUp,
  newAccount,
  startIssuer,
} from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
let count = 0;
beforeEach(() => {
  issuer = startIssuer();
});

const IN = "/console/#/";
const UNKNOWN = /why=unknown(?:&|$)/;
const CLIENT = { id: "turnpike-at-acme", secret: "the secret of acme" };
const OPEN = { COMPANY_DOMAINS: "on" };

/** Starts a company's own identity provider. */
function startCompany(host = `login.acme${Date.now()}x${count++}.dev`) {
  const url = `https://${host}`;
  const accounts: Account[] = [];
  const own = new LocalIssuer(url, [CLIENT], { accounts });
  issuer.hosts.set(url, (request) => own.handle(request));
  return Object.assign(own, { url, accounts });
}

/** Logs in at the company's identity provider with a browser. First adds the account there. */
async function comes(
  at: ReturnType<typeof startCompany>,
  account: Account,
  options: Readonly<Record<string, unknown>>,
  browser = new Browser(OPEN),
) {
  if (!at.accounts.includes(account)) at.accounts.push(account);
  const end = await browser.logIn(account, { issuer: "company", ...options });
  return { browser, end };
}

const body = (url: string) => ({ issuer: url, client_id: CLIENT.id, client_secret: CLIENT.secret });

/** Creates Ann's team with a verified domain. */
async function team() {
  const ann = await signUp(issuer, newAccount(), OPEN);
  await ann.browser.people("POST", "/organization/team");
  const domain = `acme${Date.now()}x${count++}.example.com`;
  const orgId = ann.view.organization.id;
  await env.DB.prepare(
    "INSERT INTO company_domains (domain, org_id, nonce, created_at, proven_at) VALUES (?, ?, 'n', 1, 1)",
  )
    .bind(domain, orgId)
    .run();
  return { ...ann, domain, orgId };
}

/** Creates the same team with its own identity provider, which Ann has connected. */
async function company() {
  const ann = await team();
  const own = startCompany();
  expect(await codeOf(await ann.browser.people("POST", "/company/issuer", body(own.url)))).toEqual([
    201,
    "",
  ]);
  const inside = newAccount();
  const linked = await comes(own, inside, { purpose: "link" }, ann.browser);
  expect(linked.end).toBe(IN);
  return { ...ann, own, inside };
}

const requires = (browser: Browser): Promise<Response> =>
  browser.people("POST", "/company/issuer/require", { required: true });
const stateOf = async (browser: Browser): Promise<unknown> =>
  (await browser.people("GET", "/company/issuer")).json();

describe("a company's own identity provider", () => {
  it("can be added by an owner with a verified domain if the provider's address is public and responds", async () => {
    const ann = await signUp(issuer, newAccount(), OPEN);
    await ann.browser.people("POST", "/organization/team");
    const own = startCompany();
    const set = (url: string, browser = ann.browser) =>
      browser.people("POST", "/company/issuer", body(url));
    expect(await codeOf(await set(own.url))).toEqual([409, "no_proven_domain"]);
    const { browser, orgId } = await team();
    for (const url of [
      "http://login.acme.dev",
      "https://127.0.0.1",
      "https://issuer.internal",
      "https://accounts.google.com",
      "https://login.microsoftonline.com/common/v2.0",
      "https://gitlab.com",
      "https://api.login.yahoo.com",
      "https://www.linkedin.com/oauth",
      "https://id.twitch.tv/oauth2",
      "https://slack.com",
      "https://GitHub.com:443/login/oauth?x",
    ]) {
      expect([url, (await set(url, browser)).status]).toEqual([url, 400]);
    }
    expect((await set("https://nobody.acme.dev", browser)).status).toBe(503);
    const admins = await inviteAndJoin(issuer, browser, "admin");
    expect((await set(own.url, admins.browser)).status).toBe(403);
    expect((await set(own.url, browser)).status).toBe(201);
    expect(await stateOf(browser)).toMatchObject({
      callback: `https://eu.test/console/api/login/callback/${orgId}`,
      state: "draft",
      required: false,
    });
    const kept = await env.DB.prepare("SELECT * FROM company_issuers WHERE org_id = ?")
      .bind(orgId)
      .first();
    expect(JSON.stringify(kept)).not.toContain(CLIENT.secret);
  });

  it("gets no call if the provider's metadata contains a private address", async () => {
    const { browser } = await team();
    const own = startCompany();
    own.bend = {
      answer: async (path, answer) => {
        if (!path.includes("openid-configuration")) return answer;
        const metadata = await answer.json<object>();
        return Response.json({ ...metadata, token_endpoint: "https://127.0.0.1/token" });
      },
    };
    expect((await browser.people("POST", "/company/issuer", body(own.url))).status).toBe(503);
  });

  it("admits nobody as a draft, and the company's people once an owner connects the provider", async () => {
    const ann = await team();
    const own = startCompany();
    await ann.browser.people("POST", "/company/issuer", body(own.url));
    const ben = newAccount({ email: `ben@${ann.domain}` });
    const join = { purpose: "join", company: ann.domain };
    await expect(comes(own, ben, join)).rejects.toThrow("403"); // nobody started this connection
    expect((await comes(own, newAccount(), { purpose: "link" }, ann.browser)).end).toBe(IN);
    expect(await stateOf(ann.browser)).toMatchObject({ state: "on" });
    const came = await comes(own, ben, join);
    expect(came.end).toBe(IN);
    expect(await came.browser.session()).toMatchObject({
      role: "member",
      organization: { id: ann.orgId },
      member: { email: ben.email },
    });
    const byDomain = { purpose: "log_in", company: ann.domain };
    expect((await comes(own, ben, byDomain)).end).toBe(IN);
    const bySlug = { purpose: "log_in", company: ann.view.organization.slug };
    await expect(comes(own, ben, bySlug)).rejects.toThrow("403"); // anyone can choose a slug
    const stranger = await comes(own, newAccount(), byDomain);
    expect(stranger.end).toMatch(UNKNOWN); // joining requires a request
    await vi.waitFor(async () => {
      const read = await admin("GET", `/orgs/${ann.orgId}/events?type=organization.changed`);
      expect(await read.text()).toContain(own.url);
    });
  });
});

describe("a hostile company identity provider", () => {
  it("gives access only to the company's organization, never to other people's data or sessions", async () => {
    const ann = await company();
    // Ann acts in this organization now.
    await ann.browser.people("POST", "/organizations", { name: "Another" });
    const { browser, end } = await comes(ann.own, ann.inside, {
      purpose: "log_in",
      company: ann.domain,
    });
    expect(end).toBe(IN);
    expect(await browser.session()).toMatchObject({ organization: { id: ann.orgId } });
    const me = await browser.people("GET", "/me");
    const seen = await me.json<{
      organizations: { id: string }[];
      identities: object[];
      sessions: object[];
    }>();
    expect(seen.organizations.map(({ id }) => id)).toEqual([ann.orgId]);
    expect([seen.identities.length, seen.sessions.length]).toEqual([1, 1]);
    const other = (await ann.browser.session())?.organization.id ?? "";
    expect(other).not.toBe(ann.orgId);
    const own: readonly (readonly [string, string, object?])[] = [
      ["POST", "/me/act", { organization_id: other }],
      ["GET", "/me/export"],
      ["DELETE", "/me", {}],
      ["POST", "/me/log-out"],
      ["POST", "/me/unlink", { issuer: "https://issuer.test", subject: ann.account.id }],
      ["POST", "/organizations", { name: "Mine" }],
      ["POST", "/invitation/accept", { token: "x" }],
    ];
    for (const [method, path, requestBody] of own) {
      expect([path, (await browser.people(method, path, requestBody)).status]).toEqual([path, 403]);
    }
    for (const issuerId of ["local", "company"]) {
      const start = { issuer: issuerId, purpose: "link" };
      expect((await browser.ask("POST", "/console/api/login/start", start)).status).toBe(403);
    }
    const fresh = { issuer: "company", purpose: "step_up" };
    await ann.browser.people("POST", "/me/act", { organization_id: ann.orgId });
    expect((await ann.browser.ask("POST", "/console/api/login/start", fresh)).status).toBe(403);
  });

  it("can't confirm addresses, names or identities that belong to the operator's identity providers", async () => {
    const ann = await company();
    const mallory = newAccount({ id: ann.account.id, email: ann.account.email, name: "Mallory" });
    const options = { purpose: "join", company: ann.domain };
    // Ann's subject and address at another identity provider
    const came = await comes(ann.own, mallory, options);
    const view = await came.browser.session();
    expect(view?.person.id).not.toBe(ann.view.person.id);
    expect([view?.role, view?.person.email]).toEqual(["member", null]);
    ann.own.bend = { claims: (claims) => ({ ...claims, name: "Mallory", email: "m@evil.test" }) };
    await comes(ann.own, ann.inside, { purpose: "log_in", company: ann.domain });
    const { name, email } = (await ann.browser.session())?.person ?? {};
    expect([name, email]).toEqual([ann.account.name, ann.account.email]);
  });

  it("gives no access to a removed member, nor to anyone after the provider is replaced or removed", async () => {
    const ann = await company();
    const ben = newAccount();
    const join = { purpose: "join", company: ann.domain };
    const came = await comes(ann.own, ben, join);
    const memberId = (await came.browser.session())?.member.id ?? "";
    expect((await ann.browser.people("DELETE", `/members/${memberId}`)).status).toBe(200);
    expect(await came.browser.session()).toBeNull();
    expect((await comes(ann.own, ben, join)).end).toMatch(UNKNOWN);
    const inside = await comes(ann.own, ann.inside, { purpose: "log_in", company: ann.domain });
    const browser = new Browser(OPEN);
    const options = { issuer: "company", purpose: "log_in", company: ann.domain };
    const back = await browser.click(await browser.start(options), ann.inside);
    await ann.browser.people("POST", "/company/issuer", body(ann.own.url));
    // The login began at the previous provider.
    expect(await browser.land(back)).toMatch(/why=expired$/);
    expect(await inside.browser.session()).toBeNull();
    expect((await ann.browser.people("DELETE", "/company/issuer")).status).toBe(200);
    expect(await stateOf(ann.browser)).toMatchObject({ state: "none" });
  });
});

describe("the setting that requires members to log in through the company", () => {
  it("requires an owner with a company login, restricts only people, and can be disabled by operators", async () => {
    const ann = await company();
    const key = await ann.browser.ask("POST", "/console/api/v1/keys", { name: "machine" });
    const { key: machine } = await key.json<{ key: string }>();
    expect(await codeOf(await requires(ann.browser))).toEqual([409, "not_by_company"]);
    const options = { purpose: "log_in", company: ann.domain };
    const inside = await comes(ann.own, ann.inside, options);
    expect((await requires(inside.browser)).status).toBe(200);
    expect(await ann.browser.session()).toBeNull();
    expect(await ann.browser.logIn(ann.account)).toBe(IN);
    // logged in without an organization
    expect((await ann.browser.session())?.organization).toBeNull();
    const act = await ann.browser.people("POST", "/me/act", { organization_id: ann.orgId });
    expect(await codeOf(act)).toEqual([409, "company_log_in_required"]);
    expect(await inside.browser.session()).toMatchObject({ role: "owner" });
    expect((await send("/v1/balance", { key: machine })).status).toBe(200);
    const own = async (): Promise<unknown> =>
      (await admin("GET", `/orgs/${ann.orgId}/domains`)).json();
    expect(await own()).toMatchObject({ has_own_login: true });
    expect((await admin("DELETE", `/orgs/${ann.orgId}/company-issuer`)).status).toBe(200);
    expect(await own()).toMatchObject({ has_own_login: false });
    const again = await ann.browser.people("POST", "/me/act", { organization_id: ann.orgId });
    expect(again.status).toBe(200);
    expect(await inside.browser.session()).toBeNull();
  });

  it("lets only operators restore the closed organization", async () => {
    const ann = await company();
    const options = { purpose: "log_in", company: ann.domain };
    const inside = await comes(ann.own, ann.inside, options);
    expect((await requires(inside.browser)).status).toBe(200);
    expect((await inside.browser.people("DELETE", "/organization")).status).toBe(200);
    expect((await comes(ann.own, ann.inside, options)).end).toMatch(UNKNOWN);
    await ann.browser.logIn(ann.account);
    const me = await ann.browser.people("GET", "/me");
    expect(await me.json()).toMatchObject({ closed_organizations: [] });
    const restored = await ann.browser.people("POST", `/organizations/${ann.orgId}/restore`);
    expect(await codeOf(restored)).toEqual([409, "company_log_in_required"]);
    const closed = await (await admin("GET", `/orgs/${ann.orgId}`)).json();
    expect(closed).toMatchObject({ closed_at: expect.any(String) });
    expect((await admin("POST", `/orgs/${ann.orgId}/restore`)).status).toBe(200);
    expect((await comes(ann.own, ann.inside, options)).end).toBe(IN);
  });
});
