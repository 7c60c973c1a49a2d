import { evictDurableObject } from "cloudflare:test";
import { env } from "cloudflare:workers";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { USAGE_FORMAT_NAMES } from "../../src/events/webhooks/usage-formats.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../src/shared/clock.ts";
import { CALL_KIND_NAMES } from "../../src/shared/kinds.ts";
import { errorOf, openAccount, send } from "../contract/client.ts";
import { createKey } from "../contract/key-client.ts";
import { createSession } from "../contract/session-client.ts";
import { effortFor } from "../effort.ts";
import { credit, setClock, stubOf, valueOf } from "../wallet/wallet-fixture.ts";
import type { Stub } from "../wallet/wallet-fixture.ts";
import { ENDPOINT_ROWS, INPUT_ENDPOINT_ROWS } from "../fixtures/endpoint-table.ts";
import { brokenTraceRules } from "../fixtures/otlp-rules.ts";
import { account, callWebhooks, deliveriesOf, createWebhook, object } from "./receivers.ts";
import { receivers, callsTo, useReceivers } from "./receivers.ts";
import { charge, deliver, fundedWallet } from "./usage-stream-fixture.ts";
import { spansOf, USAGE_RECEIVERS } from "./usage-receivers.ts";

useReceivers();

const types = ["usage.settled"];
const HOST = "usage.turnpike.dev";
const CUSTOMER = { externalId: "cus_1" };

/** Returns charges by request, as in the ledger. */
async function chargesOf(stub: Stub): Promise<Map<string | null, number>> {
  const { rows } = valueOf(await stub.ledger(0, 10_000));
  const usage = rows.filter(({ kind }) => kind === "usage");
  return new Map(usage.map(({ generationId, amountMicro }) => [generationId, 0 - amountMicro]));
}

const valuesAt = (host: string) => callsTo(host).map(({ body }) => new URLSearchParams(body));
const fate = fc.constantFrom("accept", "accept", "accept, but answer 500", "refuse", "break");
type Step = { readonly kind: "charge" | "wait" | "replay" | "evict"; readonly amount: number };
const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom("charge", "charge", "charge", "wait", "wait", "replay", "evict"),
  amount: fc.integer({ min: 0, max: 900_000 }),
});

