import { env } from "cloudflare:workers";
import { runInDurableObject } from "cloudflare:test";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { WebhookDeliveries } from "../../src/events/webhooks/webhook-deliveries.do.ts";
import { deriveEventId, SYSTEM_ACTOR } from "../../src/shared/event.ts";
import type { EventRecord, EventType } from "../../src/shared/event.ts";
import { inviteAndJoin, signUp, newAccount, startIssuer } from "./people-client.ts";
import type { Browser } from "./people-client.ts";

let issuer: ReturnType<typeof startIssuer>;
const log: string[] = [];
beforeEach(() => {
  log.length = 0;
  vi.spyOn(console, "warn").mockImplementation((...words) => void log.push(words.join(" ")));
  issuer = startIssuer();
});

type Sent = { readonly to: string; readonly subject: string; readonly text: string };

function event(type: EventType, subject: string, data: EventRecord["data"]): EventRecord {
  const id = deriveEventId(type, crypto.randomUUID());
  return { id, type, actor: SYSTEM_ACTOR, subject, data, createdAt: Date.now() };
}

/** Delivers events to the organization's object, whose email binding records or throws. */
async function take(orgId: string, events: readonly EventRecord[], fault?: Error): Promise<Sent[]> {
  const sent: Sent[] = [];
  const EMAIL = {
    send: async (mail: Sent) => {
      if (fault !== undefined) throw fault;
      sent.push(mail);
    },
  };
  const bindings = { ...env, EMAIL, EMAIL_FROM: "turnpike@example.test" };
  await runInDurableObject(
    env.WEBHOOK_DELIVERIES.getByName(orgId),
    async (object: WebhookDeliveries) => {
      Reflect.set(object, "env", bindings);
      await object.take(orgId, events);
      await object.take(orgId, events); // the wallet repeats a batch whose response was lost
    },
  );
  return sent;
}

const low = (orgId: string): EventRecord =>
  event("balance.low", orgId, { balance_micro: 4_200_000, threshold_micro: 5_000_000 });

async function preferences(browser: Browser): Promise<unknown> {
  return (await browser.people("GET", "/notifications")).json();
}

describe("an email about an event", () => {
  it("reaches each person with the required role once, with amounts and readable names", async () => {
    const ann = await signUp(issuer, newAccount({ name: "Ann\r\nBcc: all@example.test" }));
    const { id } = ann.view.organization;
    await inviteAndJoin(issuer, ann.browser, "member");
    const sent = await take(id, [low(id)]);
    expect(sent).toEqual([
      expect.objectContaining({
        to: ann.account.email,
        subject: "Low balance: Ann  Bcc allexample.test",
        text: expect.stringContaining(
          "The balance is $4.20, which is below your alert threshold of $5.00.",
        ),
      }),
    ]);
  });

  it("reaches managers and the key's member when a key's budget is used up", async () => {
    const ann = await signUp(issuer);
    const { id } = ann.view.organization;
    const [ben, cem] = [
      await inviteAndJoin(issuer, ann.browser, "member"),
      await inviteAndJoin(issuer, ann.browser, "billing"),
    ];
    const key = await env.DB.prepare("SELECT id FROM keys WHERE member_id = ?")
      .bind(ben.view.member.id)
      .first<string>("id");
    const reached = event("key.budget_reached", key ?? "", { budget_micro: 2500 });
    const sent = await take(id, [reached]);
    expect(sent.map(({ to }) => to).toSorted()).toEqual(
      [ann.account.email, ben.account.email].toSorted(),
    );
    expect(sent.map(({ to }) => to)).not.toContain(cem.account.email);
    expect(sent[0]?.text).toContain("budget of $0.0025");
  });

  it("goes only to people with a confirmed address who didn't opt out, and only for listed events", async () => {
    const ann = await signUp(issuer);
    const { id } = ann.view.organization;
    expect(await take(id, [event("key.created", "key_1", {})])).toEqual([]);
    expect((await ann.browser.people("PATCH", "/notifications", { types: [] })).status).toBe(200);
    expect(await take(id, [low(id)])).toEqual([]);
    const types = ["balance.low"];
    expect((await ann.browser.people("PATCH", "/notifications", { types })).status).toBe(200);
    expect(await take(id, [low(id)])).toHaveLength(1);
    await env.DB.prepare("UPDATE people SET is_email_proven = 0 WHERE id = ?")
      .bind(ann.view.person.id)
      .run();
    expect(await take(id, [low(id)])).toEqual([]);
  });

  it("causes a log line without the address if the delivery fails, and delays nothing", async () => {
    const ann = await signUp(issuer);
    const { id } = ann.view.organization;
    expect(await take(id, [low(id)], new Error(ann.account.email))).toEqual([]);
    await vi.waitFor(() => expect(log.join("\n")).toContain("notification_not_sent"));
    expect(log.join("\n")).not.toContain("@example.test");
  });
});

describe("a person's choice of notification emails", () => {
  it("initially contains every event type that the role allows, and applies to one organization", async () => {
    const ann = await signUp(issuer);
    const ben = await inviteAndJoin(issuer, ann.browser, "billing");
    const all = [
      "balance.low",
      "key.budget_reached",
      "webhook.disabled",
      "top_up.paused",
      "top_up.disabled",
    ];
    expect(await preferences(ann.browser)).toEqual({
      email: ann.account.email,
      is_available: false,
      types: all,
      available_types: all,
    });
    await ann.browser.people("PATCH", "/notifications", { types: ["webhook.disabled"] });
    expect(await preferences(ann.browser)).toMatchObject({ types: ["webhook.disabled"] });
    const own = all.filter((type) => type !== "webhook.disabled");
    expect(await preferences(ben.browser)).toMatchObject({ types: own, available_types: own });
  });

  it.each([
    [["webhook.disabled"], "a type that the role doesn't receive"],
    [["key.created"], "a type without emails"],
  ])("can't contain %j (%s), and returns 400", async (types) => {
    const ann = await signUp(issuer);
    const ben = await inviteAndJoin(issuer, ann.browser, "member");
    const response = await ben.browser.people("PATCH", "/notifications", { types });
    expect(response.status).toBe(400);
    const { error } = await response.json<{ error: { param: string } }>();
    expect(error.param).toMatch(/^types/);
  });
});
