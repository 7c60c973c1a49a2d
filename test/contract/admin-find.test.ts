import { env } from "cloudflare:workers";
import { describe, expect, it, vi } from "vitest";
import { mintEventId } from "../../src/shared/event.ts";
import { mintId } from "../../src/shared/id.ts";
import { runPaymentsSweep } from "../../src/operator/scheduled.ts";
import { useStripe } from "../payments/fake-stripe.ts";
import { LONG } from "../webhooks/receivers.ts";
import {
  ADMIN_TOKEN,
  addMember,
  admin,
  chat,
  newOrganization,
  openAccount,
  send,
} from "./client.ts";
import type { Account, MadeOrganization } from "./client.ts";
import { createKey } from "./key-client.ts";

type Find = {
  readonly data: readonly {
    readonly object: string;
    readonly id: string;
    readonly name: string | null;
    readonly organization: { readonly id: string } | null;
  }[];
  readonly has_more: boolean;
  readonly region: string;
  readonly other_regions: readonly string[];
  readonly asked_organizations: number;
  readonly missing: readonly string[];
  readonly next_after: string | null;
};

async function find(q: string, after?: string): Promise<Find> {
  const query = new URLSearchParams({ q, ...(after !== undefined && { after }) });
  const response = await admin("GET", `/find?${query.toString()}`);
  expect(response.status).toBe(200);
  return response.json();
}

/** Searches page by page to the end, because other files left many organizations. */
async function findAll(q: string): Promise<Pick<Find, "data" | "missing">> {
  const data: Find["data"][number][] = [];
  const missing: string[] = [];
  let after: string | undefined;
  do {
    const page = await find(q, after);
    data.push(...page.data);
    missing.push(...page.missing);
    after = page.next_after ?? undefined;
  } while (after !== undefined);
  return { data, missing };
}

/** Returns the kinds of objects that a search finds, each with its organization. */
async function foundBy(q: string): Promise<readonly string[]> {
  const { data } = await findAll(q);
  return data.map(({ object, organization }) => `${object} ${organization?.id ?? ""}`.trim());
}

const only = (object: string, { orgId }: Account): readonly string[] => [`${object} ${orgId}`];
const unique = (): string => crypto.randomUUID().slice(0, 8);

async function requestOf(key: string): Promise<string> {
  const response = await chat(key);
  await response.text();
  return response.headers.get("x-request-id") ?? "";
}

