import { env } from "cloudflare:workers";
import { beforeAll, expect, it } from "vitest";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { GENERATION, newId } from "../wallet/wallet-fixture.ts";
import { ADMIN_TOKEN, addKey, addMember, admin, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";
import { createSession } from "./session-client.ts";

let account: Account;
let stranger: Account;
let slug: string;
let webhook: string;
beforeAll(async () => {
  account = await openAccount({ credits: 50 });
  stranger = await openAccount();
  const shown = await admin("GET", `/orgs/${account.orgId}`);
  ({ slug } = await shown.json<{ slug: string }>());
  const hook = { url: "https://hooks.turnpike.dev/", types: ["key.created"] };
  const made = await send("/v1/webhooks", { method: "POST", key: account.key, body: hook });
  ({ id: webhook } = await made.json<{ id: string }>());
});

/** Other IDs in a path besides the organization, and the body. */
type CallDetails = { readonly names?: Readonly<Record<string, string>>; readonly body?: unknown };
const ofMember = () => ({ names: { member_id: account.memberId } });
const ofKey = () => ({ names: { key_id: account.keyId } });
const ofHook = () => ({ names: { webhook_id: webhook } });
const ofNoPurchase = () => ({ names: { purchase_id: "pur_unknown" } });
const nothing = () => ({});
async function invited(): Promise<string> {
  const made = await admin("POST", `/orgs/${account.orgId}/invitations`, { role: "member" });
  return (await made.json<{ id: string }>()).id;
}
async function proven(): Promise<string> {
  await env.DB.prepare(
    "INSERT INTO company_domains (domain, org_id, nonce, created_at, proven_at) VALUES (?, ?, 'n', 1, 1) ON CONFLICT DO NOTHING",
  )
    .bind("acme.example.com", account.orgId)
    .run();
  return "acme.example.com";
}
/** Prepares each path's call so that it finds an object, even if repeated. */
async function newPause(): Promise<object> {
  const { keyId } = await addKey(account.orgId, account.memberId);
  return { scope: "key", id: keyId, reason: "a test" };
}

const ASKED: Readonly<Record<string, () => CallDetails | Promise<CallDetails>>> = {
  "GET /orgs/:id": nothing,
  "PATCH /orgs/:id": () => ({ body: { name: "Renamed" } }),
  "DELETE /orgs/:id": nothing,
  "POST /orgs/:id/restore": nothing,
  "POST /orgs/:id/invitations": () => ({ body: { role: "member" } }),
  "DELETE /orgs/:id/invitations/:invitation_id": async () => ({
    names: { invitation_id: await invited() },
  }),
  "GET /orgs/:id/domains": nothing,
  "POST /orgs/:id/domains/:domain/approve": async () => ({ names: { domain: await proven() } }),
  "DELETE /orgs/:id/company-issuer": async () => {
    await env.DB.prepare(
      `INSERT OR REPLACE INTO company_issuers (org_id, id, issuer, client_id, client_secret, created_at)
       VALUES (?1, 'iss_' || ?1, 'https://login.acme.dev', 'c', 's', 1)`,
    )
      .bind(account.orgId)
      .run();
    return {};
  },
  "GET /orgs/:id/members": nothing,
  "POST /orgs/:id/members": () => ({
    body: { email: `${crypto.randomUUID()}@example.com`, role: "member" },
  }),
  "PATCH /orgs/:id/members/:member_id": () => ({ ...ofMember(), body: { role: "owner" } }),
  "DELETE /orgs/:id/members/:member_id": async () => ({
    names: { member_id: (await addMember(account.orgId, "member")).memberId },
  }),
  "POST /orgs/:id/members/:member_id/keys": () => ({ ...ofMember(), body: { name: "another" } }),
  "GET /orgs/:id/keys": nothing,
  "GET /orgs/:id/keys/:key_id": ofKey,
  "PATCH /orgs/:id/keys/:key_id": () => ({ ...ofKey(), body: { rpm_limit: 7 } }),
  "DELETE /orgs/:id/keys/:key_id": ofKey,
  "POST /orgs/:id/keys/:key_id/rotate": () => ({ ...ofKey(), body: { overlap_seconds: 60 } }),
  "GET /orgs/:id/pauses": nothing,
  "POST /orgs/:id/pauses": async () => ({ body: await newPause() }),
  "DELETE /orgs/:id/pauses/:pause_id": async () => {
    const made = await admin("POST", `/orgs/${account.orgId}/pauses`, await newPause());
    const { id } = await made.json<{ id: string }>();
    return { names: { pause_id: id } };
  },
  "GET /orgs/:id/sessions": nothing,
  "DELETE /orgs/:id/sessions/:session_id": async () => ({
    names: {
      session_id: (await createSession((await addKey(account.orgId, account.memberId)).key)).id,
    },
  }),
  "POST /orgs/:id/credits": () => ({ body: { amount_micro: 5, reference: "the same" } }),
  "GET /orgs/:id/credits": nothing,
  "GET /orgs/:id/purchases": nothing,
  "GET /orgs/:id/purchases/:purchase_id": ofNoPurchase,
  "POST /orgs/:id/purchases/:purchase_id/check": ofNoPurchase,
  "POST /orgs/:id/purchases/:purchase_id/refund": () => ({ ...ofNoPurchase(), body: {} }),
  "POST /orgs/:id/owed": () => ({ body: { forgive_micro: 1, reference: "the same" } }),
  "GET /orgs/:id/ledger": nothing,
  "POST /orgs/:id/reconcile": nothing,
  "GET /orgs/:id/usage": nothing,
  "GET /orgs/:id/alerts": nothing,
  "GET /orgs/:id/events": nothing,
  "GET /orgs/:id/webhooks": nothing,
  "GET /orgs/:id/webhooks/:webhook_id/deliveries": ofHook,
  "POST /orgs/:id/webhooks/:webhook_id/test": ofHook,
  "POST /orgs/:id/webhooks/:webhook_id/replay": () => ({
    ...ofHook(),
    body: { since: new Date().toISOString() },
  }),
  "POST /orgs/:id/settle": () => ({
    body: {
      request_id: newId(),
      cost_micro: 1,
      generation: { ...GENERATION, keyId: account.keyId },
    },
  }),
  "POST /orgs/:id/rebuild-wallet": nothing,
};

function ask(endpoint: string, org: string, { names = {}, body }: CallDetails): Promise<Response> {
  const [method = "", path = ""] = endpoint.split(" ");
  const filled = path.replaceAll(
    /:(\w+)/g,
    (_, name: string) => (name === "id" ? org : names[name]) ?? "",
  );
  const headers = /\/(?:rotate|refund)$/.test(endpoint) ? { "idempotency-key": "the-same" } : {};
  return send(`/admin/v1${filled}`, { method, key: ADMIN_TOKEN, body, headers });
}

/** Returns a response without the parts that differ between any two. */
async function told(response: Response): Promise<{ status: number; text: string }> {
  const text = (await response.text())
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "uuid")
    .replaceAll(/(svc_sk_\w+_live|svc_iv|key|evt|req|msg|inv|pau|ses)_[\w-]+/g, "$1_id")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|(?<="duration_ms":)\d+/g, "time");
  return { status: response.status, text };
}

