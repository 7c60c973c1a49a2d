import { Stripe } from "stripe";
import { describe, expect, it } from "vitest";
import { FakeStripe } from "../fakes/stripe/fake.ts";
import type * as Kept from "../fakes/stripe/objects.ts";

const HOUR_MS = 3_600_000;

/** Returns a fake with a clock that the test sets, and Stripe's own client for it. */
function withClient(taxPercent = 0) {
  const clock = { now: Date.UTC(2026, 10, 25, 12) };
  const fake = new FakeStripe({ now: () => clock.now, taxPercent });
  const fetch = async (url: unknown, init?: RequestInit): Promise<Response> =>
    fake.handle(new Request(String(url), init));
  const stripe = new Stripe("sk_test_made_up", {
    httpClient: Stripe.createFetchHttpClient(fetch),
    maxNetworkRetries: 0,
    telemetry: false,
  });
  const expires_at = (): number => Math.floor(clock.now / 1000) + 3600;
  return { clock, fake, stripe, expires_at };
}
type Client = ReturnType<typeof withClient>;

const order = (customer: string, expires_at: number): Stripe.Checkout.SessionCreateParams => ({
  mode: "payment",
  customer,
  customer_update: { name: "auto", address: "auto" },
  client_reference_id: "pur_1",
  payment_intent_data: { metadata: { purchase_id: "pur_1" }, setup_future_usage: "off_session" },
  line_items: [
    {
      price_data: {
        currency: "usd",
        unit_amount: 1000,
        tax_behavior: "exclusive",
        product_data: { name: "Credits" },
      },
      quantity: 1,
    },
  ],
  automatic_tax: { enabled: true },
  tax_id_collection: { enabled: true },
  billing_address_collection: "required",
  invoice_creation: { enabled: true },
  adaptive_pricing: { enabled: false },
  expires_at,
  success_url: "https://eu.test/console/",
  cancel_url: "https://eu.test/console/",
});

async function boughtBy({ stripe, fake, expires_at }: Client) {
  const customer = await stripe.customers.create({ name: "Acme" });
  const session = await stripe.checkout.sessions.create(order(customer.id, expires_at()));
  const intent = await stripe.paymentIntents.retrieve(fake.person.pay(session.id));
  return { customer: customer.id, session: session.id, intent };
}

async function openInvoice({ stripe }: Client, customer: string, card: string): Promise<string> {
  const { id } = await stripe.invoices.create({
    customer,
    currency: "usd",
    auto_advance: false,
    pending_invoice_items_behavior: "exclude",
    default_payment_method: card,
    payment_settings: { payment_method_types: ["card"] },
  });
  await stripe.invoiceItems.create({ customer, invoice: id, amount: 2500, currency: "usd" });
  await stripe.invoices.finalizeInvoice(id, { auto_advance: false });
  return id;
}

const cardOf = ({ payment_method: card }: Stripe.PaymentIntent): string =>
  typeof card === "string" ? card : "none";
const codeOf = (error: unknown): string | undefined =>
  error instanceof Stripe.errors.StripeError ? (error.code ?? error.type) : String(error);
const refused = async (call: Promise<unknown>): Promise<string | undefined> =>
  call.then(() => "accepted", codeOf);

