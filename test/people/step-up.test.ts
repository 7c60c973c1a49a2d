import { beforeEach, describe, expect, it, vi } from "vitest";
import { findFreshLoginRule, requiresNewLogin } from "../../src/console/step-up.ts";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { KEY_ROUTES, PROVIDER_PATHS, ROUTES } from "../../src/routes.ts";
import { ADMIN_TOKEN, openAccount } from "../contract/client.ts";
import {
  Browser,
  codeOf,
  browserLater,
  loginTimeLater,
  PEOPLE_VARS,
  signUp,
  newAccount,
  startIssuer,
} from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

const requiresFreshLogin = (
  method: string,
  path: string,
  body: Readonly<Record<string, unknown>> | null = null,
): boolean => requiresNewLogin(findFreshLoginRule(ROUTES, method, path), body);
const settings = (body: object): boolean =>
  requiresFreshLogin("PATCH", "/v1/orgs/x/settings", { ...body });
const ofOperator = (body: object): boolean =>
  requiresFreshLogin("PATCH", "/admin/v1/orgs/x", { ...body });
const TOO_OLD = [403, "login_too_old"];
const makeKey = (browser: Browser) => browser.ask("POST", "/console/api/v1/keys", { name: "one" });
const keyMade = async (browser: Browser) => codeOf(await makeKey(browser));
const withReauth = {
  LOGIN_ISSUERS: PEOPLE_VARS.LOGIN_ISSUERS.replace('"secret"', '"reauth":true,"secret"'),
};
/** The person logged in at the identity provider this number of minutes before this login. */
const loggedInAgo = (minutes: number, later = 0) => ({
  claims: (claims: Readonly<Record<string, unknown>>) => {
    const moved = loginTimeLater(later).claims?.(claims) ?? claims;
    return { ...moved, auth_time: Number(moved["auth_time"]) - minutes * 60 };
  },
});

const named = (path: string): string =>
  path.replaceAll(/:\w+(?:\{[^}]+\})?/g, (name) => (name.includes("resp") ? "resp_1" : "x"));

describe("a change with lasting effect in the console", () => {
  it("requires a login in the last ten minutes, except for paths that this test lists", () => {
    const free = [...KEY_ROUTES, ...OPERATOR_ROUTES]
      .filter(({ method, path }) => method !== "GET" && !PROVIDER_PATHS.has(path))
      .filter(({ method, path }) => !requiresFreshLogin(method, named(path)))
      .map(({ method, path }) => `${method} ${named(path)}`);
    expect(free.toSorted()).toEqual([
      "DELETE /admin/v1/orgs/x/invitations/x",
      "DELETE /admin/v1/orgs/x/keys/x",
      "DELETE /admin/v1/orgs/x/members/x",
      "DELETE /admin/v1/orgs/x/sessions/x",
      "DELETE /v1/keys/x",
      "DELETE /v1/responses/resp_1",
      "DELETE /v1/sessions/x",
      "POST /admin/v1/orgs/x/pauses",
      "POST /admin/v1/orgs/x/reconcile",
      "POST /admin/v1/orgs/x/webhooks/x/replay",
      "POST /admin/v1/orgs/x/webhooks/x/test",
      "POST /v1/pauses",
      "POST /v1/webhooks/x/replay",
      "POST /v1/webhooks/x/resend",
      "POST /v1/webhooks/x/test",
    ]);
  });

  it("requires a fresh login unless the request only lowers limits", () => {
    expect(settings({ auto_top_up: null })).toBe(false);
    expect(settings({ auto_top_up: { amount_dollars: 10 } })).toBe(true);
    expect(settings({ auto_top_up: null, keep_responses_hours: 24 })).toBe(true);
    expect(settings({ default_alert_threshold: 0.5 })).toBe(true);
    expect(settings({})).toBe(true);
    expect(ofOperator({ status: "suspended" })).toBe(false);
    expect(ofOperator({ status: "suspended", reason: "Unpaid" })).toBe(false);
    expect(ofOperator({ status: "active" })).toBe(true);
    expect(ofOperator({ status: "suspended", rpm_limit: null })).toBe(true);
    expect(ofOperator({ price_list: null })).toBe(true);
    expect(requiresFreshLogin("PATCH", "/v1/users/x", { daily_quota_dollars: 0 })).toBe(false);
    expect(requiresFreshLogin("PATCH", "/v1/users/x", { daily_quota_dollars: null })).toBe(true);
    expect(
      requiresFreshLogin("POST", "/v1/users", { external_id: "x", daily_quota_dollars: 0 }),
    ).toBe(false);
    expect(requiresFreshLogin("PATCH", "/v1/orgs/x/settings", null)).toBe(true);
  });

  it("requires no fresh login to disable automatic top-up, but requires one for other settings", async () => {
    const { browser, view } = await signUp(issuer);
    const later = browserLater(browser);
    const patch = (body: object) =>
      later.ask("PATCH", `/console/api/v1/orgs/${view.organization.id}/settings`, body);
    expect((await patch({ auto_top_up: null })).status).toBe(200);
    expect(await codeOf(await patch({ keep_responses_hours: 24 }))).toEqual(TOO_OLD);
  });

  it("requires a fresh login, however the path of the request is written", async () => {
    const { browser } = await signUp(issuer);
    const later = browserLater(browser);
    for (const path of ["/v1/keys/", "//v1/keys", "/v1//keys", "/v1/%6beys", "/v1/keys?x=1"]) {
      const answer = await later.ask("POST", `/console/api${path}`, { name: "one" });
      expect([path, answer.status]).not.toEqual([path, 201]);
    }
    const listed = await browser.ask("GET", "/console/api/v1/keys");
    expect(await listed.json()).toMatchObject({ keys: [] });
  });

  it("requires the key or token again if the session started with a pasted key or token", async () => {
    const { key, orgId } = await openAccount({ credits: 0 });
    for (const [text, path, body] of [
      [key, "/v1/keys", { name: "one" }],
      [ADMIN_TOKEN, `/admin/v1/orgs/${orgId}/credits`, { amount_micro: 1, reference: "again" }],
    ] as const) {
      const browser = new Browser();
      expect((await browser.ask("POST", "/console/api/login", { key: text })).status).toBe(200);
      const later = browserLater(browser);
      expect(await codeOf(await later.ask("POST", `/console/api${path}`, body))).toEqual(TOO_OLD);
      await later.ask("POST", "/console/api/login", { key: text });
      expect((await later.ask("POST", `/console/api${path}`, body)).status).toBeLessThan(300);
    }
  });
});

