import { expect } from "vitest";
import { send } from "./client.ts";
import type { Sending } from "./client.ts";

/** The page's own origin, as a browser sends it; `send` calls this host. */
const ORIGIN = "https://eu.test";

/** What a browser on the console's page sends with every call. */
export function fromPage(cookie?: string): Record<string, string> {
  const headers = { origin: ORIGIN, "sec-fetch-site": "same-origin" };
  return cookie === undefined ? headers : { ...headers, cookie };
}

/** One call of the console's page; the path goes behind `/console/api`. */
export function page(path: string, cookie?: string, sending: Sending = {}): Promise<Response> {
  const headers = { ...fromPage(cookie), ...sending.headers };
  return send(`/console/api${path}`, { ...sending, headers });
}

/** Tries to log in, from an address of its own unless one is named. */
export function tryLogin(
  key: unknown,
  headers: Readonly<Record<string, string>> = {},
  bindings?: Env,
): Promise<Response> {
  const address = { "cf-connecting-ip": crypto.randomUUID() };
  const sending = { body: { key }, headers: { ...address, ...headers } };
  return page("/login", undefined, bindings === undefined ? sending : { ...sending, bindings });
}

/** The cookie of a new session, as a browser sends it back. */
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
