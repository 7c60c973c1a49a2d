import { env } from "cloudflare:workers";
import { beforeEach, describe, expect, it } from "vitest";
import { parseCompanyDomain, recheckCompanyDomains } from "../../src/accounts/people/company.ts";
import type { Mail } from "../../src/accounts/people/mail.ts";
import { admin } from "../contract/client.ts";
import { Entra, loginsOf, startGoogle } from "./other-issuers.ts";
import { Browser, codeOf, inviteTo, signUp, newAccount, startIssuer } from "./people-client.ts";
import type { Bindings } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
/** TXT records by name, as both resolvers return them. */
const texts = new Map<string, readonly string[]>();
type Resolver = (name: string) => Response;
beforeEach(() => {
  issuer = startIssuer();
  texts.clear();
  resolveBy("https://cloudflare-dns.com", quoted);
  resolveBy("https://dns.google", quoted);
});

function resolveBy(resolver: string, answer: Resolver): void {
  issuer.hosts.set(resolver, async (request) => {
    expect(request.headers.get("accept")).toBe("application/dns-json");
    return answer(new URL(request.url).searchParams.get("name") ?? "");
  });
}

const txtResponse = (name: string, data: readonly string[], more: object = {}): Response =>
  Response.json({
    Status: 0,
    TC: false,
    Answer: data.map((one) => ({ name: `${name}.`, type: 16, TTL: 60, data: one })),
    ...more,
  });
/** Returns each text as two strings, as resolvers return long ones. */
const quoted: Resolver = (name) =>
  txtResponse(
    name,
    (texts.get(name) ?? []).map((one) => `"${one.slice(0, 9)}" "${one.slice(9)}"`),
  );

const LOGINS = loginsOf(
  { id: "local", kind: "oidc", issuer: "https://issuer.test" },
  { id: "google", kind: "google" },
  { id: "work", kind: "entra", issuer: "organizations" },
);
const OPEN: Bindings = { ...LOGINS, COMPANY_DOMAINS: "on" };
const IN = "/console/#/";
const UNKNOWN = /why=unknown(?:&|$)/;
let count = 0;
const fresh = (): string => `acme${Date.now()}x${count++}.example.com`;
const domains = "/company/domains";

type Shown = {
  domain: string;
  record: { name: string; value: string };
  proven_at: string | null;
  joins_by: string[];
};

/** Creates a team that has added this domain. */
async function team(domain: string, bindings: Bindings = OPEN) {
  const ann = await signUp(issuer, newAccount({ email: `ann@${domain}` }), bindings);
  await ann.browser.people("POST", "/organization/team");
  const named = await ann.browser.people("POST", domains, { domain });
  expect(named.status).toBe(201);
  const { record } = await named.json<Shown>();
  return { ...ann, record, prove: () => ann.browser.people("POST", `${domains}/${domain}/prove`) };
}

/** Creates a team with a verified domain. */
async function company(domain: string, bindings: Bindings = OPEN) {
  const verified = await team(domain, bindings);
  texts.set(verified.record.name, [verified.record.value]);
  expect((await verified.prove()).status).toBe(200);
  return verified;
}

/** Logs a person in by Google with these claims, and joins. */
async function comes(
  domain: string,
  claims: Readonly<Record<string, unknown>>,
  bindings: Bindings = OPEN,
) {
  const google = startGoogle(issuer);
  google.bend = { claims: (plain) => ({ ...plain, ...claims }) };
  const account = issuer.newAccount();
  const browser = new Browser(bindings);
  const options = { issuer: "google", purpose: "join", company: domain };
  return { browser, account, end: await browser.logIn(account, options), google };
}

