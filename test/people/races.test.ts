import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { closeOrganization } from "../../src/accounts/people/closing.store.ts";
import { effortFor } from "../effort.ts";
import {
  Browser,
  codeOf,
  inviteAndJoin,
  browserLater,
  loginTimeLater,
  signUp,
  newAccount,
  startIssuer,
  tokenOf,
} from "./people-client.ts";
import type { SessionView } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

type Owner = { readonly browser: Browser; readonly view: SessionView };
const at = ({ view }: Owner): string => `/members/${view.member.id}`;
/** Ways in which an owner can lose the role, by the owner or by another one. */
const WAYS = {
  leaves: (own: Owner) => own.browser.people("DELETE", at(own)),
  "becomes less": (own: Owner) => own.browser.people("PATCH", at(own), { role: "member" }),
  "is removed": (own: Owner, other: Owner) => other.browser.people("DELETE", at(own)),
  "is made less": (own: Owner, other: Owner) =>
    other.browser.people("PATCH", at(own), { role: "admin" }),
  "is forgotten": (own: Owner) => own.browser.people("DELETE", "/me", { give_up_balance: true }),
} as const;
type Way = keyof typeof WAYS;
const way = fc.constantFrom(...(Object.keys(WAYS) as Way[]));

async function count(statement: string, orgId: string): Promise<number> {
  const row = await env.DB.prepare(statement).bind(orgId).first<{ n: number }>();
  return row?.n ?? 0;
}
const owners = (orgId: string) =>
  count(
    "SELECT count(*) AS n FROM members WHERE org_id = ? AND role = 'owner' AND removed_at IS NULL",
    orgId,
  );
const members = (orgId: string) =>
  count("SELECT count(*) AS n FROM members WHERE org_id = ? AND removed_at IS NULL", orgId);
const closed = (orgId: string) =>
  count("SELECT count(*) AS n FROM closed_organizations WHERE org_id = ?", orgId);

describe("the last owner of an organization", () => {
  it("stays in the organization if two concurrent calls try to remove both owners", async () => {
    await fc.assert(
      fc.asyncProperty(way, way, async (first, second) => {
        const ann = await signUp(issuer);
        const ben = await inviteAndJoin(issuer, ann.browser, "owner");
        await inviteAndJoin(issuer, ann.browser, "member");
        const done = await Promise.all([WAYS[first](ann, ben), WAYS[second](ben, ann)]);
        for (const response of done) {
          // Not a member anymore, no right anymore, the last owner, or success, but never a server
          // error.
          expect([200, 401, 403, 409]).toContain(response.status);
        }
        const { id } = ann.view.organization;
        expect(await owners(id)).toBeGreaterThan(0);
        expect(await closed(id)).toBe(0);
      }),
      { numRuns: effortFor(4, 100), interruptAfterTimeLimit: 100_000 },
    );
  });

  it("closes the organization by leaving, unless another person joins concurrently", async () => {
    const ann = await signUp(issuer);
    await ann.browser.people("POST", "/organization/team");
    const created = await ann.browser.people("POST", "/invitations", { role: "member" });
    const { link } = await created.json<{ link: string }>();
    const invitation = tokenOf(link);
    const ben = issuer.newAccount();
    const browser = new Browser();
    const back = await browser.click(await browser.start({ purpose: "accept", invitation }), ben);
    const [gone] = await Promise.all([
      ann.browser.people("DELETE", "/me", { give_up_balance: true }),
      browser.land(back),
    ]);
    const { id } = ann.view.organization;
    const isIn = (await members(id)) > 1;
    expect([gone.status, await closed(id), await owners(id)]).toEqual(
      isIn ? [409, 0, 1] : [200, 1, 0],
    );
  });
});

describe("the closing of an organization with one member", () => {
  it("returns an error if a new member joins in the meantime", async () => {
    const ann = await signUp(issuer);
    await inviteAndJoin(issuer, ann.browser, "member");
    const { id } = ann.view.organization;
    const memberId = ann.view.member.id;
    const actor = { kind: "member", id: memberId } as const;
    const by = { actor, memberId, now: Date.now() };
    expect(await closeOrganization(env.DB, id, { ...by, isAlone: true })).toBeNull();
    expect([await closed(id), await members(id)]).toEqual([0, 2]);
  });
});