describe("the fake Stripe, called by Stripe's own client", () => {
  it("completes a checkout: charges the total with tax, saves the card and marks an invoice as paid", async () => {
    const client = withClient(19);
    const { session, intent, customer } = await boughtBy(client);
    const read = await client.stripe.checkout.sessions.retrieve(session, {
      expand: ["payment_intent.latest_charge"],
    });
    expect(read).toMatchObject({ status: "complete", payment_status: "paid", amount_total: 1190 });
    expect(read.payment_intent).toMatchObject({
      latest_charge: { amount_captured: 1190, payment_method_details: { card: { last4: "4242" } } },
    });
    expect(intent).toMatchObject({ amount_received: 1190, metadata: { purchase_id: "pur_1" } });
    expect((await client.stripe.customers.listPaymentMethods(customer)).data).toHaveLength(1);
    expect(client.fake.events.map(({ type }) => type)).toEqual(
      expect.arrayContaining([
        "payment_intent.succeeded",
        "checkout.session.completed",
        "invoice.paid",
      ]),
    );
    expect(client.fake.payments()).toMatchObject([{ received: 1190, tax: 190, session }]);
    expect(() => client.fake.person.pay(session)).toThrow("complete");
  });

  it("leaves a checkout session open after a decline, until the session expires after an hour", async () => {
    const client = withClient();
    const { id: customer } = await client.stripe.customers.create({});
    const session = await client.stripe.checkout.sessions.create(
      order(customer, client.expires_at()),
    );
    client.fake.person.decline(session.id);
    expect((await client.stripe.checkout.sessions.retrieve(session.id)).status).toBe("open");
    client.clock.now += HOUR_MS;
    expect((await client.stripe.checkout.sessions.retrieve(session.id)).status).toBe("expired");
    expect(await refused(client.stripe.checkout.sessions.expire(session.id))).toContain(
      "StripeInvalidRequestError",
    );
    expect(client.fake.payments()).toEqual([]);
  });

  it("charges a saved card by invoice only once, and returns the bank's decline reason", async () => {
    const client = withClient();
    const { customer, intent } = await boughtBy(client);
    const card = cardOf(intent);
    const first = await openInvoice(client, customer, card);
    const paid = await client.stripe.invoices.pay(
      first,
      { off_session: true },
      { idempotencyKey: "pay" },
    );
    const again = await client.stripe.invoices.pay(
      first,
      { off_session: true },
      { idempotencyKey: "pay" },
    );
    expect([paid.status, again.status]).toEqual(["paid", "paid"]);
    expect(await refused(client.stripe.invoices.pay(first))).toContain("StripeInvalidRequestError");
    expect(client.fake.payments()).toHaveLength(2);
    const second = await openInvoice(client, customer, card);
    for (const [behavior, code] of [
      [{ decline_code: "lost_card" }, "card_declined"],
      ["asks", "authentication_required"],
      ["asks_invalid", "invoice_payment_intent_requires_action"],
    ] as const) {
      client.fake.bank.card(card, behavior);
      expect(await refused(client.stripe.invoices.pay(second, { off_session: true }))).toBe(code);
    }
    const read = await client.stripe.invoices.retrieve(second, {
      expand: ["payments.data.payment.payment_intent"],
    });
    expect(read.payments?.data[0]?.payment.payment_intent).toMatchObject({
      status: "requires_action",
    });
    await client.stripe.invoices.voidInvoice(second);
    expect(await refused(client.stripe.invoices.pay(second))).toBe("invoice_not_editable");
    expect(() => client.fake.person.payInvoice(second)).toThrow("void");
  });

  it("reports refunds, and disputes that are lost, won, or partly won", async () => {
    const client = withClient();
    const { intent } = await boughtBy(client);
    const refund = client.fake.bank.refund(intent.id, 300);
    expect(client.fake.truth(intent.id).gross).toBe(300);
    client.fake.bank.moveRefund(refund, "failed");
    expect(client.fake.truth(intent.id).gross).toBe(0);
    const inquiry = client.fake.bank.dispute(intent.id, { status: "warning_needs_response" });
    client.fake.bank.moveDispute(inquiry, "warning_closed");
    expect(client.fake.truth(intent.id).gross).toBe(0);
    const dispute = client.fake.bank.dispute(intent.id);
    expect(client.fake.truth(intent.id).gross).toBe(1000);
    expect(await refused(client.stripe.refunds.create({ payment_intent: intent.id }))).toBe(
      "charge_disputed",
    );
    client.fake.bank.moveDispute(dispute, "won", 400);
    expect(client.fake.truth(intent.id).gross).toBe(600);
    client.fake.bank.moveDispute(dispute, "appeal_under_review");
    expect(client.fake.truth(intent.id).gross).toBe(1000);
    const { data } = await client.stripe.disputes.list({ payment_intent: intent.id });
    expect(data.flatMap((one) => one.balance_transactions.map(({ amount }) => amount))).toEqual([
      -1000, 400, -400,
    ]);
  });
});

