import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { createKey, createOrganization, postCredits } from "../../../scripts/admin-client.ts";
import { ADMIN_TOKEN } from "./release-region.ts";

/** A customer's data in a region, which must work with the next release and with the last one. */
export type SampleData = {
  readonly orgId: string;
  readonly memberId: string;
  readonly keys: Readonly<Record<"owner" | "limited" | "rotated" | "revoked", string>>;
  readonly session: string;
  readonly webhook: { readonly id: string; readonly secret: string };
  /** The ID of a request with an Idempotency-Key. A retry's response refers to it. */
  readonly named: string;
};

/** A region's responses about the data, by call. */
export type RecordedResponses = Readonly<
  Record<string, { readonly status: number; readonly body: unknown }>
>;

type Call = {
  readonly key?: string;
  readonly method?: string;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
};
type Body = Readonly<Record<string, unknown>>;

const WAIT_MS = 60_000;
const POLL_MS = 50;

async function sendRequest(url: string, path: string, call: Call = {}): Promise<Response> {
  const { key = "", body, headers } = call;
  return fetch(`${url}${path}`, {
    method: call.method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { "content-type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

/** Returns the body of a successful response. Throws for any other. */
async function callOk(url: string, path: string, call: Call): Promise<Body> {
  const response = await sendRequest(url, path, call);
  const text = await response.text();
  assert.ok(response.ok, `${call.method ?? ""} ${path}: ${response.status} ${text}`);
  return text === "" ? {} : (JSON.parse(text) as Body);
}

/** Pays for a chat completion of the end user `ann`. Returns the request ID. */
async function payForChat(url: string, key: string, more: Call = {}): Promise<string> {
  const message = { role: "user", content: "one two three" };
  const body = { model: "sandbox/echo", user: "ann", messages: [message], ...more.body };
  const response = await sendRequest(url, "v1/chat/completions", { ...more, key, body });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return response.headers.get("x-request-id") ?? "";
}

/** Opens a hold that is still open when the region stops: two words of a stream, then silence. */
async function openHold(url: string, key: string): Promise<void> {
  const message = { role: "user", content: "one two three" };
  const body = { model: "sandbox/stall", stream: true, messages: [message] };
  const response = await sendRequest(url, "v1/chat/completions", { key, body });
  assert.equal(response.status, 200);
  void response.text().catch(() => ""); // the region stops first
}

/** Creates the sample data through the API. `hook` is the URL of its webhook. */
export async function createSampleData(url: string, hook: string): Promise<SampleData> {
  const admin = { url: `${url}admin/v1`, token: ADMIN_TOKEN };
  const { orgId, memberId } = await createOrganization(admin, {
    name: "Recorded",
    slug: "recorded",
    ownerEmail: "owner@example.com",
    keyScope: "regional",
  });
  const member = { orgId, memberId, rpmLimit: 1000 };
  const owner = await createKey(admin, { ...member, name: "owner", scope: "regional" });
  const mine = { key: owner };
  await postCredits(admin, orgId, { amount_micro: 50_000_000, reference: "first" });
  const webhook = await callOk(url, "v1/webhooks", { ...mine, body: { url: hook } });
  await callOk(url, `v1/orgs/${orgId}/settings`, {
    ...mine,
    method: "PATCH",
    body: { low_balance_threshold_dollars: 60, default_user_monthly_quota_dollars: 40 },
  });
  await callOk(url, "v1/users", { ...mine, body: { external_id: "ann", daily_quota_dollars: 30 } });
  const limited = await makeKey(url, owner, { scope: "global", budget_dollars: 20 });
  const rotated = await makeKey(url, owner, {});
  const revoked = await makeKey(url, owner, { scope: "global" });
  for (const key of [limited.key, rotated.key, revoked.key]) await payForChat(url, key);
  const rotation = {
    ...mine,
    body: { overlap_seconds: 3600 },
    headers: { "Idempotency-Key": crypto.randomUUID() },
  };
  const second = await callOk(url, `v1/keys/${rotated.id}/rotate`, rotation);
  await callOk(url, `v1/keys/${revoked.id}`, { ...mine, method: "DELETE" });
  const session = await callOk(url, "v1/sessions", { ...mine, body: { expires_in: 86_400 } });
  const sampleData = {
    orgId,
    memberId,
    keys: { owner, limited: limited.key, rotated: String(second["key"]), revoked: revoked.key },
    session: String(session["token"]),
    webhook: { id: String(webhook["id"]), secret: String(webhook["secret"]) },
    named: crypto.randomUUID(),
  };
  await payForChat(url, owner, { headers: { "Idempotency-Key": sampleData.named } });
  await useSampleData(url, sampleData);
  return sampleData;
}

async function makeKey(
  url: string,
  owner: string,
  terms: object,
): Promise<{ readonly id: string; readonly key: string }> {
  const body = { name: "another", rpm_limit: 1000, ...terms };
  const created = await callOk(url, "v1/keys", { key: owner, body });
  return { id: String(created["id"]), key: String(created["key"]) };
}

async function loggedIn(url: string, key: string): Promise<string> {
  const headers = { origin: new URL(url).origin };
  const response = await sendRequest(url, "console/api/login", { body: { key }, headers });
  assert.equal(response.status, 200, await response.text());
  return (response.headers.get("set-cookie") ?? "").split(";", 1)[0] ?? "";
}

/**
 * Uses the sample data once: every key and the session pay, holds stay open, settings and keys
 * change, one end user is erased and another added, and a global key is revoked.
 */
export async function useSampleData(url: string, { orgId, memberId, keys, session }: SampleData) {
  const admin = { url: `${url}admin/v1`, token: ADMIN_TOKEN };
  const mine = { key: keys.owner };
  for (const key of [keys.owner, keys.limited, keys.rotated, session]) await payForChat(url, key);
  await payForChat(url, keys.owner, { body: { stream: true } });
  await openHold(url, keys.owner);
  await openHold(url, session);
  const name = crypto.randomUUID();
  await postCredits(admin, orgId, { amount_micro: 1000, reference: name });
  const added = await createKey(admin, { orgId, memberId, name, scope: "global" });
  await payForChat(url, added);
  const { id } = await callOk(url, "v1/key", { key: added });
  await callOk(url, `v1/keys/${String(id)}`, { ...mine, method: "DELETE" });
  await callOk(url, "v1/users", { ...mine, body: { external_id: name } });
  await callOk(url, `v1/users/${name}`, { ...mine, method: "DELETE" });
  await callOk(url, `v1/orgs/${orgId}/settings`, {
    ...mine,
    method: "PATCH",
    body: { default_alert_threshold: 0.5 },
  });
}

/** Reads everything that must stay the same. */
export async function readSampleData(
  url: string,
  sampleData: SampleData,
): Promise<RecordedResponses> {
  const { orgId, keys, session, webhook, named } = sampleData;
  const mine = { key: keys.owner };
  const operator = { key: ADMIN_TOKEN };
  // A console login lasts half a day, and another release can require a new one.
  const cookie = await loggedIn(url, keys.owner);
  const all: Readonly<Record<string, readonly [path: string, call: Call]>> = {
    balance: ["v1/balance", mine],
    holds: ["v1/holds", mine],
    usage: ["v1/usage?group_by=key", mine],
    generations: ["v1/generations", mine],
    settings: [`v1/orgs/${orgId}/settings`, mine],
    users: ["v1/users", mine],
    alerts: ["v1/alerts", mine],
    keys: ["v1/keys", mine],
    "revoked keys": ["v1/keys?revoked=true", mine],
    "limited key": ["v1/key", { key: keys.limited }],
    "rotated key": ["v1/key", { key: keys.rotated }],
    "revoked key": ["v1/balance", { key: keys.revoked }],
    session: ["v1/key", { key: session }],
    sessions: ["v1/sessions", mine],
    console: ["console/api/session", { headers: { cookie } }],
    "a repeat": [
      "v1/chat/completions",
      {
        ...mine,
        headers: { "Idempotency-Key": named },
        body: {
          model: "sandbox/echo",
          user: "ann",
          messages: [{ role: "user", content: "one two three" }],
        },
      },
    ],
    events: ["v1/events?limit=100", mine],
    webhook: [`v1/webhooks/${webhook.id}`, mine],
    deliveries: [`v1/webhooks/${webhook.id}/deliveries?limit=100`, mine],
    ledger: [`admin/v1/orgs/${orgId}/ledger?after_seq=0&limit=1000`, operator],
    reconcile: [`admin/v1/orgs/${orgId}/reconcile`, { ...operator, method: "POST" }],
  };
  const seen: Record<string, { status: number; body: unknown }> = {};
  for (const [what, [path, call]] of Object.entries(all)) {
    const response = await sendRequest(url, path, call);
    const body = JSON.parse(await response.text()) as unknown;
    seen[what] = { status: response.status, body: withoutPassing(body, what) };
  }
  const settled = "v1/generations?status=settled&limit=100";
  const { generations } = (await callOk(url, settled, mine)) as {
    generations: readonly { id: string }[];
  };
  const first = `v1/generations/${generations.at(-1)?.id ?? ""}`;
  seen["generation"] = {
    status: 200,
    body: withoutPassing(await callOk(url, first, mine), "generation"),
  };
  const { outboxes } = (await callOk(url, "admin/v1/health", operator)) as { outboxes: Outbox[] };
  const body = outboxes.map(({ name, ...left }) => [name, left.waiting + left.parked]);
  return { ...seen, outboxes: { status: 200, body } };
}

/** Messages for a peer that is down. */
type Outbox = { readonly name: string; readonly waiting: number; readonly parked: number };

/** Fields that change over time or between releases. */
const PASSING = /^(?:last_|request_id$|limits$|message$)/;

/** Reports whether every release stores the request. Not all store rejected requests. */
function isHeldFor(one: { readonly status?: unknown } | null): boolean {
  return one?.status !== "refused";
}

function withoutPassing(value: unknown, what: string): unknown {
  if (Array.isArray(value)) return value.filter(isHeldFor).map((one) => withoutPassing(one, what));
  if (typeof value !== "object" || value === null) return value;
  // A list of keys has the last published spend, and only a single key's response reads the wallet.
  // A checkpoint adds rows of sums.
  const isPassing = (name: string): boolean =>
    PASSING.test(name) ||
    (what === "console" && name === "expires_at") ||
    (what === "reconcile" && name === "rows_read") ||
    (what.endsWith("keys") && name === "spent_dollars");
  const kept = Object.entries(value).filter(([name]) => !isPassing(name));
  return Object.fromEntries(kept.map(([name, one]) => [name, withoutPassing(one, what)]));
}

/** Returns recorded responses without the fields that `readSampleData` omits. */
export function withoutPassingFields(seen: RecordedResponses): RecordedResponses {
  const kept = Object.entries(seen).map(
    ([what, { status, body }]) => [what, { status, body: withoutPassing(body, what) }] as const,
  );
  return Object.fromEntries(kept);
}

type Events = { readonly events: readonly { readonly id: string; readonly type: string }[] };
type Deliveries = {
  readonly deliveries: readonly { readonly event_id: string; readonly state: string }[];
};

/** Calls `readSampleData` after the webhook's endpoint has received every event. */
export async function readAfterEvents(
  url: string,
  sampleData: SampleData,
): Promise<RecordedResponses> {
  const mine = { key: sampleData.keys.owner };
  const deadline = performance.now() + WAIT_MS;
  for (;;) {
    const { events } = (await callOk(url, "v1/events?limit=100", mine)) as Events;
    const path = `v1/webhooks/${sampleData.webhook.id}/deliveries?limit=100`;
    const { deliveries } = (await callOk(url, path, mine)) as Deliveries;
    const createdIndex = events.findIndex(({ type }) => type === "webhook.created");
    const deliveredIds = new Set(
      deliveries.flatMap(({ event_id: id, state }) => (state === "delivered" ? [id] : [])),
    );
    if (events.slice(0, createdIndex + 1).every(({ id }) => deliveredIds.has(id))) {
      return readSampleData(url, sampleData);
    }
    assert.ok(performance.now() < deadline, "the webhook's receiver did not receive every event");
    await sleep(POLL_MS);
  }
}

export async function changeWebhookUrl(
  url: string,
  { webhook, keys }: SampleData,
  hook: string,
): Promise<void> {
  const change = { key: keys.owner, method: "PATCH", body: { url: hook } };
  await callOk(url, `v1/webhooks/${webhook.id}`, change);
}
