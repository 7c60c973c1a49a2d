import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Webhook } from "standardwebhooks";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/shared/clock.ts";
import { admin, errorOf, openAccount } from "../contract/client.ts";
import { effortFor } from "../effort.ts";
import {
  credit,
  deleteWalletStorage,
  setClock,
  stubOf,
  valueOf,
} from "../wallet/wallet-fixture.ts";
import type { Stub } from "../wallet/wallet-fixture.ts";
import { account, callWebhooks, deliveriesOf, createWebhook, object } from "./receivers.ts";
import { receivers, callsTo, useReceivers } from "./receivers.ts";
import { charge, deliver } from "./usage-stream-fixture.ts";
import { USAGE_RECEIVERS } from "./usage-receivers.ts";
import { ReceivedLedger } from "./received-ledger.ts";
import type { UsageMessage } from "./received-ledger.ts";

useReceivers();

const types = ["usage.settled"];
const { open, settings } = USAGE_RECEIVERS.openmeter;
const HOST = "usage.turnpike.dev";

async function ledgerOf(stub: Stub): Promise<Map<number, number>> {
  const { rows } = valueOf(await stub.ledger(0, 10_000));
  const streamed = rows.filter(({ kind }) => kind === "usage" || kind === "credit");
  return new Map(streamed.map(({ seq, amountMicro }) => [seq, amountMicro]));
}

type Fate = "accept" | "accept, but answer 500" | "refuse" | "break" | "process later";
type Step =
  | { readonly kind: "charge" | "credit"; readonly amount: number }
  | { readonly kind: "wait"; readonly ms: number }
  | { readonly kind: "replay"; readonly part: number }
  | { readonly kind: "evict" };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: amountOf("charge") },
  { weight: 1, arbitrary: amountOf("credit") },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.constantFrom(MINUTE_MS, 20 * MINUTE_MS, DAY_MS),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("replay" as const),
      part: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("evict" as const) }) },
);
const fate = fc.constantFrom<Fate>(
  "accept",
  "accept",
  "accept, but answer 500",
  "refuse",
  "break",
  "process later",
);

function amountOf<K extends "charge" | "credit">(kind: K) {
  return fc.record({ kind: fc.constant(kind), amount: fc.integer({ min: 1, max: 900 }) });
}

