import { env, exports } from "cloudflare:workers";
import { createExecutionContext } from "cloudflare:test";
import { expect, vi } from "vitest";
import { app } from "../../src/app.ts";
import { refuse } from "../../src/shared/failure.ts";
import { contentLengthHeader } from "../fixtures/content-length.ts";
import { checkDocumented } from "./documented.ts";
import { errorBody } from "./response-schemas.ts";
import type { ErrorObject } from "./response-schemas.ts";

export const ADMIN_TOKEN = "a".repeat(32);
const CREDITS = 1_000_000_000;
const RPM_LIMIT = 1000;

/** An organization with an owner, one key and credits, created by the operator's API. */
export type Account = {
  readonly orgId: string;
  readonly memberId: string;
  readonly keyId: string;
  readonly key: string;
};

export type AccountOptions = {
  /** Micro-credits, by default 1,000 dollars. 0 adds none. */
  readonly credits?: number;
  readonly rpmLimit?: number;
  readonly keyScope?: "regional" | "global";
};

export async function openAccount(options: AccountOptions = {}): Promise<Account> {
  const { credits = CREDITS, rpmLimit = RPM_LIMIT, keyScope = "regional" } = options;
  const body = newOrganization({ key_scope: keyScope, rpm_limit: rpmLimit });
  const response = await admin("POST", "/orgs", body);
  expect(response.status).toBe(201);
  const created = await response.json<MadeOrganization>();
  const account = {
    orgId: created.organization.id,
    memberId: created.member.id,
    keyId: created.key.id,
    key: created.key.key,
  };
  if (credits !== 0) await addCredits(account.orgId, credits);
  return account;
}

export type MadeOrganization = {
  readonly organization: { readonly id: string };
  readonly member: { readonly id: string };
  readonly key: { readonly id: string; readonly key: string };
};

/** Returns a body for `POST /orgs` with a unique slug. */
export function newOrganization(fields: Record<string, unknown> = {}): Record<string, unknown> {
  const slug = `c-${crypto.randomUUID().slice(0, 18)}`;
  return { name: "Contract", slug, owner_email: "owner@example.com", ...fields };
}

export type Role = "owner" | "admin" | "billing" | "member";

/** Adds a member with a key for 1,000 requests per minute. */
export async function addMember(orgId: string, role: Role): Promise<Account> {
  const email = `${crypto.randomUUID()}@example.com`;
  const added = await admin("POST", `/orgs/${orgId}/members`, { email, role });
  expect(added.status).toBe(201);
  const { id: memberId } = await added.json<{ id: string }>();
  return { orgId, memberId, ...(await addKey(orgId, memberId)) };
}

export async function addKey(
  orgId: string,
  memberId: string,
): Promise<{ readonly keyId: string; readonly key: string }> {
  const body = { name: "one more", rpm_limit: RPM_LIMIT };
  const response = await admin("POST", `/orgs/${orgId}/members/${memberId}/keys`, body);
  expect(response.status).toBe(201);
  const { id, key } = await response.json<{ id: string; key: string }>();
  return { keyId: id, key };
}

export async function addCredits(
  orgId: string,
  amount: number,
  reference: string = crypto.randomUUID(),
): Promise<void> {
  const body = { amount_micro: amount, reference };
  const response = await admin("POST", `/orgs/${orgId}/credits`, body);
  expect(response.status).toBe(200);
}

export type Sending = {
  readonly method?: string;
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON unless it is a string, bytes or a stream. */
  readonly body?: unknown;
  /** Bindings instead of the tests' own. */
  readonly bindings?: Env;
  /** Aborted when the client disconnects. */
  readonly signal?: AbortSignal;
};

/**
 * Sends one request to the application, and checks the response against the OpenAPI document. The
 * path begins with a slash.
 */
export async function send(path: string, sending: Sending = {}): Promise<Response> {
  const { body, key } = sending;
  const sent = body === undefined || isRaw(body) ? body : JSON.stringify(body);
  const type = body === undefined ? {} : { "content-type": "application/json" };
  const headers = new Headers({ ...type, ...contentLengthHeader(sent) });
  if (key !== undefined) headers.set("authorization", `Bearer ${key}`);
  for (const [name, value] of Object.entries({ ...sending.headers })) headers.set(name, value);
  const method = sending.method ?? (body === undefined ? "GET" : "POST");
  const init = { method, headers, redirect: "manual" as const, signal: sending.signal ?? null };
  const request = new Request(`https://eu.test${path}`, {
    ...init,
    ...(sent !== undefined && { body: sent }),
  });
  const { bindings } = sending;
  const response =
    bindings === undefined
      ? await exports.default.fetch(request)
      : await app.fetch(request, bindings, createExecutionContext());
  return checkDocumented(request, response);
}

