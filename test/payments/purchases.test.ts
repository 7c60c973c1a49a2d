import { env } from "cloudflare:workers";
import {
  createExecutionContext,
  evictDurableObject,
  runDurableObjectAlarm,
  runInDurableObject,
} from "cloudflare:test";
import { afterEach, expect, it, vi } from "vitest";
import { app } from "../../src/app.ts";
import { signedWebhook } from "../fakes/stripe/events.ts";
import type { FakeStripe } from "../fakes/stripe/fake.ts";
import { Payments } from "../../src/money/payments/payments.do.ts";
import { refuse } from "../../src/shared/failure.ts";
import { runPaymentsSweep } from "../../src/operator/scheduled.ts";
import { ADMIN_TOKEN, admin, chat, openAccount, send } from "../contract/client.ts";
import type { Account } from "../contract/client.ts";
import { shiftClock } from "../keys/key-fixture.ts";
import { holdOf, valueOf } from "../wallet/wallet-fixture.ts";
import { paymentsOf, useStripe } from "./fake-stripe.ts";

afterEach(() => shiftClock(null));

const LONG = { timeout: 60_000, interval: 50 };
const SECRETS = ["whsec_0123456789", "whsec_before0123"];

type Purchase = {
  readonly id: string;
  readonly state: string;
  readonly url: string | null;
  readonly credited_micro: number | null;
  readonly returned_micro: number;
};

async function buy({ key }: Account, body: object, name = crypto.randomUUID()): Promise<Purchase> {
  const headers = { "idempotency-key": name };
  const answer = await send("/v1/credits/purchases", { key, headers, body });
  expect(answer.status).toBe(202);
  const purchase = await answer.json<Purchase>();
  expect(answer.headers.get("location")).toBe(`/v1/credits/purchases/${purchase.id}`);
  return purchase;
}

const read = async ({ key }: Account, path: string): Promise<unknown> =>
  (await send(path, { key })).json();
const purchaseOf = (account: Account, id: string) =>
  read(account, `/v1/credits/purchases/${id}`) as Promise<Purchase>;
const balanceOf = (account: Account) =>
  read(account, "/v1/balance") as Promise<{ credits_micro: number; owed_micro: number }>;

/** Returns the purchase's open session in the fake. */
function sessionOf(stripe: FakeStripe, { id }: Purchase): string {
  const own = [...stripe.world.sessions.values()].find((one) => one.metadata["purchase_id"] === id);
  return own?.id ?? "";
}

/** Sends each unprocessed event to the Worker with a signature. Returns the statuses. */
async function deliver(stripe: FakeStripe, events = stripe.takeEvents()): Promise<number[]> {
  const url = "https://eu.test/payments/stripe";
  const now = Math.floor(Date.now() / 1000);
  const statuses: number[] = [];
  for (const event of events) {
    const request = await signedWebhook(event, { url, secrets: SECRETS.slice(0, 1) }, now);
    statuses.push((await app.fetch(request, env, createExecutionContext())).status);
  }
  return statuses;
}

/** Creates a purchase by checkout that is paid and reported. */
async function bought(account: Account, stripe: FakeStripe): Promise<Purchase> {
  const purchase = await buy(account, { amount_dollars: 10, method: "checkout", save_card: true });
  stripe.person.pay(sessionOf(stripe, purchase));
  expect(new Set(await deliver(stripe))).toEqual(new Set([200]));
  await vi.waitFor(async () => {
    expect((await purchaseOf(account, purchase.id)).state).toBe("credited");
  }, LONG);
  return purchase;
}

it("a checkout is credited once, however often Stripe reports the payment", async () => {
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  const body = { amount_dollars: 10, method: "checkout" };
  const first = await buy(account, body, "one");
  expect(first).toMatchObject({ state: "needs_customer", credited_micro: null });
  expect(await buy(account, body, "one")).toMatchObject({ id: first.id });
  const headers = { "idempotency-key": "one" };
  const other = { ...body, amount_dollars: 11 };
  const refused = await send("/v1/credits/purchases", { key: account.key, headers, body: other });
  expect(refused.status).toBe(422);
  stripe.person.pay(sessionOf(stripe, first));
  const events = stripe.takeEvents();
  await deliver(stripe, [...events, ...events.toReversed()]);
  await runPaymentsSweep(env);
  await vi.waitFor(async () => {
    expect(await purchaseOf(account, first.id)).toMatchObject({
      state: "credited",
      credited_micro: 10_000_000,
    });
  }, LONG);
  expect(await balanceOf(account)).toMatchObject({ credits_micro: 10_000_000, owed_micro: 0 });
  const compared = await admin("POST", `/orgs/${account.orgId}/reconcile`);
  expect(await compared.json()).toMatchObject({ differences: [] });
});

