import { env } from "cloudflare:workers";
import { expect } from "vitest";
import { mintEventId } from "../../src/shared/event.ts";
import type { EventRecord } from "../../src/shared/event.ts";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { PURCHASE_ID_PREFIX } from "../../src/shared/contracts/payments.ts";
import type { ResponseToStore } from "../../src/shared/contracts/stored-responses.ts";
import { KEY_ROUTES } from "../../src/routes.ts";
import type { KeyRoute } from "../../src/shared/http/route.ts";
import { ENDPOINT_ROWS } from "../fixtures/endpoint-table.ts";
import { addKey, admin, chat, HELLO, send } from "./client.ts";
import type { Account, Role, Sending } from "./client.ts";
import { refusal } from "../protocols/messages/message-schemas.ts";
import { errorBody } from "./response-schemas.ts";

const SAY = { model: "sandbox/echo", messages: HELLO };
const AMOUNT = { amount_dollars: 0.01, pays: "quota", description: "a search" };
/** Stands in a body for a new key of the caller. */
const KEY_ID = "key_of_the_caller";

/** A method, the route as in the table of paths, the allowed roles, their status, and a body. */
export type Row = readonly [string, string, readonly Role[], number, object?];

/** The bodies of paths that require one, and the status of a success other than 200. */
const SENT: Readonly<Record<string, readonly [object, number?]>> = {
  ...Object.fromEntries(
    ENDPOINT_ROWS.map(({ body, models, path }) => {
      return [`POST /v1${path}`, [body({ model: models.good, text: "Hello there" })]];
    }),
  ),
  "POST /v1/messages/count_tokens": [SAY],
  "POST /v1/keys": [{ name: "made by a test" }, 201],
  "PATCH /v1/keys/:id": [{ name: "renamed by a test" }],
  "POST /v1/keys/:id/rotate": [{ overlap_seconds: 60 }, 201],
  "POST /v1/sessions": [{ expires_in: 3600 }, 201],
  "POST /v1/holds": [{ ...AMOUNT, expires_in: 3600 }, 201],
  "POST /v1/holds/:id/capture": [{}],
  "POST /v1/holds/:id/extend": [{ expires_in: 3600 }],
  "POST /v1/charges": [AMOUNT, 201],
  "POST /v1/pauses": [{ scope: "key", id: KEY_ID, reason: "Costs" }, 201],
  "POST /v1/webhooks": [{ url: "https://hooks.turnpike.dev/x", types: ["balance.low"] }, 201],
  "PATCH /v1/webhooks/:id": [{ types: ["balance.low"] }],
  "POST /v1/webhooks/:id/rotate": [{ overlap_seconds: 60 }],
  "POST /v1/webhooks/:id/test": [{}],
  "POST /v1/webhooks/:id/resend": [{ state: "failed" }, 202],
  "POST /v1/webhooks/:id/replay": [{ since: "2099-01-01" }, 202],
  "POST /v1/credits/purchases": [{ amount_dollars: 10, method: "checkout" }, 202],
  "POST /v1/credits/purchases/:id/cancel": [{}, 202],
  "POST /v1/credits/portal": [{}],
  "POST /v1/users": [{ external_id: "there already" }],
  "PATCH /v1/users/:external_id{.+}": [{ daily_quota_dollars: 5 }],
  "PATCH /v1/members/:id": [{ policy: null }],
  "PATCH /v1/orgs/:org_id": [{ name: "renamed by a test" }],
  "PATCH /v1/orgs/:org_id/settings": [{ default_alert_threshold: 0.5 }],
};

/** Paths with errors in OpenAI's format. */
const ROUTES_EXCEPT_MESSAGES = KEY_ROUTES.filter(({ path }) => !path.startsWith("/v1/messages"));
export const ROWS: readonly Row[] = ROUTES_EXCEPT_MESSAGES.map((row) => rowOf(row, row.roles));
/** Every path, including those with errors in Anthropic's format. */
export const ALL_ROWS: readonly Row[] = KEY_ROUTES.map((row) => rowOf(row, row.roles));
/** Paths to objects of a member. To other roles, a colleague's object is missing. */
export const OWN_ONLY: readonly Row[] = ROUTES_EXCEPT_MESSAGES.flatMap((row) => {
  const { path, others } = row;
  return others === undefined || !namesOne(path) ? [] : [rowOf(row, others)];
});