describe("the fake Stripe", () => {
  const WRONG: readonly (readonly [string, object, string])[] = [
    [
      "a name that is gone",
      { payment_method_types: ["card"] },
      "payment_method_types_no_longer_supported",
    ],
    ["a name that never was", { color: "red" }, "parameter_unknown"],
    [
      "a customer who is made and known",
      { customer_creation: "always" },
      "StripeInvalidRequestError",
    ],
    [
      "tax without an address",
      { customer_update: { name: "auto" } },
      "customer_tax_location_invalid",
    ],
    [
      "a tax id without a name",
      { customer_update: { address: "auto" } },
      "StripeInvalidRequestError",
    ],
    [
      "an end in ten minutes",
      { expires_at: Date.UTC(2026, 10, 25, 12, 10) / 1000 },
      "StripeInvalidRequestError",
    ],
    ["a stranger", { customer: "cus_stranger" }, "resource_missing"],
    ["no page to come back to", { success_url: "console" }, "url_invalid"],
    [
      "a name that is too long",
      { metadata: { ["k".repeat(41)]: "" } },
      "StripeInvalidRequestError",
    ],
  ];
  it.each(WRONG)("rejects a session with %s, like Stripe", async (_what, wrong, code) => {
    const client = withClient();
    const { id } = await client.stripe.customers.create({});
    const params = { ...order(id, client.expires_at()), ...wrong };
    expect(
      codeOf(await client.stripe.checkout.sessions.create(params).catch((error: unknown) => error)),
    ).toBe(code);
    expect(client.fake.world.sessions.size).toBe(0);
  });

  it("rejects another customer's card, a new line on a finalized invoice, and a deleted customer", async () => {
    const client = withClient();
    const { customer, intent } = await boughtBy(client);
    const card = cardOf(intent);
    const other = await client.stripe.customers.create({});
    const stranger = { customer: other.id, default_payment_method: card };
    expect(await refused(client.stripe.invoices.create(stranger))).toContain(
      "StripeInvalidRequestError",
    );
    const invoice = await openInvoice(client, customer, card);
    const line = { customer, invoice, amount: 100, currency: "usd" };
    expect(await refused(client.stripe.invoiceItems.create(line))).toBe("invoice_not_editable");
    expect(await refused(client.stripe.invoices.del(invoice))).toBe("invoice_not_editable");
    client.fake.bank.deleteCustomer(customer);
    expect(await refused(client.stripe.invoices.create({ customer }))).toBe("resource_missing");
    expect(client.fake.events.at(-2)).toMatchObject({
      type: "payment_method.detached",
      data: { previous_attributes: { customer } },
    });
  });
});

