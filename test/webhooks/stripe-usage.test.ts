import { runInDurableObject } from "cloudflare:test";
import { describe, expect, it, vi } from "vitest";
import { DAY_MS, HOUR_MS } from "../../src/shared/clock.ts";
import {
  selectWebhookStates,
  storeStreamState,
} from "../../src/events/webhooks/receiver-rows.do.ts";
import type { Micros } from "../../src/shared/money.ts";
import { credit, setClock, stubOf, valueOf } from "../wallet/wallet-fixture.ts";
import {
  account,
  runWebhookAlarm,
  callWebhooks,
  deliveriesOf,
  createWebhook,
  object,
} from "./receivers.ts";
import { receivers, useReceivers } from "./receivers.ts";
import type { Sent } from "./receivers.ts";
import { charge, deliver, fundedWallet } from "./usage-stream-fixture.ts";

useReceivers();

const HOST = "usage.turnpike.dev";
const CUSTOMER = { externalId: "cus_1" };
const HOOK = {
  types: ["usage.settled"],
  format: "stripe_meter_events",
  receiver: { credential: "rk_test_1", event_name: "ai_usage" },
};

/** Stripe, which forgets identifiers after a day. `billed` has the number of accepted events by identifier. */
class Meter {
  readonly billed = new Map<string, number>();
  readonly #knownSince = new Map<string, number>();

  take({ body }: Sent, nowMs: number): Response {
    const id = new URLSearchParams(body).get("identifier") ?? "";
    const since = this.#knownSince.get(id) ?? -Infinity;
    if (nowMs - since < DAY_MS) {
      return new Response(`An event already exists with identifier ${id}.`, { status: 400 });
    }
    this.#knownSince.set(id, nowMs);
    this.billed.set(id, (this.billed.get(id) ?? 0) + 1);
    return new Response("{}");
  }
}

const once = (ids: readonly string[]) => new Map(ids.map((id) => [id, 1]));

async function charges(count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await charge(stubOf(account.orgId), 1, {}, CUSTOMER));
  return ids;
}

/** Moves the webhook's position to another wallet. */
function rebuild(more: object = {}): Promise<void> {
  return runInDurableObject(object(), (_, { storage }) => {
    const [{ webhook, stream } = {}] = selectWebhookStates(storage.sql);
    if (!webhook || !stream) throw new Error("no stream");
    const from = { balanceMicro: 0 as Micros, seq: 2, ...stream.from, madeAt: 1 };
    storeStreamState(storage.sql, webhook.id, { ...stream, from, nextAt: 0, ...more });
  });
}

describe("a Stripe meter that is down for more than a day", () => {
  it.each([400, 401, 404, 429])(
    "gets each request once, even if an outage with status %s begins within a batch",
    async (status) => {
      const meter = new Meter();
      let at = Date.now();
      setClock(at);
      let refused: string | undefined;
      let isDown = false;
      receivers[HOST] = (sent) => {
        isDown ||= refused !== undefined && sent.body.includes(refused);
        return isDown ? new Response("no", { status }) : meter.take(sent, at);
      };
      await createWebhook(HOST, HOOK);
      await credit(stubOf(account.orgId), 1000);
      const ids = await charges(30);
      refused = ids[17];
      await deliver((at += HOUR_MS));
      await deliver((at += 30 * HOUR_MS));
      expect(meter.billed.size).toBeGreaterThan(0);
      [refused, isDown] = [undefined, false];
      await deliver((at += HOUR_MS));
      expect(meter.billed).toEqual(once(ids));
    },
  );

  it("gets no request that it may have received until a person enables the webhook again", async () => {
    const meter = new Meter();
    let at = Date.now();
    setClock(at);
    let answer: number | null = 500;
    receivers[HOST] = (sent) => {
      const taken = answer === 401 ? null : meter.take(sent, at);
      return answer === null && taken !== null ? taken : new Response("", { status: answer ?? 0 });
    };
    const { id } = await createWebhook(HOST, HOOK);
    await credit(stubOf(account.orgId), 1000);
    const ids = await charges(2);
    await deliver((at += HOUR_MS));
    expect(meter.billed).toEqual(once(ids.slice(0, 1)));
    answer = 401;
    await deliver((at += 12 * HOUR_MS));
    answer = null;
    await deliver((at += 12 * HOUR_MS));
    expect(meter.billed).toEqual(once(ids.slice(0, 1)));
    expect(await (await callWebhooks("GET", `/${id}`)).json()).toMatchObject({ enabled: false });
    expect(await deliveriesOf(id)).toMatchObject([{ state: "failed", error: "repeat_unsafe" }]);
    await callWebhooks("PATCH", `/${id}`, { enabled: true });
    await deliver((at += HOUR_MS));
    expect([...meter.billed.keys()]).toEqual(ids);
  });
});

