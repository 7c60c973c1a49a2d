import { Stripe } from "stripe";
import { describe, expect, it } from "vitest";
import { FakeStripe } from "../fakes/stripe/fake.ts";
import { signedWebhook } from "../fakes/stripe/events.ts";
import { buildCustomerParams, buildPostCall } from "../../src/money/payments/stripe-calls.ts";
import { stripeIdSchema } from "../../src/money/payments/stripe-objects.ts";
import { isSignedByStripe, createStripeClient } from "../../src/money/payments/stripe.ts";

const NOW_S = 1_795_600_000;
const SECRET = "whsec_of_this_test";
const OTHER = "whsec_of_another";
const encoder = new TextEncoder();

/** Reports whether our code accepts the signature, with one secret or two, at this time. */
async function ours(
  body: string | Uint8Array,
  header: string | null,
  { secrets = [SECRET], atS = NOW_S } = {},
): Promise<boolean> {
  const bytes = typeof body === "string" ? encoder.encode(body) : body;
  return isSignedByStripe(bytes, header, { secrets, nowMs: atS * 1000 });
}

/** Reports whether Stripe's package accepts it. */
async function theirs(body: string, header: string, atS = NOW_S): Promise<boolean> {
  const event = Stripe.webhooks.constructEventAsync(
    body,
    header,
    SECRET,
    300,
    undefined,
    atS * 1000,
  );
  return event.then(
    () => true,
    () => false,
  );
}

const sign = async (
  payload: string,
  more: { secret?: string; timestamp?: number } = {},
): Promise<string> =>
  Stripe.webhooks.generateTestHeaderStringAsync({
    payload,
    secret: SECRET,
    timestamp: NOW_S,
    ...more,
  });

const BODIES = [
  ["plain", '{"id":"evt_1"}'],
  ["ü and €", '{"id":"evt_1","name":"Müller, 5 €"}'],
  ["a line separator and an emoji", '{"id":"evt_1","name":"a\u2028b 🙂"}'],
  ["lines and spaces", '{\r\n  "id": "evt_1"\n}\n'],
] as const;

describe("a Stripe signature", () => {
  it.each(BODIES)("matches the signature of Stripe's package: %s", async (_what, body) => {
    const header = await sign(body);
    expect([await ours(body, header), await theirs(body, header)]).toEqual([true, true]);
    expect(await ours(`${body} `, header)).toBe(false);
    expect(await ours(body, header, { secrets: [OTHER] })).toBe(false);
  });

  it("covers the exact bytes of the body, including newlines, byte order marks and broken characters", async () => {
    const body = '{"id":"evt_1",\n"name":"ü"}';
    const header = await sign(body);
    expect(await ours(`\uFEFF${body}`, header)).toBe(false);
    expect(await ours(body.replace("\n", "\r\n"), header)).toBe(false);
    expect(await ours(encoder.encode(body).subarray(0, -1), header)).toBe(false);
    const broken = new Uint8Array([...encoder.encode("{"), 0xff, ...encoder.encode("}")]);
    expect(await ours(broken, await sign("{\uFFFD}"))).toBe(false);
  });

  it("stays valid for exactly five minutes before and after the signing time, unlike in Stripe's package", async () => {
    const body = BODIES[0][1];
    for (const [age, isGood] of [
      [300, true],
      [301, false],
      [-300, true],
      [-301, false],
    ] as const) {
      const header = await sign(body, { timestamp: NOW_S - age });
      expect([age, await ours(body, header)]).toEqual([age, isGood]);
      expect([age, await theirs(body, header)]).toEqual([age, age <= 300]);
    }
  });

  it("may use the old or the new secret during a rotation", async () => {
    const body = BODIES[1][1];
    const [, before = ""] = (await sign(body, { secret: OTHER })).split(",");
    const both = `${await sign(body)},${before}`;
    for (const secrets of [[SECRET], [OTHER], ["whsec_third", OTHER]]) {
      expect(await ours(body, both, { secrets })).toBe(true);
    }
    expect(await ours(body, both, { secrets: ["whsec_third"] })).toBe(false);
  });

  it.each([
    ["no header", () => null],
    ["an empty header", () => ""],
    ["only v0", (header: string) => header.replace("v1=", "v0=")],
    [
      "a time that differs from the signed time",
      (header: string) => header.replace(`${NOW_S}`, `${NOW_S + 1}`),
    ],
    ["two times", (header: string) => `t=${NOW_S - 1},${header}`],
    ["no time", (header: string) => header.replace(/^t=\d+,/, "")],
    ["a short signature", (header: string) => header.slice(0, -2)],
    [
      "the secret without its prefix",
      async (_: string, body: string) => sign(body, { secret: SECRET.slice(6) }),
    ],
    [
      "a valid signature after eight invalid ones",
      (header: string) => header.replace(",", `,${"v1=00,".repeat(8)}`),
    ],
  ] as const)("isn't accepted with %s", async (_what, bend) => {
    const body = BODIES[0][1];
    expect(await ours(body, await bend(await sign(body), body))).toBe(false);
  });
});

/** Creates a customer with our own client. */
async function customerOf(fake: FakeStripe): Promise<string> {
  const account = { secretKey: "sk_test_made_up", baseUrl: "https://api.stripe.com" };
  const stripe = createStripeClient(account, async (url, init) =>
    fake.handle(new Request(url, init)),
  );
  const params = buildCustomerParams({ orgId: "org_1", orgName: "Müller & Söhne €", region: "eu" });
  const response = await stripe.ask(buildPostCall("/v1/customers", params, "cus:org_1"));
  return stripeIdSchema.parse(response.kind === "done" ? response.body : null).id;
}

it("the fake Stripe's webhook signature is valid for the gateway and for Stripe's package", async () => {
  const fake = new FakeStripe({ now: () => NOW_S * 1000 });
  fake.bank.handMade(await customerOf(fake), 1000);
  const [event] = fake.events;
  if (event === undefined) throw new Error("nothing happened");
  for (const secrets of [[SECRET], [OTHER, SECRET]]) {
    const request = await signedWebhook(
      event,
      { url: "https://eu.test/payments/stripe", secrets },
      NOW_S,
    );
    const header = request.headers.get("stripe-signature") ?? "";
    const body = await request.text();
    expect([await ours(body, header), await theirs(body, header)]).toEqual([true, true]);
  }
});
