import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { PURCHASE_ID_PREFIX } from "../../src/shared/contracts/payments.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { EventType } from "../../src/shared/event.ts";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { OPERATOR_ROUTES } from "../../src/operator/endpoints.ts";
import { runPaymentsSweep } from "../../src/operator/scheduled.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import {
  addCredits,
  addMember,
  admin,
  chat,
  errorOf,
  newOrganization,
  openAccount,
  send,
} from "../contract/client.ts";
import type { MadeOrganization } from "../contract/client.ts";
import { createKey } from "../contract/key-client.ts";
import { createSession } from "../contract/session-client.ts";
import { useStripe } from "../payments/fake-stripe.ts";
import { GENERATION, holdOf, valueOf } from "../wallet/wallet-fixture.ts";
import { account, LONG, createWebhook, receivers, useReceivers } from "../webhooks/receivers.ts";

/**
 * A call, and the event that reports it to the organization. Null if the call concerns no
 * organization or changes nothing.
 */
type Act = {
  readonly event: EventType | null;
  /** Returns the path below `/admin/v1` and the body. */
  readonly request: () => Promise<readonly [path: string, body?: object]>;
};

const EVA = "eva".padEnd(32, "x");
const bindings = { ...env, ADMIN_TOKENS: `eva:${EVA}` };
const log: string[] = [];
useReceivers();
beforeEach(() => {
  log.length = 0;
  vi.spyOn(console, "log").mockImplementation((line: string) => void log.push(line));
});

const org = (rest: string): string => `/orgs/${account.orgId}${rest}`;
const wallet = () => env.WALLET.getByName(account.orgId);
const memberId = async (): Promise<string> => (await addMember(account.orgId, "member")).memberId;
const keyId = async (): Promise<string> => (await createKey(account.key)).id;
const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
const FAR = new Date(Date.now() + 40 * 86_400_000).toISOString();
const priced = (): object => {
  const list = `l-${crypto.randomUUID().slice(0, 8)}`;
  return { rows: [{ list, item: "sandbox/echo", from: FAR, price: { input: 1, output: 2 } }] };
};
const webhook = async (): Promise<string> => {
  receivers["a.turnpike.dev"] = () => new Response("thanks");
  return (await createWebhook("a.turnpike.dev")).id;
};

async function createHold(amount: number): Promise<{ readonly id: string }> {
  const request = holdOf(amount, { keyId: account.keyId });
  valueOf(await wallet().hold(request));
  return request;
}

/** Creates a debt of 5 micro-credits: a payment was refunded after all of it was held. */
async function owed(): Promise<void> {
  const paymentId = `pi_${crypto.randomUUID().replaceAll("-", "")}`;
  const of = { paymentId, purchaseId: mintId(PURCHASE_ID_PREFIX, Date.now()) };
  const credit = { ...of, method: "card", netMicro: micros(10), actor: SYSTEM_ACTOR } as const;
  valueOf(await wallet().creditPayment(credit));
  await createHold(10);
  const back = { backMicro: micros(5), isDisputed: false, reading: 1 };
  valueOf(await wallet().setBack({ ...of, ...back }));
}

const merchantName = (): string => `m-${crypto.randomUUID().slice(0, 8)}`;

async function merchant(): Promise<string> {
  const name = merchantName();
  await admin("POST", "/merchants", { name });
  return name;
}

async function invited(): Promise<string> {
  const answer = await admin("POST", org("/invitations"), { role: "member" });
  return (await answer.json<{ id: string }>()).id;
}

async function proven(): Promise<string> {
  const domain = `${crypto.randomUUID().slice(0, 8)}.example.org`;
  await env.DB.prepare(
    "INSERT INTO company_domains (domain, org_id, nonce, created_at, proven_at) VALUES (?, ?, 'n', 1, 1)",
  )
    .bind(domain, account.orgId)
    .run();
  return domain;
}

