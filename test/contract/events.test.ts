import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it } from "vitest";
import { pay, rowsOf } from "../wallet/wallet-fixture.ts";
import { addCredits, admin, chat, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

type Event = {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly actor: { readonly kind: string; readonly id: string | null };
  readonly subject: string;
  readonly data: Readonly<Record<string, unknown>>;
};
type Page = {
  readonly events: readonly Event[];
  readonly next_after: string | null;
  readonly dropped: unknown;
};

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});

const read = (query = "", key = account.key): Promise<Response> =>
  send(`/v1/events${query}`, { key });
async function page(query = ""): Promise<Page> {
  const response = await read(query);
  expect(response.status).toBe(200);
  return response.json<Page>();
}
const ofType = async (type: string): Promise<readonly Event[]> =>
  (await page(`?limit=100&type=${type}`)).events;
const budgetEvents = async (): Promise<readonly Event[]> => [
  ...(await ofType("budget.alert")),
  ...(await ofType("budget.reached")),
];
const pauseEvents = async (): Promise<readonly Event[]> => [
  ...(await ofType("pause.created")),
  ...(await ofType("pause.ended")),
];
async function changed(method: string, path: string, body: object): Promise<void> {
  const response = await send(path, { method, key: account.key, body });
  expect([200, 201]).toContain(response.status);
}

