import { get } from "node:http";
import { ACCOUNTS, LocalIssuer } from "../test/fakes/local-issuer.ts";
import type { Account } from "../test/fakes/local-issuer.ts";
import { serveRequests } from "./serve.ts";

const CLIENT = { id: "turnpike-local", secret: "the secret of this machine" };

export type ServedIssuer = {
  readonly url: string;
  readonly issuer: LocalIssuer;
  /** A region's variables, including the client secret. */
  readonly bindings: Readonly<Record<string, string>>;
  readonly close: () => void;
};

/**
 * Serves an identity provider on a free port or the given one. Uses `localhost` because the regions
 * use 127.0.0.1, so that browsers treat them as different sites.
 */
export async function serveIssuer(
  port = 0,
  accounts: readonly Account[] = ACCOUNTS,
): Promise<ServedIssuer> {
  const server = await serveRequests((request) => issuer.handle(request), {
    host: "localhost",
    port,
  });
  const url = `http://localhost:${server.port}`;
  const issuer = new LocalIssuer(url, [CLIENT], { accounts });
  const entry = {
    id: "local",
    kind: "oidc",
    name: "this machine",
    issuer: url,
    client_id: CLIENT.id,
    secret: "LOCAL_LOGIN_SECRET",
  };
  const bindings = {
    LOGIN_ISSUERS: JSON.stringify([entry]),
    LOCAL_LOGIN_SECRET: CLIENT.secret,
    SIGN_UP: "on",
    SIGN_UP_CREDIT_MICRO: "1000000",
    SIGN_UP_CREDITS_A_DAY_MICRO: "1000000000",
  };
  return { url, issuer, bindings, close: server.close };
}

const LOGGED_IN = "/console/#/";

/**
 * Signs up or logs in the local identity provider's first account. Returns the account's name, or
 * null if the region rejects it.
 */
export async function signUpLocally(regionUrl: string): Promise<string | null> {
  const [account] = ACCOUNTS;
  if (account === undefined) return null;
  const end = await enterLocally(regionUrl, account, "sign_up");
  return end === LOGGED_IN ? account.name : null;
}

/**
 * Logs in through the local identity provider. Returns the console page at the end, or null if the
 * login can't start.
 */
export async function enterLocally(
  regionUrl: string,
  account: Account,
  purpose: "log_in" | "sign_up",
): Promise<string | null> {
  const { origin } = new URL(regionUrl);
  const response = await fetch(new URL("/console/api/login/start", origin), {
    method: "POST",
    headers: { origin, "content-type": "application/json" },
    body: JSON.stringify({ issuer: "local", purpose }),
  });
  const { location } = (await response.json()) as { readonly location?: string };
  if (location === undefined) return null;
  const [cookie = ""] = (response.headers.get("set-cookie") ?? "").split(";", 1);
  const button = new URL(location);
  button.pathname = "/continue";
  button.searchParams.set("account", account.id);
  const back = await fetch(button, { redirect: "manual" });
  return navigate(new URL(back.headers.get("location") ?? origin), cookie);
}

/**
 * Returns the URL that a navigation is redirected to. Doesn't use `fetch`, which sends its own
 * Sec-Fetch-Mode.
 */
function navigate(url: URL, cookie: string): Promise<string | null> {
  return new Promise((resolve, reject) => {
    get(url, { headers: { cookie } }, (response) => {
      response.resume();
      resolve(response.headers.location ?? null);
    }).on("error", reject);
  });
}
