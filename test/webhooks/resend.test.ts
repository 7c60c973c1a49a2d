import { describe, expect, it, vi } from "vitest";
import { addCredits, errorOf } from "../contract/client.ts";
import {
  account,
  ask,
  deliveriesOf,
  ids,
  LONG,
  createWebhook,
  receivers,
  callsTo,
  useReceivers,
} from "./receivers.ts";

useReceivers();

type Named = Awaited<ReturnType<typeof deliveriesOf>>[number] & {
  readonly id: string;
  readonly event_id: string;
};
const types = ["balance.credited"];

describe("POST /v1/webhooks/{id}/resend", () => {
  it("resends one delivered message, and no other", async () => {
    receivers["one.turnpike.dev"] = () => new Response("ok");
    const hook = await createWebhook("one.turnpike.dev", { types });
    for (const amount of [1, 2]) {
      await addCredits(account.orgId, amount);
    }
    await vi.waitFor(() => expect(callsTo("one.turnpike.dev")).toHaveLength(2), LONG);
    const [newest] = (await deliveriesOf(hook.id)) as readonly Named[];
    const resent = await ask("POST", `/${hook.id}/resend`, { delivery_id: newest?.id });
    expect([resent.status, await resent.json()]).toEqual([202, { queued: 1 }]);
    await vi.waitFor(() => expect(callsTo("one.turnpike.dev")).toHaveLength(3), LONG);
    expect(callsTo("one.turnpike.dev").at(-1)?.headers.get("webhook-id")).toBe(newest?.event_id);
    expect(ids("one.turnpike.dev")).toHaveLength(2);
  });

  it("resends pending messages despite the receiver's pause, filtered by state", async () => {
    let isDown = true;
    receivers["down.turnpike.dev"] = () => new Response("", { status: isDown ? 500 : 200 });
    const hook = await createWebhook("down.turnpike.dev", { types });
    await addCredits(account.orgId, 1);
    await vi.waitFor(async () => {
      expect(await deliveriesOf(hook.id)).toMatchObject([{ state: "pending", attempts: 1 }]);
    }, LONG);
    const listed = async (state: string) => {
      const page = await ask("GET", `/${hook.id}/deliveries?state=${state}`);
      return (await page.json<{ deliveries: object[] }>()).deliveries.length;
    };
    expect([await listed("pending"), await listed("failed")]).toEqual([1, 0]);
    isDown = false;
    const resent = await ask("POST", `/${hook.id}/resend`, { state: "pending" });
    expect(await resent.json()).toEqual({ queued: 1 });
    await vi.waitFor(async () => {
      expect(await deliveriesOf(hook.id)).toMatchObject([{ state: "delivered", attempts: 1 }]);
    }, LONG);
    const none = await ask("POST", `/${hook.id}/resend`, { state: "failed" });
    expect(await none.json()).toEqual({ queued: 0 });
  });

  it("returns an error for an ID with a filter, for neither, for an unknown delivery, and for a disabled webhook", async () => {
    const hook = await createWebhook("off.turnpike.dev", { types });
    const resend = (body: object) => ask("POST", `/${hook.id}/resend`, body);
    const unknown = { delivery_id: `dlv_${"0".repeat(24)}` };
    for (const body of [{}, { ...unknown, state: "failed" }]) {
      expect(await errorOf(await resend(body), 400)).toMatchObject({ param: "delivery_id" });
    }
    expect((await resend(unknown)).status).toBe(404);
    await ask("PATCH", `/${hook.id}`, { enabled: false });
    expect(await errorOf(await resend(unknown), 409)).toMatchObject({ code: "webhook_disabled" });
  });
});