describe("a Stripe meter whose calls are in progress when the gateway's Durable Object stops", () => {
  it.each([
    ["the first step", 1, 1],
    ["a later step", 8, 6],
  ])(
    "gets no request twice if the calls were in %s and Stripe is down for a day",
    async (_, count, accepted) => {
      const meter = new Meter();
      let at = Date.now();
      setClock(at);
      const ends = Promise.withResolvers<Response>();
      let isEnding = true;
      let isDown = false;
      receivers[HOST] = (sent) => {
        const answer = isDown ? new Response("", { status: 401 }) : meter.take(sent, at);
        return isEnding && meter.billed.size >= accepted ? ends.promise : answer;
      };
      const { id } = await createWebhook(HOST, HOOK);
      await credit(stubOf(account.orgId), 1000);
      const ids = await charges(count);
      setClock((at += HOUR_MS));
      void runWebhookAlarm().catch(() => undefined);
      await vi.waitFor(() => expect(meter.billed.size).toBeGreaterThanOrEqual(accepted));
      await runInDurableObject(object(), (__, state) => state.abort("killed")).catch(
        () => undefined,
      );
      [isEnding, isDown] = [false, true];
      const before = meter.billed.size;
      await deliver((at += 2 * HOUR_MS));
      await deliver((at += 25 * HOUR_MS));
      isDown = false;
      await deliver((at += HOUR_MS));
      expect(meter.billed).toEqual(once(ids.slice(0, before)));
      expect(await (await callWebhooks("GET", `/${id}`)).json()).toMatchObject({ enabled: false });
    },
  );

  it("gets the remaining requests, and none twice, as long as Stripe stores the earlier calls", async () => {
    const meter = new Meter();
    let at = Date.now();
    setClock(at);
    const ends = Promise.withResolvers<Response>();
    let isEnding = true;
    receivers[HOST] = (sent) => {
      const answer = meter.take(sent, at);
      return isEnding && meter.billed.size >= 6 ? ends.promise : answer;
    };
    await createWebhook(HOST, HOOK);
    await credit(stubOf(account.orgId), 1000);
    const ids = await charges(30);
    setClock((at += HOUR_MS));
    void runWebhookAlarm().catch(() => undefined);
    await vi.waitFor(() => expect(meter.billed.size).toBeGreaterThanOrEqual(6));
    await runInDurableObject(object(), (_, state) => state.abort("killed")).catch(() => undefined);
    isEnding = false;
    await deliver((at += HOUR_MS));
    await deliver((at += 30 * HOUR_MS));
    expect(meter.billed).toEqual(once(ids));
  });
});

