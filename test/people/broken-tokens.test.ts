import { beforeEach, describe, expect, it } from "vitest";
import type { TokenChanges } from "../fakes/local-issuer.ts";
import { Browser, ISSUER, signUp, startIssuer } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
beforeEach(() => {
  issuer = startIssuer();
});

const nowS = (): number => Math.floor(Date.now() / 1000);
const claim = (changes: Readonly<Record<string, unknown>>): TokenChanges => ({
  claims: (claims) => {
    const changed = Object.entries({ ...claims, ...changes });
    return Object.fromEntries(changed.filter(([, value]) => value !== undefined));
  },
});

const header = (changes: Readonly<Record<string, unknown>>): TokenChanges => ({
  header: (plain) => ({ ...plain, ...changes }),
});

const answer = (path: string, respond: () => Response): TokenChanges => ({
  answer: (requestPath, original) => (requestPath === path ? respond() : original),
});

const resigned = (token: string): string => {
  const [head = "", body = "", tag = ""] = token.split(".");
  return [head, body, (tag.startsWith("A") ? "B" : "A") + tag.slice(1)].join(".");
};

const BROKEN: readonly (readonly [string, TokenChanges])[] = [
  ["another audience", claim({ aud: "another" })],
  ["no audience", claim({ aud: undefined })],
  ["several audiences and no azp", claim({ aud: ["turnpike-eu", "another"] })],
  ["another azp", claim({ azp: "another" })],
  ["another issuer", claim({ iss: "https://other.test" })],
  ["the issuer with a slash", claim({ iss: `${ISSUER}/` })],
  ["no issuer", claim({ iss: undefined })],
  ["another nonce", claim({ nonce: "another" })],
  ["no nonce", claim({ nonce: undefined })],
  ["no subject", claim({ sub: undefined })],
  ["an empty subject", claim({ sub: "" })],
  ["a non-ASCII subject", claim({ sub: "änn" })],
  ["a subject of 256 characters", claim({ sub: "x".repeat(256) })],
  ["an expiry a minute ago", claim({ exp: nowS() - 60 })],
  ["no expiry", claim({ exp: undefined })],
  ["a start in the future", claim({ nbf: nowS() + 3600 })],
  ["an issue time an hour ago", claim({ iat: nowS() - 3600 })],
  ["an issue time in an hour", claim({ iat: nowS() + 3600 })],
  ["one flipped bit in the signature", { token: resigned }],
  ["no signature", { token: (token) => `${token.slice(0, token.lastIndexOf("."))}.` }],
  ["alg none", header({ alg: "none" })],
  ["alg HS256", header({ alg: "HS256" })],
  ["alg ES256", header({ alg: "ES256" })],
  ["a crit header", header({ crit: ["b64"], b64: false })],
  ["an unknown key", header({ kid: "unknown" })],
  [
    "no id token",
    answer("/token", () => Response.json({ access_token: "x", token_type: "Bearer" })),
  ],
  ["200 with an error", answer("/token", () => Response.json({ error: "invalid_grant" }))],
];
const AWAY: readonly (readonly [string, TokenChanges])[] = [
  [
    "HTML",
    answer("/token", () => new Response("<html>", { headers: { "content-type": "text/html" } })),
  ],
  ["65 KiB", answer("/token", () => Response.json({ x: "x".repeat(65 * 1024) }))],
  ["a redirect", answer("/token", () => Response.redirect(`${ISSUER}/elsewhere`, 307))],
  ["500", answer("/token", () => new Response("", { status: 500 }))],
  ["500 for the signing keys", answer("/jwks", () => new Response("", { status: 500 }))],
];

describe("a login with a broken token", () => {
  it.each(BROKEN)("fails if the token has %s", async (_, bend) => {
    const ann = issuer.newAccount();
    const browser = new Browser();
    issuer.bend = bend;
    expect(await browser.logIn(ann, { purpose: "sign_up" })).toMatch(/why=(?:refused|expired)$/);
    expect([...browser.cookies.keys()]).toEqual([]);
    expect(await browser.session()).toBeNull();
    issuer.bend = {};
    expect(await browser.logIn(ann, { purpose: "log_in" })).toMatch(/why=unknown(?:&|$)/);
  });

  it.each(AWAY)(
    "fails as issuer_unreachable if the identity provider returns %s, without ending other sessions",
    async (_, bend) => {
      const { browser, account } = await signUp(issuer);
      issuer.bend = bend;
      // The isolate hasn't cached any key yet.
      const other = new Browser({ LOCAL_SECRET: "client.secret" });
      expect(await other.logIn(account)).toMatch(/why=issuer_unreachable$/);
      expect(await browser.session()).not.toBeNull();
    },
  );

  it("succeeds until 20 s after the token expires", async () => {
    issuer.bend = claim({ exp: nowS() - 20 });
    expect((await signUp(issuer)).view.role).toBe("owner");
  });
});

describe("the list of an identity provider's signing keys", () => {
  it("reloads for a token signed with an unknown key, even right after a fetch", async () => {
    const { account, browser } = await signUp(issuer);
    await issuer.rotate();
    expect(await browser.logIn(account)).toBe("/console/#/");
    expect(await browser.logIn(account)).toBe("/console/#/");
  });

  it("may change during logins without failures, and is fetched rarely", async () => {
    const { account } = await signUp(issuer);
    const before = issuer.asked.get("/jwks") ?? 0;
    for (let round = 0; round < 3; round++) {
      const bindings = { CLOCK_OFFSET_MS: String(round * 20_000) };
      await issuer.rotate();
      const logIns = Array.from({ length: 5 }, () => new Browser(bindings).logIn(account));
      for (const where of await Promise.all(logIns)) expect(where).toMatch(/^\/console\/#\//);
    }
    expect((issuer.asked.get("/jwks") ?? 0) - before).toBeLessThan(60);
  });
});
