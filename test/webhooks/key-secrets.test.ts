import { env } from "cloudflare:workers";
import { Webhook } from "standardwebhooks";
import { runInDurableObject } from "cloudflare:test";
import { expect, it, vi } from "vitest";
import { decryptWebhookSecret } from "../../src/events/webhooks/webhook-secrets.ts";
import { runHourlyJobs } from "../../src/operator/scheduled.ts";
import type { WebhookDeliveries } from "../../src/events/webhooks/webhook-deliveries.do.ts";
import { addCredits } from "../contract/client.ts";
import { setClock } from "../wallet/wallet-fixture.ts";
import {
  account,
  runWebhookAlarm,
  LONG,
  createWebhook,
  object,
  receivers,
  callsTo,
  useReceivers,
  expectDeliveries,
} from "./receivers.ts";

const NEWER = `z:${"newer-secret-".padEnd(40, "0123456789")}`;
const bindings = (secrets: string): Env => ({ ...env, KEY_SECRETS: secrets });
useReceivers();

const sealedOf = async (id: string): Promise<readonly string[]> => {
  const row = await env.DB.prepare("SELECT secrets FROM webhooks WHERE id = ?").bind(id).first();
  return (JSON.parse(String(row?.["secrets"])) as { sealed: string }[]).map(({ sealed }) => sealed);
};

it("webhook secrets are re-encrypted after KEY_SECRETS changes, so that the old secret can be removed", async () => {
  let status = 503;
  receivers["kept.turnpike.dev"] = () => new Response("", { status });
  const hook = await createWebhook("kept.turnpike.dev", { types: ["balance.credited"] });
  await addCredits(account.orgId, 1);
  await expectDeliveries(hook, [{ error: "status_503", attempts: 1 }]);
  await runHourlyJobs(bindings(`${NEWER},${env.KEY_SECRETS}`));
  expect(await sealedOf(hook.id)).toEqual([expect.stringMatching(/^z\./)]);
  setClock(Date.now() + 10_000);
  await runInDurableObject(object(), (deliveries: WebhookDeliveries) => {
    Object.defineProperty(deliveries, "env", { value: bindings(NEWER) });
  });
  status = 200;
  await runWebhookAlarm();
  await vi.waitFor(() => expect(callsTo("kept.turnpike.dev")).toHaveLength(2), LONG);
  for (const { body, headers } of callsTo("kept.turnpike.dev")) {
    const headerFields = Object.fromEntries(headers);
    expect(new Webhook(hook.secret).verify(body, headerFields)).toMatchObject({
      type: "balance.credited",
    });
  }
});

it("the credentials of usage receivers are re-encrypted after KEY_SECRETS changes", async () => {
  const settings = { credential: "rk_1", event_name: "ai" };
  const more = { types: ["usage.settled"], format: "stripe_meter_events", receiver: settings };
  const hook = await createWebhook("meters.turnpike.dev", more);
  await runHourlyJobs(bindings(`${NEWER},${env.KEY_SECRETS}`));
  const row = env.DB.prepare("SELECT receiver FROM webhooks WHERE id = ?").bind(hook.id);
  const stored = await row.first<string>("receiver");
  const { sealed, eventName } = JSON.parse(stored ?? "") as { sealed: string; eventName: string };
  expect([sealed, eventName]).toEqual([expect.stringMatching(/^z\./), "ai"]);
  const keySecrets = [{ id: "z", secret: NEWER.slice(2) }];
  expect(await decryptWebhookSecret(sealed, hook.id, keySecrets)).toBe("rk_1");
});

it("a webhook secret that KEY_SECRETS can't decrypt raises an alert at the next sweep", async () => {
  const hook = await createWebhook("lost.turnpike.dev", { types: ["balance.credited"] });
  const sealed = await sealedOf(hook.id);
  const alerts = vi.spyOn(console, "error").mockImplementation(() => undefined);
  await runHourlyJobs(bindings(NEWER));
  expect(alerts.mock.calls.flat()).toContain(
    `{"event":"alert","alert":"webhook_secret_unreadable","org_id":"${account.orgId}","webhook_id":"${hook.id}"}`,
  );
  expect(await sealedOf(hook.id)).toEqual(sealed);
});
