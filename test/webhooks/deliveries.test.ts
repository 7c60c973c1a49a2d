import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { env } from "cloudflare:workers";
import { runHourlyJobs } from "../../src/operator/scheduled.ts";
import { addCredits, errorOf } from "../contract/client.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import {
  account,
  callWebhooks,
  callsTo,
  createWebhook,
  deliveriesOf,
  HOUR,
  ids,
  LONG,
  object,
  receivers,
  runWebhookAlarm,
  useReceivers,
  expectDeliveries,
} from "./receivers.ts";

useReceivers();

type Detail = {
  readonly id: string;
  readonly body: string;
  readonly headers: Record<string, string> | null;
  readonly newest_attempts: readonly {
    readonly at: string;
    readonly status: number | null;
    readonly error: string | null;
    readonly answer: string | null;
    readonly duration_ms: number;
  }[];
};

const types = ["balance.credited"];

const HOST = "told.turnpike.dev";

async function detailOf(hook: string): Promise<Detail> {
  const [newest] = await deliveriesOf(hook);
  const response = await callWebhooks("GET", `/${hook}/deliveries/${newest?.id}`);
  expect(response.status).toBe(200);
  return response.json<Detail>();
}

async function healthOf(hook: string): Promise<unknown> {
  const one = await (await callWebhooks("GET", `/${hook}`)).json<{ health: unknown }>();
  const all = await (
    await callWebhooks("GET", "")
  ).json<{ webhooks: readonly { health: unknown }[] }>();
  expect(all.webhooks[0]?.health).toEqual(one.health);
  return one.health;
}

describe("GET /v1/webhooks/{id}/deliveries/{delivery_id}", () => {
  it("returns the body and headers exactly as sent, but no secret", async () => {
    receivers[HOST] = () => new Response("thanks", { status: 500 });
    const hook = await createWebhook(HOST, { types });
    await addCredits(account.orgId, 1);
    await expectDeliveries(hook, [{ attempts: 1 }]);
    const shown = await detailOf(hook.id);
    const [sent] = callsTo(HOST);
    expect(shown.body).toBe(sent?.body);
    for (const [name, value] of Object.entries(shown.headers ?? {})) {
      expect([name, sent?.headers.get(name)]).toEqual([name, value]);
    }
    expect(Object.keys(shown.headers ?? {})).toContain("webhook-signature");
    expect(shown.newest_attempts).toMatchObject([
      { status: 500, error: "status_500", answer: "thanks" },
    ]);
    expect(JSON.stringify(shown)).not.toContain(hook.secret.slice("whsec_".length));
    const none = await callWebhooks("GET", `/${hook.id}/deliveries/dlv_${"0".repeat(24)}`);
    expect(await errorOf(none, 404)).toMatchObject({ message: "No such delivery." });
  });

  it("omits the receiver's response if an older release rewrote the event", async () => {
    receivers[HOST] = () => new Response("ann@example.com", { status: 500 });
    const hook = await createWebhook(HOST, { types });
    await addCredits(account.orgId, 1);
    await vi.waitFor(async () => {
      expect((await detailOf(hook.id)).newest_attempts).toMatchObject([{ status: 500 }]);
    }, LONG);
    await runInDurableObject(object(), (_, { storage }) => {
      storage.sql.exec("UPDATE deliveries SET body = '{}', answer = NULL");
    });
    const shown = await detailOf(hook.id);
    expect(shown).toMatchObject({ body: "{}", headers: null });
    expect(shown.newest_attempts).toMatchObject([{ status: 500, answer: null }]);
  });

  it("returns ten attempts, newest first, including attempts before a resend", async () => {
    let answered = 0;
    receivers[HOST] = () => new Response(`answer ${++answered}`, { status: 503 });
    const hook = await createWebhook(HOST, { types });
    await addCredits(account.orgId, 1);
    for (let n = 1; n <= 12; n++) {
      await vi.waitFor(async () => {
        expect((await detailOf(hook.id)).newest_attempts[0]?.answer).toBe(`answer ${n}`);
      }, LONG);
      await callWebhooks("POST", `/${hook.id}/resend`, { state: "pending" });
    }
    await vi.waitFor(async () => {
      const answers = (await detailOf(hook.id)).newest_attempts.map(({ answer }) => answer);
      expect(answers).toEqual(Array.from({ length: 10 }, (_, n) => `answer ${13 - n}`));
    }, LONG);
  });
});

