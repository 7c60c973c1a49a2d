import { expect, it, vi } from "vitest";
import {
  formatNotification,
  formatSlackMessage,
} from "../../src/events/notifications/notification-text.ts";
import { SYSTEM_ACTOR } from "../../src/shared/event.ts";
import { addCredits } from "../contract/client.ts";
import {
  account,
  callWebhooks,
  deliveriesOf,
  LONG,
  createWebhook,
  receivers,
  callsTo,
  useReceivers,
  expectDeliveries,
} from "./receivers.ts";

useReceivers();

const HOST = "hooks.slack.dev";
const types = ["balance.credited"];

it("a webhook with the format slack sends a message in Slack's format", async () => {
  receivers[HOST] = () => new Response("ok");
  const hook = await createWebhook(HOST, { types, format: "slack" });
  await addCredits(account.orgId, 1);
  await vi.waitFor(() => expect(callsTo(HOST)).toHaveLength(1), LONG);
  const [sent] = callsTo(HOST);
  const text = expect.stringMatching(/^balance\.credited: .* by operator /);
  expect(JSON.parse(sent?.body ?? "")).toEqual({ text });
  await expectDeliveries(hook, [{ state: "delivered" }]);
  const [delivery] = await deliveriesOf(hook.id);
  const shown = await callWebhooks("GET", `/${hook.id}/deliveries/${delivery?.id}`);
  expect(await shown.json()).toMatchObject({ body: sent?.body });
  await callWebhooks("POST", `/${hook.id}/test`);
  expect(JSON.parse(callsTo(HOST)[1]?.body ?? "")).toHaveProperty("text");
});

it("a webhook's format can be changed, and unknown formats are rejected", async () => {
  receivers[HOST] = () => new Response("ok");
  const hook = await createWebhook(HOST, { types });
  expect(await (await callWebhooks("GET", `/${hook.id}`)).json()).toMatchObject({ format: null });
  const changed = await callWebhooks("PATCH", `/${hook.id}`, { format: "slack" });
  expect(await changed.json()).toMatchObject({ format: "slack", types });
  const back = await callWebhooks("PATCH", `/${hook.id}`, { format: null });
  expect(await back.json()).toMatchObject({ format: null });
  const refused = await callWebhooks("PATCH", `/${hook.id}`, { format: "teams" });
  expect(refused.status).toBe(400);
  expect(await refused.json()).toMatchObject({ error: { param: "format" } });
});

it("a Slack message escapes names, so that a name can't mention a channel", () => {
  const event = {
    id: "evt_1",
    type: "end_user.alert",
    actor: SYSTEM_ACTOR,
    subject: "<!channel> & co",
    data: {},
    createdAt: 0,
  } as const;
  expect(JSON.parse(formatSlackMessage(event))).toEqual({
    text: "end_user.alert: &lt;!channel&gt; &amp; co",
  });
  expect(formatNotification(event)).toBeNull();
});

it("a Slack message about an end user's budget names the end user", () => {
  const event = { id: "evt_1", actor: SYSTEM_ACTOR, subject: "7b16c26e", createdAt: 0 } as const;
  const data = { scope: "end_user", end_user: "ann" };
  const ofUser = formatSlackMessage({ ...event, type: "budget.alert", data });
  expect(JSON.parse(ofUser)).toEqual({ text: "budget.alert: ann" });
  const ofKey = formatSlackMessage({ ...event, type: "budget.alert", data: { scope: "key" } });
  expect(JSON.parse(ofKey)).toEqual({ text: "budget.alert: 7b16c26e" });
});