describe("a Stripe meter that rejects every request", () => {
  it("pauses the stream of requests, and gets every request after a replay", async () => {
    const meter = new Meter();
    let at = Date.now();
    setClock(at);
    let isWrong = true;
    receivers[HOST] = (sent) =>
      isWrong ? new Response("No such meter", { status: 400 }) : meter.take(sent, at);
    const { id } = await createWebhook(HOST, HOOK);
    await credit(stubOf(account.orgId), 1000);
    const ids = await charges(25);
    for (let n = 0; n < 70; n++) await deliver((at += 60_000));
    const failed = (await deliveriesOf(id)).filter(({ state }) => state === "failed");
    expect(failed).toHaveLength(20);
    isWrong = false;
    await callWebhooks("POST", `/${id}/replay`, { after_seq: 0 });
    await deliver((at += HOUR_MS));
    expect(meter.billed).toEqual(once(ids));
  });
});

describe("a Stripe meter that rejects one customer", () => {
  it("gets each request of other customers once, even after a long run of rejected requests", async () => {
    const meter = new Meter();
    let at = Date.now();
    setClock(at);
    receivers[HOST] = (sent) =>
      sent.body.includes("cus_bad")
        ? new Response("No such customer", { status: 400 })
        : meter.take(sent, at);
    const { id } = await createWebhook(HOST, HOOK);
    const stub = await fundedWallet(1000);
    const bad = { externalId: "cus_bad" };
    for (let n = 0; n < 25; n++) await charge(stub, 1, {}, bad);
    const ids = await charges(3);
    for (let n = 0; n < 200 && meter.billed.size < 3; n++) await deliver((at += 15 * 60_000));
    expect(meter.billed).toEqual(once(ids));
    const { deliveries } = await (
      await callWebhooks("GET", `/${id}/deliveries?limit=100&state=failed`)
    ).json<{ deliveries: unknown[] }>();
    expect(deliveries).toHaveLength(25);
    const later = await charges(2);
    await deliver((at += 15 * 60_000));
    expect(meter.billed).toEqual(once([...ids, ...later]));
  });
});

describe("a Stripe meter of an organization that has mostly requests without a customer", () => {
  it("gets a customer's request immediately, even if many pages of other requests must be skipped", async () => {
    const meter = new Meter();
    const at = Date.now() + HOUR_MS;
    let ids: string[] = [];
    receivers[HOST] = (sent) => meter.take(sent, at);
    await createWebhook(HOST, HOOK);
    const stub = await fundedWallet(1000);
    for (let n = 0; n < 22; n++) await charge(stub, 1);
    ids = await charges(1);
    await runInDurableObject(object(), (_, { storage }) => {
      const [{ webhook, stream } = {}] = selectWebhookStates(storage.sql);
      if (webhook && stream) storeStreamState(storage.sql, webhook.id, { ...stream, singles: 40 });
    });
    await vi.waitFor(async () => {
      await deliver(at); // it happens at the same time, so nothing waits
      expect(meter.billed).toEqual(once(ids));
    });
  });
});

describe("a Stripe meter after the wallet was rebuilt", () => {
  it("gets no request from before the webhook's creation, even if all later requests were skipped", async () => {
    const meter = new Meter();
    let at = Date.now();
    setClock(at);
    receivers[HOST] = (sent) => meter.take(sent, at);
    await credit(stubOf(account.orgId), 1000);
    await charges(1);
    setClock((at += HOUR_MS));
    await createWebhook(HOST, HOOK);
    await charge(stubOf(account.orgId), 1);
    await deliver((at += HOUR_MS));
    await rebuild();
    const ids = await charges(1);
    await deliver((at += HOUR_MS));
    expect(meter.billed).toEqual(once(ids));
  });

  it("gets the remaining requests of the millisecond in which the last sent request occurred", async () => {
    const meter = new Meter();
    const at = Date.now();
    setClock(at);
    receivers[HOST] = (sent) => meter.take(sent, at);
    await createWebhook(HOST, HOOK);
    await credit(stubOf(account.orgId), 1000);
    const ids = await charges(2);
    const { rows } = valueOf(await stubOf(account.orgId).ledger(0, 10));
    await rebuild({ sentMs: rows.at(-1)?.createdAt });
    await deliver(at + HOUR_MS);
    expect([...meter.billed.keys()].at(-1)).toBe(ids.at(-1));
  });
});