describe.each(USAGE_FORMAT_NAMES)("a webhook that sends usage in the format %s", (format) => {
  const { open, settings, auth } = USAGE_RECEIVERS[format];

  it("sends each charge exactly once despite dropped, repeated, replayed and stalled calls", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 12, maxLength: 30, size: "max" }),
        fc.infiniteStream(fate),
        async (steps, fates) => {
          const start = Date.now();
          setClock(start);
          Object.assign(account, await openAccount({ credits: 0 }));
          const stub = stubOf(account.orgId);
          const receiver = open();
          let isSettling = true;
          receivers[HOST] = (sent) => {
            const next = isSettling ? fates.next().value : "accept";
            if (next === "refuse") return new Response("", { status: 503 });
            if (next === "break") throw new Error("connection reset");
            const answer = receiver.take(sent);
            return next === "accept, but answer 500" ? new Response("", { status: 500 }) : answer;
          };
          await credit(stub, 100_000_000);
          const hook = await createWebhook(HOST, { types, format, receiver: settings });
          let at = start;
          for (const { kind, amount } of steps) {
            if (kind === "charge") await charge(stub, amount, {}, CUSTOMER);
            else if (kind === "wait") await deliver((at += MINUTE_MS + 10 * amount));
            else if (kind === "replay") {
              await callWebhooks("POST", `/${hook.id}/replay`, { after_seq: 0 });
            } else {
              await object().health(); // only a running object can be evicted
              await evictDurableObject(object());
            }
          }
          isSettling = false;
          for (let n = 0; n < 3; n++) await deliver((at += HOUR_MS));
          expect(receiver.rows).toEqual(await chargesOf(stub));
          await callWebhooks("DELETE", `/${hook.id}`);
        },
      ),
      { numRuns: effortFor(2, 40), endOnFailure: true },
    );
  });

  it("sends the configured credential with each call, and the API never returns it", async () => {
    receivers[HOST] = open().take;
    const hook = await createWebhook(HOST, { types, format, receiver: settings });
    const stub = await fundedWallet(1000);
    await charge(stub, 7, {}, CUSTOMER);
    await deliver(Date.now() + HOUR_MS);
    const [name, value] = auth;
    expect(callsTo(HOST)[0]?.headers.get(name)).toBe(value);
    const row = await env.DB.prepare("SELECT * FROM webhooks WHERE id = ?").bind(hook.id).first();
    const [delivery] = await deliveriesOf(hook.id);
    const shown = await callWebhooks("GET", `/${hook.id}/deliveries/${delivery?.id}`);
    expect(delivery).toMatchObject({ state: "delivered" });
    const texts = [hook, row, await (await callWebhooks("GET", "")).json(), await shown.json()];
    expect(JSON.stringify(texts)).not.toContain(settings.credential);
  });

  it("sends at most 100 rows per call", async () => {
    const receiver = open();
    receivers[HOST] = receiver.take;
    await createWebhook(HOST, { types, format, receiver: settings });
    const stub = await fundedWallet(1_000_000);
    for (let n = 0; n < 101; n++) await charge(stub, n, {}, CUSTOMER);
    await deliver(Date.now() + HOUR_MS);
    expect(receiver.rows).toEqual(await chargesOf(stub));
    expect(callsTo(HOST).length).toBe(format === "stripe_meter_events" ? 101 : 2);
  });

  it("requires the event type usage.settled and the format's settings, and accepts no others", async () => {
    const post = (body: object) =>
      callWebhooks("POST", "", {
        url: `https://${HOST}`,
        types,
        format,
        receiver: settings,
        ...body,
      });
    const wrong: [object, string][] = [
      [{ types: null }, "types"],
      [{ types: [...types, "key.created"] }, "types"],
      [{ receiver: { ...settings, color: "red" } }, "receiver"],
      [{ receiver: { ...settings, customer: "key" } }, "receiver.customer"],
      [{ receiver: { ...settings, credential: "" } }, "receiver.credential"],
      [
        {
          receiver: { ...settings, ...(format === "otlp" ? { event_name: "x" } : { header: "x" }) },
        },
        format === "otlp" ? "receiver.event_name" : "receiver.header",
      ],
      ...(format === "otlp"
        ? []
        : [
            [
              { receiver: null },
              format === "openmeter" ? "receiver.event_name" : "receiver.credential",
            ] as [object, string],
          ]),
    ];
    for (const [body, param] of wrong) {
      expect([body, await errorOf(await post(body), 400)]).toMatchObject([body, { param }]);
    }
    const hook = await createWebhook(HOST, { types, format, receiver: settings });
    expect(await errorOf(await callWebhooks("POST", `/${hook.id}/test`), 400)).toMatchObject({
      param: "format",
    });
  });

  it("keeps the credential when other settings change, unless the address changes to another server", async () => {
    const hook = await createWebhook(HOST, { types, format, receiver: settings });
    const moved = { url: "https://other.turnpike.dev/" };
    const refused = await callWebhooks("PATCH", `/${hook.id}`, moved);
    expect(await errorOf(refused, 400)).toMatchObject({ param: "receiver.credential" });
    const same = await callWebhooks("PATCH", `/${hook.id}`, { url: `https://${HOST}/other` });
    expect(await same.json()).toMatchObject({
      receiver: { credential_changed_at: expect.any(String) },
    });
    const other = await callWebhooks("PATCH", `/${hook.id}`, { ...moved, receiver: settings });
    expect(other.status).toBe(200);
    const events = await callWebhooks("PATCH", `/${hook.id}`, { format: null });
    expect(await events.json()).toMatchObject({ format: null, receiver: null });
  });
});