/** Creates a purchase of 10 dollars that was paid and credited. */
async function bought(): Promise<string> {
  const stripe = useStripe();
  const headers = { "idempotency-key": crypto.randomUUID() };
  const body = { amount_dollars: 10, method: "checkout" };
  const response = await send("/v1/credits/purchases", { key: account.key, headers, body });
  const { id } = await response.json<{ id: string }>();
  const [session] = stripe.world.sessions.values();
  stripe.person.pay(session?.id ?? "");
  await runPaymentsSweep(env);
  await vi.waitFor(async () => {
    expect(valueOf(await wallet().balance()).creditsMicro).toBe(10_000_000);
  }, LONG);
  return id;
}

const ACTS: Readonly<Record<string, Act>> = {
  "POST /orgs": {
    event: "organization.created",
    request: async () => ["/orgs", newOrganization()],
  },
  "PATCH /orgs/:id": {
    event: "organization.changed",
    request: async () => [org(""), { name: "Another" }],
  },
  "DELETE /orgs/:id": { event: "organization.changed", request: async () => [org("")] },
  "POST /orgs/:id/restore": {
    event: "organization.changed",
    request: async () => {
      await admin("DELETE", org(""));
      return [org("/restore"), {}];
    },
  },
  "POST /orgs/:id/invitations": {
    event: "invitation.created",
    request: async () => [org("/invitations"), { role: "member" }],
  },
  "DELETE /orgs/:id/invitations/:invitation_id": {
    event: "invitation.ended",
    request: async () => [org(`/invitations/${await invited()}`)],
  },
  "POST /orgs/:id/domains/:domain/approve": {
    event: "organization.changed",
    request: async () => [org(`/domains/${await proven()}/approve`)],
  },
  "DELETE /orgs/:id/company-issuer": {
    event: "organization.changed",
    request: async () => {
      await env.DB.prepare(
        `INSERT INTO company_issuers (org_id, id, issuer, client_id, client_secret, created_at)
         VALUES (?1, 'iss_' || ?1, 'https://login.acme.dev', 'c', 's', 1)`,
      )
        .bind(account.orgId)
        .run();
      return [org("/company-issuer")];
    },
  },
  "POST /orgs/:id/members": {
    event: "member.created",
    request: async () => [org("/members"), { email: "new@example.com", role: "member" }],
  },
  "PATCH /orgs/:id/members/:member_id": {
    event: "member.changed",
    request: async () => [org(`/members/${await memberId()}`), { role: "admin" }],
  },
  "DELETE /orgs/:id/members/:member_id": {
    event: "member.removed",
    request: async () => [org(`/members/${await memberId()}`)],
  },
  "POST /orgs/:id/members/:member_id/keys": {
    event: "key.created",
    request: async () => [org(`/members/${account.memberId}/keys`), { name: "one" }],
  },
  "PATCH /orgs/:id/keys/:key_id": {
    event: "key.changed",
    request: async () => [org(`/keys/${await keyId()}`), { name: "other" }],
  },
  "DELETE /orgs/:id/keys/:key_id": {
    event: "key.revoked",
    request: async () => [org(`/keys/${await keyId()}`)],
  },
  "POST /orgs/:id/keys/:key_id/rotate": {
    event: "key.rotated",
    request: async () => [org(`/keys/${await keyId()}/rotate`), { overlap_seconds: 0 }],
  },
  "DELETE /orgs/:id/sessions/:session_id": {
    event: "session.ended",
    request: async () => {
      await addCredits(account.orgId, 1_000_000);
      const { id, token } = await createSession(account.key);
      expect((await chat(token)).status).toBe(200);
      return [org(`/sessions/${id}`)];
    },
  },
  "POST /orgs/:id/pauses": {
    event: "pause.created",
    request: async () => [org("/pauses"), { scope: "key", id: await keyId(), reason: "Costs" }],
  },
  "DELETE /orgs/:id/pauses/:pause_id": {
    event: "pause.ended",
    request: async () => {
      const body = { scope: "key", id: await keyId(), reason: "Costs" };
      const answer = await admin("POST", org("/pauses"), body);
      return [org(`/pauses/${(await answer.json<{ id: string }>()).id}`)];
    },
  },
  "POST /orgs/:id/credits": {
    event: "balance.credited",
    request: async () => [org("/credits"), { amount_micro: 5, reference: "five" }],
  },
  // reads Stripe and changes nothing itself
  "POST /orgs/:id/purchases/:purchase_id/check": {
    event: null,
    request: async () => [org(`/purchases/${await bought()}/check`)],
  },
  // Stripe emits the refund's event. The purchase stores the operator.
  "POST /orgs/:id/purchases/:purchase_id/refund": {
    event: null,
    request: async () => [org(`/purchases/${await bought()}/refund`), { amount_cents: 250 }],
  },
  "POST /orgs/:id/owed": {
    event: "payment.forgiven",
    request: async () => {
      await owed();
      return [org("/owed"), { forgive_micro: 1, reference: "goodwill" }];
    },
  },
  "POST /orgs/:id/reconcile": { event: null, request: async () => [org("/reconcile")] },
  "POST /orgs/:id/webhooks/:webhook_id/test": {
    event: null,
    request: async () => [org(`/webhooks/${await webhook()}/test`)],
  },
  "POST /orgs/:id/webhooks/:webhook_id/replay": {
    event: null,
    request: async () => [
      org(`/webhooks/${await webhook()}/replay`),
      { since: new Date(Date.now() - 60_000).toISOString() },
    ],
  },
  "POST /orgs/:id/settle": {
    event: "balance.charged",
    request: async () => {
      await addCredits(account.orgId, 1000);
      const { id } = await createHold(100);
      const generation = { ...GENERATION, keyId: account.keyId };
      const line = { event: "settlement_unsaved", request_id: id, org_id: account.orgId };
      return [org("/settle"), { ...line, cost_micro: 100, generation }];
    },
  },
  "POST /orgs/:id/rebuild-wallet": {
    event: "organization.wallet_rebuilt",
    request: async () => {
      await addCredits(account.orgId, 5);
      valueOf(await wallet().poke());
      await runInDurableObject(wallet(), (_: Wallet, { storage }) => storage.deleteAll());
      await evictDurableObject(wallet());
      return [org("/rebuild-wallet")];
    },
  },
  "POST /merchants": { event: null, request: async () => ["/merchants", { name: merchantName() }] },
  "POST /merchants/:name/rotate": {
    event: null,
    request: async () => [`/merchants/${await merchant()}/rotate`],
  },
  "DELETE /merchants/:name": {
    event: null,
    request: async () => [`/merchants/${await merchant()}`],
  },
  "POST /prices": { event: null, request: async () => ["/prices", priced()] },
  "DELETE /prices/:price_id": {
    event: null,
    request: async () => {
      const posted = await admin("POST", "/prices", priced());
      const { prices } = await posted.json<{ prices: readonly { id: string }[] }>();
      return [`/prices/${prices[0]?.id ?? ""}`];
    },
  },
  "POST /costs": {
    event: null,
    request: async () => ["/costs", { rows: [{ provider: "p", day: YESTERDAY, dollars: 1 }] }],
  },
  "POST /rerate": {
    event: null,
    request: async () => {
      const to = new Date(Date.now() - 3 * 3_600_000).toISOString();
      const slip = { id: "slip", model: "sandbox/echo", organization: account.orgId };
      const span = { from: YESTERDAY, to, price: { input: 1 }, dry_run: false };
      return ["/rerate", { ...slip, ...span }];
    },
  },
};

