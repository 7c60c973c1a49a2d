import { beforeEach, describe, expect, it, vi } from "vitest";
import { ADMIN_TOKEN, addCredits, admin, chat, errorOf, openAccount, send } from "./client.ts";
import type { Account } from "./client.ts";

let account: Account;
beforeEach(async () => {
  account = await openAccount();
});

type Answer = Record<string, unknown>;
type EventSummary = { readonly type: string; readonly actor: unknown; readonly subject: string };

const statusOf = async (key: string): Promise<number> => (await chat(key)).status;
async function events(type: string): Promise<readonly EventSummary[]> {
  const answer = await admin("GET", `/orgs/${account.orgId}/events?type=${type}`);
  return (await answer.json<{ events: EventSummary[] }>()).events;
}
const BY_ADMIN = { kind: "operator", id: "admin" };

function rotate(body: object, { name = crypto.randomUUID() } = {}): Promise<Response> {
  const path = `/admin/v1/orgs/${account.orgId}/keys/${account.keyId}/rotate`;
  const headers = { "idempotency-key": name };
  return send(path, { method: "POST", key: ADMIN_TOKEN, body, headers });
}

const sessions = (id = ""): string => `/orgs/${account.orgId}/sessions${id}`;
const webhooks = (id = ""): string => `/orgs/${account.orgId}/webhooks${id}`;
async function session(): Promise<{ readonly id: string; readonly token: string }> {
  return (await send("/v1/sessions", { key: account.key, body: {} })).json();
}
async function webhook(): Promise<string> {
  const body = { url: "https://hooks.turnpike.dev/", types: ["balance.credited"] };
  const response = await send("/v1/webhooks", { key: account.key, body });
  return (await response.json<{ id: string }>()).id;
}

describe("POST /admin/v1/orgs/{id}/keys/{key_id}/rotate", () => {
  it("returns 201 with a new secret on each call, and the old secret works only during the overlap", async () => {
    const first = await rotate({ overlap_seconds: 3600 }, { name: "one" });
    expect(first.status).toBe(201);
    const created = await first.json<{ key: string }>();
    expect(created).toMatchObject({ id: account.keyId, member_id: account.memberId });
    expect(await Promise.all([account.key, created.key].map(statusOf))).toEqual([200, 200]);
    const again = await rotate({ overlap_seconds: 3600 }, { name: "one" });
    expect((await again.json<{ key: string }>()).key).toBe(created.key);
    const last = await (await rotate({ overlap_seconds: 0 })).json<{ key: string }>();
    const all = [account.key, created.key, last.key];
    expect(await Promise.all(all.map(statusOf))).toEqual([401, 401, 200]);
    expect(await events("key.rotated")).toMatchObject([
      { actor: BY_ADMIN, subject: account.keyId },
      { actor: BY_ADMIN, subject: account.keyId },
    ]);
  });

  it("returns 400 without Idempotency-Key or overlap, and 422 if an Idempotency-Key is reused with another body", async () => {
    const path = `/orgs/${account.orgId}/keys/${account.keyId}/rotate`;
    const nameless = await errorOf(await admin("POST", path, { overlap_seconds: 0 }), 400);
    expect(nameless.param).toBe("Idempotency-Key");
    for (const body of [{}, { overlap_seconds: -1 }, { overlap_seconds: 1e9 }]) {
      expect((await errorOf(await rotate(body), 400)).param).toBe("overlap_seconds");
    }
    expect((await errorOf(await admin("POST", path), 400)).param).toBe("Idempotency-Key");
    expect((await rotate({ overlap_seconds: 60 }, { name: "two" })).status).toBe(201);
    await errorOf(await rotate({ overlap_seconds: 61 }, { name: "two" }), 422);
    expect(await events("key.rotated")).toHaveLength(1);
  });
});

it("PATCH /admin/v1/orgs/{id}/keys/{key_id} changes a key's limits immediately, and records an event", async () => {
  const path = `/orgs/${account.orgId}/keys/${account.keyId}`;
  const terms = { budget_dollars: 0, budget_period: "day", allowed_models: ["sandbox/*"] };
  expect(await (await admin("PATCH", path, terms)).json()).toMatchObject(terms);
  expect((await errorOf(await chat(account.key), 402)).code).toBe("key_budget_exceeded");
  const wrong = await admin("PATCH", path, { allowed_models: ["no/such"] });
  expect((await errorOf(wrong, 400)).param).toBe("allowed_models[0]");
  expect(await events("key.changed")).toMatchObject([{ actor: BY_ADMIN }]);
});

describe("the endpoint /admin/v1/orgs/{id}/sessions", () => {
  it("lists used sessions in pages, ends any session immediately, and records an event", async () => {
    const [one, two, unused] = [await session(), await session(), await session()];
    for (const { token } of [one, two]) expect(await statusOf(token)).toBe(200);
    const seen: unknown[] = [];
    for (let after = ""; ;) {
      const query = `?limit=1${after === "" ? "" : `&after=${after}`}`;
      const page = await (await admin("GET", sessions(query))).json<Answer>();
      seen.push(...(page["sessions"] as { id: string }[]).map(({ id }) => id));
      if (typeof page["next_after"] !== "string") break;
      after = page["next_after"];
    }
    expect(seen).toEqual([one.id, two.id].toSorted());
    for (const { id, token } of [one, unused, one]) {
      const ended = await admin("DELETE", sessions(`/${id}`));
      expect([ended.status, await ended.json()]).toEqual([200, { id, ended: true }]);
      expect(await statusOf(token)).toBe(401);
    }
    expect(await statusOf(two.token)).toBe(200);
    const sessionEvents = await events("session.ended");
    // An unused session emits no event.
    expect(sessionEvents.map(({ subject }) => subject)).toEqual([one.id]);
    for (const { actor } of sessionEvents) expect(actor).toEqual(BY_ADMIN);
  });
});

describe("the endpoint /admin/v1/orgs/{id}/webhooks", () => {
  let bodies: string[];
  beforeEach(() => {
    bodies = [];
    const originalFetch = globalThis.fetch;
    vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const request = new Request(input, init);
      if (new URL(request.url).hostname !== "hooks.turnpike.dev") return originalFetch(input, init);
      bodies.push(await request.text());
      return new Response("ok");
    });
  });
  it("lists webhooks without secrets, sends a test, replays events and lists deliveries", async () => {
    const id = await webhook();
    const listed = await (await admin("GET", webhooks())).json<{ webhooks: Answer[] }>();
    expect(listed.webhooks).toEqual([expect.objectContaining({ id, enabled: true })]);
    expect(listed.webhooks[0]).not.toHaveProperty("secret");
    const tested = await (await admin("POST", webhooks(`/${id}/test`))).json();
    expect(tested).toMatchObject({ delivered: true, status: 200, answer: "ok" });
    expect(JSON.parse(bodies[0] ?? "")).toMatchObject({ type: "webhook.test", actor: BY_ADMIN });
    await addCredits(account.orgId, 1);
    const replayed = await admin("POST", webhooks(`/${id}/replay`), { since: "2020-01-01" });
    expect([replayed.status, await replayed.json()]).toEqual([
      202,
      { queued: 2, next_since: null },
    ]);
    await vi.waitFor(async () => {
      const page = await admin("GET", webhooks(`/${id}/deliveries?limit=2`));
      const { deliveries } = await page.json<{ deliveries: Answer[] }>();
      expect(deliveries.map(({ type, state }) => [type, state])).toEqual([
        ["balance.credited", "delivered"],
        ["balance.credited", "delivered"],
      ]);
    }, 15_000);
  });
});
