import { get } from "node:http";
import { ACCOUNTS } from "../test/fakes/local-issuer.ts";
import type { Account } from "../test/fakes/local-issuer.ts";

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
