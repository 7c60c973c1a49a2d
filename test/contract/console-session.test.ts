import { env } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { assert } from "../../src/shared/assert.ts";
import { mintKey } from "../../src/accounts/keys/api-key.ts";
import { keySecrets, shiftClock } from "../keys/key-fixture.ts";
import {
  ADMIN_TOKEN,
  addMember,
  admin,
  balanceOf,
  bindingsWith,
  chat,
  errorOf,
  eventsOf,
  HELLO,
  openAccount,
  send,
} from "./client.ts";
import type { Account } from "./client.ts";
import { cookieOf, pageHeaders, login, callFromPage, tryLogin } from "./console-client.ts";
import { countedBindings } from "./counted-bindings.ts";

const HOURS_MS = 3_600_000;
const ROLES = ["owner", "admin", "billing", "member"] as const;

let account: Account;
beforeAll(async () => {
  account = await openAccount();
});
afterEach(() => shiftClock(null));

const chatOf = (fields: object = {}): object => {
  return { model: "sandbox/echo", messages: HELLO, ...fields };
};

describe("POST /console/api/login", () => {
  it("returns the user and a cookie that scripts and other sites can't read", async () => {
    const response = await tryLogin(account.key);
    expect(response.status).toBe(200);
    expect(response.headers.get("set-cookie")).toMatch(
      /^__Host-turnpike-eu=[0-9A-Za-z]{172}; HttpOnly; Secure; SameSite=Lax; Path=\/; Max-Age=43200$/,
    );
    const seen = await response.json<{ expires_at: string }>();
    expect(seen).toEqual({
      kind: "key",
      role: "owner",
      organization: {
        id: account.orgId,
        name: "Contract",
        slug: expect.any(String),
        status: "active",
      },
      key: {
        id: account.keyId,
        name: expect.any(String),
        prefix: expect.any(String),
        limited: false,
      },
      member: { id: account.memberId, email: "owner@example.com", role: "owner" },
      region: "eu",
      expires_at: expect.any(String),
      may: expect.any(Object),
    });
    expect(Math.abs(Date.parse(seen.expires_at) - Date.now() - 12 * HOURS_MS)).toBeLessThan(60_000);
    const again = await callFromPage("/session", cookieOf(response));
    expect([again.status, await again.json()]).toEqual([200, seen]);
  });

  it.each(ROLES)("gives a key's session exactly the access of the key's role: %s", async (role) => {
    const { key } = await addMember(account.orgId, role);
    const cookie = await login(key);
    expect(await (await callFromPage("/session", cookie)).json()).toMatchObject({
      role,
      kind: "key",
    });
    const path = `/orgs/${account.orgId}/settings`;
    for (const each of ["/usage", "/balance", "/keys", "/alerts", path]) {
      const direct = await send(`/v1${each}`, { key });
      const seen = await callFromPage(`/v1${each}`, cookie);
      expect([each, seen.status]).toEqual([each, direct.status]);
    }
    expect((await callFromPage("/admin/v1/orgs", cookie)).status).toBe(403);
  });

  it("reports the limits of a limited key, and rejects management calls with 403 key_is_limited", async () => {
    const body = { name: "limited", budget_dollars: 1 };
    const created = await send("/v1/keys", { key: account.key, body });
    const { key } = await created.json<{ key: string }>();
    const response = await tryLogin(key);
    expect(await response.clone().json()).toMatchObject({ key: { limited: true } });
    const cookie = cookieOf(response);
    expect((await callFromPage("/v1/key", cookie)).status).toBe(200);
    expect(await errorOf(await callFromPage("/v1/balance", cookie), 403)).toMatchObject({
      code: "key_is_limited",
    });
  });

  it("ignores spaces around a pasted key", async () => {
    expect((await tryLogin(` \n\t${account.key}\u00a0\n`)).status).toBe(200);
  });

  it("gives an operator's token access only to operator endpoints", async () => {
    const response = await tryLogin(ADMIN_TOKEN);
    expect(await response.clone().json()).toMatchObject({
      kind: "operator",
      role: "operator",
      organization: null,
      key: null,
      member: null,
      region: "eu",
    });
    const cookie = cookieOf(response);
    expect((await callFromPage(`/admin/v1/orgs/${account.orgId}`, cookie)).status).toBe(200);
    const credit = { amount_micro: 5, reference: crypto.randomUUID() };
    const credits = `/admin/v1/orgs/${account.orgId}/credits`;
    expect((await callFromPage(credits, cookie, { body: credit })).status).toBe(200);
    expect((await callFromPage("/v1/balance", cookie)).status).toBe(403);
    expect((await callFromPage("/v1/chat/completions", cookie, { body: chatOf() })).status).toBe(
      403,
    );
  });

  it("returns the same 401 for forged, unknown and revoked keys", async () => {
    const { key } = await mintKey({ home: "eu", scope: "regional", secrets: keySecrets() });
    const other = await openAccount();
    await admin("DELETE", `/orgs/${other.orgId}/keys/${other.keyId}`);
    const texts = ["", "x", `${account.key}x`, account.key.slice(0, -1), `${ADMIN_TOKEN}a`, key];
    for (const text of [...texts, other.key]) {
      const response = await tryLogin(text);
      expect(response.headers.get("set-cookie")).toBeNull();
      expect((await errorOf(response, 401)).type).toBe("invalid_api_key");
    }
  });

  it("rejects a forged key with 401 without reading storage", async () => {
    const counted = countedBindings();
    expect((await tryLogin("svc_sk_eu_live_forged", {}, counted.bindings)).status).toBe(401);
    expect([counted.objects, counted.statements]).toEqual([0, 0]);
  });

  it("returns 400 with the other region's console URL for a key of another region", async () => {
    for (const scope of ["regional", "global"] as const) {
      const { key } = await mintKey({ home: "us", scope, secrets: keySecrets() });
      const error = await errorOf(await tryLogin(key), 400);
      expect(error.param).toBe("key");
      expect(error.message).toContain("'us'");
      expect(error.message).toContain("https://us.turnpike.example.com/console");
    }
  });

  it("returns 400 for an invalid body", async () => {
    const bodies = [{}, { key: 1 }, { key: null }, { key: "a", more: 1 }, { key: "a".repeat(513) }];
    for (const body of bodies) {
      await errorOf(await callFromPage("/login", undefined, { body }), 400);
    }
    const headers = { "content-type": "text/plain" };
    expect((await callFromPage("/login", undefined, { body: "{}", headers })).status).toBe(415);
  });

  it("returns 429 only to the IP address that had 20 failed logins, even for a valid key", async () => {
    const headers = { "cf-connecting-ip": crypto.randomUUID() };
    for (let n = 0; n < 20; n++) expect((await tryLogin("no", headers)).status).toBe(401);
    const refused = await tryLogin(account.key, headers);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await errorOf(refused, 429)).type).toBe("rate_limit_exceeded");
    expect((await tryLogin(account.key)).status).toBe(200);
  });

  it("returns 429 after 20 logins with a key within a minute", async () => {
    const { key } = await openAccount();
    for (let n = 0; n < 20; n++) expect((await tryLogin(key)).status).toBe(200);
    expect((await tryLogin(key)).status).toBe(429);
    shiftClock(60_000);
    expect((await tryLogin(key)).status).toBe(200);
  });
});