describe("a webhook receiver of usage.settled", () => {
  it("gets exactly the ledger's rows, even if calls are dropped, repeated, reordered or stalled", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 12, maxLength: 30, size: "max" }),
        fc.infiniteStream(fate),
        async (steps, fates) => {
          const start = Date.now();
          setClock(start);
          const opened = await openAccount({ credits: 0 });
          Object.assign(account, opened);
          const stub = stubOf(account.orgId);
          const books = new ReceivedLedger();
          const postponed: UsageMessage[] = [];
          let isSettling = true;
          let failures = 0;
          receivers[HOST] = ({ body }) => {
            const message = JSON.parse(body) as UsageMessage;
            // Failures for days would disable the webhook.
            const next = isSettling && failures < 2 ? fates.next().value : "accept";
            failures = next === "accept" || next === "process later" ? 0 : failures + 1;
            if (next === "refuse") return new Response("", { status: 503 });
            if (next === "break") throw new Error("connection reset");
            if (next === "process later") postponed.unshift(message);
            else books.add(message);
            return new Response("", { status: next === "accept, but answer 500" ? 500 : 200 });
          };
          await credit(stub, 1_000_000);
          const hook = await createWebhook(HOST, { types });
          await callWebhooks("POST", `/${hook.id}/replay`, { after_seq: 0 });
          let at = start;
          for (const one of steps) {
            if ("amount" in one) {
              await (one.kind === "charge" ? charge : credit)(stub, one.amount);
            } else if (one.kind === "wait") await deliver((at += one.ms));
            else if (one.kind === "evict") {
              await object().health(); // only a running object can be evicted
              await evictDurableObject(object());
            } else {
              const got = books.rows();
              let known = 0;
              while (got.has(known + 1)) known++;
              const afterSeq = Math.floor(one.part * known); // a replay of later rows would skip some
              await callWebhooks("POST", `/${hook.id}/replay`, { after_seq: afterSeq });
            }
          }
          isSettling = false;
          for (let n = 0; n < 3; n++) await deliver((at += HOUR_MS));
          for (const message of postponed) books.add(message);
          expect(books.rows()).toEqual(await ledgerOf(stub));
          const ids = new Set(books.ids());
          expect(ids.size).toBe(books.rows().size);
          await callWebhooks("DELETE", `/${hook.id}`);
        },
      ),
      { numRuns: effortFor(4, 60), endOnFailure: true },
    );
  });

  it("gets signed batches of requests with tokens, tags and end users", async () => {
    receivers[HOST] = () => new Response("ok");
    const hook = await createWebhook(HOST, { types });
    const stub = stubOf(account.orgId);
    await credit(stub, 1000, "first");
    const id = await charge(stub, 7, { tags: { team: "search" } });
    await deliver(Date.now() + HOUR_MS);
    const [sent] = callsTo(HOST);
    const headers = Object.fromEntries(sent?.headers ?? []);
    const message = JSON.parse(sent?.body ?? "") as UsageMessage;
    expect(message).toMatchObject({ id: headers["webhook-id"], type: "usage.settled" });
    expect(() => new Webhook(hook.secret).verify(sent?.body ?? "", headers)).not.toThrow("match");
    expect(message.data).toMatchObject({
      first_seq: 1,
      last_seq: 2,
      events: [
        { kind: "credit", amount_micro: 1000, reference: "first", request: null },
        {
          id,
          kind: "usage",
          seq: 2,
          amount_micro: -7,
          balance_micro: 993,
          request: {
            model: "sandbox/echo",
            prompt_tokens: 4,
            completion_tokens: 5,
            cost_micro: 7,
            quota_micro: 0,
            tags: { team: "search" },
          },
        },
      ],
    });
    const [delivery] = await deliveriesOf(hook.id);
    expect(delivery).toMatchObject({ state: "delivered", type: "usage.settled", attempts: 1 });
  });

  it("gets only rows created after the webhook, and gets earlier rows only by a replay", async () => {
    receivers[HOST] = () => new Response("ok");
    const stub = stubOf(account.orgId);
    const start = Date.now();
    setClock(start);
    await credit(stub, 1000);
    setClock(start + HOUR_MS);
    const hook = await createWebhook(HOST, { types });
    await charge(stub, 1);
    await deliver(start + 2 * HOUR_MS);
    const seqs = (): number[] =>
      callsTo(HOST).flatMap(({ body }) =>
        (JSON.parse(body) as UsageMessage).data.events.map(({ seq }) => seq),
      );
    expect(seqs()).toEqual([2]);
    const since = new Date(start - 1).toISOString();
    const restarted = await callWebhooks("POST", `/${hook.id}/replay`, { usage_since: since });
    expect(await restarted.json()).toEqual({ queued: 0, next_since: null, after_seq: 0 });
    await deliver(start + 3 * HOUR_MS);
    expect(seqs()).toEqual([2, 1, 2]);
    const path = `/orgs/${account.orgId}/webhooks/${hook.id}/replay`;
    expect(await (await admin("POST", path, { after_seq: 1 })).json()).toMatchObject({
      after_seq: 1,
    });
    await deliver(start + 4 * HOUR_MS);
    expect(seqs()).toEqual([2, 1, 2, 2]);
  });

  it("continues at the last sent row after the webhook is disabled and enabled again", async () => {
    receivers[HOST] = () => new Response("ok");
    const stub = stubOf(account.orgId);
    const hook = await createWebhook(HOST, { types });
    await credit(stub, 1000);
    await deliver(Date.now() + HOUR_MS);
    await callWebhooks("PATCH", `/${hook.id}`, { enabled: false });
    await charge(stub, 1);
    await deliver(Date.now() + 2 * HOUR_MS);
    expect(callsTo(HOST)).toHaveLength(1);
    const refused = await callWebhooks("POST", `/${hook.id}/replay`, { after_seq: 0 });
    expect(await errorOf(refused, 409)).toMatchObject({ code: "webhook_disabled" });
    await callWebhooks("PATCH", `/${hook.id}`, { enabled: true });
    await deliver(Date.now() + 3 * HOUR_MS);
    const books = new ReceivedLedger();
    for (const { body } of callsTo(HOST)) books.add(JSON.parse(body) as UsageMessage);
    expect(books.rows()).toEqual(await ledgerOf(stub));
  });
});