describe("GET /admin/v1/find", () => {
  it("finds an organization by ID, by slug or by part of the name", async () => {
    const word = `Zoë's ${unique()} Works`;
    const fields = newOrganization({ name: word });
    const response = await admin("POST", "/orgs", fields);
    const { organization } = await response.json<MadeOrganization>();
    const expected = [`organization ${organization.id}`];
    expect(await foundBy(organization.id)).toEqual(expected);
    expect(await foundBy(String(fields["slug"]))).toEqual(expected);
    expect(await foundBy(word.slice(3, 12).toUpperCase())).toEqual(expected);
  });

  it("finds a key by ID, prefix or secret, and returns only the prefix", async () => {
    const account = await openAccount();
    expect(await foundBy(account.keyId)).toEqual(only("key", account));
    const [prefix = ""] = /^svc_sk_eu_live_.{4}/.exec(account.key) ?? [];
    expect(await foundBy(prefix)).toContain(`key ${account.orgId}`);
    const bySecret = await find(account.key);
    expect(bySecret.data.map(({ id }) => id)).toContain(account.keyId);
    expect(JSON.stringify(bySecret)).not.toContain(account.key.slice(prefix.length));
  });

  it("finds members by email address or ID, and invitations by email address", async () => {
    const account = await openAccount();
    const email = `${unique()}@Example.com`;
    const response = await admin("POST", `/orgs/${account.orgId}/members`, {
      email,
      role: "member",
    });
    const { id } = await response.json<{ id: string }>();
    expect(await foundBy(email.toLowerCase())).toEqual(only("member", account));
    expect(await foundBy(id)).toEqual(only("member", account));
    const invited = `${unique()}@example.com`;
    await admin("POST", `/orgs/${account.orgId}/invitations`, { email: invited, role: "member" });
    expect(await foundBy(invited)).toEqual(only("invitation", account));
    await admin("DELETE", `/orgs/${account.orgId}/members/${id}`);
    expect(await foundBy(email)).toEqual([]);
  });

  it("finds a webhook by its ID, and a credit by its reference", async () => {
    const account = await openAccount();
    const { key } = account;
    const hook = await send("/v1/webhooks", { key, body: { url: "https://a.turnpike.dev/in" } });
    expect(await foundBy((await hook.json<{ id: string }>()).id)).toEqual(only("webhook", account));
    const reference = `invoice ${unique()}`;
    await admin("POST", `/orgs/${account.orgId}/credits`, { amount_micro: 1, reference });
    await env.WALLET.getByName(account.orgId).poke(); // publishes the credit
    expect(await foundBy(reference)).toEqual(only("credit", account));
  });

  it("finds settled, failed and held requests by request ID or completion ID", async () => {
    const account = await openAccount();
    const response = await chat(account.key);
    const { id } = await response.json<{ id: string }>();
    const requestId = response.headers.get("x-request-id") ?? "";
    expect(await foundBy(requestId)).toEqual(only("request", account));
    expect(await foundBy(id)).toEqual(only("request", account));
    const failed = await chat(account.key, { model: "sandbox/status-500" });
    await failed.text();
    const failedId = failed.headers.get("x-request-id") ?? "";
    expect(await foundBy(failedId)).toEqual(only("request", account));
    const { key } = await createKey(account.key, { may_hold: true });
    const merchant = `m-${unique()}`;
    expect((await admin("POST", "/merchants", { name: merchant })).status).toBe(201);
    const body = { amount_dollars: 0.1, description: "A tool", merchant };
    const holdResponse = await send("/v1/holds", { key, body });
    expect(holdResponse.status).toBe(201);
    const { id: hold } = await holdResponse.json<{ id: string }>();
    expect(await foundBy(hold)).toEqual(only("request", account));
  });

  it("finds an event by its ID", async () => {
    const account = await openAccount();
    await addMember(account.orgId, "member");
    const events = async () => (await send("/v1/events", { key: account.key })).json<Events>();
    const event = await vi.waitFor(async () => {
      const [newest] = (await events()).events;
      expect(newest).toBeDefined();
      return newest?.id ?? "";
    }, LONG);
    expect(await foundBy(event)).toEqual(only("event", account));
  });

  it("finds a purchase by ID, or by Stripe's ID of the session, payment or refund", async () => {
    const account = await openAccount();
    const stripe = useStripe();
    const headers = { "idempotency-key": crypto.randomUUID() };
    const body = { amount_dollars: 10, method: "checkout" };
    const bought = await send("/v1/credits/purchases", { key: account.key, headers, body });
    const { id } = await bought.json<{ id: string }>();
    await vi.waitFor(async () => {
      expect(await foundBy(id)).toEqual(only("purchase", account)); // the purchase isn't paid yet
    }, LONG);
    await vi.waitFor(() => expect(stripe.world.sessions.size).toBe(1), LONG);
    const [session] = stripe.world.sessions.values();
    stripe.person.pay(session?.id ?? "");
    await runPaymentsSweep(env);
    const path = `/orgs/${account.orgId}/purchases/${id}`;
    const payment = await vi.waitFor(async () => {
      const read = await (await admin("GET", path)).json<{ payment_id: string; state: string }>();
      expect(read.state).toBe("credited");
      return read.payment_id;
    }, LONG);
    const refunding = { key: ADMIN_TOKEN, headers, body: { amount_cents: 100 } };
    expect((await send(`/admin/v1${path}/refund`, refunding)).status).toBe(202);
    const [refund] = stripe.world.refunds.keys();
    for (const one of [session?.id ?? "", payment, refund ?? ""]) {
      expect(await foundBy(one), one).toEqual(only("purchase", account));
    }
    expect(await foundBy("re_unknown")).toEqual([]);
  });

  it("queries at most 200 wallets per call, and skips organizations that were inactive since the searched request", async () => {
    const account = await openAccount();
    const id = await requestOf(account.key);
    const old = mintId("req_", Date.now() - 86_400_000);
    expect((await find(id)).asked_organizations).toBeGreaterThan(0);
    await env.DB.prepare("UPDATE organizations SET used_at = iif(id = ?, ?, 0)")
      .bind(account.orgId, Date.now())
      .run();
    expect(await find(old)).toMatchObject({ data: [], asked_organizations: 1, next_after: null });
    const many = Array.from({ length: 205 }, () => crypto.randomUUID());
    await env.DB.prepare(
      `INSERT INTO organizations (id, name, slug, region, created_at, used_at)
       SELECT value, value, substr(value, 1, 30), 'eu', 1, ?2 FROM json_each(?1)`,
    )
      .bind(JSON.stringify(many), Date.now())
      .run();
    const first = await find(old);
    expect(first).toMatchObject({ data: [], asked_organizations: 200 });
    const second = await find(old, first.next_after ?? "");
    expect(second).toMatchObject({ data: [], asked_organizations: 6, next_after: null });
    await env.DB.prepare("DELETE FROM organizations WHERE id IN (SELECT value FROM json_each(?))")
      .bind(JSON.stringify(many))
      .run();
  });

  it("returns nothing, without calling a wallet, for an unknown name or ID and for another region's key", async () => {
    expect(await find(`nobody ${unique()}`)).toMatchObject({
      data: [],
      region: "eu",
      other_regions: ["us"],
      asked_organizations: 0,
      next_after: null,
    });
    for (const prefix of ["key_", "pur_", "whk_"]) {
      const unknown = await find(mintId(prefix, Date.now()));
      expect(unknown, prefix).toMatchObject({ data: [], asked_organizations: 0 });
    }
    const foreign = await find("svc_sk_us_live_abcd");
    expect(foreign).toMatchObject({ data: [], other_regions: ["us"], asked_organizations: 0 });
  });

  it("lists organizations as missing if their wallet can't be read", async () => {
    const slug = `lost-${unique()}`;
    await env.DB.prepare(
      "INSERT INTO organizations (id, name, slug, region, created_at) VALUES (?1, ?1, ?2, 'eu', 1)",
    )
      .bind(crypto.randomUUID(), slug)
      .run();
    const { data, missing } = await findAll(mintEventId(Date.now()));
    expect(data).toEqual([]);
    expect(missing).toContain(slug);
  });
});

type Events = { readonly events: readonly { readonly id: string }[] };
