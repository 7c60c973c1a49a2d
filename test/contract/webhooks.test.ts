import { env } from "cloudflare:workers";
import { evictDurableObject } from "cloudflare:test";
import { Webhook } from "standardwebhooks";
import { describe, expect, it, vi } from "vitest";
import { setClock } from "../wallet/wallet-fixture.ts";
import {
  account,
  runWebhookAlarm,
  callWebhooks,
  deliveriesOf,
  HOUR,
  ids,
  LONG,
  createWebhook,
  object,
  receivers,
  callsTo,
  waitUntilAttempted,
  useReceivers,
  expectDeliveries,
} from "../webhooks/receivers.ts";
import type { Hook } from "../webhooks/receivers.ts";
import { addCredits, errorOf, send } from "./client.ts";

useReceivers();

describe("POST /v1/webhooks", () => {
  it.each(["lan.turnpike.dev", "internal.turnpike.dev", "mylan.dev", "arpa.home.dev"])(
    "accepts a public host: %s",
    async (host) => {
      const response = await callWebhooks("POST", "", { url: `https://${host}/` });
      expect([response.status, await response.json()]).toMatchObject([201, { enabled: true }]);
    },
  );

  it("normalizes the URL, removes duplicate event types, and shows only the host in events", async () => {
    const [path, types] = ["/hook/path-token?key=in-query", ["key.created", "balance.low"]];
    const url = `HTTPS://Hooks.Turnpike.dev:443/é${path}`;
    const response = await callWebhooks("POST", "", { url, types: [...types, ...types] });
    expect(response.status).toBe(201);
    const { id, ...hook } = await response.json<{ id: string }>();
    expect(hook).toMatchObject({ url: `https://hooks.turnpike.dev/%C3%A9${path}`, types });
    await callWebhooks("PATCH", `/${id}`, {
      url: `https://hooks.turnpike.dev/other${path}`,
      enabled: false,
    });
    await callWebhooks("PATCH", `/${id}`, {
      url: `https://other.turnpike.dev${path}`,
      types: null,
    });
    await callWebhooks("DELETE", `/${id}`);
    const log = await send("/v1/events", { key: account.key });
    const { events } = await log.json<{ events: readonly { type: string; data: unknown }[] }>();
    const eventData = events
      .filter(({ type }) => type.startsWith("webhook."))
      .map(({ data }) => data);
    const [here, there] = ["hooks.turnpike.dev", "other.turnpike.dev"];
    expect(eventData).toEqual([
      { host: there },
      { changes: { host: { from: here, to: there }, types: { from: types, to: null } } },
      { changes: { host: { from: here, to: here }, enabled: { from: true, to: false } } },
      { host: here, types },
    ]);
    expect(JSON.stringify(events)).not.toMatch(/path-token|in-query/);
  });

  it("returns 409 for a sixth webhook", async () => {
    const url = "https://hooks.turnpike.dev/";
    receivers["hooks.turnpike.dev"] = () => new Response("ok");
    for (let i = 0; i < 5; i++) {
      expect((await callWebhooks("POST", "", { url })).status).toBe(201);
    }
    expect((await errorOf(await callWebhooks("POST", "", { url }), 409)).code).toBe(
      "too_many_webhooks",
    );
  });
});