describe("a webhook in the format stripe_meter_events", () => {
  const { open, settings } = USAGE_RECEIVERS.stripe_meter_events;
  const hook = (more: object = {}) =>
    createWebhook(HOST, {
      types,
      format: "stripe_meter_events",
      receiver: { ...settings, ...more },
    });

  it("rejects a replay that would make Stripe bill the requests twice", async () => {
    receivers[HOST] = open().take;
    const start = Date.now();
    setClock(start);
    const { id } = await hook();
    const stub = await fundedWallet(1000);
    await charge(stub, 1, {}, CUSTOMER);
    expect((await callWebhooks("POST", `/${id}/replay`, { after_seq: 0 })).status).toBe(202);
    await deliver(start + HOUR_MS);
    expect((await callWebhooks("POST", `/${id}/replay`, { after_seq: 0 })).status).toBe(202);
    await deliver(start + 2 * HOUR_MS);
    await deliver(start + 25 * HOUR_MS);
    const late = await callWebhooks("POST", `/${id}/replay`, { after_seq: 0 });
    expect(await errorOf(late, 400)).toMatchObject({ param: "after_seq" });
    const usageSince = new Date(start - 1).toISOString();
    const since = await callWebhooks("POST", `/${id}/replay`, { usage_since: usageSince });
    expect(await errorOf(since, 400)).toMatchObject({ param: "usage_since" });
    expect((await callWebhooks("POST", `/${id}/replay`, { after_seq: 2 })).status).toBe(202);
  });

  it("takes the customer from the end user or a tag, and skips requests without a customer", async () => {
    receivers[HOST] = open().take;
    receivers["tags.turnpike.dev"] = open().take;
    await hook();
    const receiver = { ...settings, customer: "tag:customer" };
    await createWebhook("tags.turnpike.dev", { types, format: "stripe_meter_events", receiver });
    const stub = await fundedWallet(1000);
    await charge(stub, 1, {}, CUSTOMER);
    const id = await charge(stub, 2, { tags: { customer: "cus_2" } });
    await charge(stub, 3);
    await deliver(Date.now() + HOUR_MS);
    expect(valuesAt(HOST).map((one) => one.get("payload[value]"))).toEqual(["1"]);
    const [tagged] = valuesAt("tags.turnpike.dev");
    expect(Object.fromEntries(tagged ?? [])).toEqual({
      event_name: "ai_usage",
      identifier: id,
      timestamp: expect.stringMatching(/^\d{10}$/),
      "payload[stripe_customer_id]": "cus_2",
      "payload[value]": "2",
    });
  });

  it("takes the customer of a session's requests and charges only from the session's tags", async () => {
    receivers[HOST] = open().take;
    await hook({ customer: "tag:customer" });
    await fundedWallet(1_000_000);
    const { key } = await createKey(account.key, { may_hold: true });
    const headers = { "x-tags": "customer=cus_2" };
    const paid: string[] = [];
    for (const tags of [undefined, { plan: "pro" }, { customer: "cus_1" }]) {
      const { token } = await createSession(key, { may_hold: true, ...(tags && { tags }) });
      const body = { model: "sandbox/echo", messages: [{ role: "user", content: "Hi" }] };
      const sent = await send("/v1/chat/completions", { key: token, headers, body });
      paid.push(sent.headers.get("x-request-id") ?? "");
      const charged = await send("/v1/charges", {
        key: token,
        body: {
          amount_dollars: 0.01,
          pays: "quota",
          description: "a tool",
          tags: { customer: "cus_2" },
        },
      });
      paid.push((await charged.json<{ request_id: string }>()).request_id);
    }
    await deliver(Date.now() + HOUR_MS);
    const billed = valuesAt(HOST).map((one) => [
      one.get("identifier"),
      one.get("payload[stripe_customer_id]"),
    ]);
    expect(billed).toEqual(paid.slice(-2).map((id) => [id, "cus_1"]));
  });

  it("continues after a request that was rejected three times, and reports that request as failed", async () => {
    const receiver = open();
    let refused = "";
    receivers[HOST] = (sent) =>
      sent.body.includes(refused)
        ? new Response("No such customer", { status: 400 })
        : receiver.take(sent);
    const { id } = await hook();
    const stub = await fundedWallet(1000);
    const before = await charge(stub, 1, {}, CUSTOMER);
    refused = await charge(stub, 2, {}, CUSTOMER);
    const after = await charge(stub, 3, {}, CUSTOMER);
    for (let n = 1; n < 4; n++) await deliver(Date.now() + n * HOUR_MS);
    const later = await charge(stub, 4, {}, CUSTOMER);
    await deliver(Date.now() + 4 * HOUR_MS);
    expect([...receiver.rows.keys()]).toEqual([before, after, later]);
    const failed = (await deliveriesOf(id)).filter(({ state }) => state === "failed");
    expect(failed).toMatchObject([
      { error: "status_400", answer: "No such customer", attempts: 3 },
    ]);
  });
});

