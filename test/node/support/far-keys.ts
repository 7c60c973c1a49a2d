import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { Account } from "./account.ts";
import { mapConcurrently } from "../../../src/shared/map-concurrently.ts";
import { ADMIN_TOKEN } from "./two-regions.ts";
import type { FaultyRegions, TestRegion, TwoRegions } from "./two-regions.ts";

/** A global key whose home is the EU, as its two registers know it: by its hash. */
export type FarKey = { readonly id: string; readonly key: string; readonly hash: string };

type Call = {
  readonly method?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
};

/** One request to a region; a body makes it a POST. */
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

/** The status alone; the answer is read to its end. */
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

/** One call of every kind that a customer makes: what costs money, what reads, what writes. */
export const EVERY_CALL: Readonly<Record<string, readonly [path: string, of: Call]>> = {
  chat: ["/chat/completions", CHAT],
  stream: ["/chat/completions", { body: { ...CHAT.body, stream: true } }],
  embeddings: ["/embeddings", { body: { model: "sandbox/embed", input: "Hello" } }],
  models: ["/models", {}],
  balance: ["/balance", {}],
  "POST users": ["/users", { body: { external_id: "far" } }],
};
/** Those of them for which home holds money. */
export const PAID = ["chat", "stream", "embeddings"];

/** An organization of the EU whose key is global. */
export function openFar(regions: TwoRegions, rpmLimit = 1000): Promise<Account> {
  return Account.open(() => regions.eu, { keyScope: "global", rpmLimit });
}

/** One more global key of an account's organization. */
export async function makeKey(regions: TwoRegions, owner: string): Promise<FarKey> {
  const body = { name: "far", rpm_limit: 1000, scope: "global" };
  const response = await call(regions.eu, owner, "/keys", { body });
  assert.equal(response.status, 201);
  const { id, key } = (await response.json()) as { id: string; key: string };
  return { id, key, hash: await hashOf(regions, "id = ?", id) };
}

/** The hash of an account's own key, which is told from its organization's first one by what lists show. */
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

/** A completion with a key, read to its end. */
export function chat(region: TestRegion, { key }: FarKey): Promise<number> {
  return statusOf(region, key, "/chat/completions", CHAT);
}

/** What is said at last: a region of a busy machine answers 503 where its peer or wallet took too long. */
export async function finalStatus(ask: () => Promise<number>): Promise<number> {
  const deadline = performance.now() + DELIVERED_WITHIN_MS;
  for (;;) {
    const status = await ask();
    if (status !== 503 || performance.now() > deadline) return status;
  }
}

/** Keys of an organization that both regions have met. */
export function keysInUse(
  regions: TwoRegions,
  { key: owner }: Account,
  count: number,
): Promise<readonly FarKey[]> {
  const makeAndUse = async (): Promise<FarKey> => {
    const made = await makeKey(regions, owner);
    assert.equal(await finalStatus(() => chat(regions.us, made)), 200);
    assert.equal(await finalStatus(() => chat(regions.eu, made)), 200);
    return made;
  };
  return mapConcurrently(8, Array.from({ length: count }), makeAndUse);
}

export function revoke(regions: TwoRegions, owner: string, id: string): Promise<number> {
  return statusOf(regions.eu, owner, `/keys/${id}`, { method: "DELETE" });
}

/** Whether a region's own register, that has the key's record, takes it for dead: no other region is asked. */
export async function isBuriedAt(region: TestRegion, { hash }: FarKey): Promise<boolean> {
  const { miniflare, name } = region;
  const registers = await miniflare.getDurableObjectNamespace("KEY_REGISTER", `turnpike-${name}`);
  const register = registers.getByName(hash) as unknown as {
    identify(): Promise<{ ok: boolean; failure?: { kind: string } }>;
  };
  const { failure } = await register.identify();
  return failure?.kind === "invalid_api_key";
}

/** Messages that a region's outboxes still have to deliver, in all. */
export async function waitingAt(region: TestRegion): Promise<number> {
  const response = await fetch(`${region.adminUrl}/health`, {
    headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
  });
  const { outboxes } = (await response.json()) as { outboxes: { waiting: number }[] };
  return outboxes.reduce((sum, { waiting }) => sum + waiting, 0);
}

/** What found nobody is sent again after 30 s at the most, and the machine may be busy. */
const DELIVERED_WITHIN_MS = 100_000;
const POLL_MS = 20;

/** Waits until a region has told everything that it had to tell; how often its health was asked for that. */
export async function delivered(region: TestRegion): Promise<number> {
  const deadline = performance.now() + DELIVERED_WITHIN_MS;
  let asked = 1;
  while ((await waitingAt(region)) > 0) {
    assert.ok(performance.now() < deadline, "something still waits in an outbox");
    await sleep(POLL_MS);
    asked++;
  }
  return asked;
}

/** What the US asked of the EU while `work` ran and until all that it left behind had arrived, by operation. */
export async function askedOfEu(
  { us, toEu }: FaultyRegions,
  work: () => Promise<unknown>,
): Promise<Record<string, number>> {
  await delivered(us);
  const before = { ...toEu.counts.operations };
  await work();
  const byHealth = await delivered(us); // a region's health looks whether its peer answers
  const during = Object.entries(toEu.counts.operations).map(([operation, count]) => {
    const others = operation === "lookup" ? byHealth : 0;
    return [operation, count - (before[operation] ?? 0) - others] as const;
  });
  return Object.fromEntries(during.filter(([, count]) => count > 0));
}
