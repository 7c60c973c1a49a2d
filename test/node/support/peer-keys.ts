import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Account } from "./account.ts";
import { mapConcurrently } from "../../../src/shared/map-concurrently.ts";
import { ADMIN_TOKEN } from "./two-regions.ts";
import type { FaultyRegions, TestRegion, TwoRegions } from "./two-regions.ts";

/** A global key with home region EU, and the hash that names its key objects. */
export type GlobalKey = { readonly id: string; readonly key: string; readonly hash: string };

type Call = {
  readonly method?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Sends one request to a region. With a body, it is a POST. */
export function call(region: TestRegion, key: string, path: string, of: Call = {}) {
  const { body, headers, method = body === undefined ? "GET" : "POST" } = of;
  return fetch(`${region.baseUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** Returns the status after reading the whole response. */
export async function statusOf(
  region: TestRegion,
  key: string,
  path = "/models",
  of: Call = {},
): Promise<number> {
  const response = await call(region, key, path, of);
  await response.text();
  return response.status;
}

const HELLO = [{ role: "user", content: "Hello from far away" }];
export const CHAT: Call = { body: { model: "sandbox/echo", messages: HELLO, max_tokens: 64 } };

/** One call of every kind for customers: paid, reading and writing. */
export const EVERY_CALL: Readonly<Record<string, readonly [path: string, of: Call]>> = {
  chat: ["/chat/completions", CHAT],
  stream: ["/chat/completions", { body: { ...CHAT.body, stream: true } }],
  embeddings: ["/embeddings", { body: { model: "sandbox/embed", input: "Hello" } }],
  models: ["/models", {}],
  balance: ["/balance", {}],
  "POST users": ["/users", { body: { external_id: "far" } }],
};
/** The calls that hold money in the home region. */
export const PAID = ["chat", "stream", "embeddings"];

/** Creates an EU organization with a global key. */
export function openRemoteAccount(regions: TwoRegions, rpmLimit = 1000): Promise<Account> {
  return Account.open(() => regions.eu, { keyScope: "global", rpmLimit });
}

/** Creates another global key for an account's organization. */
export async function makeKey(regions: TwoRegions, owner: string): Promise<GlobalKey> {
  const body = { name: "far", rpm_limit: 1000, scope: "global" };
  const response = await call(regions.eu, owner, "/keys", { body });
  assert.equal(response.status, 201);
  const { id, key } = (await response.json()) as { id: string; key: string };
  return { id, key, hash: await hashOf(regions, "id = ?", id) };
}

/** Returns the hash of an account's own key, found by its listed prefix. */
export function hashOfAccount(regions: TwoRegions, { orgId, key }: Account): Promise<string> {
  const prefix = key.slice(0, key.indexOf("_live_") + "_live_".length + 4);
  return hashOf(regions, "org_id = ? AND prefix = ?", orgId, prefix);
}

async function hashOf(regions: TwoRegions, where: string, ...values: string[]): Promise<string> {
  const db = await regions.eu.miniflare.getD1Database("DB", "turnpike-eu");
  const row = await db
    .prepare(`SELECT hash FROM keys WHERE ${where}`)
    .bind(...values)
    .first<{ hash: string }>();
  assert.ok(row !== null);
  return row.hash;
}

/** Sends a completion and returns its status. */
export function chat(region: TestRegion, { key }: GlobalKey): Promise<number> {
  return statusOf(region, key, "/chat/completions", CHAT);
}

/** Retries while a slow machine returns 503, and returns the last status. */
export async function finalStatus(send: () => Promise<number>): Promise<number> {
  const deadline = performance.now() + DELIVERED_WITHIN_MS;
  for (;;) {
    const status = await send();
    if (status !== 503 || performance.now() > deadline) return status;
  }
}

/** Creates keys and uses each in both regions. */
export function keysInUse(
  regions: TwoRegions,
  { key: owner }: Account,
  count: number,
): Promise<readonly GlobalKey[]> {
  const makeAndUse = async (): Promise<GlobalKey> => {
    const globalKey = await makeKey(regions, owner);
    assert.equal(await finalStatus(() => chat(regions.us, globalKey)), 200);
    assert.equal(await finalStatus(() => chat(regions.eu, globalKey)), 200);
    return globalKey;
  };
  return mapConcurrently(8, Array.from({ length: count }), makeAndUse);
}

export function revoke(regions: TwoRegions, owner: string, id: string): Promise<number> {
  return statusOf(regions.eu, owner, `/keys/${id}`, { method: "DELETE" });
}

/**
 * Reports whether a region's own key object, without calling another region, has the key as
 * revoked.
 */
export async function isRevokedAt(region: TestRegion, { hash }: GlobalKey): Promise<boolean> {
  const { miniflare, name } = region;
  const registers = await miniflare.getDurableObjectNamespace("KEY_REGISTER", `turnpike-${name}`);
  const register = registers.getByName(hash) as unknown as {
    identify(): Promise<{ ok: boolean; failure?: { kind: string } }>;
  };
  const { failure } = await register.identify();
  return failure?.kind === "invalid_api_key";
}

/** Returns the number of messages that a region's outboxes must still deliver. */
export async function waitingAt(region: TestRegion): Promise<number> {
  const response = await fetch(`${region.adminUrl}/health`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  const { outboxes } = (await response.json()) as { outboxes: { waiting: number }[] };
  return outboxes.reduce((sum, { waiting }) => sum + waiting, 0);
}

/** Undelivered messages are retried after at most 30 s, and the machine can be slow. */
const DELIVERED_WITHIN_MS = 100_000;
const POLL_MS = 20;

/** Waits until a region has delivered all messages. Returns how many health requests that took. */
export async function delivered(region: TestRegion): Promise<number> {
  const deadline = performance.now() + DELIVERED_WITHIN_MS;
  let healthRequests = 1;
  while ((await waitingAt(region)) > 0) {
    assert.ok(performance.now() < deadline, "something still waits in an outbox");
    await sleep(POLL_MS);
    healthRequests++;
  }
  return healthRequests;
}

/**
 * Returns the US's calls to the EU by operation, while `work` ran and until all its messages had
 * arrived.
 */
export async function callsToEu(
  { us, toEu }: FaultyRegions,
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  await delivered(us);
  const before = { ...toEu.counts.operations };
  await work();
  const byHealth = await delivered(us); // a region's health calls the other region
  const during = Object.entries(toEu.counts.operations).map(([operation, count]) => {
    const others = operation === "lookup" ? byHealth : 0;
    return [operation, count - (before[operation] ?? 0) - others] as const;
  });
  return Object.fromEntries(during.filter(([, count]) => count > 0));
}