describe("a stolen session", () => {
  it("ends at the person's next login instead of being renewed", async () => {
    const { browser, account } = await signUp(issuer);
    const stolen = Object.assign(browserLater(browser), { cookies: new Map(browser.cookies) });
    const own = browserLater(browser);
    issuer.bend = loginTimeLater();
    expect(await own.logIn(account, { purpose: "step_up" })).toBe("/console/#/");
    expect((await keyMade(own))[0]).toBe(201);
    expect(await keyMade(stolen)).not.toEqual([201, ""]);
    await vi.waitFor(async () => expect(await stolen.session()).toBeNull());
  });

  it("can't link the thief's identity without a fresh login", async () => {
    const { browser } = await signUp(issuer);
    const thief = issuer.newAccount();
    const body = { issuer: "local", purpose: "link" };
    const started = await browserLater(browser).ask("POST", "/console/api/login/start", body);
    expect(await codeOf(started)).toEqual(TOO_OLD);
    expect(await new Browser().logIn(thief)).toContain("why=unknown&");
  });
});

describe("the time of a login", () => {
  it("equals the time of the code exchange if the identity provider can't renew a login", async () => {
    const ann = issuer.newAccount();
    issuer.bend = loggedInAgo(3 * 24 * 60);
    const { browser } = await signUp(issuer, ann);
    expect((await keyMade(browser))[0]).toBe(201);
    const strict = browserLater(browser, 0, { STEP_UP: "auth_time" });
    expect(await keyMade(strict)).toEqual(TOO_OLD);
  });

  it("equals the identity provider's login time for an operator if STEP_UP is auth_time", async () => {
    const olga = issuer.newAccount();
    const strict = {
      STEP_UP: "auth_time",
      OPERATOR_LOGINS: JSON.stringify([
        { name: "olga", role: "all", issuer: "local", subject: olga.id },
      ]),
      ...withReauth,
    };
    const { orgId } = await openAccount({ credits: 0 });
    const credit = (browser: Browser) => {
      const body = { amount_micro: 1, reference: crypto.randomUUID() };
      return browser.ask("POST", `/console/api/admin/v1/orgs/${orgId}/credits`, body);
    };
    issuer.bend = loggedInAgo(15);
    const browser = new Browser(strict);
    expect(await browser.logIn(olga)).toBe("/console/#/");
    expect(await codeOf(await credit(browser))).toEqual(TOO_OLD);
    issuer.bend = {};
    const loginUrl = await browser.start({ purpose: "step_up" });
    expect(loginUrl.searchParams.get("max_age")).toBe("600");
    expect(await browser.land(await browser.click(loginUrl, olga))).toBe("/console/#/");
    expect((await credit(browser)).status).toBe(200);
    expect(await codeOf(await credit(browserLater(browser, 11, strict)))).toEqual(TOO_OLD);
    const other = issuer.newAccount();
    expect(await browser.logIn(other, { purpose: "step_up" })).toMatch(/why=other_person$/);
  });

  it("equals the identity provider's login time if that time is valid and the provider can renew a login", async () => {
    const { browser, account } = await signUp(issuer, newAccount(), withReauth);
    const later = browserLater(browser, 11, withReauth);
    for (const bend of [
      loggedInAgo(15, 11),
      {
        claims: (claims: object) => ({
          ...loginTimeLater().claims?.({ ...claims }),
          auth_time: undefined,
        }),
      },
      {
        claims: (claims: object) => ({
          ...loginTimeLater().claims?.({ ...claims }),
          auth_time: Date.now(),
        }),
      },
    ]) {
      issuer.bend = bend;
      const loginUrl = await later.start({ purpose: "step_up" });
      expect(loginUrl.searchParams.get("max_age")).toBe("600");
      expect(await later.land(await later.click(loginUrl, account))).toMatch(/why=refused$/);
      expect(await keyMade(later)).toEqual(TOO_OLD);
    }
    issuer.bend = loginTimeLater();
    expect(await later.logIn(account, { purpose: "step_up" })).toBe("/console/#/");
    expect((await keyMade(later))[0]).toBe(201);
  });

  it("doesn't change when another person logs in", async () => {
    const { browser } = await signUp(issuer);
    const eve = issuer.newAccount();
    const before = browser.cookies.get("__Host-turnpike-eu");
    expect(await browser.logIn(eve, { purpose: "step_up" })).toMatch(/why=other_person$/);
    expect(browser.cookies.get("__Host-turnpike-eu")).toBe(before);
    expect(await browser.session()).not.toBeNull();
  });
});
