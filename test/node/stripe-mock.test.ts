import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, it } from "vitest";
import { freePort } from "../../scripts/ports.ts";
import * as calls from "../../src/money/payments/stripe-calls.ts";
import { createStripeClient } from "../../src/money/payments/stripe.ts";
import type { StripeParams, StripeCall } from "../../src/money/payments/stripe.ts";
import { selectMeteredRequests, findUsageFormat } from "../../src/events/webhooks/usage-formats.ts";
import { micros } from "../../src/shared/money.ts";
import { GENERATION_RECORD } from "../fixtures/generation-record.ts";
import { SALE } from "../payments/sale.ts";

/**
 * Stripe's own mock, which knows every path and field of its OpenAPI document but has no state. Not
 * in CI: `go install github.com/stripe/stripe-mock@v0.203.0`, then STRIPE_MOCK=<the program> npx
 * vitest run test/node/stripe-mock
 */
const { STRIPE_MOCK } = process.env;

const post = (path: string, params: StripeParams): StripeCall =>
  calls.buildPostCall(path, params, `key:${path}`);
const { allowed_payment_method_types: _, ...session } = calls.buildCheckoutSessionParams(SALE);
const CALLS: readonly StripeCall[] = [
  post("/v1/customers", calls.buildCustomerParams({ orgId: "o", orgName: "ü €", region: "eu" })),
  post("/v1/customers/cus_1", calls.buildDefaultCardParams("pm_1")),
  // Its document is from 2026-08-26, and has the removed name instead of the new one.
  post("/v1/checkout/sessions", session),
  post("/v1/checkout/sessions/cs_1/expire", {}),
  post("/v1/invoices", calls.buildInvoiceParams(SALE, "pm_1")),
  post("/v1/invoiceitems", calls.buildInvoiceItemParams(SALE, "in_1")),
  post("/v1/invoices/in_1/finalize", calls.FINALIZE_INVOICE_PARAMS),
  post("/v1/invoices/in_1/pay", calls.buildPayInvoiceParams("pm_1")),
  post("/v1/invoices/in_1/void", {}),
  { method: "DELETE", path: "/v1/invoices/in_1", body: null, key: null },
  post(
    "/v1/refunds",
    calls.buildRefundParams("pi_1", { amountCents: 100, reason: "duplicate", name: "name" }),
  ),
  post("/v1/refunds", calls.buildRefundParams("pi_1", { amountCents: null, name: "name" })),
  post(
    "/v1/billing_portal/sessions",
    calls.buildBillingPortalParams("cus_1", "https://eu.test/console/"),
  ),
  calls.buildReadCheckoutSessionCall("cs_1"),
  calls.buildReadInvoiceCall("in_1"),
  calls.buildReadPaymentIntentCall("pi_1"),
  calls.buildListRefundsCall("pi_1"),
  calls.buildListDisputesCall("pi_1"),
  calls.buildListInvoicePaymentsCall("pi_1"),
  calls.buildListCreatedSinceCall("checkout/sessions", "cus_1", SALE.createdAt),
  calls.buildListCreatedSinceCall("invoices", "cus_1", SALE.createdAt),
  calls.buildGetCall("/v1/charges/ch_1"),
  calls.buildGetCall("/v1/events", {
    created: { gte: 1 },
    limit: 100,
    types: ["invoice.paid", "refund.failed"],
  }),
];

it.runIf(STRIPE_MOCK !== undefined)(
  "the payments code sends only calls that Stripe's mock server accepts",
  async () => {
    const [http, https] = await Promise.all([freePort(), freePort()]);
    const listen = ["-http-addr", `127.0.0.1:${http}`, "-https-addr", `127.0.0.1:${https}`];
    const mock = spawn(STRIPE_MOCK ?? "", listen);
    try {
      await once(mock.stdout, "data"); // it prints its address
      const account = { secretKey: "sk_test_123456789", baseUrl: `http://127.0.0.1:${http}` };
      const stripe = createStripeClient(account);
      await expect
        .poll(async () => (await stripe.ask(calls.buildReadPaymentIntentCall("pi_1"))).kind)
        .toBe("done");
      const answers = await Promise.all(
        CALLS.map(async (call) => [call.method, call.path, (await stripe.ask(call)).kind]),
      );
      expect(answers.filter(([, , kind]) => kind !== "done")).toEqual([]);
      expect(await meterEvent(account.baseUrl, "")).toBe(200);
      expect(await meterEvent(account.baseUrl, "&color=red")).toBe(400);
      const wrong = await stripe.ask(
        post("/v1/invoices/in_1/pay", { off_session: true, color: "red" }),
      );
      expect(wrong).toMatchObject({ kind: "refused", status: 400 });
    } finally {
      mock.kill();
    }
  },
);

/** Sends one request as a meter event with text appended. Returns the status. */
async function meterEvent(url: string, more: string): Promise<number> {
  const row = {
    id: "req_1",
    kind: "usage" as const,
    firstSeq: 1,
    seq: 1,
    amountMicro: micros(-7),
    balanceMicro: micros(0),
    createdAt: Date.now(),
    reference: null,
    request: GENERATION_RECORD,
  };
  const format = findUsageFormat("stripe_meter_events");
  if (format === null) throw new Error("no format");
  const settings = { eventName: "ai_usage" };
  const { status } = await fetch(url + format.path, {
    method: "POST",
    headers: { "content-type": format.contentType, authorization: "Bearer sk_test_123456789" },
    body: format.body(selectMeteredRequests([row], format, settings), settings) + more,
  });
  return status;
}