describe("a console session", () => {
  it("expires after 12 hours, and the next response deletes the session's cookie", async () => {
    const cookie = await login(account.key);
    shiftClock(12 * HOURS_MS - 60_000);
    expect((await callFromPage("/session", cookie)).status).toBe(200);
    shiftClock(12 * HOURS_MS + 1000);
    const response = await callFromPage("/session", cookie);
    expect(response.headers.get("set-cookie")).toContain("Max-Age=0");
    expect((await errorOf(response, 401)).type).toBe("no_console_session");
  });

  it("ends at logout and at the next login in the same browser", async () => {
    const cookie = await login(account.key);
    const out = await callFromPage("/logout", cookie, { method: "POST" });
    expect([out.status, out.headers.get("set-cookie")]).toEqual([
      204,
      expect.stringContaining("Max-Age=0"),
    ]);
    expect((await callFromPage("/session", cookie)).status).toBe(401);
    const first = await login(account.key);
    expect((await tryLogin(account.key, { cookie: first })).status).toBe(200);
    await expect.poll(async () => (await callFromPage("/session", first)).status).toBe(401);
    expect((await callFromPage("/logout", undefined, { method: "POST" })).status).toBe(204);
  });

  it("ends at the next call after the member is removed or the key is revoked", async () => {
    const other = await openAccount();
    const member = await addMember(other.orgId, "member");
    const [owners, members] = [await login(other.key), await login(member.key)];
    await admin("DELETE", `/orgs/${other.orgId}/members/${member.memberId}`);
    for (const path of ["/session", "/v1/balance", "/v1/models"]) {
      expect((await callFromPage(path, members)).status).toBe(401);
    }
    const removed = await callFromPage(`/v1/keys/${other.keyId}`, owners, { method: "DELETE" });
    expect(removed.status).toBe(200);
    expect((await errorOf(await callFromPage("/v1/balance", owners), 401)).type).toBe(
      "no_console_session",
    );
    const body = chatOf();
    expect((await callFromPage("/v1/chat/completions", owners, { body })).status).toBe(401);
  });

  it("ends when the operator's token is replaced", async () => {
    const cookie = await login(ADMIN_TOKEN);
    const bindings = bindingsWith({ ADMIN_TOKEN: "b".repeat(32) });
    expect((await callFromPage("/admin/v1/health", cookie, { bindings })).status).toBe(401);
  });

  it("rejects unknown, forged and duplicate cookies, and calls no object for a forged cookie", async () => {
    const cookie = await login(account.key);
    const flipped = cookie.slice(0, -1) + (cookie.endsWith("0") ? "1" : "0");
    const counted = countedBindings();
    const { bindings } = counted;
    for (const one of [
      "",
      "a=b",
      flipped,
      `${cookie}0`,
      `${cookie}; ${cookie}`,
      "x".repeat(20_000),
    ]) {
      expect((await callFromPage("/v1/balance", one, { bindings })).status).toBe(401);
    }
    expect([counted.objects, counted.statements]).toEqual([0, 0]);
    expect((await callFromPage("/session", `a=b; ${cookie}; c=d`)).status).toBe(200);
  });

  it("gives no access to /v1 and /admin/v1", async () => {
    const key = await login(account.key);
    const operator = await login(ADMIN_TOKEN);
    expect((await send("/v1/balance", { headers: pageHeaders(key) })).status).toBe(401);
    expect((await send("/admin/v1/orgs", { headers: pageHeaders(operator) })).status).toBe(401);
    const headers = { ...pageHeaders(key), authorization: `Bearer ${account.key}` };
    expect(
      (await send("/console/api/v1/balance", { headers: { authorization: headers.authorization } }))
        .status,
    ).toBe(401);
  });

  it("rejects requests from another site or without an origin with 403", async () => {
    const cookie = await login(account.key);
    const create = (headers: Record<string, string>): Promise<Response> =>
      send("/console/api/v1/keys", { body: { name: "forged" }, headers: { cookie, ...headers } });
    const forged = [
      {},
      { origin: "null" },
      { origin: "https://evil.test" },
      { origin: "http://eu.test" },
      { origin: "https://eu.test.evil.test" },
      { origin: "https://eu.test", "sec-fetch-site": "cross-site" },
      { origin: "https://eu.test", "sec-fetch-site": "same-site" },
    ];
    for (const headers of forged) {
      expect((await errorOf(await create(headers), 403)).code).toBe("origin_not_allowed");
    }
    const get = (headers: Record<string, string>): Promise<Response> =>
      send("/console/api/session", { headers: { cookie, ...headers } });
    expect((await get({})).status).toBe(200);
    expect((await get({ "sec-fetch-site": "cross-site" })).status).toBe(403);
    expect((await get({ origin: "https://evil.test" })).status).toBe(403);
    expect((await tryLogin(account.key, { origin: "https://evil.test" })).status).toBe(403);
  });

  it("never allows another origin to read a response", async () => {
    const cookie = await login(account.key);
    const options = await callFromPage("/v1/balance", cookie, { method: "OPTIONS" });
    const answers = [
      options,
      await callFromPage("/v1/balance", cookie),
      await callFromPage("/session", "no"),
    ];
    for (const { headers } of answers) {
      expect(headers.get("access-control-allow-origin")).toBeNull();
      expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    }
  });
});

