import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { expect, it, vi } from "vitest";
import { addCredits, chat, send } from "../contract/client.ts";
import { pay, rowsOf, setClock } from "../wallet/wallet-fixture.ts";
import {
  account,
  runWebhookAlarm,
  callWebhooks,
  deliveriesOf,
  LONG,
  createWebhook,
  object,
  receivers,
  callsTo,
  waitUntilAttempted,
  useReceivers,
  expectDeliveries,
} from "./receivers.ts";

useReceivers();

const NAME = "ann@example.com";
const post = (path: string, body: object) => send(path, { key: account.key, body });
const stored = async (): Promise<string> => {
  const log = await rowsOf(env.WALLET.getByName(account.orgId), "SELECT * FROM events");
  const queue = await runInDurableObject(object(), (_, { storage }) =>
    storage.sql.exec("SELECT * FROM deliveries").toArray(),
  );
  return JSON.stringify([log, queue]);
};

it("a deleted end user's name disappears from the event log and from delivered and pending messages", async () => {
  let isDown = false;
  receivers["told.turnpike.dev"] = ({ body }) => new Response(body, { status: isDown ? 503 : 200 });
  const types = ["key.created", "end_user.alert", "end_user.quota_reached"];
  const hook = await createWebhook("told.turnpike.dev", { types });
  await addCredits(account.orgId, 1_000_000);
  const user = await post("/v1/users", { external_id: NAME, daily_quota_dollars: 0.0001 });
  const { id } = await user.json<{ id: string }>();
  expect((await post("/v1/keys", { name: "hers", end_user: NAME })).status).toBe(201);
  await pay(env.WALLET.getByName(account.orgId), 80, NAME); // an alert
  await waitUntilAttempted([hook], 1);
  isDown = true;
  expect((await chat(account.key, { user: NAME })).status).toBe(429);
  await expectDeliveries(hook, [
    { type: "end_user.quota_reached", error: "status_503" },
    { type: "end_user.alert", state: "delivered" },
    { type: "key.created", state: "delivered" },
    { type: "key.created", state: "delivered" }, // the organization's first
  ]);
  expect((await stored()).split(NAME).length).toBeGreaterThan(6);
  const path = `/v1/users/${encodeURIComponent(NAME)}`;
  expect((await send(path, { method: "DELETE", key: account.key })).status).toBe(200);
  await vi.waitFor(async () => expect(await stored()).not.toContain(NAME), LONG);
  expect((await stored()).split(id).length).toBeGreaterThan(6);
  isDown = false;
  setClock(Date.now() + 10_000);
  await runWebhookAlarm();
  await vi.waitFor(async () => {
    expect((await deliveriesOf(hook.id))[0]).toMatchObject({ state: "delivered" });
  }, LONG);
  const last = callsTo("told.turnpike.dev").at(-1);
  expect(JSON.parse(last?.body ?? "{}")).toMatchObject({
    type: "end_user.quota_reached",
    subject: id,
  });
});

it("a webhook receiver's response is deleted if the event's end user is deleted during the delivery", async () => {
  const gate = Promise.withResolvers<void>();
  receivers["slow.turnpike.dev"] = async ({ body }) => {
    if (!body.includes(NAME)) return new Response();
    await gate.promise;
    return new Response(body, { status: 503 });
  };
  const hook = await createWebhook("slow.turnpike.dev", { types: ["key.created"] });
  await post("/v1/users", { external_id: NAME });
  expect((await post("/v1/keys", { name: "hers", end_user: NAME })).status).toBe(201);
  await vi.waitFor(() => expect(callsTo("slow.turnpike.dev").at(-1)?.body).toContain(NAME), LONG);
  const path = `/v1/users/${encodeURIComponent(NAME)}`;
  expect((await send(path, { method: "DELETE", key: account.key })).status).toBe(200);
  await vi.waitFor(async () => expect(await stored()).not.toContain(NAME), LONG);
  gate.resolve();
  await vi.waitFor(async () => {
    expect((await deliveriesOf(hook.id))[0]).toMatchObject({ attempts: 1, error: "status_503" });
  }, LONG);
  expect((await deliveriesOf(hook.id))[0]).toMatchObject({ answer: null });
  expect(await stored()).not.toContain(NAME);
  const [newest] = await deliveriesOf(hook.id);
  const shown = await callWebhooks("GET", `/${hook.id}/deliveries/${newest?.id}`);
  expect(await shown.json()).toMatchObject({ headers: null, newest_attempts: [{ answer: null }] });
});
