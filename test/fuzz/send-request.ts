import { createExecutionContext, waitOnExecutionContext } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { vi } from "vitest";
import { app } from "../../src/app.ts";
import type { Account } from "../contract/client.ts";
import { FreshAccounts } from "../contract/fresh-accounts.ts";
import { addMeasured } from "../measured.ts";
import { faultOf, isErrorBody } from "./error-table.ts";

/** A request in parts. The path begins with a slash. */
type Sending = {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?: Uint8Array | string | undefined;
};
export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
};

/** Log lines that report a bug, since they were last read. */
const bugs: string[] = [];
/** The organizations of the fuzzers, because alarms of other files' wallets can run meanwhile. */
const ours = new Set<string>();

/** Silences the log from now on, but keeps bugs and alerts for `ask`. */
export function silenceLog(): void {
  for (const level of ["log", "warn", "error"] as const) {
    vi.spyOn(console, level).mockImplementation((line: unknown) => {
      const text = String(line);
      if (text.includes('"event":"exception"') || isOurAlert(text)) bugs.push(text);
    });
  }
}

function isOurAlert(line: string): boolean {
  const id = /"org_id":"([^"]+)"/.exec(line)?.[1];
  return line.includes('"event":"alert"') && (id === undefined || ours.has(id));
}

/**
 * Returns the complete response after all its work, or null for requests that no client can send.
 * Throws for a response that breaks the API, or for a logged bug.
 */
export async function sendRequest(sending: Sending, bindings: Env = env): Promise<Answer | null> {
  const request = requestOf(sending);
  if (request === null) return null;
  bugs.length = 0;
  const context = createExecutionContext();
  const response = await app.fetch(request, bindings, context);
  const { status, headers } = response;
  addMeasured({ answers: 1, internal: status === 500 ? 1 : 0 });
  const text = await response.text();
  await waitOnExecutionContext(context);
  const fault = bugs.at(0) ?? faultIn(request, { status, headers, text });
  if (fault !== null) throw new Error(`${request.method} ${request.url}: ${status} ${fault}`);
  return { status, headers, text };
}

function requestOf({ method, path, headers, body }: Sending): Request | null {
  try {
    const sent = new Headers();
    for (const [name, value] of headers) sent.append(name, value);
    const init = { method, headers: sent, redirect: "manual" as const };
    return new Request(`https://eu.test${path}`, { ...init, ...(body !== undefined && { body }) });
  } catch {
    return null;
  }
}

/** Returns the fault that any response can have, or null. */
function faultIn(request: Request, answer: Answer): string | null {
  const { headers } = answer;
  if (!/^req_[0-9A-Za-z]{24}$/.test(headers.get("x-request-id") ?? "")) return "no request id";
  if (headers.get("x-content-type-options") !== "nosniff") return "no nosniff";
  for (const name of ["server", "set-cookie", "x-powered-by", "access-control-allow-credentials"]) {
    if (headers.has(name)) return `a header ${name}`;
  }
  const isStream = headers.get("content-type") === "text/event-stream; charset=utf-8";
  if (headers.get("cache-control") !== (isStream ? "no-cache, no-transform" : "no-store")) {
    return "another cache-control";
  }
  return faultOfOrigin(request, headers) ?? faultOfCaller(answer) ?? faultOfBody(request, answer);
}

/** Checks that any origin can read paths under /v1 and no others. */
function faultOfOrigin(request: Request, headers: Headers): string | null {
  const path = new URL(request.url).pathname.replaceAll(/\/{2,}/g, "/");
  if (path.includes("%")) return null; // the routing decides which path that is
  const isOurs = (path === "/v1" || path.startsWith("/v1/")) && request.headers.has("origin");
  const allowed = headers.get("access-control-allow-origin");
  return allowed === (isOurs ? "*" : null) ? null : `access-control-allow-origin ${allowed}`;
}

/** Checks that an authenticated response has all headers about its caller, and others none. */
function faultOfCaller({ status, headers }: Answer): string | null {
  const names = [
    "openai-organization",
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
  ];
  const count = names.filter((name) => headers.has(name)).length;
  if (count !== 0 && count !== names.length) return "half of the caller's headers";
  return status === 401 && count > 0 && headers.get("x-ratelimit-limit-requests") === null
    ? "a 401 that knows the caller"
    : null;
}

function faultOfBody({ method }: Request, { status, headers, text }: Answer): string | null {
  const type = headers.get("content-type") ?? "";
  if (status === 204) return method === "OPTIONS" && text === "" ? null : "a 204";
  if (type.startsWith("text/event-stream")) return faultOfStream(text);
  if (type !== "application/json") return `a content-type ${type}`;
  if (method === "HEAD") return text === "" && status < 500 ? null : "a HEAD with a body";
  if (status > 201) return faultOf(status, headers, text);
  return isJson(text) ? null : `no JSON: ${text.slice(0, 200)}`;
}

/**
 * Checks that a stream has only data lines, and ends with [DONE] or an error in the API's format.
 */
function faultOfStream(text: string): string | null {
  const events = text.split("\n\n");
  if (events.pop() !== "") return "a stream that does not end in a blank line";
  const data = events.map((event) => /^data: (.+)$/.exec(event)?.[1] ?? "");
  const last = data.pop() ?? "";
  if (!data.every(isJson)) return `an event that is no data: ${text.slice(0, 500)}`;
  return last === "[DONE]" || isErrorBody(last) ? null : `a stream without an end: ${last}`;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Accounts for any number of requests. A new one replaces an account before its rate limit. */
export class Accounts {
  readonly #fresh = new FreshAccounts({ keyScope: "global" });

  /** Returns the account for a number of requests with its key. */
  async next(uses = 1): Promise<Account> {
    const account = await this.#fresh.next(uses);
    ours.add(account.orgId);
    return account;
  }
}
