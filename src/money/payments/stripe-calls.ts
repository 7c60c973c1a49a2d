import type { RefundRequest } from "../../shared/contracts/payments.ts";
import type { PaymentDeps, Purchase } from "./purchase.ts";
import type { Micros } from "../../shared/money.ts";
import { encodeForm } from "./stripe.ts";
import type { StripeParams, StripeCall } from "./stripe.ts";

const CENT_MICROS = 10_000;
const CHECKOUT_MS = 3_600_000;

function centsOf(amount: Micros): number {
  return Math.round(amount / CENT_MICROS);
}

/** Reports whether an invoice's subtotal before tax equals the purchase's amount. */
export function isInvoicedAmountCorrect(
  { amountMicro }: { readonly amountMicro: Micros },
  { subtotal }: { readonly subtotal: number },
): boolean {
  return subtotal === centsOf(amountMicro);
}

export type PurchaseForStripe = Pick<
  Purchase,
  "id" | "method" | "amountMicro" | "saveCard" | "createdAt" | "returnUrl"
> &
  Pick<PaymentDeps, "region" | "hasTax" | "taxCode"> & {
    readonly orgId: string;
    readonly customerId: string;
  };

const PRODUCT_NAME = "API credits";

function metadataOf({ id, orgId, region }: PurchaseForStripe): Readonly<Record<string, string>> {
  return { purchase_id: id, org_id: orgId, region };
}

export function buildCustomerParams(org: {
  readonly orgId: string;
  readonly orgName: string;
  readonly region: string;
}) {
  return { name: org.orgName, metadata: { org_id: org.orgId, region: org.region } };
}

export function buildCheckoutSessionParams(purchase: PurchaseForStripe) {
  const { id, amountMicro, customerId, createdAt, hasTax, returnUrl, saveCard, taxCode } = purchase;
  const metadata = metadataOf(purchase);
  return {
    mode: "payment",
    customer: customerId,
    customer_update: { name: "auto", address: "auto" },
    client_reference_id: id,
    metadata,
    payment_intent_data: {
      metadata,
      ...(saveCard && { setup_future_usage: "off_session" as const }),
    },
    line_items: [
      {
        price_data: {
          currency: "usd",
          unit_amount: centsOf(amountMicro),
          tax_behavior: "exclusive",
          product_data: { name: PRODUCT_NAME, ...(taxCode !== null && { tax_code: taxCode }) },
        },
        quantity: 1,
      },
    ],
    automatic_tax: { enabled: hasTax },
    tax_id_collection: { enabled: hasTax },
    billing_address_collection: "required",
    invoice_creation: { enabled: true, invoice_data: { metadata } },
    adaptive_pricing: { enabled: false },
    allowed_payment_method_types: ["card"],
    expires_at: Math.floor((createdAt + CHECKOUT_MS) / 1000),
    success_url: returnUrl + id,
    cancel_url: returnUrl + id,
  } as const;
}

export function buildInvoiceParams(purchase: PurchaseForStripe, paymentMethod: string) {
  return {
    customer: purchase.customerId,
    currency: "usd",
    collection_method: "charge_automatically",
    auto_advance: false,
    pending_invoice_items_behavior: "exclude",
    automatic_tax: { enabled: purchase.hasTax },
    default_payment_method: paymentMethod,
    payment_settings: { payment_method_types: ["card"] },
    metadata: metadataOf(purchase),
  } as const;
}

export function buildInvoiceItemParams(purchase: PurchaseForStripe, invoiceId: string) {
  const { amountMicro, customerId, taxCode } = purchase;
  return {
    customer: customerId,
    invoice: invoiceId,
    amount: centsOf(amountMicro),
    currency: "usd",
    tax_behavior: "exclusive",
    description: PRODUCT_NAME,
    ...(taxCode !== null && { tax_code: taxCode }),
  } as const;
}

export const FINALIZE_INVOICE_PARAMS = { auto_advance: false } as const;

export function buildPayInvoiceParams(paymentMethod: string) {
  return { off_session: true, payment_method: paymentMethod } as const;
}

/**
 * Returns the parameters of a refund. A later search finds the refund by the `name` in its
 * metadata.
 */
export function buildRefundParams(
  paymentId: string,
  { amountCents, reason, name }: Pick<RefundRequest, "amountCents" | "reason" | "name">,
) {
  return {
    payment_intent: paymentId,
    metadata: { refund: name },
    ...(amountCents !== null && { amount: amountCents }),
    ...(reason && { reason }),
  };
}

export function buildBillingPortalParams(customerId: string, returnUrl: string) {
  return { customer: customerId, return_url: returnUrl };
}

export function buildDefaultCardParams(paymentMethod: string) {
  return { invoice_settings: { default_payment_method: paymentMethod } };
}

export function buildPostCall(path: string, params: StripeParams, key: string): StripeCall {
  return { method: "POST", path, body: encodeForm(params), key };
}

export function buildGetCall(path: string, params: StripeParams = {}): StripeCall {
  const query = encodeForm(params);
  return { method: "GET", path: query === "" ? path : `${path}?${query}`, body: null, key: null };
}

export const buildReadCheckoutSessionCall = (id: string): StripeCall =>
  buildGetCall(`/v1/checkout/sessions/${id}`, { expand: ["payment_intent.latest_charge"] });
export const buildReadInvoiceCall = (id: string): StripeCall =>
  buildGetCall(`/v1/invoices/${id}`, { expand: ["payments.data.payment.payment_intent"] });
export const buildReadPaymentIntentCall = (id: string): StripeCall =>
  buildGetCall(`/v1/payment_intents/${id}`, { expand: ["latest_charge"] });
export const buildReadRefundCall = (id: string): StripeCall => buildGetCall(`/v1/refunds/${id}`);
export const buildListRefundsCall = (paymentId: string): StripeCall =>
  buildGetCall("/v1/refunds", { payment_intent: paymentId, limit: 100 });
export const buildListDisputesCall = (paymentId: string): StripeCall =>
  buildGetCall("/v1/disputes", { payment_intent: paymentId, limit: 100 });
export const buildListInvoicePaymentsCall = (paymentId: string): StripeCall =>
  buildGetCall("/v1/invoice_payments", {
    payment: { type: "payment_intent", payment_intent: paymentId },
    limit: 10,
  });
/**
 * Builds a call that lists a customer's objects created since ten minutes before `sinceMs`, because
 * clocks differ.
 */
export function buildListCreatedSinceCall(
  what: "checkout/sessions" | "invoices",
  customerId: string,
  sinceMs: number,
): StripeCall {
  const gte = Math.floor(sinceMs / 1000) - 600;
  return buildGetCall(`/v1/${what}`, { customer: customerId, created: { gte }, limit: 100 });
}