describe("ANY /console/api/v1/*", () => {
  it("returns exactly the response of /v1 for the key", async () => {
    const cookie = await login(account.key);
    for (const path of [
      "/models",
      "/models/sandbox%2Fecho",
      "/keys",
      "/users",
      "/nothing",
      "/usage?from=x",
    ]) {
      const direct = await send(`/v1${path}`, { key: account.key });
      const seen = await callFromPage(`/v1${path}`, cookie);
      expect([path, seen.status]).toEqual([path, direct.status]);
      expect(seen.headers.get("openai-organization")).toBe(
        direct.headers.get("openai-organization"),
      );
      if (path === "/keys") continue; // the key was used at another time
      expect(await seen.text()).toBe(await direct.text());
    }
    const response = await callFromPage("/v1/users", cookie, {
      body: { external_id: "a/b", daily_quota_dollars: 7 },
    });
    expect(response.ok).toBe(true);
    const patched = await callFromPage("/v1/users/a%2Fb", cookie, {
      method: "PATCH",
      body: { daily_quota_dollars: 8 },
    });
    expect(await patched.json()).toMatchObject({ external_id: "a/b", daily_quota_dollars: 8 });
    expect((await callFromPage("/v1/users/a%2Fb", cookie, { method: "DELETE" })).status).toBe(200);
  });

  it("counts reads against the console's limit of 300 per minute instead of the key's limit", async () => {
    const { key } = await openAccount({ rpmLimit: 2 });
    const cookie = await login(key);
    for (let n = 0; n < 300; n++) {
      expect([n, (await callFromPage("/v1/models", cookie)).status]).toEqual([n, 200]);
    }
    const refused = await callFromPage("/v1/models", cookie);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await errorOf(refused, 429)).message).toContain("300 requests per minute");
    expect((await callFromPage("/session", cookie)).status).toBe(429);
    expect((await send("/v1/models", { key })).status).toBe(200);
    expect((await send("/v1/models", { key })).status).toBe(200);
    expect((await send("/v1/models", { key })).status).toBe(429);
    shiftClock(60_000);
    expect((await callFromPage("/v1/models", cookie)).status).toBe(200);
  });

  it("counts playground requests against the key's limit and balance, and streams the output", async () => {
    const { key } = await openAccount({ rpmLimit: 4 });
    const cookie = await login(key);
    const path = "/v1/chat/completions";
    const before = await balanceOf(key);
    const cost = Number((await chat(key)).headers.get("x-cost-micro"));
    const body = chatOf({ stream: true });
    const streamed = await callFromPage(path, cookie, { body });
    expect(streamed.headers.get("x-ratelimit-remaining-requests")).toBe("1");
    expect((await eventsOf(streamed)).at(-1)).toBe("[DONE]");
    shiftClock(60_000);
    expect(await balanceOf(key)).toBe(before - 2 * cost);
    const calls = ["responses", "messages", "embeddings"].map((name) => `/v1/${name}`);
    for (const call of calls) {
      expect((await callFromPage(call, cookie, { body: {} })).status).toBe(400);
    }
    expect((await callFromPage(path, cookie, { body })).status).toBe(429);
    expect((await callFromPage("/session", cookie)).status).toBe(200);
  });

  it("rejects /v1/completions, operator endpoints and unknown paths with 403 or 404", async () => {
    const cookie = await login(account.key);
    const body = { model: "sandbox/echo", prompt: "Hello" };
    expect((await send("/v1/completions", { key: account.key, body })).status).toBe(200);
    expect((await callFromPage("/v1/completions", cookie, { body })).status).toBe(404);
    expect((await callFromPage("/v1//completions/", cookie, { body })).status).toBe(404);
    const paths = [
      "/admin/v1/orgs",
      "//admin/v1/orgs",
      "/v1/../admin/v1/orgs",
      "/v1/%2e%2e/admin/v1/orgs",
    ];
    for (const path of paths) expect((await callFromPage(path, cookie)).status).toBe(403);
    for (const path of ["/internal/v1/lookup", "/healthz", "", "/"]) {
      expect((await callFromPage(path, cookie)).status).toBe(404);
    }
  });

  it("stores only a hash of the key in the session, and no part of the key in the cookie", async () => {
    const { key } = account;
    const cookie = await login(key);
    const digest = await crypto.subtle.digest(
      "SHA-256",
      new TextEncoder().encode(cookie.slice(cookie.indexOf("=") + 1)),
    );
    const place = cookie.slice(-128, -64);
    const name = new Uint8Array(digest).toHex();
    const entered = await env.CONSOLE_SESSION.getByName(place).enter(name, false);
    assert(entered.ok && entered.value.identity.kind === "key", "a key's session");
    expect(cookie).not.toContain(entered.value.identity.key.hash);
    expect(entered.ok).toBe(true);
    expect(JSON.stringify(entered)).not.toContain(key.slice(-20));
  });
});