describe("a webhook receiver of usage.settled after the wallet is rebuilt", () => {
  it.each([
    ["were lost", true],
    ["still exist", false],
  ])("gets the balance and each charge once if the wallet's rows %s", async (_, isLost) => {
    receivers[HOST] = () => new Response("ok");
    const start = Date.now();
    setClock(start);
    const stub = stubOf(account.orgId);
    await createWebhook(HOST, { types });
    const meter = open();
    receivers["meter.turnpike.dev"] = meter.take;
    await createWebhook("meter.turnpike.dev", { types, format: "openmeter", receiver: settings });
    await credit(stub, 1000);
    const user = { externalId: "ann" };
    const first = await charge(stub, 7, {}, user);
    await deliver(start + HOUR_MS);
    valueOf(await stub.poke());
    if (isLost) await deleteWalletStorage(stub);
    else {
      await env.DB.prepare("UPDATE balances SET epoch = 'another' WHERE org_id = ?")
        .bind(account.orgId)
        .run();
    }
    setClock(start + 2 * HOUR_MS);
    const rebuilt = await admin("POST", `/orgs/${account.orgId}/rebuild-wallet`);
    expect([rebuilt.status, await rebuilt.json()]).toMatchObject([200, { credits_micro: 993 }]);
    const second = await charge(stubOf(account.orgId), 5, {}, user);
    await deliver(start + 3 * HOUR_MS);
    const books = new ReceivedLedger();
    for (const { body } of callsTo(HOST).toReversed()) books.add(JSON.parse(body) as UsageMessage);
    expect(books.sum()).toBe(988);
    expect(books.charges).toEqual(
      new Map([
        [first, -7],
        [second, -5],
      ]),
    );
    expect(meter.rows).toEqual(
      new Map([
        [first, 7],
        [second, 5],
      ]),
    );
    const metered = callsTo("meter.turnpike.dev").flatMap(
      ({ body }) => JSON.parse(body) as object[],
    );
    expect(metered).toHaveLength(isLost ? 2 : 3); // the last request is sent again with its ID
  });
});

describe("the event usage.settled", () => {
  it("leaves no pending message after a failing webhook unsubscribes from the event", async () => {
    receivers[HOST] = ({ body }) =>
      new Response("", { status: body.includes("usage.settled") ? 500 : 200 });
    const stub = stubOf(account.orgId);
    const hook = await createWebhook(HOST, { types: [...types, "key.created"] });
    await credit(stub, 1000);
    await deliver(Date.now() + HOUR_MS);
    expect(callsTo(HOST)).toHaveLength(1);
    await callWebhooks("PATCH", `/${hook.id}`, { types: ["key.created"] });
    await deliver(Date.now() + 2 * HOUR_MS);
    expect((await deliveriesOf(hook.id)).filter(({ state }) => state === "pending")).toEqual([]);
  });

  it("isn't sent to a webhook without a list of event types", async () => {
    receivers[HOST] = () => new Response("ok");
    const hook = await createWebhook(HOST);
    await charge(stubOf(account.orgId), 0);
    await deliver(Date.now() + HOUR_MS);
    expect((await deliveriesOf(hook.id)).map(({ type }) => type)).not.toContain("usage.settled");
    const refused = await callWebhooks("POST", `/${hook.id}/replay`, { after_seq: 0 });
    expect(await errorOf(refused, 400)).toMatchObject({ param: "types" });
  });

  it("can't be sent in the format slack, and requires a single start for a replay", async () => {
    const body = { url: `https://${HOST}/hook`, types, format: "slack" };
    expect(await errorOf(await callWebhooks("POST", "", body), 400)).toMatchObject({
      param: "types",
    });
    const hook = await createWebhook(HOST, { types });
    const changed = await callWebhooks("PATCH", `/${hook.id}`, { format: "slack" });
    expect(await errorOf(changed, 400)).toMatchObject({ param: "types" });
    for (const start of [{}, { after_seq: 0, usage_since: "2026-01-01" }]) {
      const refused = await callWebhooks("POST", `/${hook.id}/replay`, start);
      expect(await errorOf(refused, 400)).toMatchObject({ param: "since" });
    }
  });
});