describe("a webhook delivery", () => {
  it("arrives once with a Standard Webhooks signature, and never contains the secret", async () => {
    receivers["a.turnpike.dev"] = () => new Response("thanks");
    const hook = await createWebhook("a.turnpike.dev", { types: ["balance.credited"] });
    await addCredits(account.orgId, 7, "paid");
    await vi.waitFor(() => expect(callsTo("a.turnpike.dev")).toHaveLength(1), LONG);
    const [one] = callsTo("a.turnpike.dev");
    const headers = Object.fromEntries(one?.headers ?? []);
    const event = new Webhook(hook.secret).verify(one?.body ?? "", headers) as { id: string };
    expect(event).toMatchObject({ type: "balance.credited", data: { amount_micro: 7 } });
    expect(headers["webhook-id"]).toBe(event.id);
    const other = new Webhook(`whsec_${btoa("x".repeat(32))}`);
    expect(() => other.verify(one?.body ?? "", headers)).toThrow("No matching signature");
    await expectDeliveries(hook, [{ state: "delivered", attempts: 1 }]);
    const row = await env.DB.prepare("SELECT secrets FROM webhooks WHERE id = ?")
      .bind(hook.id)
      .first();
    expect(JSON.stringify(row)).not.toContain(hook.secret.slice(6));
    expect(JSON.stringify(await (await callWebhooks("GET", "")).json())).not.toContain("whsec_");
  });

  it("contains signatures by both secrets during a rotation, and only by the new secret afterwards", async () => {
    receivers["r.turnpike.dev"] = () => new Response("ok");
    const hook = await createWebhook("r.turnpike.dev");
    const rotated = await callWebhooks("POST", `/${hook.id}/rotate`, { overlap_seconds: 60 });
    const { secret } = await rotated.json<Hook>();
    expect((await callWebhooks("POST", `/${hook.id}/test`, {})).status).toBe(200);
    const [call] = callsTo("r.turnpike.dev").slice(-1);
    for (const one of [hook.secret, secret]) {
      const headers = Object.fromEntries(call?.headers ?? []);
      expect(new Webhook(one).verify(call?.body ?? "", headers)).toMatchObject({
        type: "webhook.test",
      });
    }
    setClock(Date.now() + 61_000);
    await callWebhooks("POST", `/${hook.id}/test`, {});
    const [after] = callsTo("r.turnpike.dev").slice(-1);
    const headers = Object.fromEntries(after?.headers ?? []);
    expect(new Webhook(secret).verify(after?.body ?? "", headers)).toBeDefined();
    expect(() => new Webhook(hook.secret).verify(after?.body ?? "", headers)).toThrow(
      "No matching signature",
    );
  });

  it("fails with a reason, independently of other deliveries, if the receiver hangs, fails, redirects or returns 410", async () => {
    const hang = Promise.withResolvers<Response>();
    receivers["hangs.turnpike.dev"] = () => hang.promise;
    receivers["fails.turnpike.dev"] = () => new Response("no", { status: 500 });
    receivers["gone.turnpike.dev"] = () => new Response("gone", { status: 410 });
    receivers["moved.turnpike.dev"] = () => Response.redirect("https://a.turnpike.dev/", 302);
    receivers["good.turnpike.dev"] = () => new Response("ok");
    const types = ["balance.credited"];
    await createWebhook("hangs.turnpike.dev", { types });
    const [fails, gone, moved] = [
      await createWebhook("fails.turnpike.dev", { types }),
      await createWebhook("gone.turnpike.dev", { types }),
      await createWebhook("moved.turnpike.dev", { types }),
    ];
    await createWebhook("good.turnpike.dev", { types: [...types, "webhook.disabled"] });
    for (let i = 0; i < 20; i++) {
      await addCredits(account.orgId, 1);
    }
    await vi.waitFor(
      () => expect(ids("good.turnpike.dev").length).toBeGreaterThanOrEqual(21),
      LONG,
    );
    expect(callsTo("hangs.turnpike.dev")).toHaveLength(1);
    expect(callsTo("gone.turnpike.dev")).toHaveLength(1);
    const disabledHook = await (await callWebhooks("GET", `/${gone.id}`)).json<object>();
    expect(disabledHook).toMatchObject({ enabled: false, disabled_reason: "gone" });
    const notification = callsTo("good.turnpike.dev").find(({ body }) =>
      body.includes("webhook.disabled"),
    );
    expect(JSON.parse(notification?.body ?? "{}")).toMatchObject({
      subject: gone.id,
      data: { reason: "gone" },
    });
    await vi.waitFor(async () => {
      expect((await deliveriesOf(fails.id)).at(-1)).toMatchObject({
        state: "pending",
        error: "status_500",
      });
      expect((await deliveriesOf(moved.id)).at(-1)).toMatchObject({ error: "redirected" });
    }, LONG);
    hang.resolve(new Response("late"));
  });

  it("reaches a receiver that was down for most of two days, even after the object is evicted", async () => {
    let isDown = true;
    receivers["b.turnpike.dev"] = () => new Response("", { status: isDown ? 503 : 200 });
    const hook = await createWebhook("b.turnpike.dev", { types: ["balance.credited"] });
    const start = Date.now();
    for (let i = 0; i < 10; i++) {
      await addCredits(account.orgId, 1);
    }
    await vi.waitFor(() => expect(callsTo("b.turnpike.dev")).toHaveLength(1), LONG);
    for (const hours of [0.01, 0.2, 1, 4, 9, 20, 31]) {
      setClock(start + hours * HOUR);
      const before = callsTo("b.turnpike.dev").length;
      await runWebhookAlarm();
      await vi.waitFor(() => expect(callsTo("b.turnpike.dev").length).toBe(before + 1), LONG);
      await vi.waitFor(async () => {
        const attempts = (await deliveriesOf(hook.id)).reduce((sum, one) => sum + one.attempts, 0);
        expect(attempts).toBe(before + 1);
      }, LONG);
      await evictDurableObject(object());
    }
    isDown = false;
    setClock(start + 42 * HOUR);
    await runWebhookAlarm();
    await vi.waitFor(async () => {
      const all = await deliveriesOf(hook.id);
      expect(all.map(({ state }) => state)).toEqual(Array.from({ length: 10 }, () => "delivered"));
    }, LONG);
    expect(ids("b.turnpike.dev")).toHaveLength(10);
    expect(callsTo("b.turnpike.dev")).toHaveLength(8 + 10);
  });

  it("stops after five days of failures, with an event and disabled_reason: failing", async () => {
    receivers["f.turnpike.dev"] = () => new Response("no", { status: 500 });
    receivers["five-days.turnpike.dev"] = () => new Response("ok");
    const hook = await createWebhook("f.turnpike.dev", { types: ["balance.credited"] });
    await createWebhook("five-days.turnpike.dev", { types: ["webhook.disabled"] });
    await addCredits(account.orgId, 1);
    await expectDeliveries(hook, [{ error: "status_500", attempts: 1 }]);
    expect(await (await callWebhooks("GET", `/${hook.id}`)).json()).toMatchObject({
      enabled: true,
    });
    setClock(Date.now() + 5 * 24 * HOUR + 1000);
    await runWebhookAlarm();
    await vi.waitFor(() => expect(callsTo("five-days.turnpike.dev")).toHaveLength(1), LONG);
    expect(callsTo("five-days.turnpike.dev")[0]?.body).toContain('"reason":"failing"');
    const disabledHook = await (await callWebhooks("GET", `/${hook.id}`)).json();
    expect(disabledHook).toMatchObject({ enabled: false, disabled_reason: "failing" });
  });

  it("times out after WEBHOOK_TIMEOUT_MS, and is retried", async () => {
    const bindings = env as { WEBHOOK_TIMEOUT_MS?: string };
    bindings.WEBHOOK_TIMEOUT_MS = "50";
    try {
      const never = new Promise<Response>(() => undefined);
      receivers["never.turnpike.dev"] = () => never;
      const hook = await createWebhook("never.turnpike.dev", { types: ["balance.credited"] });
      await addCredits(account.orgId, 1);
      const [one] = await waitUntilAttempted([hook], 1);
      expect(one).toMatchObject({ state: "pending", error: "timeout", answer: "" });
      const test = await (await callWebhooks("POST", `/${hook.id}/test`, {})).json();
      expect(test).toMatchObject({ delivered: false, status: null, error: "timeout" });
      setClock(Date.now() + 10_000); // the second attempt is due after 5 s
      await runWebhookAlarm();
      await waitUntilAttempted([hook], 2);
    } finally {
      delete bindings.WEBHOOK_TIMEOUT_MS;
    }
  });

  it("resumes when events are replayed, but not for a deleted webhook", async () => {
    receivers["p.turnpike.dev"] = () => new Response("ok");
    const hook = await createWebhook("p.turnpike.dev", { types: ["balance.credited"] });
    const since = new Date(Date.now() - HOUR).toISOString();
    await addCredits(account.orgId, 1);
    await expectDeliveries(hook, [{ state: "delivered" }]);
    const answer = Promise.withResolvers<Response>();
    receivers["p.turnpike.dev"] = () => answer.promise;
    const again = await callWebhooks("POST", `/${hook.id}/replay`, { since });
    expect([again.status, await again.json()]).toEqual([202, { queued: 1, next_since: null }]);
    await vi.waitFor(() => expect(callsTo("p.turnpike.dev")).toHaveLength(2), LONG);
    const waiting = {
      state: "pending",
      attempts: 0,
      status: null,
      answer: null,
      duration_ms: null,
    };
    expect(await deliveriesOf(hook.id)).toMatchObject([{ ...waiting, last_attempt_at: null }]);
    answer.resolve(new Response("ok"));
    expect(ids("p.turnpike.dev")).toHaveLength(1);
    expect((await callWebhooks("DELETE", `/${hook.id}`)).status).toBe(200);
    expect((await callWebhooks("DELETE", `/${hook.id}`)).status).toBe(404);
    await addCredits(account.orgId, 1);
    await env.WALLET.getByName(account.orgId).poke();
    expect(callsTo("p.turnpike.dev")).toHaveLength(2);
  });
});