describe("a company's domain", () => {
  it("counts as verified only if both DNS resolvers return the exact record", async () => {
    const domain = fresh();
    const { record, prove } = await team(domain);
    const unproven = [409, "domain_not_proven"];
    expect(await codeOf(await prove())).toEqual(unproven);
    const broken: readonly Resolver[] = [
      (name) => txtResponse(name, [`"${record.value}x"`]),
      (name) => txtResponse(`sub.${name}`, [record.value]),
      (name) => txtResponse(name, [record.value], { TC: true }),
      (name) => txtResponse(name, [record.value], { Status: 2 }),
      (name) =>
        Response.json({ Status: 0, TC: false, Answer: [{ name, type: 5, data: record.value }] }),
      () => new Response("<html>", { status: 200 }),
      () => new Response("", { status: 500 }),
      () => Response.redirect("https://evil.test", 302),
    ];
    texts.set(record.name, [record.value]);
    for (const one of broken) {
      resolveBy("https://dns.google", one);
      expect(await codeOf(await prove())).toEqual(unproven);
    }
    resolveBy("https://dns.google", (name) => txtResponse(name, ["other", record.value])); // without quotes
    const proven = await prove();
    const shown = await proven.json<{ domains: Shown[] }>();
    expect(shown.domains[0]).toMatchObject({ domain, joins_by: ["google"] });
  });

  it("must be a full internet domain, but not a public mail domain", () => {
    for (const text of [
      "acme",
      "gmail.com",
      "Web.de.",
      "127.0.0.1",
      "a.local",
      "a b.com",
      "x.com/y",
      "ex.com:8",
      "",
    ]) {
      expect([text, "problem" in parseCompanyDomain(text)]).toEqual([text, true]);
    }
    expect(parseCompanyDomain(" ACME.Example.org. ")).toEqual({ domain: "acme.example.org" });
  });

  it("belongs to one organization until its DNS record has been missing for a week", async () => {
    const domain = fresh();
    const first = await company(domain);
    const second = await team(domain);
    texts.set(second.record.name, [first.record.value, second.record.value]);
    expect(await codeOf(await second.prove())).toEqual([409, "domain_taken"]);
    texts.set(second.record.name, [second.record.value]);
    await recheckCompanyDomains(env.DB, Date.now() + 1.1 * 86_400_000);
    expect(await codeOf(await second.prove())).toEqual([409, "domain_taken"]);
    await env.DB.prepare("UPDATE company_domains SET failed_since = 1 WHERE domain = ?")
      .bind(domain)
      .run();
    expect((await comes(domain, { hd: domain })).end).toMatch(UNKNOWN); // of the first organization
    expect((await second.prove()).status).toBe(200);
    expect((await comes(domain, { hd: domain })).end).toBe(IN);
  });
});

describe("a company's domain whose DNS record is missing", () => {
  it("alerts the owners once by email and log, and again only if the record returned in between", async () => {
    const domain = fresh();
    const { view, account, record } = await company(domain);
    const sent: Mail[] = [];
    const day = 1.1 * 86_400_000;
    const at = async (days: number): Promise<void> =>
      recheckCompanyDomains(env.DB, Date.now() + days * day, (mail) => void sent.push(mail));
    const own = () => sent.filter(({ lines }) => lines.join(" ").includes(domain));
    await at(1);
    expect(own()).toEqual([]);
    texts.set(record.name, []);
    await at(2);
    await at(3);
    expect(own()).toMatchObject([{ to: account.email }]);
    expect(own()[0]?.lines.join(" ")).toContain("lost its TXT record");
    await env.WALLET.getByName(view.organization.id).takeEvents();
    const read = await admin("GET", `/orgs/${view.organization.id}/events`);
    const { events } = await read.json<{ events: { actor: object; data: object }[] }>();
    const lost = {
      actor: { kind: "system", id: null },
      data: { company_domain: domain, lost: true },
    };
    expect(events.filter(({ data }) => "lost" in data)).toMatchObject([lost]);
    texts.set(record.name, [record.value]);
    await at(4);
    texts.set(record.name, []);
    await at(5);
    expect(own()).toHaveLength(2);
  });
});

