import { env } from "cloudflare:workers";
import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { expect, vi } from "vitest";
import { LocalIssuer } from "../fakes/local-issuer.ts";
import type { Account, TokenChanges } from "../fakes/local-issuer.ts";
import { app } from "../../src/app.ts";
import { checkDocumented } from "../contract/documented.ts";
import { contentLengthHeader } from "../fixtures/content-length.ts";

const ORIGIN = "https://eu.test";
export const ISSUER = "https://issuer.test";
export const CLIENT = { id: "turnpike-eu", secret: "client.secret" };

/** The variables of a deployment with logins. */
export const PEOPLE_VARS = {
  LOGIN_ISSUERS: JSON.stringify([
    { id: "local", kind: "oidc", issuer: ISSUER, client_id: CLIENT.id, secret: "LOCAL_SECRET" },
  ]),
  LOCAL_SECRET: CLIENT.secret,
  SIGN_UP: "on",
  SIGN_UPS_AN_HOUR: "100000",
  SIGN_UPS_A_DAY_AN_ADDRESS: "100000",
};

export function newAccount(changes: Partial<Account> = {}): Account {
  const id = crypto.randomUUID();
  const short = id.slice(0, 8);
  return {
    id,
    name: `Ann ${short}`,
    email: `ann-${short}@example.test`,
    isVerified: true,
    ...changes,
  };
}

/** Other hosts by origin. */
type Hosts = Map<string, (request: Request) => Promise<Response>>;

/**
 * Starts an identity provider in this process, which `globalThis.fetch` reaches until mocks are
 * restored.
 */
export function startIssuer(
  accounts: readonly Account[] = [],
): LocalIssuer & { accounts: Account[]; hosts: Hosts; newAccount: typeof newAccount } {
  const hosts: Hosts = new Map();
  const everybody: Account[] = [...accounts];
  const issuer = new LocalIssuer(ISSUER, [CLIENT], { accounts: everybody });
  vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
    const request = new Request(input, init);
    const { origin } = new URL(request.url);
    const silence = Promise.withResolvers<never>();
    init?.signal?.addEventListener("abort", () => silence.reject(new Error("aborted")));
    const known = origin === ISSUER ? issuer.handle(request) : hosts.get(origin)?.(request);
    return Promise.race([known ?? new Response("", { status: 503 }), silence.promise]);
  });
  const added = (changes?: Partial<Account>): Account => {
    const account = newAccount(changes);
    everybody.push(account);
    return account;
  };
  return Object.assign(issuer, { accounts: everybody, hosts, newAccount: added });
}

function mustBe(response: Response, status: number): void {
  if (response.status !== status) throw new Error(`${response.status}, not ${status}`);
}

export type Bindings = Readonly<Record<string, unknown>>;

/** A browser with cookies that is on the console's page. */
export class Browser {
  readonly cookies = new Map<string, string>();
  /** Names of cookies that the browser doesn't send with another site's navigation. */
  readonly #strict = new Set<string>();
  readonly #bindings: Env;
  address: string = crypto.randomUUID();

  constructor(bindings: Bindings = {}) {
    this.#bindings = { ...env, ...PEOPLE_VARS, ...bindings };
  }