/** Reports whether a path or its query contains an ID. */
function namesOne(path: string): boolean {
  return path.includes(":") || path === "/v1/generation";
}

function rowOf({ method, path }: KeyRoute, roles: readonly Role[]): Row {
  const [body, status = 200] = SENT[`${method} ${path}`] ?? [];
  return body === undefined ? [method, path, roles, status] : [method, path, roles, status, body];
}

/**
 * Creates the object in a path for an account, because the call can end it, or returns an unknown
 * ID.
 */
type Target = {
  readonly of: (account: Account) => Promise<string>;
  readonly unknown: () => string;
};
const TARGETS: Readonly<Record<string, Target>> = {
  credits: { of: purchaseOf, unknown: () => mintId(PURCHASE_ID_PREFIX, Date.now()) },
  keys: { of: keyOf, unknown: () => mintId("key_", Date.now()) },
  generation: { of: generationOf, unknown: () => mintId("req_", Date.now()) },
  generations: { of: generationOf, unknown: () => mintId("req_", Date.now()) },
  holds: {
    of: holdOf,
    unknown: () => `hold_eu_${mintId("", Date.now())}_${crypto.randomUUID()}`,
  },
  responses: { of: responseOf, unknown: () => mintId("resp_", 0) },
  sessions: {
    of: sessionOf,
    unknown: () => `${mintId("ses_", Date.now() - 2 * 86_400_000)}unknown1unknown2`,
  },
  users: { of: endUserOf, unknown: () => crypto.randomUUID() },
  webhooks: { of: webhookOf, unknown: () => mintId("whk_", Date.now()) },
  pauses: { of: pauseOf, unknown: () => mintId("pau_", Date.now()) },
  members: { of: async ({ memberId }) => memberId, unknown: () => crypto.randomUUID() },
  orgs: { of: async ({ orgId }) => orgId, unknown: () => crypto.randomUUID() },
};

async function pauseOf(account: Account): Promise<string> {
  const body = { scope: "key", id: await keyOf(account), reason: "Costs" };
  const response = await send("/v1/pauses", { key: account.key, body });
  return (await response.json<{ id: string }>()).id;
}

async function keyOf({ orgId, memberId }: Account): Promise<string> {
  return (await addKey(orgId, memberId)).keyId;
}

/** Allows a key to place holds, which new keys may not. */
export async function allowHolds({ orgId, keyId }: Account): Promise<void> {
  const allowed = await admin("PATCH", `/orgs/${orgId}/keys/${keyId}`, { may_hold: true });
  expect(allowed.status).toBe(200);
}

async function holdOf(account: Account): Promise<string> {
  await allowHolds(account);
  const response = await send("/v1/holds", { key: account.key, body: AMOUNT });
  return (await response.json<{ id: string }>()).id;
}

async function sessionOf({ key }: Account): Promise<string> {
  const response = await send("/v1/sessions", { key, body: {} });
  const { id, token } = await response.json<{ id: string; token: string }>();
  await chat(token); // an unused session has no owner
  return id;
}

/**
 * Inserts a webhook into the database, because most roles may not create one. It has no event
 * types, so that it gets no events of other tests.
 */
async function webhookOf({ orgId }: Account): Promise<string> {
  const id = mintId("whk_", Date.now());
  await env.DB.prepare(
    `INSERT INTO webhooks (id, org_id, url, types, secrets, created_at, changed_at)
     VALUES (?1, ?2, 'https://hooks.turnpike.dev/x', '["balance.low"]', '[]', ?3, ?3)`,
  )
    .bind(id, orgId, Date.now())
    .run();
  return id;
}

/**
 * Creates a webhook and a queued message, as a wallet does for an event. Without a secret, nothing
 * is sent.
 */
async function deliveryOf(account: Account): Promise<string> {
  const webhook = await webhookOf(account);
  const { orgId } = account;
  const object = env.WEBHOOK_DELIVERIES.getByName(orgId);
  const actor = { kind: "system", id: null } as const;
  const event = { type: "balance.low", createdAt: Date.now(), actor, subject: orgId, data: {} };
  await object.take(orgId, [{ ...event, id: mintEventId(Date.now()) } as EventRecord]);
  const page = await object.deliveries(webhook, { limit: 1, after: null });
  return `${webhook} ${page.ok ? (page.value.deliveries[0]?.id ?? "") : ""}`;
}

