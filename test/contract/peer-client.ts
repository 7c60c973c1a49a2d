import { env } from "cloudflare:workers";
import { expect } from "vitest";
import { verifyKey } from "../../src/accounts/keys/api-key.ts";
import type { PeerOperation } from "../../src/regions/peer-call.ts";
import { signMessage } from "../fixtures/peer-message.ts";
import type { PeerMessage, SignedMessage } from "../fixtures/peer-message.ts";
import { keySecrets } from "../keys/key-fixture.ts";
import { openAccount, send } from "./client.ts";
import type { Account, AccountOptions } from "./client.ts";

export const LOOKUP = "/internal/v1/lookup";
const NOWHERE = "/internal/v1/nowhere";

/** An account whose key a peer can look up by its hash. */
export type KnownAccount = Account & { readonly hash: string };

export async function openKnown(options: AccountOptions = {}): Promise<KnownAccount> {
  const account = await openAccount({ keyScope: "global", ...options });
  const verified = await verifyKey(account.key, keySecrets());
  if (verified === null) throw new Error("the key is not one of ours");
  return { ...account, hash: verified.hash };
}

export function lookupOf(hash: string, fields: object = {}): string {
  return JSON.stringify({ v: 1, key_hash: hash, ...fields });
}

type Message = Omit<Partial<PeerMessage>, "body"> & {
  readonly body: string;
  readonly path?: string;
};

/** Returns a message that the US signed to this region, by default a lookup. */
export function signAsPeer({ path = LOOKUP, ...message }: Message): Promise<SignedMessage> {
  return signMessage({
    url: `https://eu.test${path}`,
    sender: "us",
    secret: env.PEER_IN_US,
    signedAt: Date.now(),
    ...message,
  });
}

/** Delivers a message, which can have changed since it was signed. */
export function deliverMessage(message: SignedMessage, bindings?: Env): Promise<Response> {
  const { pathname, search } = new URL(message.url);
  const { method, headers, body } = message;
  return send(pathname + search, {
    method,
    headers,
    ...(method !== "GET" && { body }),
    ...(bindings !== undefined && { bindings }),
  });
}

/** The response to a peer's message, with the results if the operation has a list of them. */
type PeerReply = {
  readonly status: number;
  readonly body: { readonly ok?: boolean; readonly results?: readonly unknown[] };
};

/** Sends a message that the US region signed to this one. Returns the response. */
export async function sendAsPeer(
  operation: PeerOperation,
  message: object,
  bindings?: Env,
): Promise<PeerReply> {
  const body = JSON.stringify({ v: 1, ...message });
  const path = `/internal/v1/${operation}`;
  const response = await deliverMessage(await signAsPeer({ path, body }), bindings);
  return { status: response.status, body: await response.json() };
}

/**
 * Returns status, headers and body without the request ID and path, which differ between requests.
 */
export async function comparableResponse(
  response: Response,
  path: string,
): Promise<Record<string, unknown>> {
  const { "x-request-id": id, ...headers } = Object.fromEntries(response.headers);
  expect(id).toMatch(/^req_[0-9A-Za-z]{24}$/);
  return { status: response.status, headers, body: (await response.text()).replace(path, "") };
}

/**
 * Returns `found` for the account's record, `unknown` for a response that is, byte for byte, that
 * of an unknown path, else the response.
 */
export async function peerVerdict(
  response: Response,
  account: KnownAccount,
  path = LOOKUP,
): Promise<unknown> {
  const { status, headers, body } = await comparableResponse(response, path);
  const nowhere = await comparableResponse(await send(NOWHERE, { body: {} }), NOWHERE);
  const answer = JSON.stringify({ status, headers, body });
  if (answer === JSON.stringify(nowhere) && status === 404) return "unknown";
  const { keyId: key_id, orgId: org_id, memberId: member_id } = account;
  const record = { ok: true, key_id, org_id, member_id, scope: "global", rpm_limit: 1000 };
  return status === 200 && body === JSON.stringify(record) ? "found" : answer;
}