describe("a Stripe idempotency key", () => {
  it("returns the first result for one day, even an error, and rejects a different request", async () => {
    const { stripe, fake, clock } = withClient();
    const key = { idempotencyKey: "cus:org" };
    const first = await stripe.customers.create({ name: "Acme" }, key);
    expect((await stripe.customers.create({ name: "Acme" }, key)).id).toBe(first.id);
    expect(await refused(stripe.customers.create({ name: "Other" }, key))).toBe(
      "StripeIdempotencyError",
    );
    clock.now += 24 * HOUR_MS;
    expect((await stripe.customers.create({ name: "Acme" }, key)).id).not.toBe(first.id);
    fake.fault({ kind: "500_stored", when: "after" });
    for (const replayed of [false, true]) {
      expect(
        await refused(stripe.customers.create({ name: "Third" }, { idempotencyKey: "third" })),
      ).toBe("StripeAPIError");
      expect(fake.requests.at(-1)).toMatchObject({ status: 500, replayed });
    }
    expect(fake.world.customers.size).toBe(3);
  });

  it.each(["no_answer", "reset", "500", "409"] as const)(
    "causes only one effect, even if the fault %s occurs before or after the effect",
    async (kind) => {
      for (const when of ["before", "after"] as const) {
        const { stripe, fake } = withClient();
        fake.fault({ kind, when });
        const make = () => stripe.customers.create({}, { idempotencyKey: "one" });
        await expect(make()).rejects.toThrow(/./);
        expect(fake.world.customers.size).toBe(when === "before" ? 0 : 1);
        await make();
        expect(fake.world.customers.size).toBe(1);
      }
    },
  );

  it("rejects a repeated request while the first request is in progress", async () => {
    const { promise: waits, resolve: done } = Promise.withResolvers<void>();
    const fake = new FakeStripe({ now: () => 0, sleep: () => waits });
    const createCustomer = () =>
      fake.handle(
        new Request("https://api.stripe.com/v1/customers", {
          method: "POST",
          headers: {
            authorization: "Bearer rk_test_a",
            "stripe-version": "2026-10-28.endive",
            "content-type": "application/x-www-form-urlencoded",
            "idempotency-key": "one",
          },
        }),
      );
    fake.fault({ kind: "slow", when: "after" });
    const first = createCustomer();
    await Promise.resolve();
    await expect.poll(async () => (await createCustomer()).status).toBe(409);
    done();
    expect((await first).status).toBe(200);
    expect(fake.world.customers.size).toBe(1);
  });
});

describe("the fake Stripe's list of events", () => {
  it("returns events newest first, by page and type, for thirty days, after the configured delays", async () => {
    const { stripe, fake, clock } = withClient();
    await stripe.customers.create({});
    fake.hideEvents(600_000);
    await stripe.customers.create({});
    const all = async () => (await stripe.events.list({ limit: 100 })).data.length;
    expect(await all()).toBe(1);
    clock.now += 600_000;
    expect(await all()).toBe(2);
    const pages = await stripe.events
      .list({ limit: 1, types: ["customer.created"] })
      .autoPagingToArray({ limit: 10 });
    expect(pages.map(({ id }) => id)).toEqual(fake.events.map(({ id }) => id).toReversed());
    clock.now += 30 * 24 * HOUR_MS;
    expect(await all()).toBe(0);
  });

  it("keeps its events and all other data after a restart", async () => {
    const client = withClient();
    const { session, intent } = await boughtBy(client);
    const later = new FakeStripe({ now: () => client.clock.now + 1 });
    later.restore(JSON.parse(JSON.stringify(client.fake.snapshot())));
    expect(later.truth(intent.id).captured).toBe(1000);
    expect(later.events).toEqual(client.fake.events);
    expect(() => later.person.pay(session)).toThrow("complete");
  });
});

/**
 * Every field of the fake must exist in Stripe's own types. An unknown one is a type error here.
 */
type Known<Ours, Theirs> = Exclude<keyof Ours, keyof Theirs> extends never ? true : never;
void ([true, true, true, true, true, true, true, true] satisfies [
  Known<Kept.Session, Stripe.Checkout.Session>,
  Known<Kept.Invoice, Stripe.Invoice>,
  Known<Kept.InvoicePayment, Stripe.InvoicePayment>,
  Known<Kept.Intent, Stripe.PaymentIntent>,
  Known<Kept.Charge, Stripe.Charge>,
  Known<Kept.Refund, Stripe.Refund>,
  Known<Kept.Dispute, Stripe.Dispute>,
  Known<Kept.PaymentMethod, Stripe.PaymentMethod>,
]);