it("GET /v1/webhooks/{id} returns the webhook's health (ok, failing or off) and the day's deliveries", async () => {
  let status = 200;
  receivers[HOST] = () => new Response("", { status });
  const hook = await createWebhook(HOST, { types });
  const untried = { state: "ok", failing_since: null, waiting: 0, last_success_at: null };
  expect(await healthOf(hook.id)).toMatchObject({ ...untried, delivered_24h: 0, failed_24h: 0 });
  await addCredits(account.orgId, 1);
  const becomes = (health: object): Promise<void> =>
    vi.waitFor(async () => expect(await healthOf(hook.id)).toMatchObject(health), LONG);
  await becomes({ ...untried, last_success_at: expect.any(String), delivered_24h: 1 });
  status = 500;
  await addCredits(account.orgId, 1);
  await addCredits(account.orgId, 1);
  await becomes({ state: "failing", waiting: 2, failed_24h: 1, last_error: "status_500" });
  expect(await healthOf(hook.id)).toMatchObject({ failing_since: expect.any(String) });
  status = 200;
  setClock(Date.now() + HOUR);
  await runWebhookAlarm();
  await becomes({ state: "ok", failing_since: null, waiting: 0, delivered_24h: 3, failed_24h: 1 });
  setClock(Date.now() + 25 * HOUR);
  await becomes({ state: "ok", delivered_24h: 0, failed_24h: 0, last_error: "status_500" });
  await callWebhooks("PATCH", `/${hook.id}`, { url: "https://elsewhere.turnpike.dev/" });
  await becomes({ ...untried, last_error: null });
  await callWebhooks("PATCH", `/${hook.id}`, { enabled: false });
  expect(await healthOf(hook.id)).toMatchObject({ state: "off", waiting: 0 });
});

useReceivers();

