import { expect } from "vitest";
import { send } from "./client.ts";
import type { Sending } from "./client.ts";

/** The origin of the console's page, as browsers send it. `send` calls this host. */
const ORIGIN = "https://eu.test";

/** Returns the headers that a browser on the console's page sends. */
export function pageHeaders(cookie?: string): Record<string, string> {
  const headers = { origin: ORIGIN, "sec-fetch-site": "same-origin" };
  return cookie === undefined ? headers : { ...headers, cookie };
}

/** Sends one call of the console's page. The path starts after `/console/api`. */
export function callFromPage(
  path: string,
  cookie?: string,
  sending: Sending = {},
): Promise<Response> {
  const headers = { ...pageHeaders(cookie), ...sending.headers };
  return send(`/console/api${path}`, { ...sending, headers });
}

/** Tries to log in, by default from a new network address. */
export function tryLogin(
  key: unknown,
  headers: Readonly<Record<string, string>> = {},
  bindings?: Env,
): Promise<Response> {
  const address = { "cf-connecting-ip": crypto.randomUUID() };
  const sending = { body: { key }, headers: { ...address, ...headers } };
  return callFromPage(
    "/login",
    undefined,
    bindings === undefined ? sending : { ...sending, bindings },
  );
}

/** Logs in with a key. Returns the cookie as a browser sends it. */
export async function login(key: string): Promise<string> {
  const response = await tryLogin(key);
  expect(response.status).toBe(200);
  return cookieOf(response);
}

export function cookieOf(response: Response): string {
  const [cookie = ""] = (response.headers.get("set-cookie") ?? "").split(";", 1);
  expect(cookie).toMatch(/^__Host-turnpike-eu=[0-9A-Za-z]{172}$/);
  return cookie;
}
