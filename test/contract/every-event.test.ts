import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { EVENT_TYPES } from "../../src/shared/event.ts";
import type { EventType } from "../../src/shared/event.ts";
import { mintId } from "../../src/shared/id.ts";
import { micros } from "../../src/shared/money.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { PURCHASE_ID_PREFIX } from "../../src/shared/contracts/payments.ts";
import { useStripe } from "../payments/fake-stripe.ts";
import { objectsOf } from "../../src/shared/contracts/objects.ts";
import { sweepHourly } from "../../src/operator/sweep.store.ts";
import type { Wallet } from "../../src/money/wallet/wallet.do.ts";
import { GENERATION, holdOf, pay, setClock, valueOf } from "../wallet/wallet-fixture.ts";
import {
  account,
  callWebhooks,
  HOUR,
  LONG,
  createWebhook,
  receivers,
  callsTo,
  useReceivers,
} from "../webhooks/receivers.ts";
import { ADMIN_TOKEN, addCredits, addMember, admin, chat, send } from "./client.ts";
import { login, callFromPage } from "./console-client.ts";
import { createKey, deleteKey } from "./key-client.ts";
import { endSession, createSession } from "./session-client.ts";

useReceivers();

const DAY = 24 * HOUR;
const wallet = () => env.WALLET.getByName(account.orgId);
const expectOk = async (response: Response | Promise<Response>): Promise<void> => {
  expect((await response).ok).toBe(true);
};
const call = (method: string, path: string, body: object): Promise<void> =>
  expectOk(send(path, { method, key: account.key, body }));
const operator = (method: string, path: string, body?: object): Promise<void> =>
  expectOk(admin(method, `/orgs/${account.orgId}${path}`, body));

const setBudgets = (budgets: readonly object[]): Promise<void> =>
  call("PATCH", `/v1/orgs/${account.orgId}/settings`, { budgets });

async function createPause(): Promise<string> {
  const { id } = await createKey(account.key);
  const body = { scope: "key", id, reason: "Costs" };
  const answer = await send("/v1/pauses", { key: account.key, body });
  return (await answer.json<{ id: string }>()).id;
}