const DELIVERY: Target = {
  of: deliveryOf,
  unknown: () => `${mintId("whk_", Date.now())} ${mintId("dlv_", Date.now())}`,
};

/**
 * Creates a purchase in its object, because most roles may not buy and checkouts per hour are
 * limited.
 */
async function purchaseOf({ orgId }: Account): Promise<string> {
  const id = mintId(PURCHASE_ID_PREFIX, Date.now());
  const request = { orgId, id, amountMicro: micros(10_000_000), wantedAt: Date.now() };
  expect(await env.PAYMENTS.getByName(orgId).topUp(request)).toMatchObject({ ok: true });
  return id;
}

const RESPONSE = {
  object: "response",
  created_at: 1,
  completed_at: 2,
  status: "completed",
  error: null,
  incomplete_details: null,
  model: "sandbox/echo",
  output: [],
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2, cost_micro: 1 },
};

/**
 * Creates a stored response of an hour ago in its object, because this organization stores none.
 */
async function responseOf({ orgId, memberId, keyId }: Account): Promise<string> {
  const id = mintId("resp_", Date.now() - 3_600_000);
  const by = { memberId, keyId, sessionId: null };
  const [input, response] = [[], { response: { id, ...RESPONSE }, hidden: false }].map((value) =>
    new TextEncoder().encode(JSON.stringify(value)),
  );
  const answer = { id, previous: null, by, createdAt: Date.now(), hours: 1 };
  const kept = env.KEPT_RESPONSES.getByName(orgId);
  expect(await kept.keep({ ...answer, input, response } as ResponseToStore)).toMatchObject({
    ok: true,
  });
  return id;
}

export async function generationOf({ key }: Account): Promise<string> {
  return (await chat(key)).headers.get("x-request-id") ?? "";
}

export async function endUserOf({ key }: Account): Promise<string> {
  const id = crypto.randomUUID();
  expect((await send("/v1/users", { key, body: { external_id: id } })).status).toBe(201);
  return id;
}

const targetOf = ([, route]: Row): Target | undefined =>
  route.endsWith(":delivery_id") ? DELIVERY : TARGETS[route.split("/")[2] ?? ""];
/** Reports whether a row's path contains an organization's object. */
export const namesTarget = (row: Row): boolean => namesOne(row[1]) && targetOf(row) !== undefined;

/**
 * Returns the IDs in a row's path for a call on the account's own objects. Two IDs are separated by
 * a space.
 */
export async function ownId(row: Row, account: Account): Promise<string> {
  return namesTarget(row) ? ((await targetOf(row)?.of(account)) ?? "") : "sandbox/echo";
}

/** Returns an unknown ID of the same kind. */
export function unknownId(row: Row): string {
  return namesTarget(row) ? (targetOf(row)?.unknown() ?? "") : "sandbox/echo";
}

/** The path and content of a row's call. */
export function callOf(
  [method, route, , , body]: Row,
  id: string,
): { readonly path: string; readonly sending: Sending } {
  const isNamed = route.endsWith("/rotate") || route.endsWith("/purchases");
  const headers = isNamed ? { "idempotency-key": crypto.randomUUID() } : {};
  const ids = id.split(" ");
  const path = route.replaceAll(/:\w+(\{.+\})?/g, () => ids.shift() ?? id);
  const query = route === "/v1/generation" ? `?id=${id}` : "";
  return { path: path + query, sending: { method, body, headers } };
}

export function sendCall(row: Row, key: string | undefined, id: string): Promise<Response> {
  const { path, sending } = callOf(row, id);
  return send(path, { ...sending, key });
}

/** Replaces `KEY_ID` in the body by a new key of the account. */
export async function withKey(row: Row, account: Account): Promise<Row> {
  const [method, route, roles, status, body] = row;
  if (body === undefined || Reflect.get(body, "id") !== KEY_ID) return row;
  return [method, route, roles, status, { ...body, id: await keyOf(account) }];
}

/** Returns the status, and the code of an error. */
export async function verdict(response: Response): Promise<readonly [number, string | null]> {
  if (response.status < 400) {
    await response.text(); // a streamed response is charged at its end
    return [response.status, null];
  }
  const body = await response.json();
  const anthropics = refusal.safeParse(body);
  if (anthropics.success) return [response.status, anthropics.data.error.details.error_code];
  const { error } = errorBody.parse(body);
  return [response.status, error.code ?? error.type];
}