describe("GET /v1/events", () => {
  it("returns one event per credit reference, with the operator who added the credits", async () => {
    await addCredits(account.orgId, 5, "twice");
    await addCredits(account.orgId, 5, "twice");
    const creditEvents = await ofType("balance.credited");
    expect(creditEvents.map(({ data }) => data["reference"])).toEqual([
      "twice",
      expect.any(String),
    ]);
    expect(creditEvents[0]).toMatchObject({
      actor: { kind: "operator", id: "admin" },
      subject: account.orgId,
      data: { amount_micro: 5, balance_micro: 1_000_000_005 },
    });
  });

  it("returns changed settings with their old values, and omits unchanged settings", async () => {
    const path = `/v1/orgs/${account.orgId}/settings`;
    await changed("PATCH", path, { default_alert_threshold: 0.5 });
    await changed("PATCH", path, { default_alert_threshold: 0.5 });
    const settingsEvents = await ofType("settings.changed");
    expect(settingsEvents.map(({ actor, data }) => ({ actor, data }))).toEqual([
      {
        actor: { kind: "key", id: account.keyId },
        data: { changes: { defaultAlertThreshold: { from: 0.8, to: 0.5 } } },
      },
    ]);
  });

  it("returns changed limits of an end user with their old values, and omits unchanged limits", async () => {
    const limits = { daily_quota_dollars: 2, alert_threshold: 0.5 };
    await changed("POST", "/v1/users", { external_id: "ann", ...limits });
    await changed("PATCH", "/v1/users/ann", limits);
    await changed("PATCH", "/v1/users/ann", { daily_quota_dollars: 3 });
    const budgets = [{ limit_dollars: 1, window: "day" }];
    await changed("POST", "/v1/users", { external_id: "ann", monthly_quota_dollars: 9, budgets });
    const userEvents = await ofType("end_user.changed");
    const ann = { subject: "ann", actor: { kind: "key", id: account.keyId } };
    const [second, first, ...others] = userEvents;
    expect(others).toEqual([]);
    expect(first).toMatchObject(ann);
    expect(first?.data).toEqual({
      changes: { daily_quota_micro: { from: 2_000_000, to: 3_000_000 } },
    });
    expect(second).toMatchObject({
      ...ann,
      data: {
        changes: {
          monthly_quota_micro: { from: null, to: 9_000_000 },
          budgets: { from: [], to: [{ unit: "dollars", amount: 1_000_000, window: "day" }] },
        },
      },
    });
    await send("/v1/users/ann", { method: "DELETE", key: account.key });
    expect(JSON.stringify(await ofType("end_user.changed"))).not.toContain("ann");
  });

  it("returns one event for repeated revocations of a key", async () => {
    const response = await send("/v1/keys", { key: account.key, body: { name: "to go" } });
    const { id } = await response.json<{ id: string }>();
    for (let time = 0; time < 3; time++) {
      const gone = await send(`/v1/keys/${id}`, { method: "DELETE", key: account.key });
      expect(gone.status).toBe(200);
    }
    const revocations = await ofType("key.revoked");
    expect(revocations).toMatchObject([{ subject: id, actor: { kind: "key", id: account.keyId } }]);
  });

  it("returns one event each for a reached alert threshold, quota and budget", async () => {
    const wallet = env.WALLET.getByName(account.orgId);
    await changed("POST", "/v1/users", { external_id: "u", daily_quota_dollars: 0.0001 });
    await pay(wallet, 80, "u");
    expect(await ofType("end_user.alert")).toMatchObject([
      { subject: "u", actor: { kind: "system", id: null }, data: { quota_micro: 100 } },
    ]);
    expect(await ofType("end_user.quota_reached")).toEqual([]);
    for (let time = 0; time < 2; time++) {
      expect((await chat(account.key, { user: "u" })).status).toBe(429);
    }
    expect(await ofType("end_user.quota_reached")).toMatchObject([
      { subject: "u", data: { period: "day", quota_micro: 100, left_micro: 20 } },
    ]);
    const body = { name: "small", budget_dollars: 0.000001, budget_period: "day" };
    const small = await send("/v1/keys", { key: account.key, body });
    const { id, key } = await small.json<{ id: string; key: string }>();
    for (let time = 0; time < 2; time++) {
      expect((await chat(key)).status).toBe(402);
    }
    expect(await ofType("key.budget_reached")).toMatchObject([
      { subject: id, data: { period: "day", budget_micro: 1 } },
    ]);
  });

  it("returns an event for a charge that brings usage exactly to the quota", async () => {
    await changed("POST", "/v1/users", { external_id: "v", monthly_quota_dollars: 0.0001 });
    await pay(env.WALLET.getByName(account.orgId), 100, "v");
    expect(await ofType("end_user.quota_reached")).toMatchObject([
      { subject: "v", data: { period: "month", left_micro: 0 } },
    ]);
  });

  it("names the end user in budget events until the end user is deleted", async () => {
    const budgets = [{ limit_dollars: 0.0001, window: "day", alert_at: 0.5 }];
    const path = "/v1/users/ann";
    await changed("POST", "/v1/users", { external_id: "ann", budgets });
    await pay(env.WALLET.getByName(account.orgId), 100, "ann");
    const named = { data: { scope: "end_user", end_user: "ann" } };
    expect(await budgetEvents()).toMatchObject([named, named]);
    const { id } = await (await send(path, { key: account.key })).json<{ id: string }>();
    await send(path, { method: "DELETE", key: account.key });
    const erased = { subject: id, data: { end_user: id } };
    expect(await budgetEvents()).toMatchObject([erased, erased]);
  });

  it("names the end user in pause events until the end user is deleted", async () => {
    const path = "/v1/users/ann";
    await changed("POST", "/v1/users", { external_id: "ann" });
    await changed("POST", "/v1/pauses", { scope: "end_user", id: "ann", reason: "abuse" });
    const named = { data: { end_user: "ann" } };
    const [created] = await ofType("pause.created");
    expect(created).toMatchObject(named);
    const { id } = await (await send(path, { key: account.key })).json<{ id: string }>();
    expect((await send(path, { method: "DELETE", key: account.key })).status).toBe(409);
    await changed("DELETE", `/v1/pauses/${String(created?.data["pause_id"])}`, {});
    expect(await ofType("pause.ended")).toMatchObject([named]);
    await changed("DELETE", path, {});
    const erased = { subject: id, data: { end_user: id } };
    expect(await pauseEvents()).toMatchObject([erased, erased]);
  });

  it("returns an event for a balance that falls below the alert threshold", async () => {
    const path = `/v1/orgs/${account.orgId}/settings`;
    await changed("PATCH", path, { low_balance_threshold_dollars: 2000 });
    expect(await ofType("balance.low")).toMatchObject([
      { subject: account.orgId, data: { threshold_micro: 2_000_000_000 } },
    ]);
  });

  it("returns no event for requests that stay below all limits", async () => {
    const { length } = (await page("?limit=100")).events;
    expect((await chat(account.key)).status).toBe(200);
    expect((await page("?limit=100")).events).toHaveLength(length);
  });

  it("returns each event once in pages, newest first, filtered by type and time, even after an eviction", async () => {
    for (let i = 0; i < 25; i++) {
      await addCredits(account.orgId, 1, `n${i}`);
    }
    await evictDurableObject(env.WALLET.getByName(account.orgId));
    const seen: Event[] = [];
    for (let after: string | null = ""; after !== null;) {
      const query = `?type=balance.credited&limit=10${after === "" ? "" : `&after=${after}`}`;
      const { events, next_after } = await page(query);
      seen.push(...events);
      after = next_after;
    }
    const references = seen.map(({ data }) => data["reference"]);
    expect(references.slice(0, 25)).toEqual(Array.from({ length: 25 }, (_, i) => `n${24 - i}`));
    expect(new Set(seen.map(({ id }) => id)).size).toBe(26);
    const from = seen[10]?.created_at ?? "";
    const since = (await page(`?type=balance.credited&limit=100&from=${from}`)).events;
    expect(since.map(({ id }) => id)).toEqual(
      seen.filter((one) => one.created_at >= from).map(({ id }) => id),
    );
    const before = (await page(`?type=balance.credited&limit=100&to=${from}`)).events;
    expect(since.length + before.length).toBe(26);
  });

  it("returns the organization's events to operators as well", async () => {
    const theirs = await admin("GET", `/orgs/${account.orgId}/events?limit=100`);
    expect(await theirs.json()).toEqual(await page("?limit=100"));
  });

  it("returns only the newest events and the number of dropped events if the maximum is exceeded", async () => {
    const wallet = env.WALLET.getByName(account.orgId);
    const [first] = (await ofType("balance.credited")).slice(-1);
    // Simulates 99,999 further events, because the maximum counts positions in the log.
    await rowsOf(
      wallet,
      "UPDATE events SET place = place - 99999 WHERE room = 'operator' AND place = 1",
    );
    await addCredits(account.orgId, 1, "one more");
    const { events, dropped } = await page("?limit=100");
    expect(events.map(({ id }) => id)).not.toContain(first?.id);
    expect(dropped).toEqual({ events: expect.any(Number), until: expect.any(String) });
  });
});