const TRIGGERS: Readonly<Record<EventType, () => Promise<void>>> = {
  "balance.credited": () => addCredits(account.orgId, 5),
  "balance.charged": async () => {
    await addCredits(account.orgId, 1000);
    const request = holdOf(100, { keyId: account.keyId });
    valueOf(await wallet().hold(request));
    await operator("POST", "/settle", {
      event: "settlement_unsaved",
      request_id: request.id,
      org_id: account.orgId,
      cost_micro: 100,
      generation: { ...GENERATION, keyId: account.keyId },
    });
  },
  "balance.low": () =>
    call("PATCH", `/v1/orgs/${account.orgId}/settings`, { low_balance_threshold_dollars: 1 }),
  "purchase.created": () => createPurchase(),
  "purchase.needs_customer": () => createPurchase(),
  "purchase.credited": async () => void (await addPayment()),
  "purchase.declined": () => topUpDeclined("soft"),
  "purchase.expired": () => createPurchase("/cancel"),
  "payment.reversed": async () => refundPayment(await addPayment(), 5),
  "payment.reinstated": async () => {
    const paymentId = await addPayment();
    await refundPayment(paymentId, 5);
    await refundPayment(paymentId, 2);
  },
  "payment.forgiven": async () => {
    const paymentId = await addPayment();
    valueOf(await wallet().hold(holdOf(10, { keyId: account.keyId })));
    await refundPayment(paymentId, 5); // all credits are held, so the amount is owed
    await operator("POST", "/owed", { forgive_micro: 1, reference: "goodwill" });
  },
  "top_up.paused": () => topUpDeclined("soft"),
  "top_up.disabled": () => topUpDeclined("hard"),
  "end_user.alert": () => spend(80),
  "end_user.quota_reached": () => spend(100),
  "end_user.changed": async () => {
    await call("POST", "/v1/users", { external_id: "u" });
    await call("PATCH", "/v1/users/u", { daily_quota_dollars: 1 });
  },
  "key.created": async () => void (await createKey(account.key)),
  "key.changed": async () => {
    const { id } = await createKey(account.key);
    await call("PATCH", `/v1/keys/${id}`, { name: "other" });
  },
  "key.rotated": async () => {
    const { id } = await createKey(account.key);
    const headers = { "idempotency-key": crypto.randomUUID() };
    await expectOk(
      send(`/v1/keys/${id}/rotate`, { key: account.key, headers, body: { overlap_seconds: 0 } }),
    );
  },
  "key.revoked": async () => {
    const { id } = await createKey(account.key);
    await expectOk(deleteKey(account.key, id));
  },
  "key.expiring": async () => {
    const expires_at = new Date(Date.now() + 8 * DAY).toISOString();
    await env.DB.prepare("DELETE FROM cursors").run(); // sweeps of other tests were years ahead
    await runSweep(0);
    await createKey(account.key, { expires_at });
    await runSweep(2 * DAY);
  },
  "key.budget_reached": async () => {
    await addCredits(account.orgId, 1_000_000);
    const { key } = await createKey(account.key, { budget_dollars: 0.000001 });
    expect((await chat(key)).status).toBe(402);
  },
  "budget.reached": async () => {
    await addCredits(account.orgId, 1_000_000);
    await setBudgets([{ limit_dollars: 0.000001, window: "60m" }]);
    expect((await chat(account.key)).status).toBe(402);
  },
  "budget.alert": async () => {
    await addCredits(account.orgId, 1_000_000);
    await setBudgets([{ limit_dollars: 1, window: "day", alert_at: 0 }]);
    expect((await chat(account.key)).status).toBe(200);
  },
  "pause.created": async () => void (await createPause()),
  "pause.ended": async () => {
    const id = await createPause();
    await expectOk(send(`/v1/pauses/${id}`, { method: "DELETE", key: account.key }));
  },
  "session.ended": async () => {
    await addCredits(account.orgId, 1_000_000);
    const { id, token } = await createSession(account.key);
    expect((await chat(token)).status).toBe(200);
    await expectOk(endSession(account.key, id));
  },
  "session.budget_reached": async () => {
    await addCredits(account.orgId, 1_000_000);
    const { token } = await createSession(account.key, { budget_dollars: 0.0001 });
    const chatStatus = async (): Promise<number> => (await chat(token, { max_tokens: 1 })).status;
    await vi.waitFor(async () => expect(await chatStatus()).toBe(402), LONG);
  },
  "member.created": async () => void (await addMember(account.orgId, "member")),
  "member.changed": async () => {
    const { memberId } = await addMember(account.orgId, "member");
    await operator("PATCH", `/members/${memberId}`, { role: "admin" });
  },
  "member.removed": async () => {
    const { memberId } = await addMember(account.orgId, "member");
    await operator("DELETE", `/members/${memberId}`);
  },
  "invitation.created": () => operator("POST", "/invitations", { role: "member" }),
  "invitation.ended": async () => {
    const invited = await admin("POST", `/orgs/${account.orgId}/invitations`, { role: "member" });
    const { id } = await invited.json<{ id: string }>();
    await operator("DELETE", `/invitations/${id}`);
  },
  "settings.changed": () =>
    call("PATCH", `/v1/orgs/${account.orgId}/settings`, { default_alert_threshold: 0.5 }),
  "organization.created": () => Promise.resolve(),
  "organization.changed": () => operator("PATCH", "", { name: "Another" }),
  "organization.wallet_rebuilt": async () => {
    await addCredits(account.orgId, 5);
    valueOf(await wallet().poke());
    await runInDurableObject(wallet(), (_: Wallet, { storage }) => storage.deleteAll());
    await evictDurableObject(wallet());
    await operator("POST", "/rebuild-wallet");
  },
  "organization.events_left_out": async () => {
    await env.DB.prepare(
      `INSERT INTO events (id, org_id, type, actor_kind, actor_id, subject, data, created_at)
       SELECT 'evt_' || lower(hex(randomblob(12))), ?1, 'key.changed', 'key', ?2, 's', '{}', ?3 + value
       FROM json_each(?4)`,
    )
      .bind(account.orgId, account.keyId, Date.now(), JSON.stringify([...Array(101).keys()]))
      .run();
    await wallet().takeEvents();
    setClock(Date.now() + 2 * HOUR);
  },
  "operator.viewed": async () => {
    const cookie = await login(ADMIN_TOKEN);
    await expectOk(callFromPage("/as", cookie, { method: "POST", body: { org: account.orgId } }));
  },
  "webhook.created": async () => void (await createWebhook("a.turnpike.dev")),
  "webhook.changed": async () => {
    const { id } = await createWebhook("a.turnpike.dev");
    await expectOk(callWebhooks("PATCH", `/${id}`, { types: ["key.created"] }));
  },
  "webhook.rotated": async () => {
    const { id } = await createWebhook("a.turnpike.dev");
    await expectOk(callWebhooks("POST", `/${id}/rotate`, {}));
  },
  "webhook.deleted": async () => {
    const { id } = await createWebhook("a.turnpike.dev");
    await expectOk(callWebhooks("DELETE", `/${id}`));
  },
  "webhook.disabled": async () => {
    receivers["gone.turnpike.dev"] = () => new Response("gone", { status: 410 });
    await createWebhook("gone.turnpike.dev", { types: ["balance.credited"] });
    await addCredits(account.orgId, 1);
    await vi.waitFor(() => expect(callsTo("gone.turnpike.dev")).toHaveLength(1), LONG);
  },
};