it("closing an organization cancels its open purchases, so that nothing more is paid", async () => {
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  const purchase = await buy(account, { amount_dollars: 10, method: "checkout" });
  const session = sessionOf(stripe, purchase);
  expect((await admin("DELETE", `/orgs/${account.orgId}`)).status).toBe(200);
  await vi.waitFor(async () => {
    const found = await admin("GET", `/orgs/${account.orgId}/purchases/${purchase.id}`);
    expect(await found.json()).toMatchObject({
      state: "expired",
      error: { code: "cancelled" },
    });
  }, LONG);
  expect(stripe.world.sessions.get(session)?.status).toBe("expired");
});

it("closing an organization ends an automatic top-up that waits for Stripe, without a charge", async () => {
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  await bought(account, stripe);
  const charges = stripe.world.charges.size;
  const fault = { kind: "reset", when: "before", on: /^POST .v1.invoices$/ } as const;
  for (let time = 0; time < 20; time++) stripe.fault(fault);
  const auto_top_up = { below_dollars: 20, amount_dollars: 15, most_per_month_dollars: 30 };
  const settings = `/v1/orgs/${account.orgId}/settings`;
  await send(settings, { method: "PATCH", key: account.key, body: { auto_top_up } });
  const newest = async (): Promise<Purchase | undefined> => {
    const answer = await admin("GET", `/orgs/${account.orgId}/purchases`);
    return (await answer.json<{ purchases: Purchase[] }>()).purchases[0];
  };
  await env.WALLET.getByName(account.orgId).poke();
  await vi.waitFor(async () => expect((await newest())?.state).toBe("unknown"), LONG);
  const closed = await admin("DELETE", `/orgs/${account.orgId}?give_up_balance=true`);
  expect(closed.status).toBe(200);
  stripe.clearFaults();
  shiftClock(3_600_000);
  await runDurableObjectAlarm(paymentsOf(account.orgId));
  await vi.waitFor(async () => expect((await newest())?.state).toBe("expired"), LONG);
  expect(stripe.world.charges.size).toBe(charges);
});

it("an automatic top-up that was not delivered before a suspension never charges the card", async () => {
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  await bought(account, stripe);
  const charges = stripe.world.charges.size;
  const unavailable = refuse({ kind: "storage_unavailable" });
  const topUp = vi.spyOn(Payments.prototype, "topUp").mockResolvedValue(unavailable);
  const auto_top_up = { below_dollars: 20, amount_dollars: 15, most_per_month_dollars: 30 };
  const settings = `/v1/orgs/${account.orgId}/settings`;
  await send(settings, { method: "PATCH", key: account.key, body: { auto_top_up } });
  const wallet = env.WALLET.getByName(account.orgId);
  await wallet.poke();
  await vi.waitFor(() => expect(topUp).toHaveBeenCalled(), LONG);
  await admin("PATCH", `/orgs/${account.orgId}`, { status: "suspended" });
  topUp.mockClear();
  expect(await wallet.poke()).toMatchObject({ ok: true });
  expect(await wallet.payments()).toMatchObject({ value: { topUp: { purchaseId: null } } });
  expect(topUp).not.toHaveBeenCalled();
  expect(stripe.world.charges.size).toBe(charges);
});

it("the payments sweep credits payments that no webhook reported", async () => {
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  const purchase = await buy(account, { amount_dollars: 10, method: "checkout" });
  await runPaymentsSweep(env);
  stripe.person.pay(sessionOf(stripe, purchase));
  await runPaymentsSweep(env);
  await vi.waitFor(async () => {
    expect((await balanceOf(account)).credits_micro).toBe(10_000_000);
  }, LONG);
});