describe("the total of sign-up credits", () => {
  it("stays within the daily budget for concurrent sign-ups, even if the budget doesn't cover all of them", async () => {
    // an address that no other test uses
    const day = (400 + Math.floor(Math.random() * 3000)) * 86_400_000;
    const bindings = {
      CLOCK_OFFSET_MS: String(day),
      SIGN_UP_CREDIT_MICRO: "1000",
      SIGN_UP_CREDITS_A_DAY_MICRO: "3999",
    };
    issuer.bend = loginTimeLater(day / 60_000);
    const crowd = Array.from({ length: 12 }, () => newAccount());
    issuer.accounts.push(...crowd);
    const browsers = crowd.map(() => new Browser(bindings));
    const twice = [...browsers.entries()].flatMap(([n, browser]) => {
      const second = new Browser(bindings); // a second click
      const options = { purpose: "sign_up" };
      return [browser, second].map((one) => one.logIn(crowd[n] ?? newAccount(), options));
    });
    expect(new Set(await Promise.all(twice))).toEqual(new Set(["/console/#/"]));
    const balances = await Promise.all(
      browsers.map(async (one) => {
        const read = await one.ask("GET", "/console/api/v1/balance");
        return (await read.json<{ credits_micro: number }>()).credits_micro;
      }),
    );
    expect(balances.filter((one) => one === 1000)).toHaveLength(3);
    expect(balances.filter((one) => one === 0)).toHaveLength(9);
  });
});

describe("an identity provider that becomes unavailable", () => {
  it("affects only logins in progress, and ends no session", async () => {
    const { browser, account } = await signUp(issuer);
    const browsers = Array.from({ length: 10 }, () => new Browser());
    const backs = await Promise.all(
      browsers.map(async (one) => one.click(await one.start(), account)),
    );
    const late = { isAway: true };
    issuer.bend = {
      answer: (_, answer) => (late.isAway ? new Response("", { status: 503 }) : answer),
    };
    const ends = await Promise.all(browsers.map((one, n) => one.land(backs[n] ?? new URL("x:"))));
    expect(new Set(ends)).toEqual(new Set(["/console/#/login?why=issuer_unreachable"]));
    const body = { issuer: "local", purpose: "log_in" };
    const starts = await Promise.all(
      Array.from({ length: 10 }, () => new Browser().ask("POST", "/console/api/login/start", body)),
    );
    expect(new Set(starts.map(({ status }) => status))).toEqual(new Set([503]));
    expect((await browser.ask("GET", "/console/api/v1/keys")).status).toBe(200);
    late.isAway = false;
    expect(await new Browser().logIn(account)).toBe("/console/#/");
  });

  it("counts as unavailable after 5 s without a response", async () => {
    const { account } = await signUp(issuer);
    const browser = new Browser();
    const back = await browser.click(await browser.start(), account);
    const waits: number[] = [];
    const real = AbortSignal.timeout.bind(AbortSignal);
    vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
      waits.push(ms);
      return real(20);
    });
    issuer.bend = {
      answer: (path, answer) => (path === "/token" ? new Promise(() => {}) : answer),
    };
    expect(await browser.land(back)).toMatch(/why=issuer_unreachable$/);
    expect(waits).toContain(5000);
  });
});

describe("the callback of a console login", () => {
  it("rejects a login with any missing, duplicate, changed or added parameter", async () => {
    const ann = issuer.newAccount();
    const ways: readonly ((search: URLSearchParams, name: string) => void)[] = [
      (search, name) => search.delete(name),
      (search, name) => search.append(name, search.get(name) ?? ""),
      (search, name) => search.set(name, ""),
      (search, name) => search.set(name, `${search.get(name)}x`),
    ];
    for (const name of ["code", "state", "iss"]) {
      for (const [n, change] of ways.entries()) {
        const browser = new Browser();
        const back = await browser.click(await browser.start({ purpose: "sign_up" }), ann);
        change(back.searchParams, name);
        const end = await browser.land(back);
        expect([name, n, end]).toEqual([
          name,
          n,
          expect.stringMatching(/why=(?:refused|expired)$/),
        ]);
        expect([...browser.cookies.keys()]).toEqual([]);
      }
    }
    const browser = new Browser();
    const back = await browser.click(await browser.start({ purpose: "sign_up" }), ann);
    back.searchParams.set("error", "access_denied");
    back.searchParams.set("error_description", "<b>somebody's words</b>");
    expect(await browser.land(back)).toBe("/console/#/login?why=denied");
  });

  it("accepts only a browser navigation, and only the login's identity provider", async () => {
    const ann = issuer.newAccount();
    const browser = new Browser();
    const back = await browser.click(await browser.start({ purpose: "sign_up" }), ann);
    const headers = { "sec-fetch-mode": "cors", "sec-fetch-dest": "empty" };
    const path = back.pathname + back.search;
    expect(await codeOf(await browser.ask("GET", path, undefined, headers))).toEqual([
      403,
      "origin_not_allowed",
    ]);
    const other = new URL(back);
    other.pathname = back.pathname.replace("/local", "/other");
    expect(await browser.land(other)).toMatch(/why=expired$/);
    expect(await browser.session()).toBeNull();
  });

  it("doesn't renew a session that ended during the login", async () => {
    const { browser, account } = await signUp(issuer);
    const back = await browser.click(await browser.start({ purpose: "step_up" }), account);
    const other = Object.assign(browserLater(browser, 0), { cookies: new Map(browser.cookies) });
    expect((await other.people("POST", "/me/log-out")).status).toBe(200);
    expect(await browser.land(back)).toMatch(/why=no_console_session$/);
    expect(await browser.session()).toBeNull();
  });
});