const GUIDE = import.meta.glob<string>("../../docs/webhooks.md", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** Runs the hourly sweep this many ms ahead. */
async function runSweep(later: number): Promise<void> {
  await sweepHourly(env.DB, () => Date.now() + later, { ...objectsOf(env), outboxes: [] });
}

/** Credits a payment of 10 micro-credits. Returns its ID. */
async function addPayment(): Promise<string> {
  const paymentId = `pi_${crypto.randomUUID().replaceAll("-", "")}`;
  const credit = {
    paymentId,
    purchaseId: mintId(PURCHASE_ID_PREFIX, Date.now()),
    method: "card",
  } as const;
  valueOf(await wallet().creditPayment({ ...credit, netMicro: micros(10), actor: SYSTEM_ACTOR }));
  return paymentId;
}

/** Refunds this part of a payment. */
async function refundPayment(paymentId: string, micro: number): Promise<void> {
  const target = { paymentId, purchaseId: "", reading: readings.next() };
  valueOf(await wallet().setBack({ ...target, backMicro: micros(micro), isDisputed: false }));
}

/** Times of reading Stripe, each later than the previous one. */
const readings = {
  last: 0,
  next(): number {
    return ++this.last;
  },
};

/** Creates a purchase by checkout with the tests' Stripe. */
async function createPurchase(subpath = ""): Promise<void> {
  useStripe();
  const headers = { "idempotency-key": crypto.randomUUID() };
  const body = { amount_dollars: 10, method: "checkout" };
  const answer = await send("/v1/credits/purchases", { key: account.key, headers, body });
  const { id } = await answer.json<{ id: string }>();
  if (subpath !== "") await call("POST", `/v1/credits/purchases/${id}${subpath}`, {});
}

/** Starts an automatic purchase whose card is declined. */
async function topUpDeclined(kind: "soft" | "hard"): Promise<void> {
  const auto_top_up = { below_dollars: 5, amount_dollars: 10, most_per_month_dollars: 10 };
  await call("PATCH", `/v1/orgs/${account.orgId}/settings`, { auto_top_up });
  const { topUp } = valueOf(await wallet().payments());
  const id = topUp.purchaseId ?? "";
  const data = { code: "card_declined" };
  const event = { type: "purchase.declined", actor: SYSTEM_ACTOR, subject: id, data } as const;
  const how = kind === "soft" ? { kind } : { kind, reason: "card_declined" as const };
  valueOf(await wallet().tellPurchase({ event, once: [id], topUp: { id, end: how } }));
}

/** Spends this amount of an end user's daily quota of 100 micro-credits. */
async function spend(micro: number): Promise<void> {
  await addCredits(account.orgId, 1000);
  await call("POST", "/v1/users", { external_id: "u", daily_quota_dollars: 0.0001 });
  await pay(wallet(), micro, "u");
}

describe("GET /v1/events", () => {
  it.each(EVENT_TYPES)("can return events of the type %s", async (type) => {
    await TRIGGERS[type]();
    await vi.waitFor(async () => {
      const response = await send(`/v1/events?type=${type}`, { key: account.key });
      const { events } = await response.json<{ events: readonly { type: string }[] }>();
      expect(events.map((event) => event.type)).toContain(type);
    }, LONG);
  });

  it("returns exactly the event types that the events guide lists", () => {
    const table = Object.values(GUIDE).join().split("| type ", 2)[1]?.split("\n\n", 1).join() ?? "";
    const named = table.split("\n").map((row) => row.split("|", 2).join());
    const types = named.join().match(/[a-z_]+\.[a-z_]+/g) ?? [];
    expect(types.toSorted()).toEqual(EVENT_TYPES.toSorted());
  });
});