  async ask(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const request = new Request(`${ORIGIN}${path}`, {
      method,
      redirect: "manual",
      headers: {
        origin: ORIGIN,
        "sec-fetch-site": "same-origin",
        "cf-connecting-ip": this.address,
        cookie: this.#sent(headers["sec-fetch-site"] === "cross-site"),
        ...(sent !== undefined && {
          "content-type": "application/json",
          ...contentLengthHeader(sent),
        }),
        ...headers,
      },
      ...(sent !== undefined && { body: sent }),
    });
    const context = createExecutionContext();
    const response = await app.fetch(request, this.#bindings, context);
    this.#keep(response);
    const seen = await checkDocumented(request, response);
    void waitOnExecutionContext(context);
    return seen;
  }

  #sent(isCrossSite: boolean): string {
    const sent = [...this.cookies].filter(([name]) => !isCrossSite || !this.#strict.has(name));
    return sent.map(([name, value]) => `${name}=${value}`).join("; ");
  }

  #keep(response: Response): void {
    for (const cookie of response.headers.getSetCookie()) {
      const [pair = ""] = cookie.split(";", 1);
      const at = pair.indexOf("=");
      if (cookie.includes("SameSite=Strict")) this.#strict.add(pair.slice(0, at));
      if (cookie.includes("Max-Age=0")) this.cookies.delete(pair.slice(0, at));
      else this.cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
  }

  people(method: string, path: string, body?: unknown): Promise<Response> {
    return this.ask(method, `/console/api/people${path}`, body);
  }

  /** Starts a login. Returns the URL to which the browser is sent. */
  async start(fields: Readonly<Record<string, unknown>> = {}): Promise<URL> {
    const body = { issuer: "local", purpose: "log_in", ...fields };
    const response = await this.ask("POST", "/console/api/login/start", body);
    mustBe(response, 200);
    return new URL((await response.json<{ location: string }>()).location);
  }

  /** Clicks an account at the identity provider. Returns the callback's URL. */
  async click(at: URL, account: Account): Promise<URL> {
    const target = new URL("/continue", at);
    for (const [name, value] of at.searchParams) target.searchParams.set(name, value);
    target.searchParams.set("account", account.id);
    const answer = await fetch(target.href, { redirect: "manual" });
    return new URL(answer.headers.get("location") ?? "");
  }

  /** Navigates back to the callback, as a browser does. */
  async land(url: URL): Promise<string> {
    const response = await this.ask("GET", url.pathname + url.search, undefined, {
      origin: "",
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "navigate",
      "sec-fetch-dest": "document",
    });
    mustBe(response, 303);
    return response.headers.get("location") ?? "";
  }

  /** Runs all steps of a login. Returns the final URL. */
  async logIn(account: Account, fields: Readonly<Record<string, unknown>> = {}): Promise<string> {
    return this.land(await this.click(await this.start(fields), account));
  }

  async session(): Promise<SessionView | null> {
    const response = await this.ask("GET", "/console/api/session");
    return response.status === 200 ? response.json<SessionView>() : null;
  }
}

export type SessionView = {
  readonly kind: string;
  readonly role: string | null;
  readonly person: { readonly id: string; readonly name: string; readonly email: string };
  readonly organization: {
    readonly id: string;
    readonly slug: string;
    readonly is_personal: boolean;
  };
  readonly member: { readonly id: string };
};

/** Signs up a person with a personal organization. */
export async function signUp(
  issuer: { accounts: Account[] },
  account: Account = newAccount(),
  bindings: Bindings = {},
): Promise<{ readonly browser: Browser; readonly account: Account; readonly view: SessionView }> {
  issuer.accounts.push(account);
  const browser = new Browser(bindings);
  expect(await browser.logIn(account, { purpose: "sign_up" })).toBe("/console/#/");
  const view = await browser.session();
  if (view === null) throw new Error("the sign-up made no session");
  return { browser, account, view };
}

/** Returns the same browser this number of minutes later. */
export function browserLater(browser: Browser, minutes = 11, bindings: Bindings = {}): Browser {
  const later = new Browser({ CLOCK_OFFSET_MS: String(minutes * 60_000), ...bindings });
  return Object.assign(later, { cookies: browser.cookies, address: browser.address });
}

/** Returns the identity provider's changes for a login this number of minutes later. */
export function loginTimeLater(minutes = 11): TokenChanges {
  const later = (claims: Readonly<Record<string, unknown>>, name: string): object =>
    claims[name] === undefined ? {} : { [name]: Number(claims[name]) + minutes * 60 };
  return {
    claims: (claims) => ({
      ...claims,
      ...later(claims, "iat"),
      ...later(claims, "exp"),
      ...later(claims, "auth_time"),
    }),
  };
}

/** Invites a second person into an organization, who accepts. */
export async function inviteAndJoin(
  issuer: { accounts: Account[] },
  owner: Browser,
  role: string,
): Promise<{ readonly browser: Browser; readonly account: Account; readonly view: SessionView }> {
  const account = newAccount();
  issuer.accounts.push(account);
  const invitation = await inviteTo(owner, { role, email: account.email });
  const browser = new Browser();
  expect(await browser.logIn(account, { purpose: "accept", invitation })).toBe("/console/#/");
  const view = await browser.session();
  if (view === null) throw new Error("who accepted has no session");
  return { browser, account, view };
}

/** Returns the status and code of an error. */
export async function codeOf(response: Response): Promise<readonly [number, string]> {
  if (response.ok) return [response.status, ""];
  const { error } = await response.json<{ error: { code: string | null; type: string } }>();
  return [response.status, error.code ?? error.type];
}

/** Creates a team of this owner, and an invitation's link. */
export async function inviteTo(
  browser: Browser,
  invitation: Readonly<Record<string, unknown>>,
): Promise<string> {
  expect((await browser.people("POST", "/organization/team")).status).toBe(200);
  const response = await browser.people("POST", "/invitations", invitation);
  expect(response.status).toBe(201);
  const { link } = await response.json<{ link: string }>();
  return tokenOf(link);
}

/** Returns the token of an invitation's link. */
export function tokenOf(link: string): string {
  return link.slice(link.lastIndexOf("/") + 1);
}