describe("a person who logs in through a company's identity provider", () => {
  it("joins as a member on request if the identity provider confirms the company", async () => {
    const domain = fresh();
    const { view, browser: owner } = await company(domain);
    const ben = await comes(domain, { hd: domain });
    expect(ben.end).toBe(IN);
    const session = await ben.browser.session();
    expect(session).toMatchObject({ role: "member", organization: { id: view.organization.id } });
    const events = await admin("GET", `/orgs/${view.organization.id}/events`);
    expect(await events.text()).toContain(`"company_domain":"${domain}"`);
    // The person remains a member.
    expect(await ben.browser.logIn(ben.account, { issuer: "google" })).toBe(IN);
    expect((await owner.people("DELETE", `${domains}/${domain}`)).status).toBe(200);
    // A domain allows joining, but adds no member by itself.
    expect(await ben.browser.session()).not.toBeNull();
    expect((await comes(domain, { hd: domain })).end).toMatch(UNKNOWN);
  });

  it("can't join by email address only, nor by a subdomain, another domain, or an unverified or unapproved domain", async () => {
    const domain = fresh();
    await company(domain);
    const unproven = fresh();
    await team(unproven);
    const strangers = [
      [domain, { email: `x@${domain}` }],
      [domain, { hd: `sub.${domain}` }],
      [domain, { hd: "evil.example.com", email: `x@${domain}` }],
      [`sub.${domain}`, { hd: `sub.${domain}` }],
      [unproven, { hd: unproven }],
      [fresh(), { hd: domain }],
    ] as const;
    for (const [typed, claims] of strangers) {
      const { end, browser } = await comes(typed, claims);
      expect([typed, claims, end]).toEqual([typed, claims, expect.stringMatching(UNKNOWN)]);
      expect([...browser.cookies.keys()]).toEqual([]);
    }
    const local = issuer.newAccount({ email: `x@${domain}` });
    const options = { purpose: "join", company: domain };
    // This identity provider doesn't report companies.
    expect(await new Browser(OPEN).logIn(local, options)).toMatch(UNKNOWN);
    const off = { ...OPEN, COMPANY_DOMAINS: "off" };
    expect((await comes(domain, { hd: domain }, off)).end).toMatch(UNKNOWN);
    // An operator must approve.
    expect((await comes(domain, { hd: domain }, LOGINS)).end).toMatch(UNKNOWN);
  });

  it("can join only after an operator's approval if approvals are required", async () => {
    const domain = fresh();
    const { view } = await company(domain, LOGINS);
    const at = `/orgs/${view.organization.id}/domains`;
    expect((await admin("POST", `${at}/none.example.com/approve`)).status).toBe(404);
    const agreed = await admin("POST", `${at}/${domain}/approve`);
    expect(await agreed.json()).toMatchObject({
      domains: [{ approved: true, joins_by: ["google"] }],
    });
    expect((await comes(domain, { hd: domain }, LOGINS)).end).toBe(IN);
  });

  it("needs an invitation to rejoin after a removal", async () => {
    const domain = fresh();
    const { browser: owner } = await company(domain);
    const ben = await comes(domain, { hd: domain });
    const view = await ben.browser.session();
    await owner.people("DELETE", `/members/${view?.member.id ?? ""}`);
    const options = { issuer: "google", purpose: "join", company: domain };
    expect(await ben.browser.logIn(ben.account, options)).toMatch(UNKNOWN);
    const invitation = await inviteTo(owner, { role: "member", email: ben.account.email });
    ben.google.bend = { claims: (plain) => ({ ...plain, hd: domain }) };
    const accept = { issuer: "google", purpose: "accept", invitation };
    expect(await ben.browser.logIn(ben.account, accept)).toBe(IN);
  });

  it("can join only from the owner's Microsoft tenant and with an address of the domain", async () => {
    const domain = fresh();
    const tid = crypto.randomUUID();
    const entra = new Entra(issuer);
    const ann = newAccount({ email: `ann@${domain}` });
    const [eve, ben] = [newAccount(), newAccount()];
    issuer.accounts.push(ann, ben, eve);
    entra.claims = { tid, oid: crypto.randomUUID(), xms_edov: true };
    const owner = new Browser(OPEN);
    expect(await owner.logIn(ann, { issuer: "work", purpose: "sign_up" })).toBe(IN);
    await owner.people("POST", "/organization/team");
    const named = await owner.people("POST", domains, { domain });
    const { record } = await named.json<Shown>();
    texts.set(record.name, [record.value]);
    await owner.people("POST", `${domains}/${domain}/prove`);
    const options = { issuer: "work", purpose: "join", company: domain };
    entra.claims = { tid: crypto.randomUUID(), oid: crypto.randomUUID(), email: `x@${domain}` };
    expect(await new Browser(OPEN).logIn(eve, options)).toMatch(UNKNOWN);
    entra.claims = { tid, oid: crypto.randomUUID() };
    expect(await new Browser(OPEN).logIn(ben, options)).toBe(IN);
  });
});