function isRaw(body: unknown): body is string | Uint8Array | ReadableStream {
  return typeof body === "string" || body instanceof Uint8Array || body instanceof ReadableStream;
}

export function admin(method: string, path: string, body?: unknown): Promise<Response> {
  return send(`/admin/v1${path}`, { method, key: ADMIN_TOKEN, body });
}

/** Returns the tests' bindings with some replaced. `undefined` removes a binding. */
export function bindingsWith(changes: Readonly<Record<string, unknown>>): Env {
  return { ...env, ...changes };
}

/**
 * The wallet for a sweep that must skip other tests' organizations, because there are thousands.
 */
export const SKIPPED_WALLET = { poke: async () => refuse({ kind: "storage_unavailable" }) };

/** Ends each pause between retries immediately, until the end of the test. */
export function skipPauses(): void {
  vi.spyOn(scheduler, "wait").mockResolvedValue();
}

/** Returns the tests' bindings with these wallet methods. `calls` gets the wallet's name. */
export function walletsWith(calls: (name: string) => object): Env {
  return objectsWith("WALLET", calls);
}

/**
 * Returns the tests' bindings, in which every call of this method to these objects is lost. Retries
 * don't pause until the end of the test.
 */
export function objectsWithout(binding: "KEY_REGISTER" | "WALLET", call: string): Env {
  skipPauses();
  return objectsWith(binding, () => ({ [call]: () => Promise.reject(new Error("lost")) }));
}

function objectsWith(binding: "KEY_REGISTER" | "WALLET", calls: (name: string) => object): Env {
  const getByName = (name: string): unknown => stubWith(env[binding].getByName(name), calls(name));
  return bindingsWith({ [binding]: { getByName } });
}

function stubWith(stub: object, calls: object): unknown {
  return new Proxy(stub, {
    get: (whole, property) =>
      Reflect.get(calls, property) ??
      // A stub's methods must be called on the stub, because they have no `apply`.
      ((...args: unknown[]) => (whole as Methods)[String(property)]?.(...args)),
  });
}

type Methods = { readonly [name: string]: (...args: readonly unknown[]) => unknown };

export const HELLO = [{ role: "user", content: "Hello there" }] as const;

type Options = Pick<Sending, "headers" | "bindings">;

/** A chat completion of `sandbox/echo`, unless the fields name another model. */
export function chat(
  key: string,
  fields: Record<string, unknown> = {},
  options: Options = {},
): Promise<Response> {
  const body = { model: "sandbox/echo", messages: HELLO, ...fields };
  return send("/v1/chat/completions", { key, body, ...options });
}

export function embed(
  key: string,
  fields: Record<string, unknown> = {},
  options: Options = {},
): Promise<Response> {
  const body = { model: "sandbox/embed", input: "Hello there", ...fields };
  return send("/v1/embeddings", { key, body, ...options });
}

/** Returns the balance in micro-credits from `GET /v1/balance`. */
export async function balanceOf(key: string): Promise<number> {
  const response = await send("/v1/balance", { key });
  expect(response.status).toBe(200);
  const { credits_micro } = await response.json<{ credits_micro: number }>();
  return credits_micro;
}

/** Returns the `error` of a response with this status. Checks that the body has no other fields. */
export async function errorOf(response: Response, status: number): Promise<ErrorObject> {
  const text = await response.text();
  expect([response.status, text]).toEqual([status, expect.any(String)]);
  expect(response.headers.get("content-type")).toBe("application/json");
  return errorBody.parse(JSON.parse(text)).error;
}

/** Returns the data of each event in a stream, after checking that it has only data events. */
export async function eventsOf(response: Response): Promise<string[]> {
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
  const text = await response.text();
  expect(text.endsWith("\n\n")).toBe(true);
  const events = text.slice(0, -2).split("\n\n");
  for (const event of events) expect(event).toMatch(/^data: [^\n]+$/);
  return events.map((event) => event.slice("data: ".length));
}