/** Reads of one of the organization's objects. */
const READS: Readonly<Record<string, () => Promise<string>>> = {
  "GET /orgs/:id/keys/:key_id": async () => org(`/keys/${account.keyId}`),
  "GET /orgs/:id/purchases/:purchase_id": async () => org(`/purchases/${await bought()}`),
  "GET /orgs/:id/webhooks/:webhook_id/deliveries": async () =>
    org(`/webhooks/${await webhook()}/deliveries`),
};

const ROUTES = OPERATOR_ROUTES.map(
  ({ method, path }) => `${method} ${path.replace("/admin/v1", "")}`,
);
const isRead = (name: string): boolean => name.startsWith("GET ");
const routeOf = (name: string): string => name.replace(/^\w+ /, "");

function call(name: string, path: string, body?: object): Promise<Response> {
  const [method = ""] = name.split(" ");
  const headers = { "idempotency-key": crypto.randomUUID() };
  return send(`/admin/v1${path}`, { method, key: EVA, bindings, headers, body });
}

async function slugOf(): Promise<string> {
  return (await (await admin("GET", org(""))).json<{ slug: string }>()).slug;
}

/**
 * Checks that the call finds no unknown organization, and that another organization's path returns
 * the 404 of a missing object.
 */
async function expectNotFound(name: string, path: string, body?: object): Promise<void> {
  const errorAt = async (at: string) => errorOf(await call(name, at, body), 404);
  const unknown = crypto.randomUUID();
  const { message } = await errorAt(path.replace(account.orgId, "nobody-has-this"));
  expect(message).toBe("No such organization.");
  await errorAt(path.replace(account.orgId, unknown));
  expect(await env.WALLET.getByName(unknown).balance()).toMatchObject({ ok: false });
  const other = await openAccount();
  const at = routeOf(name).replace(":id", other.orgId);
  if (!at.includes(":")) return;
  const missing = await errorAt(at.replaceAll(/:\w+/g, "x"));
  expect(await errorAt(path.replace(account.orgId, other.orgId))).toEqual(missing);
}