/**
 * Calls that are rejected in this state: no such purchase, a healthy wallet, no debt, or
 * remaining credits.
 */
const NOT_NOW = /purchases\/|rebuild-wallet|owed$|^DELETE \/orgs\/:id$/;
/** Reports whether the organization was found. Only calls in `NOT_NOW` may be rejected. */
function isFound(endpoint: string, status: number): boolean {
  return status < 300 || NOT_NOW.test(endpoint);
}

const ENDPOINTS = OPERATOR_ROUTES.map(
  ({ method, path }) => `${method} ${path.replace("/admin/v1", "")}`,
).filter((name) => name.includes(":id"));
const isLast = (name: string): number => (name.startsWith("DELETE") ? 1 : 0);

// These calls have no effect, so that the calls of the next test succeed.
it.each(ENDPOINTS.filter((endpoint) => endpoint.replace(":id", "").includes(":")))(
  "the endpoint %s returns the same 404 for another organization's object as for a missing one",
  async (endpoint) => {
    const asked = (await ASKED[endpoint]?.()) ?? {};
    const names = Object.fromEntries(Object.keys(asked.names ?? {}).map((name) => [name, "x"]));
    const foreign = await told(await ask(endpoint, stranger.orgId, asked));
    expect(foreign).toEqual(await told(await ask(endpoint, stranger.orgId, { ...asked, names })));
    expect(foreign.status, foreign.text).toBe(404);
  },
);

it.each(ENDPOINTS.toSorted((a, b) => isLast(a) - isLast(b)))(
  "the endpoint %s accepts an organization's slug, and returns 404 without a wallet call for an unknown slug",
  async (endpoint) => {
    const asked = ASKED[endpoint];
    if (asked === undefined) throw new Error(`nothing is asked of ${endpoint}`);
    const byId = await told(await ask(endpoint, account.orgId, await asked()));
    expect(await told(await ask(endpoint, slug, await asked()))).toEqual(byId);
    expect(isFound(endpoint, byId.status), byId.text).toBe(true);
    const error = await errorOf(await ask(endpoint, "nobody-has-this", await asked()), 404);
    expect(error.message).toBe("No such organization.");
    const unknown = crypto.randomUUID();
    const missing = await errorOf(await ask(endpoint, unknown, await asked()), 404);
    expect(missing.message).toMatch(/^(?:No such|There is no) |not found\.$|has no /);
    expect(await env.WALLET.getByName(unknown).balance()).toMatchObject({ ok: false });
  },
);

it("an operator's change by an organization's slug creates an event with the organization's ID", async () => {
  const { orgId } = await openAccount();
  const { slug: named } = await (await admin("GET", `/orgs/${orgId}`)).json<{ slug: string }>();
  await admin("PATCH", `/orgs/${named}`, { name: "By its slug" });
  const events = await admin("GET", `/orgs/${named}/events?type=organization.changed`);
  expect(await events.json()).toMatchObject({ events: [{ subject: orgId }] });
});
