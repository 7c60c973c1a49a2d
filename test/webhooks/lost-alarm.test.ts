import { env } from "cloudflare:workers";
import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { runHourly } from "../../src/operator/scheduled.ts";
import { addCredits } from "../contract/client.ts";
import { setClock } from "../wallet/wallet-desk.ts";
import {
  account,
  deliveriesOf,
  HOUR,
  LONG,
  createWebhook,
  object,
  receivers,
  callsTo,
  useReceivers,
} from "./receivers.ts";

useReceivers();

describe("an organization's webhook deliveries after a lost alarm", () => {
  it("arrive with the next sweep, even if the organization is inactive", async () => {
    let status = 503;
    let taken = 0;
    receivers["lost.turnpike.dev"] = () => {
      if (status === 200) taken += 1;
      return new Response("", { status });
    };
    const hook = await createWebhook("lost.turnpike.dev", { types: ["balance.credited"] });
    await addCredits(account.orgId, 1);
    await vi.waitFor(async () => {
      expect(await deliveriesOf(hook.id)).toMatchObject([{ error: "status_503" }]);
    }, LONG);
    await runInDurableObject(object(), (_, { storage }) => storage.deleteAlarm());
    await evictDurableObject(object());
    await env.DB.prepare("UPDATE organizations SET used_at = 0 WHERE id = ?")
      .bind(account.orgId)
      .run();
    setClock(Date.now() + 24 * HOUR);
    status = 200;
    await runHourly(env);
    await vi.waitFor(async () => {
      expect(await deliveriesOf(hook.id)).toMatchObject([{ state: "delivered" }]);
    }, LONG);
    expect(taken).toBe(1);
  });

  it("get a new alarm from a sweep if they aren't due yet", async () => {
    receivers["later.turnpike.dev"] = () => new Response("", { status: 503 });
    const hook = await createWebhook("later.turnpike.dev", { types: ["balance.credited"] });
    await addCredits(account.orgId, 1);
    await vi.waitFor(async () => {
      expect(await deliveriesOf(hook.id)).toMatchObject([{ error: "status_503" }]);
    }, LONG);
    setClock(Date.now() + 6000);
    await runHourly(env);
    await vi.waitFor(async () => {
      expect(await deliveriesOf(hook.id)).toMatchObject([{ attempts: 2 }]);
    }, LONG);
    const [{ next_attempt_at: next } = { next_attempt_at: null }] = await deliveriesOf(hook.id);
    await runInDurableObject(object(), (_, { storage }) => storage.deleteAlarm());
    const sweptAt = Date.now();
    await runHourly(env);
    const at = await runInDurableObject(object(), (_, { storage }) => storage.getAlarm());
    expect(Number(at) + 6000).toBeGreaterThanOrEqual(Date.parse(next ?? ""));
    expect(at).toBeLessThan(sweptAt + 300_001);
    expect(callsTo("later.turnpike.dev")).toHaveLength(2);
  });
});