describe("a webhook in the format otlp", () => {
  const { open, settings } = USAGE_RECEIVERS.otlp;

  it("sends spans in the OTLP format, without request content", async () => {
    receivers[HOST] = open().take;
    await createWebhook(HOST, { types, format: "otlp", receiver: settings });
    const stub = await fundedWallet(1000);
    const trace = `${"a".repeat(32)}-${"b".repeat(16)}`;
    await charge(
      stub,
      7,
      { tags: { team: "search" }, trace, streamed: true, firstByteMs: 1500 },
      CUSTOMER,
    );
    await charge(stub, 3);
    await deliver(Date.now() + HOUR_MS);
    const [sent] = callsTo(HOST);
    expect(brokenTraceRules(sent?.body ?? "")).toEqual([]);
    const [first, second] = spansOf(sent?.body ?? "");
    expect(first).toMatchObject({
      traceId: "a".repeat(32),
      parentSpanId: "b".repeat(16),
      name: "chat sandbox/echo",
      kind: 3,
      attributes: expect.arrayContaining([
        { key: "gen_ai.usage.input_tokens", value: { intValue: "4" } },
        { key: "gen_ai.usage.cost", value: { doubleValue: 0.000007 } },
        { key: "gen_ai.response.time_to_first_chunk", value: { doubleValue: 1.5 } },
        { key: "turnpike.amount_micro", value: { intValue: "7" } },
        { key: "turnpike.tag.team", value: { stringValue: "search" } },
        { key: "user.id", value: { stringValue: "cus_1" } },
      ]) as unknown,
    });
    expect(second).not.toHaveProperty("parentSpanId");
  });

  it("sends a span in the trace that the request belongs to", async () => {
    receivers[HOST] = open().take;
    await createWebhook(HOST, { types, format: "otlp", receiver: settings });
    await credit(stubOf(account.orgId), 1_000_000);
    const [trace, parent] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];
    const headers = { traceparent: `00-${trace}-${parent}-01` };
    const body = { model: "sandbox/echo", messages: [{ role: "user", content: "a secret" }] };
    const chat = await send("/v1/chat/completions", { key: account.key, headers, body });
    expect([chat.status, await chat.text()]).toEqual([200, expect.any(String)]);
    await deliver(Date.now() + HOUR_MS);
    const sent = callsTo(HOST).at(-1)?.body ?? "";
    expect(spansOf(sent)).toMatchObject([{ traceId: trace, parentSpanId: parent }]);
    expect(sent).not.toContain("secret");
  });

  it("names each span's operation after the kind of call", async () => {
    receivers[HOST] = open().take;
    await createWebhook(HOST, { types, format: "otlp", receiver: settings });
    await credit(stubOf(account.orgId), 10_000_000);
    for (const row of ENDPOINT_ROWS) {
      const body = row.body({ model: row.models.good, text: "Hi" });
      const response = await send(`/v1${row.path}`, { key: account.key, body });
      expect([response.status, await response.text()]).toEqual([200, expect.any(String)]);
    }
    await deliver(Date.now() + HOUR_MS);
    const names = spansOf(callsTo(HOST).at(-1)?.body ?? "").map(({ name }) => name.split(" ")[0]);
    const inputs = INPUT_ENDPOINT_ROWS.length + 1; // with embeddings
    const chats = ENDPOINT_ROWS.length - inputs;
    expect(names.filter((name) => name === "chat")).toHaveLength(chats);
    const kinds = CALL_KIND_NAMES.map((kind) => (kind === "image" ? "generate_content" : kind));
    expect(new Set(names)).toEqual(new Set(kinds));
  });

  it("skips a span that the receiver rejects, and reports that span as failed", async () => {
    const receiver = open();
    let refused = "none";
    receivers[HOST] = (sent) =>
      sent.body.includes(refused) ? new Response("bad span", { status: 400 }) : receiver.take(sent);
    const hook = await createWebhook(HOST, { types, format: "otlp", receiver: settings });
    const stub = await fundedWallet(1000);
    const before = await charge(stub, 1);
    refused = await charge(stub, 2);
    const after = await charge(stub, 3);
    for (let n = 1; n < 5; n++) await deliver(Date.now() + (n * DAY_MS) / 8);
    expect([...receiver.rows.keys()]).toEqual([before, after]);
    const failed = (await deliveriesOf(hook.id)).filter(({ state }) => state === "failed");
    expect(failed).toMatchObject([{ error: "status_400", answer: "bad span" }]);
  });
});