it("an alarm after the end of a checkout credits a payment that no webhook reported", async () => {
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  const purchase = await buy(account, { amount_dollars: 10, method: "checkout" });
  stripe.person.pay(sessionOf(stripe, purchase));
  shiftClock(2 * 86_400_000);
  await runDurableObjectAlarm(paymentsOf(account.orgId));
  expect(await purchaseOf(account, purchase.id)).toMatchObject({ state: "credited" });
});

/**
 * Returns an account that bought credits after its last publish, and whose wallet was then lost.
 */
async function lostSinceIt(stripe: FakeStripe): Promise<Account> {
  for (const method of ["warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation(() => undefined);
  }
  const account = await openAccount({ credits: 0 });
  const wallet = env.WALLET.getByName(account.orgId);
  await wallet.poke();
  await bought(account, stripe);
  await runInDurableObject(wallet, (_wallet, state) => state.storage.deleteAll());
  await evictDurableObject(wallet);
  return account;
}

it("a rebuilt wallet receives each payment once, either in the rebuild or in a later sweep", async () => {
  const stripe = useStripe();
  const rebuilt = await lostSinceIt(stripe);
  expect((await admin("POST", `/orgs/${rebuilt.orgId}/rebuild-wallet`)).status).toBe(200);
  await vi.waitFor(async () => {
    expect((await balanceOf(rebuilt)).credits_micro).toBe(10_000_000);
  }, LONG);
  const swept = await lostSinceIt(stripe);
  const wallet = env.WALLET.getByName(swept.orgId);
  await wallet.rebuild(swept.orgId, { kind: "operator", id: "admin" });
  expect((await balanceOf(swept)).credits_micro).toBe(0);
  await runPaymentsSweep(env);
  await runPaymentsSweep(env);
  await vi.waitFor(async () => {
    expect((await balanceOf(swept)).credits_micro).toBe(10_000_000);
  }, LONG);
});

it("a debt is forgiven only once per reference, even in a rebuilt wallet", async () => {
  for (const method of ["warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation(() => undefined);
  }
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  await bought(account, stripe);
  const wallet = env.WALLET.getByName(account.orgId);
  valueOf(await wallet.hold(holdOf(10_000_000, { keyId: account.keyId })));
  stripe.bank.dispute(stripe.payments()[0]?.intent ?? "");
  await deliver(stripe);
  await vi.waitFor(async () => {
    expect((await balanceOf(account)).owed_micro).toBe(10_000_000);
  }, LONG);
  const forgive = async (): Promise<number> => {
    const body = { forgive_micro: 4_000_000, reference: "goodwill" };
    return (await admin("POST", `/orgs/${account.orgId}/owed`, body)).status;
  };
  expect(await forgive()).toBe(200);
  await wallet.poke();
  await runInDurableObject(wallet, (_wallet, state) => state.storage.deleteAll());
  await evictDurableObject(wallet);
  expect((await admin("POST", `/orgs/${account.orgId}/rebuild-wallet`)).status).toBe(200);
  expect(await forgive()).toBe(200);
  const status = valueOf(await wallet.payments());
  expect(status).toMatchObject({ owedMicro: 0, takenMicro: 6_000_000, forgivenMicro: 4_000_000 });
});

it("credits that are bought while wallet and database conflict count once after the wallet's rebuild", async () => {
  for (const method of ["warn", "error"] as const) {
    vi.spyOn(console, method).mockImplementation(() => undefined);
  }
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  const wallet = env.WALLET.getByName(account.orgId);
  await wallet.poke();
  await env.DB.prepare("UPDATE balances SET seq = seq + 1000 WHERE org_id = ?")
    .bind(account.orgId)
    .run();
  await bought(account, stripe);
  await wallet.poke();
  expect((await admin("POST", `/orgs/${account.orgId}/rebuild-wallet`)).status).toBe(200);
  await vi.waitFor(async () => {
    expect((await balanceOf(account)).credits_micro).toBe(10_000_000);
  }, LONG);
  await env.PAYMENTS.getByName(account.orgId).poke();
  expect((await balanceOf(account)).credits_micro).toBe(10_000_000);
});

it("POST /payments/stripe accepts only events signed by Stripe, and ignores another region's events", async () => {
  const stripe = useStripe();
  await buy(await openAccount({ credits: 0 }), { amount_dollars: 10, method: "checkout" });
  const [event] = stripe.events;
  if (event === undefined) throw new Error("nothing happened");
  const url = "https://eu.test/payments/stripe";
  const now = Math.floor(Date.now() / 1000);
  const status = async (secrets: string[], at: number): Promise<number> => {
    const request = await signedWebhook(event, { url, secrets }, at);
    return (await app.fetch(request, env, createExecutionContext())).status;
  };
  expect(await status(["whsec_another0123"], now)).toBe(400);
  expect(await status(SECRETS.slice(1), now)).toBe(200);
  expect(await status(SECRETS, now - 290)).toBe(200);
  expect(await status(SECRETS, now - 310)).toBe(400);
  expect(await status(SECRETS, now + 310)).toBe(400);
  const foreign = useStripe();
  foreign.world.customers.set("cus_of_us", { id: "cus_of_us", object: "customer" } as never);
  foreign.bank.handMade("cus_of_us", 500);
  expect(new Set(await deliver(foreign))).toEqual(new Set([200]));
});

it("a dispute deducts the amount and blocks requests, and a won dispute returns the amount", async () => {
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  const { id } = await bought(account, stripe);
  const [payment] = stripe.payments();
  const dispute = stripe.bank.dispute(payment?.intent ?? "");
  await deliver(stripe);
  await vi.waitFor(async () => expect((await balanceOf(account)).credits_micro).toBe(0), LONG);
  expect(await purchaseOf(account, id)).toMatchObject({ returned_micro: 10_000_000 });
  expect((await chat(account.key)).status).toBe(402);
  stripe.bank.moveDispute(dispute, "won");
  await deliver(stripe);
  await vi.waitFor(async () => {
    expect((await balanceOf(account)).credits_micro).toBe(10_000_000);
  }, LONG);
  const second = await bought(account, stripe);
  const refund = await send(`/admin/v1/orgs/${account.orgId}/purchases/${second.id}/refund`, {
    key: ADMIN_TOKEN,
    headers: { "idempotency-key": "back" },
    body: { amount_cents: 250 },
  });
  expect(refund.status).toBe(202);
  await vi.waitFor(async () => {
    expect((await balanceOf(account)).credits_micro).toBe(17_500_000);
  }, LONG);
});

it("an operator's check credits a paid purchase that Stripe hasn't reported", async () => {
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  const { id } = await buy(account, { amount_dollars: 10, method: "checkout" });
  const session = sessionOf(stripe, { id } as Purchase);
  stripe.person.pay(session);
  stripe.takeEvents();
  const at = `/orgs/${account.orgId}/purchases`;
  expect((await admin("POST", `${at}/pur_none/check`)).status).toBe(404);
  const checked = await admin("POST", `${at}/${session}/check`);
  expect([checked.status, await checked.json()]).toMatchObject([
    202,
    { id, state: "needs_customer" },
  ]);
  await vi.waitFor(async () => {
    expect((await purchaseOf(account, id)).state).toBe("credited");
  }, LONG);
  expect((await admin("POST", `${at}/${id}/check`)).status).toBe(202);
  expect(await balanceOf(account)).toMatchObject({ credits_micro: 10_000_000 });
});

it("automatic top-up charges the saved card, and a 402 names the purchase in progress", async () => {
  const stripe = useStripe();
  const account = await openAccount({ credits: 0 });
  await bought(account, stripe);
  const auto_top_up = { below_dollars: 20, amount_dollars: 15, most_per_month_dollars: 30 };
  const settings = `/v1/orgs/${account.orgId}/settings`;
  const set = await send(settings, { method: "PATCH", key: account.key, body: { auto_top_up } });
  expect(set.status).toBe(200);
  await vi.waitFor(async () => {
    expect((await balanceOf(account)).credits_micro).toBe(25_000_000);
  }, LONG);
  const { purchases } = (await read(account, "/v1/credits/purchases")) as { purchases: Purchase[] };
  expect(purchases.map(({ state }) => state)).toEqual(["credited", "credited"]);
  expect(await paymentsOf(account.orgId).savedCard()).toMatchObject({ value: { brand: "visa" } });
});
