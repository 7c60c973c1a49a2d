import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { runPaymentsSweep } from "../../src/operator/scheduled.ts";
import type { FakeStripe } from "../fakes/stripe/fake.ts";
import { paymentsOf, useStripe } from "../payments/fake-stripe.ts";
import { LONG } from "../webhooks/receivers.ts";
import { ADMIN_TOKEN, admin, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

type Purchase = {
  readonly id: string;
  readonly state: string;
  readonly returned_micro: number;
  readonly url: string | null;
  readonly organization: { readonly id: string; readonly slug: string | null };
};
type Page = { readonly purchases: readonly Purchase[]; readonly next_after: string | null };

let stripe: FakeStripe;
beforeEach(async () => {
  stripe = useStripe();
  purchaseIds.clear();
  await env.DB.prepare("DELETE FROM purchases").run();
});

const page = async (query = ""): Promise<Page> => (await admin("GET", `/purchases${query}`)).json();
/** The purchases of this test, because sweeps also publish those of other tests. */
const purchaseIds = new Set<string>();
const ownPurchases = async (query = ""): Promise<readonly Purchase[]> =>
  (await page(query)).purchases.filter(({ id }) => purchaseIds.has(id));
const ids = async (query = ""): Promise<readonly string[]> =>
  (await ownPurchases(query)).map(({ id }) => id);

async function buy({ key }: Account): Promise<string> {
  const headers = { "idempotency-key": crypto.randomUUID() };
  const body = { amount_dollars: 10, method: "checkout" };
  const response = await send("/v1/credits/purchases", { key, headers, body });
  expect(response.status).toBe(202);
  const { id } = await response.json<{ id: string }>();
  purchaseIds.add(id);
  await vi.waitFor(async () => expect(await ids()).toContain(id), LONG);
  return id;
}

async function pay(account: Account, id: string): Promise<void> {
  const path = `/orgs/${account.orgId}/purchases/${id}`;
  const session = await vi.waitFor(async () => {
    const read = await (await admin("GET", path)).json<{ session_id: string | null }>();
    expect(read.session_id).not.toBeNull();
    return read.session_id ?? "";
  }, LONG);
  stripe.person.pay(session);
  await runPaymentsSweep(env);
  await vi.waitFor(async () => expect(await ids("?state=credited")).toContain(id), LONG);
}

describe("GET /admin/v1/purchases", () => {
  it("lists purchases with the data that the organization sees, except the URL of the payment page", async () => {
    const accounts = [await openAccount(), await openAccount()];
    for (const account of accounts) {
      await pay(account, await buy(account));
    }
    const open = await buy(accounts[0] as Account);
    const purchases = await ownPurchases();
    expect(purchases).toHaveLength(3);
    expect(purchases[0]).toMatchObject({ id: open, url: null });
    for (const { organization, url: _url, ...listed } of purchases) {
      const single = await admin("GET", `/orgs/${organization.id}/purchases/${listed.id}`);
      const { url: _page, ...read } = await single.json<Record<string, unknown>>();
      expect(listed).toEqual(read);
    }
  });

  it("filters purchases by state, refund, organization and time, and returns the next page for next_after", async () => {
    const [one, other] = [await openAccount(), await openAccount()];
    const paid = await buy(one);
    await pay(one, paid);
    const open = await buy(other);
    const headers = { "idempotency-key": crypto.randomUUID() };
    const refund = { key: ADMIN_TOKEN, headers, body: { amount_cents: 100 } };
    expect(
      (await send(`/admin/v1/orgs/${one.orgId}/purchases/${paid}/refund`, refund)).status,
    ).toBe(202);
    await vi.waitFor(async () => expect(await ids("?state=refunded")).toEqual([paid]), LONG);
    expect(await ids("?state=credited")).toEqual([paid]);
    expect(await ids(`?org=${other.orgId}`)).toEqual([open]);
    const organization = await admin("GET", `/orgs/${one.orgId}`);
    const { slug } = await organization.json<{ slug: string }>();
    expect(await ids(`?org=${slug}`)).toEqual([paid]);
    expect(await ids("?org=nobody-s")).toEqual([]);
    expect(await ids("?to=2026-01-01")).toEqual([]);
    expect(await ids("?from=2026-01-01")).toEqual([open, paid]);
    const second = await buy(one);
    const first = await page(`?org=${slug}&limit=1`);
    expect(first.purchases.map(({ id }) => id)).toEqual([second]);
    expect(await page(`?org=${slug}&limit=1&after=${first.next_after}`)).toMatchObject({
      purchases: [{ id: paid }],
      next_after: null,
    });
  });

  it("restores purchases that the database has lost", async () => {
    const account = await openAccount();
    const id = await buy(account);
    await env.DB.prepare("DELETE FROM purchases").run();
    expect(await ids()).toEqual([]);
    await paymentsOf(account.orgId).poke();
    await vi.waitFor(async () => expect(await ids()).toEqual([id]), LONG);
  });

  it("lists purchases made with an earlier release, which didn't publish purchases", async () => {
    const account = await openAccount();
    const id = await buy(account);
    await runInDurableObject(paymentsOf(account.orgId), (_, { storage }) => {
      storage.sql.exec("DELETE FROM published");
    });
    await env.DB.prepare("DELETE FROM purchases").run();
    await paymentsOf(account.orgId).poke();
    await vi.waitFor(async () => expect(await ids()).toEqual([id]), LONG);
  });

  it.each([
    ["a restore to a time before its credit", "updated_at = updated_at - 1, state = 'paid'"],
    ["a late write with an earlier refund", "returned_micro = 5"],
  ])("lists the current state of a purchase again after %s", async (_, change) => {
    const account = await openAccount();
    const id = await buy(account);
    await pay(account, id);
    const row = () =>
      env.DB.prepare("SELECT state, returned_micro FROM purchases WHERE id = ?").bind(id).first();
    const current = { state: "credited", returned_micro: 0 };
    await vi.waitFor(async () => expect(await row()).toEqual(current), LONG);
    await env.DB.prepare(`UPDATE purchases SET ${change} WHERE id = ?`).bind(id).run();
    expect(await row()).not.toEqual(current);
    await paymentsOf(account.orgId).poke();
    await vi.waitFor(async () => expect(await row()).toEqual(current), LONG);
  });

  it("never replaces a purchase with an older record", async () => {
    const account = await openAccount();
    const id = await buy(account);
    await env.DB.prepare(
      "UPDATE purchases SET updated_at = updated_at + 1000000, state = 'paid'",
    ).run();
    await runInDurableObject(paymentsOf(account.orgId), (_, { storage }) => {
      storage.sql.exec("DELETE FROM published");
    });
    await paymentsOf(account.orgId).poke();
    expect(await ids("?state=paid")).toEqual([id]);
  });
});