describe("an operator's change", () => {
  const names = ROUTES.filter((name) => !isRead(name));

  it("must be listed in the table of this test", () => {
    expect(Object.keys(ACTS).toSorted()).toEqual(names.toSorted());
  });

  it.each(names)(
    "emits an event with the operator's name, and finds the organization only by ID or slug: %s",
    async (name) => {
      const slug = await slugOf();
      const act = ACTS[name];
      if (act === undefined) throw new Error("no such act");
      const [path, body] = await act.request();
      if (name.includes("/:id")) await expectNotFound(name, path, body);
      log.length = 0;
      const answer = await call(name, path.replace(account.orgId, slug), body);
      expect(answer.status).toBeLessThan(300);
      const lines = log.filter((line) => /"operator_act","operator":"eva"/.test(line));
      expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
        { operator: "eva", act: name, request_id: answer.headers.get("x-request-id") },
      ]);
      if (act.event === null) return;
      const orgId =
        path === "/orgs" ? (await answer.json<MadeOrganization>()).organization.id : account.orgId;
      await vi.waitFor(async () => {
        const read = await admin("GET", `/orgs/${orgId}/events?type=${String(act.event)}`);
        const { events } = await read.json<{ events: readonly { actor: object }[] }>();
        expect(events.map(({ actor }) => actor)).toContainEqual({ kind: "operator", id: "eva" });
      }, LONG);
    },
  );
});

describe("an operator's read", () => {
  it.each(ROUTES.filter((name) => isRead(name) && name.includes("/:id")))(
    "finds the organization only by ID or slug: %s",
    async (name) => {
      const slug = await slugOf();
      const path = (await READS[name]?.()) ?? routeOf(name).replace(":id", account.orgId);
      await expectNotFound(name, path);
      const texts: string[] = [];
      for (const id of [account.orgId, slug]) {
        const answer = await call(name, path.replace(account.orgId, id));
        expect(answer.status).toBe(200);
        texts.push(await answer.text());
      }
      expect(texts[0]).toBe(texts[1]);
    },
  );
});