describe("POST /v1/webhooks/{id}/resend", () => {
  it("resends only the given delivered message", async () => {
    receivers["one.turnpike.dev"] = () => new Response("ok");
    const hook = await createWebhook("one.turnpike.dev", { types });
    for (const amount of [1, 2]) {
      await addCredits(account.orgId, amount);
    }
    await vi.waitFor(() => expect(callsTo("one.turnpike.dev")).toHaveLength(2), LONG);
    const [newest] = await deliveriesOf(hook.id);
    const resent = await callWebhooks("POST", `/${hook.id}/resend`, { delivery_id: newest?.id });
    expect([resent.status, await resent.json()]).toEqual([202, { queued: 1 }]);
    await vi.waitFor(() => expect(callsTo("one.turnpike.dev")).toHaveLength(3), LONG);
    expect(callsTo("one.turnpike.dev").at(-1)?.headers.get("webhook-id")).toBe(newest?.event_id);
    expect(ids("one.turnpike.dev")).toHaveLength(2);
  });

  it("sends the given message first, even if a failing webhook has other messages due", async () => {
    receivers[HOST] = () => new Response("", { status: 500 });
    const hook = await createWebhook(HOST, { types });
    await addCredits(account.orgId, 1);
    await vi.waitFor(() => expect(callsTo(HOST)).toHaveLength(1), LONG);
    await addCredits(account.orgId, 2);
    await vi.waitFor(async () => expect(await deliveriesOf(hook.id)).toHaveLength(2), LONG);
    const [, oldest] = await deliveriesOf(hook.id);
    await callWebhooks("POST", `/${hook.id}/resend`, { delivery_id: oldest?.id });
    await vi.waitFor(() => expect(callsTo(HOST)).toHaveLength(2), LONG);
    expect(callsTo(HOST).at(-1)?.headers.get("webhook-id")).toBe(oldest?.event_id);
  });

  it("resends pending messages even while deliveries to the receiver are paused", async () => {
    let isDown = true;
    receivers["down.turnpike.dev"] = () => new Response("", { status: isDown ? 500 : 200 });
    const hook = await createWebhook("down.turnpike.dev", { types });
    await addCredits(account.orgId, 1);
    await expectDeliveries(hook, [{ state: "pending", attempts: 1 }]);
    const listed = async (state: string) => {
      const page = await callWebhooks("GET", `/${hook.id}/deliveries?state=${state}`);
      return (await page.json<{ deliveries: object[] }>()).deliveries.length;
    };
    expect([await listed("pending"), await listed("failed")]).toEqual([1, 0]);
    isDown = false;
    const resent = await callWebhooks("POST", `/${hook.id}/resend`, { state: "pending" });
    expect(await resent.json()).toEqual({ queued: 1 });
    await expectDeliveries(hook, [{ state: "delivered", attempts: 1 }]);
    const none = await callWebhooks("POST", `/${hook.id}/resend`, { state: "failed" });
    expect(await none.json()).toEqual({ queued: 0 });
  });

  it("requires an ID or a filter but not both, a known delivery, and an enabled webhook", async () => {
    const hook = await createWebhook("off.turnpike.dev", { types });
    const resend = (body: object) => callWebhooks("POST", `/${hook.id}/resend`, body);
    const unknown = { delivery_id: `dlv_${"0".repeat(24)}` };
    for (const body of [{}, { ...unknown, state: "failed" }]) {
      expect(await errorOf(await resend(body), 400)).toMatchObject({ param: "delivery_id" });
    }
    expect((await resend(unknown)).status).toBe(404);
    await callWebhooks("PATCH", `/${hook.id}`, { enabled: false });
    expect(await errorOf(await resend(unknown), 409)).toMatchObject({ code: "webhook_disabled" });
  });
});

useReceivers();

describe("an organization's webhook delivery after a lost alarm", () => {
  it("arrives by the next sweep, even if the organization is inactive", async () => {
    let status = 503;
    let taken = 0;
    receivers["lost.turnpike.dev"] = () => {
      if (status === 200) taken += 1;
      return new Response("", { status });
    };
    const hook = await createWebhook("lost.turnpike.dev", { types: ["balance.credited"] });
    await addCredits(account.orgId, 1);
    await expectDeliveries(hook, [{ error: "status_503" }]);
    await runInDurableObject(object(), (_, { storage }) => storage.deleteAlarm());
    await evictDurableObject(object());
    await env.DB.prepare("UPDATE organizations SET used_at = 0 WHERE id = ?")
      .bind(account.orgId)
      .run();
    setClock(Date.now() + 24 * HOUR);
    status = 200;
    await runHourlyJobs(env);
    await expectDeliveries(hook, [{ state: "delivered" }]);
    expect(taken).toBe(1);
  });

  it("gets a new alarm from a sweep if the next attempt isn't due yet", async () => {
    receivers["later.turnpike.dev"] = () => new Response("", { status: 503 });
    const hook = await createWebhook("later.turnpike.dev", { types: ["balance.credited"] });
    await addCredits(account.orgId, 1);
    await expectDeliveries(hook, [{ error: "status_503" }]);
    setClock(Date.now() + 6000);
    await runHourlyJobs(env);
    await expectDeliveries(hook, [{ attempts: 2 }]);
    const [{ next_attempt_at: next } = { next_attempt_at: null }] = await deliveriesOf(hook.id);
    await runInDurableObject(object(), (_, { storage }) => storage.deleteAlarm());
    const sweptAt = Date.now();
    await runHourlyJobs(env);
    const at = await runInDurableObject(object(), (_, { storage }) => storage.getAlarm());
    expect(Number(at) + 6000).toBeGreaterThanOrEqual(Date.parse(next ?? ""));
    expect(at).toBeLessThan(sweptAt + 300_001);
    expect(callsTo("later.turnpike.dev")).toHaveLength(2);
  });
});
