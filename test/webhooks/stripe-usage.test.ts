import { describe, expect, it } from "vitest";
import { DAY_MS, HOUR_MS } from "../../src/shared/clock.ts";
import { credit, setClock, stubOf } from "../wallet/wallet-desk.ts";
import { account, ask, deliveriesOf, made, receivers, useReceivers } from "./receivers.ts";
import type { Sent } from "./receivers.ts";
import { charge, deliver } from "./stream-desk.ts";

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
  // oxlint-disable-next-line no-await-in-loop -- one after the other
  for (let n = 0; n < count; n++) ids.push(await charge(stubOf(account.orgId), 1, {}, CUSTOMER));
  return ids;
}

describe("a Stripe meter that is down for more than a day", () => {
  it.each([400, 401, 404, 429])("is billed once after a %s within a batch", async (status) => {
    const meter = new Meter();
    let at = Date.now();
    setClock(at);
    let refused: string | undefined;
    let isDown = false;
    receivers[HOST] = (sent) => {
      isDown ||= refused !== undefined && sent.body.includes(refused);
      return isDown ? new Response("no", { status }) : meter.take(sent, at);
    };
    await made(HOST, HOOK);
    await credit(stubOf(account.orgId), 1000);
    const ids = await charges(30);
    refused = ids[17];
    await deliver((at += HOUR_MS));
    await deliver((at += 30 * HOUR_MS));
    expect(meter.billed.size).toBeGreaterThan(0);
    [refused, isDown] = [undefined, false];
    await deliver((at += HOUR_MS));
    expect(meter.billed).toEqual(once(ids));
  });

  it("gets no request again that it may have, until a person enables the webhook", async () => {
    const meter = new Meter();
    let at = Date.now();
    setClock(at);
    let answer: number | null = 500;
    receivers[HOST] = (sent) => {
      const taken = answer === 401 ? null : meter.take(sent, at);
      return answer === null && taken !== null ? taken : new Response("", { status: answer ?? 0 });
    };
    const { id } = await made(HOST, HOOK);
    await credit(stubOf(account.orgId), 1000);
    const ids = await charges(2);
    await deliver((at += HOUR_MS));
    expect(meter.billed).toEqual(once(ids.slice(0, 1)));
    answer = 401;
    await deliver((at += 12 * HOUR_MS));
    answer = null;
    await deliver((at += 12 * HOUR_MS));
    expect(meter.billed).toEqual(once(ids.slice(0, 1)));
    expect(await (await ask("GET", `/${id}`)).json()).toMatchObject({ enabled: false });
    expect(await deliveriesOf(id)).toMatchObject([{ state: "failed", error: "repeat_unsafe" }]);
    await ask("PATCH", `/${id}`, { enabled: true });
    await deliver((at += HOUR_MS));
    expect([...meter.billed.keys()]).toEqual(ids);
  });
});
